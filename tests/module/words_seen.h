/* words_seen.h - which words of the counting target's stream were served, over all threads and processes. */
#ifndef P11_PROXY_TEST_WORDS_SEEN_H
#define P11_PROXY_TEST_WORDS_SEEN_H

#include "proxy_fixture.h"
#include "words.h"

/* Begins a stream that forked processes share with this one. Before the proxy is loaded. */
void words_begin(void);

/* How many words the target has made. */
uint64_t words_made(void);

/*
 * Notes what was served, a stretch of any length and alignment. Words that a stretch breaks into are
 * not recognised, so the longer the stretches the better. Any thread, any process.
 */
void words_note(const uint8_t *bytes, size_t len_bytes);

/* Whether that word was. */
bool words_was_noted(uint64_t counter);

/* Fails the test if a word was served twice, if zeros were served, or if fewer than least words were
 * recognised. */
void words_check(uint64_t least);

/* Draws small pieces on session, size_bytes each, len_bytes in all, and notes them. Fails the test if a
 * call fails. Returns the lowest counter of a word that came. */
uint64_t words_draw(CK_SESSION_HANDLE session, size_t size_bytes, size_t len_bytes);

/* Draws on until that is so: until the prefetch is at the target's gate, say, for which the pool must be low. */
void words_draw_until(CK_SESSION_HANDLE session, bool (*is_so)(void));

/* One word by one call, which must succeed. */
struct word word_draw(CK_SESSION_HANDLE session);

#endif
