/* lifeboat_aboard.c - where the prefetch's thread begins, ends, and calls the target from; where fork() calls.
 *
 * It runs at another place than it is linked for: no static data, no function that is not inlined, nothing
 * that a compiler adds and calls (see meson.build).
 */
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "random/lifeboat.h"

#define IN_BOAT __attribute__((section("lifeboat"), noinline, used))

extern const char __start_lifeboat[] __attribute__((visibility("hidden")));

static inline __attribute__((always_inline)) void tell(struct lifeboat *boat, unsigned where)
{
    atomic_store(&boat->where, where);
    boat->syscall(SYS_futex, &boat->where, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Parks the thread for good if it is left behind. Whoever does that says so before they look where it is. */
static inline __attribute__((always_inline)) void park_if_left_behind(struct lifeboat *boat)
{
    if (atomic_load(&boat->left_behind) == 0)
        return;
    tell(boat, WHERE_PARKED);
    for (;;)
        boat->pause();
}

static inline __attribute__((always_inline)) void come_home(struct lifeboat *boat)
{
    atomic_store(&boat->where, WHERE_HOME);
    park_if_left_behind(boat);
}

#define ABOARD_CALL(name, ...)                                                                     \
    IN_BOAT ABOARD(name, __VA_ARGS__)                                                              \
    {                                                                                              \
        atomic_store(&boat->where, WHERE_TARGET);                                                  \
        CK_RV rv = function(ARGS(__VA_ARGS__));                                                    \
        come_home(boat);                                                                           \
        return rv;                                                                                 \
    }

ABOARD_CALL(C_GetTokenInfo, (CK_SLOT_ID, slot), (CK_TOKEN_INFO_PTR, info))
ABOARD_CALL(C_GetSessionInfo, (CK_SESSION_HANDLE, session), (CK_SESSION_INFO_PTR, info))
ABOARD_CALL(C_OpenSession, (CK_SLOT_ID, slot), (CK_FLAGS, flags), (CK_VOID_PTR, context),
            (CK_NOTIFY, notify), (CK_SESSION_HANDLE_PTR, session))
ABOARD_CALL(C_CloseSession, (CK_SESSION_HANDLE, session))
ABOARD_CALL(C_GenerateRandom, (CK_SESSION_HANDLE, session), (CK_BYTE_PTR, bytes),
            (CK_ULONG, len_bytes))

IN_BOAT void *aboard_main(void *argument)
{
    struct lifeboat *boat = argument;
    boat->run();
    park_if_left_behind(boat);
    tell(boat, WHERE_GONE);
    return NULL;
}

/* The boat of the mapping that this runs in: all addresses in it are relative. */
static inline __attribute__((always_inline)) struct lifeboat *own_boat(void)
{
    return (struct lifeboat *)(((uintptr_t)__start_lifeboat + LIFEBOAT_BEHIND_BYTES) &
                               ~((uintptr_t)LIFEBOAT_ALIGNMENT - 1));
}

/* Whoever is going takes the handler away before they look whether somebody is in it. */
static inline __attribute__((always_inline)) void handle(struct lifeboat *boat, int which)
{
    atomic_fetch_add(&boat->in_handlers, 1);
    fork_handler *handler = atomic_load(&boat->fork_handlers[which]);
    if (handler != NULL)
        handler();
    if (atomic_fetch_sub(&boat->in_handlers, 1) == 1)
        boat->syscall(SYS_futex, &boat->in_handlers, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

IN_BOAT void aboard_before_fork(void)
{
    handle(own_boat(), BEFORE_FORK);
}

IN_BOAT void aboard_after_fork_in_parent(void)
{
    handle(own_boat(), AFTER_FORK_IN_PARENT);
}

IN_BOAT void aboard_after_fork_in_child(void)
{
    /* Those of the parent's other threads are not here. */
    atomic_store(&own_boat()->in_handlers, 0);
    handle(own_boat(), AFTER_FORK_IN_CHILD);
}
