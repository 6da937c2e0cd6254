/* lifecycle.c - C_Initialize and C_Finalize, one at a time, with nothing locked while the target runs. */
#include "calls/lifecycle.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "state/counters.h"
#include "random/fetch.h"
#include "calls/forward.h"
#include "guard/guard_report.h"
#include "guard/guard_state.h"
#include "target/init_args.h"
#include "guard/key_cache.h"
#include "random/lifeboat.h"
#include "random/prefetch.h"
#include "state/settings.h"
#include "random/uncancelled.h"
#include "random/slot_pools.h"
#include "random/unload.h"

enum begun {
    BEGUN,
    RECURSIVE, /* this thread is starting or stopping already, and the target called us back */
    ELSEWHERE  /* life is in another, lasting state than expected */
};

/* These outlive a fork, as the target does. */
static bool target_has_os_locking;
static bool watches_exit;
static bool watches_exit_before_target;

static pid_t this_thread(void)
{
    return (pid_t)syscall(SYS_gettid);
}

static enum begun life_begin(enum life expected, enum life next)
{
    state_prepare();
    for (;;) {
        lock_acquire(&state->lock);
        unsigned life = atomic_load(&state->life);
        bool passing = life == LIFE_STARTING || life == LIFE_STOPPING;
        bool own = passing && atomic_load(&state->life_owner) == this_thread();
        if (life == expected) {
            atomic_store(&state->life, next);
            atomic_store(&state->life_owner, this_thread());
        }
        lock_release(&state->lock);
        if (life == expected)
            return BEGUN;
        if (own)
            return RECURSIVE;
        if (!passing)
            return ELSEWHERE;
        wait_on_word(&state->life, life, /* timeout_ns= */ -1);
    }
}

static void life_end(enum life life)
{
    atomic_store(&state->life, life);
    wake_word(&state->life);
}

bool life_enter(void)
{
    for (;;) {
        atomic_fetch_add(&state->calls_inside, 1);
        unsigned life = atomic_load(&state->life);
        if (life == LIFE_UP)
            return true;
        life_leave();
        if (life != LIFE_STOPPING || atomic_load(&state->life_owner) == this_thread())
            return false;
        /* C_Finalize may yet fail, and then this call goes on as if nothing had been. */
        wait_on_word(&state->life, life, /* timeout_ns= */ -1);
    }
}

void life_leave(void)
{
    unsigned inside = atomic_load(&state->calls_inside);
    /* 0 in a child that was made inside, by a signal handler say: it is not the one that entered. */
    while (inside != 0 && !atomic_compare_exchange_weak(&state->calls_inside, &inside, inside - 1))
        continue;
    if (inside == 1 && atomic_load(&state->life) == LIFE_STOPPING)
        wake_word(&state->calls_inside);
}

static void wait_until_nobody_is_inside(void)
{
    unsigned inside;
    while ((inside = atomic_load(&state->calls_inside)) != 0)
        wait_on_word(&state->calls_inside, inside, /* timeout_ns= */ -1);
}

/* Forgets this life. The thread is gone and nobody is inside. */
static void forget_life(void)
{
    sessions_forget();
    hidden_forget();
    slot_pools_rest();
    guard_reports_end();
    counters_end();
    operation_states_forget();
    key_change_end(key_change_begin(), /* slot= */ NULL, EVERY_KEY);
    target_has_os_locking = false;
    lock_acquire(&state->lock);
    state->slot_count = 0;
    state->threads_permitted = state->pools_permitted = false;
    lock_release(&state->lock);
}

/* Says where the target was named. Apart from the rest, whose callers may have the smallest of stacks. */
__attribute__((noinline)) static void prefix_origin(struct message *message)
{
    char origin[PATH_MAX];
    struct message why = *message;
    message_set(message, "%s: %s",
                config_origin(config_find(settings(), "x-target"), origin, sizeof origin),
                why.text);
}

