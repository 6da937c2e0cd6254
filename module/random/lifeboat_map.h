/* lifeboat_map.h - the second mapping of what lies in lifeboat_aboard.c, or what takes its place. */
#ifndef P11_PROXY_LIFEBOAT_MAP_H
#define P11_PROXY_LIFEBOAT_MAP_H

#include "random/lifeboat.h"

/* Finds one that nobody has taken, or makes one, and takes it. *distance is where its code is, from the
 * first. NULL if there can be none: our file is gone or another one, or the system forbids it. */
struct lifeboat *lifeboat_map(intptr_t *distance);

/* dlclose() does not unload us from now on. False if that fails. */
bool lifeboat_keep_us_loaded(void);

#endif
