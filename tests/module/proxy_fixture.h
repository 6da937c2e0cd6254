/* proxy_fixture.h - the built proxy, loaded before a target and a configuration that a test chooses.
 *
 * Check runs each test in a process of its own, so each finds the proxy unloaded and the environment as
 * meson set it.
 */
#ifndef P11_PROXY_TEST_PROXY_FIXTURE_H
#define P11_PROXY_TEST_PROXY_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "cryptoki.h"
#include "functions.h"

extern CK_FUNCTION_LIST_PTR fn; /* the proxy's plain list */
extern void *proxy;             /* its dlopen() handle */
extern void *target;            /* the test target's, if it is one of ours */
extern char root[64];           /* a folder that lasts one test */

extern CK_C_INITIALIZE_ARGS os_locking;
extern CK_C_INITIALIZE_ARGS no_threads; /* CKF_LIBRARY_CANT_CREATE_OS_THREADS besides */

void fixture_setup(void);
void fixture_teardown(void);

/* The path of a target of ours, or name itself if it has a '/'; in a buffer that the next call overwrites. */
const char *target_path(const char *name);

/* Loads the proxy before the target of that name, under more lines of configuration. The proxy's own log
 * goes to root/log, the counting target's to root/calls. */
void proxy_before(const char *name, const char *settings);

/* The same before SoftHSM, with a token in its first slot; initialised. */
void proxy_before_softhsm(const char *settings);
CK_SLOT_ID softhsm_slot(void);

/* The same with a configuration file that says no more than settings, and no other environment. */
void proxy_configured(const char *settings);

/* A symbol of the target. */
void *target_symbol(const char *name);

/* Tells the counting target: knob("FAIL_CODE", "0x30"); NULL makes it forget. */
void knob(const char *name, const char *value);

/* C_Initialize with os_locking, which must succeed. */
void initialize(void);

/* A new session, which must be opened. */
CK_SESSION_HANDLE open_session(CK_SLOT_ID slot, CK_FLAGS more_flags);

/* Fails the test unless the call returns rv. */
#define EXPECT(call, rv)                                                                           \
    do {                                                                                           \
        CK_RV got_ = (call), wanted_ = (rv);                                                       \
        ck_assert_msg(got_ == wanted_, "%s is 0x%lx, not 0x%lx", #call, got_, wanted_);            \
    } while (0)

/* How many lines of the counting target's log begin with the function's name (up to a blank), and contain
 * what (unless NULL). */
unsigned target_calls(const char *function);
unsigned target_calls_with(const char *function, const char *what);

/* The same, by this thread; and by any other. In one look each: more may come meanwhile. */
unsigned target_calls_by_us(const char *function);
unsigned target_calls_by_others(const char *function);

/* The longest request for random bytes that the target saw, and the sum of all that it answered. */
unsigned long target_longest_request(void);
unsigned long target_bytes_made(void);

/* All calls. */
unsigned target_calls_in_all(void);

/* Waits until the log of calls has stopped growing for a while, and all other threads sleep, none waits for a
 * processor: the prefetch has what it wants. */
void wait_until_quiet(void);

/* Waits until something is so, half a minute at most. */
bool wait_for(bool (*is_so)(void));

/* How many threads this process has. The kernel counts one a moment longer than pthread_join() waits for it, so
 * who expects fewer waits for that. */
unsigned threads_now(void);
bool threads_become(unsigned count);

/* With the first thread that a program makes, a sanitizer makes one of its own, to stay. */
void begin_a_thread_and_end_it(void);

/* Whether that thread of ours sleeps, in a call of the kernel's. */
bool thread_sleeps(long thread);

/* The number of the prefetch's thread, 0 if it has none. */
long prefetch_thread(void);

/* Lines that the proxy wrote, to its log file or on stderr (if captured), that contain text. */
void capture_stderr(void);
unsigned messages_with(const char *text);

#endif
