/* general.c - "General-purpose functions" of the specification: C_Initialize and C_Finalize, one at a time, with
 * nothing locked while the target runs. */
#include <stdlib.h>

#include "base/log.h"
#include "calls/own.h"
#include "guard/guard.h"
#include "random/fill_session.h"
#include "random/filler.h"
#include "state/counters.h"
#include "state/in_call.h"
#include "state/init_state.h"
#include "state/memory.h"
#include "state/sessions.h"
#include "state/settings.h"

/* These outlast a fork, as the target does. */
static bool target_has_os_locking;
static bool watches_exit_before_target;

/* Which of the two comes first tells dlclose() from exit(): the one runs the destructor and then the handlers of
 * atexit(), the other the handlers and then the destructor. */
static bool unloads;
static bool exits;

static void at_exit(void)
{
    if (unloads || exits)
        return;
    exits = true;
    if (memory_is_mapped())
        fill_sessions_at_exit();
}

static bool prepared;

/* When the module is loaded: then no other thread can call it yet. */
__attribute__((constructor)) static void prepare(void)
{
    prepared = atexit(at_exit) == 0;
}

/*
 * At dlclose() the target is unloaded as it would be if the application had loaded it: it is closed, and not called. At
 * exit() other threads may still call, so all stays, and the target is neither called nor closed. A module that ever
 * had the filler's thread is never unloaded.
 */
