/* lifeboat.h - the little code of ours that other threads may still need when we are unloaded.
 *
 * dlclose() runs our destructor with the loader's lock held, and the destructor waits for the prefetch's
 * thread. If the call to the target that the thread is in wants that lock, for a dlopen() say, neither ends.
 * Then the thread has to be left behind in the target, and what it returns to must not go with us. Nor must
 * what fork() calls on some other thread at that moment. So these few functions are mapped a second time,
 * which the loader knows nothing of, and that mapping stays; the next of us in the same process finds it. A
 * thread that was left behind parks there for good. Where no such mapping can be had, we keep ourselves
 * loaded instead.
 */
#ifndef P11_PROXY_LIFEBOAT_H
#define P11_PROXY_LIFEBOAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cryptoki.h"
#include "functions.h"

enum whereabouts {
    WHERE_HOME,   /* in our code */
    WHERE_TARGET, /* in a call to the target */
    WHERE_PARKED, /* left behind, and in no call any more */
    WHERE_GONE    /* it never comes back to our code */
};

enum { BEFORE_FORK, AFTER_FORK_IN_PARENT, AFTER_FORK_IN_CHILD, FORK_HANDLERS };
typedef void fork_handler(void);

/* What those functions know while we may be gone: in memory that is not ours. */
struct lifeboat {
    atomic_uint taken;       /* by one of us that is loaded, or by a thread that was left behind */
    atomic_uint where;       /* enum whereabouts; waited on */
    atomic_uint left_behind; /* the thread must not come home from the target */
    atomic_uint in_handlers; /* threads that may be in one of the next; waited on */
    _Atomic(fork_handler *) fork_handlers[FORK_HANDLERS]; /* NULL once we are going */
    void (*run)(void);
    /* libc's, which stays: */
    int (*pause)(void);
    long (*syscall)(long number, ...);
};

/* Where the second mapping has it: so far behind the code, at a multiple of any page's size. */
enum { LIFEBOAT_BEHIND_BYTES = 128 * 1024, LIFEBOAT_ALIGNMENT = 64 * 1024 };

/* Finds or makes one, or else keeps us loaded. False if neither can be done: then there must be no thread.
 * In C_Initialize, since it needs the loader's lock, which whoever waits for a first draw may hold. */
bool lifeboat_find(void);

/* Gets it ready for a thread that is going to run(). After lifeboat_find(); one thread at a time. */
void lifeboat_make(void (*run)(void));

/* pthread_atfork(), for once, and after lifeboat_make(). */
void lifeboat_watch_forks(fork_handler *const handlers[FORK_HANDLERS]);

/* What to give pthread_create(). */
void *(*lifeboat_start(void))(void *);
void *lifeboat_argument(void);

/*
 * Waits until the thread is gone, and leaves it behind if it is in the target after patience_ns. True if it is
 * gone; false if it is left behind, or at home after most_ns (negative: waits for ever).
 */
bool lifeboat_wait(int64_t patience_ns, int64_t most_ns);

/* The thread does not come home from the target any more, and does not end either. */
void lifeboat_leave_behind(void);

/* We are going: from now on fork() calls nothing of ours. Waits for what it may be calling. */
void lifeboat_end_forks(void);

/* For the next of us to take. The thread is gone. */
void lifeboat_give_back(void);

/* The target's functions, as the thread calls them. */
CK_RV thread_C_GetTokenInfo(CK_SLOT_ID slot, CK_TOKEN_INFO_PTR info);
CK_RV thread_C_GetSessionInfo(CK_SESSION_HANDLE session, CK_SESSION_INFO_PTR info);
CK_RV thread_C_OpenSession(CK_SLOT_ID slot, CK_FLAGS flags, CK_SESSION_HANDLE_PTR session);
CK_RV thread_C_CloseSession(CK_SESSION_HANDLE session);
CK_RV thread_C_GenerateRandom(CK_SESSION_HANDLE session, CK_BYTE_PTR bytes, CK_ULONG len_bytes);

/* What is mapped twice: lifeboat_aboard.c. */
void *aboard_main(void *boat);
void aboard_before_fork(void);
void aboard_after_fork_in_parent(void);
void aboard_after_fork_in_child(void);
#define ABOARD(name, ...)                                                                          \
    CK_RV aboard_##name(struct lifeboat *boat, CK_RV (*function)(PARAMS(__VA_ARGS__)),             \
                        PARAMS(__VA_ARGS__))
ABOARD(C_GetTokenInfo, (CK_SLOT_ID, slot), (CK_TOKEN_INFO_PTR, info));
ABOARD(C_GetSessionInfo, (CK_SESSION_HANDLE, session), (CK_SESSION_INFO_PTR, info));
ABOARD(C_OpenSession, (CK_SLOT_ID, slot), (CK_FLAGS, flags), (CK_VOID_PTR, context),
       (CK_NOTIFY, notify), (CK_SESSION_HANDLE_PTR, session));
ABOARD(C_CloseSession, (CK_SESSION_HANDLE, session));
ABOARD(C_GenerateRandom, (CK_SESSION_HANDLE, session), (CK_BYTE_PTR, bytes), (CK_ULONG, len_bytes));

#endif
