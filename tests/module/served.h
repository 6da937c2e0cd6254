/* served.h - which words of the scripted target's stream were served, over all threads and forked processes. */
#ifndef P11_PROXY_TEST_SERVED_H
#define P11_PROXY_TEST_SERVED_H

#include "fixture.h"
#include "words.h"

/* Draws size_bytes at a time, len_bytes in all, which must succeed; notes them. Returns the lowest number of a word. */
uint64_t draw(CK_SESSION_HANDLE session, size_t size_bytes, size_t len_bytes);

/* One word by one call. */
struct word draw_word(CK_SESSION_HANDLE session);

/* One call, which may fail: then it must have left nothing in the buffer. */
CK_RV draw_or_fail(CK_SESSION_HANDLE session, size_t len_bytes);

/* Draws until something is so. */
#define DRAW_UNTIL(session, condition)                                                             \
    do {                                                                                           \
        for (unsigned long since_ms_ = 0; !(condition); wait_a_moment(&since_ms_, #condition))     \
            draw(session, 32, 1024);                                                               \
    } while (0)

/* Draws until words come that were held before, and there are more of them. Returns how many were made then. */
uint64_t draw_until_held(CK_SESSION_HANDLE session);

/* Draws until there is a filler, and it has filled. */
void draw_until_filled(CK_SESSION_HANDLE session);

/* Fails the test unless most of a hundred draws reach no token, and no word is served twice. */
void small_draws_are_served_ahead(CK_SESSION_HANDLE session);

/*
 * Notes what was served, a stretch of any length and alignment. Words that a stretch breaks into are not recognised.
 * Any thread, any process.
 */
void served(const uint8_t *bytes, size_t len_bytes);
void served_word(uint64_t counter);
bool was_served(uint64_t counter);
void served_begin(void); /* at a test's beginning, by the fixture */

/* What is wrong so far: that a word was served twice, or was zero. NULL if nothing is. */
const char *served_wrong(void);

/* Fails the test if a word was served twice, if zeros were served, or if fewer than least words were recognised. */
void served_once(uint64_t least);

#endif
