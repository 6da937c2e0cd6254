/* lifeboat.c - makes or finds the second mapping, and waits for who uses it. */
#include "random/lifeboat.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "random/lifeboat_map.h"
#include "base/lock.h"
#include "target/target.h"

static const int64_t HANDLERS_WAIT_NS = 1 * NS_PER_S;

static struct lifeboat *boat;
static intptr_t
    distance; /* from the first place of the code to the second; 0: there is no second */

/* Where there is no second place: then we stay. */
static struct lifeboat own;

/* The function at its second place. */
#define ABOARD_AT(function) ((__typeof__(&(function)))((intptr_t) & (function) + distance))

bool lifeboat_find(void)
{
    int saved_errno = errno;
    if (boat == NULL)
        boat = lifeboat_map(&distance);
    if (boat == NULL && lifeboat_keep_us_loaded())
        boat = &own;
    errno = saved_errno;
    return boat != NULL;
}

void lifeboat_make(void (*run)(void))
{
    boat->run = run;
    boat->pause = pause;
    boat->syscall = syscall;
    atomic_store(&boat->left_behind, 0);
    atomic_store(&boat->where, WHERE_HOME);
}

void lifeboat_watch_forks(fork_handler *const handlers[FORK_HANDLERS])
{
    if (boat == &own) {
        pthread_atfork(handlers[BEFORE_FORK], handlers[AFTER_FORK_IN_PARENT],
                       handlers[AFTER_FORK_IN_CHILD]);
        return;
    }
    for (int i = 0; i < FORK_HANDLERS; i++)
        atomic_store(&boat->fork_handlers[i], handlers[i]);
    /* Dropped by the C library when we are unloaded, but another thread may be about to call them. */
    pthread_atfork(ABOARD_AT(aboard_before_fork), ABOARD_AT(aboard_after_fork_in_parent),
                   ABOARD_AT(aboard_after_fork_in_child));
}

void *(*lifeboat_start(void))(void *)
{
    return ABOARD_AT(aboard_main);
}

void *lifeboat_argument(void)
{
    return boat;
}

void lifeboat_leave_behind(void)
{
    if (boat != NULL)
        atomic_store(&boat->left_behind, 1);
}

bool lifeboat_wait(int64_t patience_ns, int64_t most_ns)
{
    int64_t begun_ns = clock_exact_ns();
    for (;;) {
        unsigned where = atomic_load(&boat->where);
        int64_t waited_ns = clock_exact_ns() - begun_ns;
        if (where == WHERE_GONE)
            return true;
        bool leave = waited_ns >= patience_ns;
        if (leave) {
            /* What it is in now ends there, whenever that is. */
            atomic_store(&boat->left_behind, 1);
            where = atomic_load(&boat->where);
            if (where == WHERE_TARGET || where == WHERE_PARKED)
                return false;
        }
        if (most_ns >= 0 && waited_ns >= most_ns)
            return false;
        /* It does not tell when it comes home or leaves. */
        wait_on_word(&boat->where, where, leave ? 1 * NS_PER_MS : patience_ns - waited_ns);
    }
}

void lifeboat_end_forks(void)
{
    if (boat == NULL)
        return;
    for (int i = 0; i < FORK_HANDLERS; i++)
        atomic_store(&boat->fork_handlers[i], NULL);
    int64_t until_ns = clock_exact_ns() + HANDLERS_WAIT_NS;
    unsigned inside;
    while ((inside = atomic_load(&boat->in_handlers)) != 0) {
        int64_t left_ns = until_ns - clock_exact_ns();
        if (left_ns <= 0)
            break; /* in a child that was not made by fork(): those threads are its parent's */
        wait_on_word(&boat->in_handlers, inside, left_ns);
    }
}

void lifeboat_give_back(void)
{
    if (boat != NULL)
        atomic_store(&boat->taken, 0);
}

CK_RV thread_C_GetTokenInfo(CK_SLOT_ID slot, CK_TOKEN_INFO_PTR info)
{
    return ABOARD_AT(aboard_C_GetTokenInfo)(boat, target.C_GetTokenInfo, slot, info);
}

CK_RV thread_C_GetSessionInfo(CK_SESSION_HANDLE session, CK_SESSION_INFO_PTR info)
{
    return ABOARD_AT(aboard_C_GetSessionInfo)(boat, target.C_GetSessionInfo, session, info);
}

CK_RV thread_C_OpenSession(CK_SLOT_ID slot, CK_FLAGS flags, CK_SESSION_HANDLE_PTR session)
{
    return ABOARD_AT(aboard_C_OpenSession)(boat, target.C_OpenSession, slot, flags, NULL, NULL,
                                           session);
}

CK_RV thread_C_CloseSession(CK_SESSION_HANDLE session)
{
    return ABOARD_AT(aboard_C_CloseSession)(boat, target.C_CloseSession, session);
}

CK_RV thread_C_GenerateRandom(CK_SESSION_HANDLE session, CK_BYTE_PTR bytes, CK_ULONG len_bytes)
{
    return ABOARD_AT(aboard_C_GenerateRandom)(boat, target.C_GenerateRandom, session, bytes,
                                              len_bytes);
}
