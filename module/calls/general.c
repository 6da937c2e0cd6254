/* general.c - "General-purpose functions" of the specification: C_Initialize and C_Finalize, one at a time, with
 * nothing locked while the target runs. */
#include <stdlib.h>

#include "base/log.h"
#include "calls/own.h"
#include "random/fill_session.h"
#include "random/filler.h"
#include "state/counters.h"
#include "state/init_state.h"
#include "state/memory.h"
#include "state/sessions.h"
#include "state/settings.h"

/* These outlast a fork, as the target does. */
static bool target_has_os_locking;
static bool watches_exit_before_target;

/* Until exit() runs the handlers of atexit(), which it does before destructors; dlclose() runs them after. */
static bool may_unload;

static void at_exit(void)
{
    if (may_unload && memory_is_mapped())
        fill_sessions_at_exit();
    may_unload = false;
}

/* When the module is loaded: then no other thread can call it yet. */
__attribute__((constructor)) static void prepare(void)
{
    may_unload = atexit(at_exit) == 0;
}

/*
 * At dlclose() the target is unloaded as it would be if the application had loaded it: it is closed, and not called. At
 * exit() other threads may still call, so all stays, and the target is neither called nor closed. A module that ever
 * had the filler's thread is never unloaded.
 */
__attribute__((destructor)) static void unload(void)
{
    if (!may_unload || filler_has_pinned())
        return;
    settings_free();
    counters_free();
    slots_free();
    memory_unmap();
    target_unload();
}

bool is_recursive(void)
{
    return random_call_on_this_thread() || filler_is_this_thread();
}

/* Puts before a message where the target was named. Apart from its caller, whose callers may have the smallest of
 * stacks. */
__attribute__((noinline)) static void add_origin(struct message *message)
{
    char origin[MESSAGE_BYTES];
    struct message why = *message;
    message_set(message, "%s: %s",
                config_origin(config_find(settings(), "x-target"), origin, sizeof origin),
                why.text);
}

static bool load_target(struct message *message, bool heard)
{
    if (!settings_load(message, heard))
        return false;
    /* dlopen() would wait for a FIFO's other end. What was loaded once needs its file no more. */
    bool needs_file = target_loaded.handle == NULL || settings()->target == NULL;
    if (needs_file && config_check_target(settings(), message) != 0)
        return false;
    if (target_load(settings()->target, message))
        return true;
    add_origin(message);
    return false;
}

bool module_prepare(void)
{
    struct message unheard;
    if (!memory_is_mapped())
        return false;
    if (target_loaded.handle == NULL && init_change_begin(NOT_INITIALIZED) == CHANGE_BEGUN) {
        load_target(&unheard, /* heard= */ false);
        init_change_end(NOT_INITIALIZED);
    }
    return true;
}

/*
 * With the caller's own pointer, unless x-target-init is set, or a thread needs more locking than the caller asked for.
 * Reads the standard's struct only, never behind it. *thread: whether one is wanted, then whether there may be one.
 */
static CK_RV initialize_target(const struct p11_functions *functions, void *callers, bool *thread)
{
    static const CK_C_INITIALIZE_ARGS none;
    const CK_C_INITIALIZE_ARGS *args = callers != NULL ? callers : &none;
    const struct config *config = settings();
    int callbacks = (args->CreateMutex != NULL) + (args->DestroyMutex != NULL) +
                    (args->LockMutex != NULL) + (args->UnlockMutex != NULL);
    bool os_locking = (args->flags & CKF_OS_LOCKING_OK) != 0;
    /* The standard's struct, and a NULL behind it: NSS's own has one member more, and reads it. */
    struct {
        CK_C_INITIALIZE_ARGS args;
        void *behind;
    } own = {.args = *args}, locking = {.args.flags = args->flags | CKF_OS_LOCKING_OK};
    if (config->target_init != NULL) {
        own.args.pReserved = config->target_init;
        callers = &own;
    }
    locking.args.pReserved = own.args.pReserved;

    /* Not with callbacks alone: the thread would have to run the application's code, or race with it. Nor with some
     * callbacks and not the others: the target is to refuse that. */
    *thread = *thread && !(args->flags & CKF_LIBRARY_CANT_CREATE_OS_THREADS) &&
              (callbacks == 0 || (callbacks == 4 && os_locking));
    if (config->pool_threads == CONFIG_THREADS_REQUIRE && !*thread)
        return CKR_NEED_TO_CREATE_THREADS;
    bool adds_locking = *thread && (!os_locking || callbacks != 0);
    CK_RV rv = functions->C_Initialize(adds_locking ? &locking : callers);
    /* Arguments of our own must not fail where the application's would do. */
    if (adds_locking && rv != CKR_OK && rv != CKR_CRYPTOKI_ALREADY_INITIALIZED) {
        *thread = false;
        rv = functions->C_Initialize(callers);
    }
    if (rv == CKR_OK)
        target_has_os_locking = *thread;
    /* By the parent before a fork, as we wanted it; or by another user, and with which arguments is not known. */
    *thread = *thread && target_has_os_locking;
    return rv;
}

