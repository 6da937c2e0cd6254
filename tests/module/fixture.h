/* fixture.h - the built proxy, loaded anew in each test, before a target that does as the test tells it.
 *
 * Check runs each test in a process of its own. What is counted and logged there is read from memory that the target and
 * the processes forked from the test share with it, see scripted.h.
 */
#ifndef P11_PROXY_TEST_FIXTURE_H
#define P11_PROXY_TEST_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/types.h>

#include "../check_main.h"
#include "scripted.h"
#include "words.h"

extern CK_FUNCTION_LIST_PTR fn; /* the proxy's plain list */
extern void *proxy;             /* its dlopen() handle */

extern CK_C_INITIALIZE_ARGS os_locking;
extern CK_C_INITIALIZE_ARGS no_threads; /* CKF_LIBRARY_CANT_CREATE_OS_THREADS besides */

/* In a child of a process with threads AddressSanitizer's allocator finds its own locks held for ever, where libc
 * sees to its own; ThreadSanitizer starts no thread there, has a thread of its own, and slows all threads but one. */
#define SKIP_IF_SANITIZED()                                                                        \
    SKIP_IF(IS_SANITIZED, "the sanitizer's own threads and locks are in the way")

/*
 * Loads the proxy before the scripted target, under these lines of configuration. before: the same before the target of
 * that name, or at that path. configured: with no other lines than these, and no environment. The proxy's log
 * goes to root/log.
 */
void proxy_with(const char *settings);
void proxy_before(const char *target, const char *settings);
void proxy_configured(const char *settings);

/* Loads the proxy again, after a dlclose(proxy). */
void proxy_load(void);

/* The path of a target of ours, or name itself if it has a '/'. */
const char *target_path(const char *name);

/* The plain list of a module that dlopen() gave; and the target's own, for what the application does without the proxy. */
CK_FUNCTION_LIST_PTR list_of(void *module);
CK_FUNCTION_LIST_PTR bare_list(void);

/* The proxy's list of that version, which the target must have. */
const struct p11_functions *interface_list(CK_BYTE major, CK_BYTE minor);

/* Tells the scripted target, see target.h; what it was told before stays true. */
void __attribute__((format(printf, 1, 2))) script(const char *format, ...);
/* The same, and what it was told before is forgotten: not while it is being called. */
void script_anew(const char *text);
/* Lets all calls go that are held, and holds no more. And how many are held. */
void script_release(void);
void script_release_first(unsigned statements); /* those after them hold on */
unsigned script_held(void);
/* What "call back" calls. */
void script_calls_back(void (*function)(void));