static bool load_target(struct message *message, bool heard)
{
    if (!watches_exit && !(watches_exit = unload_watch_exit())) {
        message_set(message, "the target cannot be loaded: no memory");
        return false;
    }
    if (!settings_load(message, heard))
        return false;
    /* What was loaded once needs its file no more. */
    if (!target_is_loaded_from(settings()->target) && config_check_target(settings(), message) != 0)
        return false;
    if (target_load(settings()->target, message->text, sizeof message->text))
        return true;
    prefix_origin(message);
    return false;
}

void life_prepare_target(void)
{
    struct message unheard;
    if (target_is_loaded() || life_begin(LIFE_DOWN, LIFE_STARTING) != BEGUN)
        return;
    load_target(&unheard, /* heard= */ false);
    life_end(LIFE_DOWN);
}

/* A target that another user finalized behind our back answers so. */
static bool target_is_initialized(void)
{
    CK_INFO info;
    return target.C_GetInfo(&info) != CKR_CRYPTOKI_NOT_INITIALIZED;
}

static CK_RV initialize_target(void *callers, bool want_thread, bool *thread_permitted)
{
    struct init_plan plan;
    init_plan(&plan, callers, want_thread, settings()->target_init);
    if (settings()->pool_threads == CONFIG_THREADS_REQUIRE && !plan.thread_permitted)
        return CKR_NEED_TO_CREATE_THREADS;

    *thread_permitted = plan.thread_permitted;
    CK_RV rv = target.C_Initialize(plan.args);
    if (plan.may_fall_back && (rv == CKR_CANT_LOCK || rv == CKR_ARGUMENTS_BAD)) {
        *thread_permitted = false;
        rv = target.C_Initialize(plan.fallback);
    }
    if (rv == CKR_CRYPTOKI_ALREADY_INITIALIZED) {
        /* By our parent before a fork, as we wanted it; or by another user, who knows how. */
        *thread_permitted = *thread_permitted && target_has_os_locking;
        hidden_close_inherited();
    } else if (rv == CKR_OK) {
        target_has_os_locking = *thread_permitted;
        hidden_forget();
    }
    return rv;
}

/* So that a start can be told from one that never was, and a refusal from one of ours. */
__attribute__((noinline)) static void log_start(CK_RV rv, bool pools, bool threads)
{
    const struct config *config = settings();
    char origin[256];
    config_origin(config_find(config, "x-target"), origin, sizeof origin);
    if (rv == CKR_OK || rv == CKR_CRYPTOKI_ALREADY_INITIALIZED)
        log_write(LOG_LEVEL_INFO,
                  "version %s before %s (%s)%s; pool: %zu KiB, %u ms old at most, %s; policy: %s",
                  P11_PROXY_VERSION, config->target, origin,
                  rv == CKR_OK ? "" : ", which another user initialized",
                  pools ? config->pool_size_bytes / 1024 : 0, config->pool_max_age_ms,
                  !pools    ? "off"
                  : threads ? "filled by a thread"
                            : "filled on callers' calls",
                  policy_in_force() == NULL            ? "none"
                  : policy_is_audit(policy_in_force()) ? "audited"
                                                       : "in force");
    else
        log_write(LOG_LEVEL_WARNING, "C_Initialize of the target %s (%s) fails with code 0x%lx%s",
                  config->target, origin, rv,
                  config->target_init != NULL
                      ? "; x-target-init is set, and few targets take a string"
                      : "");
}

static void begin_to_count(bool pools, bool threads)
{
    const struct config *config = settings();
    const struct policy *policy = policy_in_force();
    uint64_t flags = (pools ? STATISTICS_POOL : 0) | (threads ? STATISTICS_THREAD : 0) |
                     (config->pool_mix == CONFIG_MIX_KERNEL ? STATISTICS_MIX_KERNEL : 0);
    if (policy != NULL)
        flags |= policy_is_audit(policy) ? STATISTICS_AUDIT : STATISTICS_POLICY;
    /* Where memory is not wiped on fork, a child would count for its parent. */
    if (config->statistics && state_is_wiped_on_fork())
        counters_begin(flags, config->target);
}

