/* unload.c - gives back what the module holds when it is unloaded; not when the process exits.
 *
 * At dlclose() the target is then unloaded as it would be if the application had loaded it: it is closed, and not
 * called. At exit() other threads may still call, so all stays, and the target is neither called nor closed. A module
 * that ever had the filler's thread is never unloaded.
 */
#include <stdlib.h>

#include "calls/own.h"
#include "random/filler.h"
#include "state/counters.h"
#include "state/memory.h"
#include "state/sessions.h"
#include "state/settings.h"

/* Which of the two comes first tells dlclose() from exit(): the one runs the destructor and then the handlers of
 * atexit(), the other the handlers and then the destructor. */
static bool unloads;
static bool exits;

static void at_exit(void)
{
    if (unloads || exits)
        return;
    exits = true;
    filler_at_exit();
}

bool unload_watch_exit(void)
{
    return atexit(at_exit) == 0;
}

__attribute__((destructor)) static void unload(void)
{
    unloads = true;
    if (exits || filler_has_pinned())
        return;
    settings_free();
    counters_free();
    slots_free();
    sessions_free();
    memory_unmap();
    target_unload();
}
