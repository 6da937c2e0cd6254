/* unload.c - ends our thread and gives back what we hold when we are unloaded; not when the process exits.
 *
 * At dlclose() the target then unloads as it would if the application had loaded it: it is closed, and
 * not called. At exit() other threads may still call us, so all stays, and the target is neither called
 * nor closed.
 */
#include "random/unload.h"

#include <stdlib.h>

#include "base/clock.h"
#include "random/clones.h"
#include "state/counters.h"
#include "random/lifeboat.h"
#include "base/log.h"
#include "random/prefetch.h"
#include "state/sessions.h"
#include "state/settings.h"
#include "random/slot_pools.h"
#include "target/target.h"

/* Longer than a call of the thread's to a token that is well. */
static const int64_t UNLOAD_WAIT_NS = 5 * NS_PER_S;
static const int64_t EXIT_WAIT_NS = 1 * NS_PER_S;

/* Which of the two comes first tells dlclose() from exit(): the one runs our destructor and then atexit()'s
 * handlers, the other the handlers and then the destructor. */
static bool unloads;
static bool exits;

static void at_exit(void)
{
    if (unloads || exits)
        return;
    exits = true;
    prefetch_at_exit();
}

bool unload_watch_exit(void)
{
    return atexit(at_exit) == 0;
}

__attribute__((destructor)) static void unload(void)
{
    unloads = true;
    if (exits) {
        /* An exit handler of the application's may be what unloads us: no thread may come back to us. */
        prefetch_abandon(/* patience_ns= */ 0, EXIT_WAIT_NS);
        return;
    }
    bool alone = prefetch_abandon(UNLOAD_WAIT_NS, /* most_ns= */ -1);
    lifeboat_end_forks();
    clones_unlisten();
    settings_free();
    if (!alone) {
        counters_end();
        /* What that call writes to stays, too. */
        log_write(LOG_LEVEL_WARNING, "unloaded while a call to the token does not end: the target "
                                     "stays loaded, and as it is");
        target_unload(/* close= */ false);
        return;
    }
    slot_pools_free();
    counters_free();
    sessions_free();
    state_free();
    clones_forget();
    lifeboat_give_back();
    target_unload(/* close= */ true);
}