/* The calls of the scripted target that fit: CALLS(C_GenerateRandom, .by = FILLER, .bytes = 16). */
enum who { ANYBODY, CALLERS, FILLER, THIS_THREAD };
enum outcome { ANY_OUTCOME, GOOD, FAILED };
struct which {
    enum function function;
    enum who by;
    enum outcome outcome;
    CK_ULONG bytes; /* 0: any number */
    CK_SESSION_HANDLE session;
    CK_RV rv; /* 0: any */
};
#define CALLS(name, ...) target_calls((struct which){.function = FUNCTION_##name, ##__VA_ARGS__})
#define LAST_CALL(name, ...)                                                                       \
    target_last_call((struct which){.function = FUNCTION_##name, ##__VA_ARGS__})
unsigned target_calls(struct which which);
unsigned target_calls_in_all(void);
/* The longest request for random bytes, and how many words were made. */
const struct target_call *target_last_call(struct which which);
CK_ULONG target_longest_request(void);
uint64_t words_made(void);
extern struct target_shared *shared;

/* Fails the test unless the call returns rv. */
#define EXPECT(call, rv)                                                                           \
    do {                                                                                           \
        CK_RV got_ = (call), wanted_ = (rv);                                                       \
        ck_assert_msg(got_ == wanted_, "%s is 0x%lx, not 0x%lx", #call, got_, wanted_);            \
    } while (0)

/* C_Initialize with os_locking; a new session. Both must succeed. */
void initialize(void);
CK_SESSION_HANDLE open_session(CK_SLOT_ID slot, CK_FLAGS more_flags);

/* What a draw needs: the proxy before the scripted target, its life, and a read/write session in slot 0; again: another
 * life and session. Each must succeed. */
extern CK_SESSION_HANDLE session;
void begin(const char *settings);
void begin_with(CK_C_INITIALIZE_ARGS *args, const char *settings);
void begin_again(void);

/* Of the scripted target's users, and of the SO. */
extern CK_BYTE pin[5];

/* What the token in slot 0 says, which must succeed. */
CK_TOKEN_INFO token_info(void);

/* Waits until something is so. A test fails if that takes longer than a test may: it is no proof of anything else. */
#define WAIT_UNTIL(condition)                                                                      \
    do {                                                                                           \
        for (unsigned long since_ms_ = 0; !(condition);)                                           \
            wait_a_moment(&since_ms_, #condition);                                                 \
    } while (0)
void wait_a_moment(unsigned long *since_ms, const char *condition);

/* So many bytes, right before a page that faults. */
void *before_a_fault(size_t len_bytes);

/* A copy of a file, in root, by that name. Returns its path. */
const char *copy_of(const char *path, const char *name);

/* How many entries a folder has. */
unsigned entries_of(const char *folder);

/* Threads of the test's own, at most THREADS_MOST at a time, which run the same; and the end of all of them. */
enum { THREADS_MOST = 8 };
void start_threads(unsigned count, void *(*run)(void *), void *argument);
void join_threads(void);

/* How many threads this process has; the number of the filler, 0 if there is none. */
unsigned threads_now(void);
long filler_thread(void);
/* With the first thread that a program makes, a sanitizer makes one of its own, to stay. */
void begin_a_thread_and_end_it(void);

/* Lets the filler do what it has to do, for the time being. What it has done then is not said. */
void let_filler_work(void);

/* Lines of the proxy's log, or on stderr if that is captured, that contain text. */
void capture_stderr(void);
unsigned messages_with(const char *text);

/* In a child: C_Initialize, which must answer so, and a session of its own. */
CK_SESSION_HANDLE child_session(CK_C_INITIALIZE_ARGS *args, CK_RV rv);

/* A child lives by itself and ends with 0, or with the number of the line that something was wrong in. NULL: it
 * ends at once. */
pid_t child_that(void (*lives)(void));
pid_t child_by(pid_t (*way)(void), void (*lives)(void)); /* if it is made otherwise */
void child_begins(void);                                 /* it ends if it hangs */
void reap(pid_t child);
#define CHILD_EXPECT(call, rv)                                                                     \
    do {                                                                                           \
        if ((call) != (rv))                                                                        \
            _exit(__LINE__ % 251 + 1);                                                             \
    } while (0)

/* Draws size_bytes at a time, len_bytes in all, which must succeed; notes them. Returns the lowest number of a word,
 * of which there must be one. */
uint64_t draw(CK_SESSION_HANDLE on, size_t size_bytes, size_t len_bytes);

/* One word by one call. */
struct word draw_word(CK_SESSION_HANDLE on);

/* One call, which may fail: then it must have left nothing in the buffer. */
CK_RV draw_or_fail(CK_SESSION_HANDLE on, size_t len_bytes);

/* Draws until something is so. */
#define DRAW_UNTIL(on, condition)                                                                  \
    do {                                                                                           \
        for (unsigned long since_ms_ = 0; !(condition); wait_a_moment(&since_ms_, #condition))     \
            draw(on, 32, 1024);                                                                    \
    } while (0)

/* Draws until words come that were held before, and there are more of them. Returns how many were made then. */
uint64_t draw_until_held(CK_SESSION_HANDLE on);

/* Draws until there is a filler, and it has filled. The first begins before, and keeps what is held for a minute. */
void begin_filled(void);
void draw_until_filled(CK_SESSION_HANDLE on);

/* Fails the test unless most of a hundred draws reach no token. */
void small_draws_are_served_ahead(CK_SESSION_HANDLE on);

/*
 * Notes what was served, a stretch of any length and alignment. Words that a stretch breaks into are not recognised.
 * Any thread, any process. Returns the lowest number of a word, UINT64_MAX if there is none.
 */
uint64_t served(const uint8_t *bytes, size_t len_bytes);
void served_word(uint64_t counter);
bool was_served(uint64_t counter);
void served_begin(void); /* at a test's beginning, by the fixture */

/* Notes a piece that was drawn of any token, of PIECE_BYTES. Fails the test unless all that were differ and none is zeros.
 * Returns how many there are. Any thread. */
enum { PIECE_BYTES = 16 };
void drawn(const uint8_t *piece);
size_t drawn_once(void);

/* What is wrong so far: that a word was served twice, or was zero. NULL if nothing is, as at every test's end. */
const char *served_wrong(void);
uint64_t served_words(void); /* that were recognised so far */

#endif