__attribute__((destructor)) static void unload(void)
{
    unloads = true;
    if (exits || filler_has_pinned())
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

/* Says what is wrong with the file, or where the target was named whose loading failed for another reason. Apart from
 * its caller, whose callers may have the smallest of stacks. */
__attribute__((noinline)) static void explain_failure(struct message *message)
{
    char origin[PATH_MAX];
    struct message why = *message;
    if (config_check_target(settings(), message) == 0)
        message_set(message, "%s: %s",
                    config_origin(config_find(settings(), "x-target"), origin, sizeof origin),
                    why.text);
}

static bool load_target(struct message *message, bool heard)
{
    if (!settings_load(message, heard))
        return false;
    if (settings()->target != NULL &&
        target_load(settings()->target, message->text, sizeof message->text))
        return true;
    explain_failure(message);
    return false;
}

bool module_prepare(void)
{
    struct message unheard;
    if (!prepared || !memory_is_mapped())
        return false;
    if (!target_is_loaded() && init_change_begin(NOT_INITIALIZED) == CHANGE_BEGUN) {
        load_target(&unheard, /* heard= */ false);
        init_change_end(NOT_INITIALIZED);
    }
    return true;
}

/* A target that another user has finalized answers so. */
static bool target_is_initialized(const struct p11_functions *functions)
{
    CK_INFO info;
    return functions->C_GetInfo(&info) != CKR_CRYPTOKI_NOT_INITIALIZED;
}

/* The standard's struct, and a NULL behind it: NSS's own has one member more, and reads it. */
struct own_args {
    CK_C_INITIALIZE_ARGS args;
    void *behind;
};

static int callbacks_in(const CK_C_INITIALIZE_ARGS *args)
{
    return (args->CreateMutex != NULL) + (args->DestroyMutex != NULL) + (args->LockMutex != NULL) +
           (args->UnlockMutex != NULL);
}

/* Whether a thread of ours may call the target. Not with callbacks alone: it would have to run the application's code,
 * or race with it. Nor with some callbacks and not the others: the target is to refuse that. */
static bool permits_thread(const CK_C_INITIALIZE_ARGS *args)
{
    int callbacks = callbacks_in(args);
    return !(args->flags & CKF_LIBRARY_CANT_CREATE_OS_THREADS) &&
           (callbacks == 0 || (callbacks == 4 && (args->flags & CKF_OS_LOCKING_OK)));
}

/* With the caller's own pointer, unless x-target-init is set, or a thread needs more locking than the caller asked for.
 * Reads the standard's struct only, never behind it. */
static CK_RV initialize_target(const struct p11_functions *functions, void *callers,
                               bool want_thread, bool *thread_permitted)
{
    static const CK_C_INITIALIZE_ARGS none;
    const CK_C_INITIALIZE_ARGS *args = callers != NULL ? callers : &none;
    struct own_args with_reserved = {.args = *args}, with_locking = {.behind = NULL};
    if (settings()->target_init != NULL) {
        with_reserved.args.pReserved = settings()->target_init;
        callers = &with_reserved;
    }
    with_locking.args.flags = args->flags | CKF_OS_LOCKING_OK;
    with_locking.args.pReserved = with_reserved.args.pReserved;

    *thread_permitted = want_thread && permits_thread(args);
    if (settings()->pool_threads == CONFIG_THREADS_REQUIRE && !*thread_permitted)
        return CKR_NEED_TO_CREATE_THREADS;
    bool adds_locking =
        *thread_permitted && (!(args->flags & CKF_OS_LOCKING_OK) || callbacks_in(args) != 0);
    CK_RV rv = functions->C_Initialize(adds_locking ? &with_locking : callers);
    /* Arguments of our own must not fail where the application's would do. */
    if (adds_locking && rv != CKR_OK && rv != CKR_CRYPTOKI_ALREADY_INITIALIZED) {
        *thread_permitted = false;
        rv = functions->C_Initialize(callers);
    }
    if (rv == CKR_CRYPTOKI_ALREADY_INITIALIZED)
        /* By the parent before a fork, as we wanted it; or by another user, and with which arguments is not known. */
        *thread_permitted = *thread_permitted && target_has_os_locking;
    else if (rv == CKR_OK)
        target_has_os_locking = *thread_permitted;
    return rv;
}

/* What is in force, for the log. */
static const char *policy_text(const struct policy *policy, char *text, size_t text_bytes)
{
    struct policy_counts counts;
    if (policy == NULL)
        return "none";
    policy_count(policy, &counts);
    snprintf(text, text_bytes,
             "%s (mechanisms: %zu, curves: %zu, parameter sets: %zu, rules about key sizes: %zu)",
             policy_is_audit(policy) ? "audited" : "in force", counts.mechanisms, counts.curves,
             counts.parameter_sets, counts.size_rules);
    return text;
}

/* Logs how C_Initialize ended, and whether the target or the proxy refused it. */
__attribute__((noinline)) static void log_start(CK_RV rv, bool pools, bool threads)
{
    const struct config *config = settings();
    char origin[256], policy[128];
    config_origin(config_find(config, "x-target"), origin, sizeof origin);
    if (rv == CKR_OK || rv == CKR_CRYPTOKI_ALREADY_INITIALIZED)
        log_write(LOG_LEVEL_INFO,
                  "version %s before %s (%s)%s; pool: %zu KiB, %u ms old at most, %s; policy: %s",
                  P11_PROXY_VERSION, config->target, origin,
                  rv == CKR_OK ? "" : ", which another user initialized",
                  pools ? config->pool_size_bytes / 1024 : 0, config->pool_max_age_ms,
                  !pools    ? "off"
                  : threads ? "filled by a thread"
                            : "filled on the application's calls",
                  policy_text(policy_in_force(), policy, sizeof policy));
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
    counters_begin(config->statistics && memory_is_wiped_on_fork(), flags, config->target);
}

static CK_RV start(const struct p11_functions *functions, void *callers)
{
    struct message message;
    if (!load_target(&message, /* heard= */ true)) {
        log_write(LOG_LEVEL_ERROR, "%s", message.text);
        return CKR_GENERAL_ERROR;
    }
    const struct config *config = settings();
    bool pools = config->pool && memory_is_wiped_on_fork();
    bool threads = false;
    if (config->pool && !pools)
        log_write(LOG_LEVEL_WARNING,
                  "no pool: this system does not prove that it wipes memory on fork");
    CK_RV rv = initialize_target(functions, callers,
                                 pools && config->pool_threads != CONFIG_THREADS_NEVER, &threads);
    log_start(rv, pools, threads);
    if (rv != CKR_OK && rv != CKR_CRYPTOKI_ALREADY_INITIALIZED)
        return rv;

    target_refresh();
    slots_assume_login(rv == CKR_CRYPTOKI_ALREADY_INITIALIZED);
    filler_permit(threads);
    begin_to_count(pools, threads);
    /* Handlers run in reverse: ours, before those that the target registered just now. */
    if (threads && !watches_exit_before_target)
        watches_exit_before_target = atexit(at_exit) == 0;
    return rv;
}

/* Forgets all of this initialisation. The filler's thread is gone, and no random call is in flight. */
static void forget(void)
{
    sessions_close_begin(NULL);
    sessions_close_end();
    fill_sessions_forget();
    slots_forget();
    guard_reports_end();
    counters_end();
    target_has_os_locking = false;
}

CK_RV own_C_Initialize(CK_VOID_PTR pInitArgs, const struct p11_functions *functions)
{
    /* From inside the target's generator: a C_Finalize that waits for that call must not be waited for. */
    if (is_recursive())
        return CKR_CRYPTOKI_ALREADY_INITIALIZED;
    for (;;) {
        switch (init_change_begin(NOT_INITIALIZED)) {
        case CHANGE_BEGUN: {
            CK_RV rv = start(functions, pInitArgs);
            bool done = rv == CKR_OK || rv == CKR_CRYPTOKI_ALREADY_INITIALIZED;
            init_change_end(done ? INITIALIZED : NOT_INITIALIZED);
            return rv;
        }
        case CHANGE_RECURSIVE:
            log_write(LOG_LEVEL_ERROR, "C_Initialize is called from the target's own C_Initialize: "
                                       "does x-target lead back to this proxy?");
            return CKR_FUNCTION_FAILED;
        case CHANGE_IMPOSSIBLE:
            if (target_is_initialized(functions))
                return CKR_CRYPTOKI_ALREADY_INITIALIZED;
            if (init_change_begin(INITIALIZED) == CHANGE_BEGUN) {
                filler_stop();
                forget();
                init_change_end(NOT_INITIALIZED);
            }
        }
    }
}

CK_RV own_C_Finalize(CK_VOID_PTR pReserved, const struct p11_functions *functions)
{
    if (is_recursive())
        return CKR_FUNCTION_FAILED;
    switch (init_change_begin(INITIALIZED)) {
    case CHANGE_RECURSIVE:
        return CKR_FUNCTION_FAILED;
    case CHANGE_IMPOSSIBLE:
        return functions->C_Finalize(pReserved);
    case CHANGE_BEGUN:
        break;
    }
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