static CK_RV start(void *callers)
{
    struct message message;
    if (!load_target(&message, /* heard= */ true)) {
        log_write(LOG_LEVEL_ERROR, "%s", message.text);
        return CKR_GENERAL_ERROR;
    }
    const struct config *config = settings();
    bool pools = config->pool && state_is_wiped_on_fork();
    bool threads = false;
    if (config->pool && !pools)
        log_write(LOG_LEVEL_WARNING,
                  "no pool: this system does not prove that it wipes memory on fork");
    CK_RV rv =
        initialize_target(callers, pools && config->pool_threads != CONFIG_THREADS_NEVER, &threads);
    log_start(rv, pools, threads);
    if (rv != CKR_OK && rv != CKR_CRYPTOKI_ALREADY_INITIALIZED)
        return rv;

    threads = threads && lifeboat_find();
    lock_acquire(&state->lock);
    state->threads_permitted = threads;
    state->pools_permitted = pools;
    atomic_store(&state->pool_budget, config->pool_size_bytes);
    lock_release(&state->lock);
    begin_to_count(pools, threads);
    /* Handlers run in reverse: ours, before those that the target registered just now. */
    if (threads && !watches_exit_before_target)
        watches_exit_before_target = unload_watch_exit();
    return rv;
}

/* Where memory is not wiped on fork, a child finds its parent's life. Only C_Initialize asks. */
static void forget_parents_life(void)
{
    static pid_t owner;
    if (state_is_wiped_on_fork())
        return;
    if (owner != 0 && owner != getpid())
        memset(state, 0, sizeof *state);
    owner = getpid();
}

CK_RV proxy_C_Initialize(CK_VOID_PTR pInitArgs)
{
    UNCANCELLED;
    state_prepare();
    forget_parents_life();
    for (;;) {
        switch (life_begin(LIFE_DOWN, LIFE_STARTING)) {
        case BEGUN: {
            CK_RV rv = start(pInitArgs);
            life_end(rv == CKR_OK || rv == CKR_CRYPTOKI_ALREADY_INITIALIZED ? LIFE_UP : LIFE_DOWN);
            return rv;
        }
        case RECURSIVE:
            log_write(LOG_LEVEL_ERROR, "C_Initialize is called from the target's own C_Initialize: "
                                       "does x-target lead back to this proxy?");
            return CKR_FUNCTION_FAILED;
        case ELSEWHERE:
            if (target_is_initialized())
                return CKR_CRYPTOKI_ALREADY_INITIALIZED;
            if (life_begin(LIFE_UP, LIFE_STOPPING) == BEGUN) {
                wait_until_nobody_is_inside();
                prefetch_stop();
                forget_life();
                life_end(LIFE_DOWN);
            }
        }
    }
}

CK_RV proxy_C_Finalize(CK_VOID_PTR pReserved)
{
    UNCANCELLED;
    /* The target calls us back from C_GenerateRandom, and would wait for itself. */
    if (fetch_is_under_way())
        return CKR_FUNCTION_FAILED;
    switch (life_begin(LIFE_UP, LIFE_STOPPING)) {
    case RECURSIVE:
        return CKR_FUNCTION_FAILED;
    case ELSEWHERE:
        return target.C_Finalize(pReserved);
    case BEGUN:
        break;
    }
    /* C_Finalize beside any other call is undefined, so our own calls must be over. */
    wait_until_nobody_is_inside();
    prefetch_stop();
    CK_RV rv = target.C_Finalize(pReserved);
    bool over = rv == CKR_OK || rv == CKR_CRYPTOKI_NOT_INITIALIZED;
    if (over)
        forget_life();
    life_end(over ? LIFE_DOWN : LIFE_UP);
    return rv;
}