/* Logs how C_Initialize ended and what is in force, or that the target refused it. */
__attribute__((noinline)) static void log_start(CK_RV rv, bool pools, bool threads)
{
    const struct config *config = settings();
    const struct policy *policy = policy_in_force();
    char origin[256];
    struct policy_counts counts = policy_count(policy);
    config_origin(config_find(config, "x-target"), origin, sizeof origin);
    if (rv != CKR_OK && rv != CKR_CRYPTOKI_ALREADY_INITIALIZED)
        log_write(LOG_LEVEL_WARNING, "C_Initialize of the target %s (%s) fails with code 0x%lx",
                  config->target, origin, rv);
    else
        log_write(LOG_LEVEL_INFO,
                  "version %s before %s (%s)%s; pool: %u KiB, %u ms old at most, %s; policy: %s "
                  "(mechanisms: %zu, curves: %zu, parameter sets: %zu, rules about key sizes: %zu)",
                  P11_PROXY_VERSION, config->target, origin,
                  rv == CKR_OK ? "" : ", which another user initialized",
                  pools ? config->pool_size_bytes / 1024 : 0, config->pool_max_age_ms,
                  !pools    ? "off"
                  : threads ? "filled by a thread"
                            : "filled on the application's calls",
                  policy == NULL            ? "none"
                  : policy_is_audit(policy) ? "audited"
                                            : "in force",
                  counts.mechanisms, counts.curves, counts.parameter_sets, counts.size_rules);
}

static CK_RV start(const struct p11_functions *functions, void *callers)
{
    struct message message;
    if (!load_target(&message, /* heard= */ true)) {
        log_write(LOG_LEVEL_ERROR, "%s", message.text);
        return CKR_GENERAL_ERROR;
    }
    const struct config *config = settings();
    const struct policy *policy = policy_in_force();
    bool pools = config->pool && memory_is_wiped_on_fork();
    bool threads = pools && config->pool_threads != CONFIG_THREADS_NEVER;
    if (config->pool && !pools)
        log_write(LOG_LEVEL_WARNING,
                  "no pool: this system does not prove that it wipes memory on fork");
    CK_RV rv = initialize_target(functions, callers, &threads);
    log_start(rv, pools, threads);
    if (rv != CKR_OK && rv != CKR_CRYPTOKI_ALREADY_INITIALIZED)
        return rv;

    target_refresh();
    slots_assume_login(rv == CKR_CRYPTOKI_ALREADY_INITIALIZED);
    filler_permit(threads);
    uint64_t flags = (pools ? STATISTICS_POOL : 0) | (threads ? STATISTICS_THREAD : 0) |
                     (config->pool_mix == CONFIG_MIX_KERNEL ? STATISTICS_MIX_KERNEL : 0) |
                     (policy_is_audit(policy) ? STATISTICS_AUDIT
                      : policy != NULL        ? STATISTICS_POLICY
                                              : 0);
    /* Where memory is not wiped on fork, a child would count for its parent. */
    counters_begin(config->statistics && memory_is_wiped_on_fork(), flags, config->target);
    /* Handlers run in reverse: ours, before those that the target registered just now. */
    if (threads && !watches_exit_before_target)
        watches_exit_before_target = atexit(at_exit) == 0;
    return rv;
}

/* Forgets all of this initialisation. The filler's thread is gone, and no random call is in flight. */
static void forget(void)
{
    sessions_forget(NULL);
    fill_sessions_forget();
    slots_forget();
    counters_end();
    target_has_os_locking = false;
}

CK_RV own_C_Initialize(CK_VOID_PTR pInitArgs, const struct p11_functions *functions)
{
    CK_INFO info;
    /* From inside the target's generator: a C_Finalize that waits for that call must not be waited for. */
    if (is_recursive())
        return CKR_CRYPTOKI_ALREADY_INITIALIZED;
    for (;;) {
        enum init_change change = init_change_begin(NOT_INITIALIZED);
        if (change == CHANGE_BEGUN) {
            CK_RV rv = start(functions, pInitArgs);
            bool done = rv == CKR_OK || rv == CKR_CRYPTOKI_ALREADY_INITIALIZED;
            init_change_end(done ? INITIALIZED : NOT_INITIALIZED);
            return rv;
        }
        if (change == CHANGE_RECURSIVE) {
            log_write(LOG_LEVEL_ERROR, "C_Initialize is called from the target's own C_Initialize: "
                                       "does x-target lead back to this proxy?");
            return CKR_FUNCTION_FAILED;
        }
        /* A target that another user has finalized says so. */
        if (functions->C_GetInfo(&info) != CKR_CRYPTOKI_NOT_INITIALIZED)
            return CKR_CRYPTOKI_ALREADY_INITIALIZED;
        if (init_change_begin(INITIALIZED) == CHANGE_BEGUN) {
            filler_stop();
            forget();
            init_change_end(NOT_INITIALIZED);
        }
    }
}

CK_RV own_C_Finalize(CK_VOID_PTR pReserved, const struct p11_functions *functions)
{
    if (is_recursive())
        return CKR_FUNCTION_FAILED;
    enum init_change change = init_change_begin(INITIALIZED);
    if (change == CHANGE_RECURSIVE)
        return CKR_FUNCTION_FAILED;
    if (change == CHANGE_IMPOSSIBLE)
        return functions->C_Finalize(pReserved);
    bool had_thread = filler_stop();
    CK_RV rv = functions->C_Finalize(pReserved);
    bool over = rv == CKR_OK || rv == CKR_CRYPTOKI_NOT_INITIALIZED;
    if (over)
        forget();
    else
        filler_permit(had_thread);
    init_change_end(over ? NOT_INITIALIZED : INITIALIZED);
    return rv;
}

CK_RV own_C_GetInfo(CK_INFO_PTR pInfo, const struct p11_functions *functions)
{
    CK_RV rv = functions->C_GetInfo(pInfo);
    slot_note_code(NULL, rv);
    return rv;
}
