/* settings.h - the configuration in force. */
#ifndef P11_PROXY_SETTINGS_H
#define P11_PROXY_SETTINGS_H

#include "config.h"

/* Never NULL; all defaults before the first settings_load(). Stays valid until the second next
 * settings_load(). It lies in ordinary memory: a forked child goes on under the same settings. */
const struct config *settings(void);

/*
 * Reads the configuration anew and puts it in force, the log included. On failure false, with the
 * message, and the former one stays. One thread at a time: the caller sees to it.
 */
bool settings_load(struct message *message);

#endif
