/* unload.h - the end: dlclose() or exit(), whether or not C_Finalize came before. */
#ifndef P11_PROXY_UNLOAD_H
#define P11_PROXY_UNLOAD_H

#include <stdbool.h>

/*
 * From now on exit() is told from dlclose(). Before there is anything to undo; and once more after the
 * target has registered what it wants to be called at exit(), so that we are called before. Expects no other
 * thread here. False if there is no memory for it: then nothing must be made that would have to be undone.
 */
bool unload_watch_exit(void);

#endif
