/* filler.h - one background thread that keeps pools above their low mark, with sessions of its own.
 *
 * It is made when a slot needs its second read-ahead within max-age, so a program that draws once never has one. It
 * ends after 2 s without demand, and is made again on demand. Any thread; errno is kept.
 */
#ifndef P11_PROXY_FILLER_H
#define P11_PROXY_FILLER_H

#include <stdbool.h>

#include "state/slots.h"

/* A draw found too little in the slot's pool and has asked the token itself. Between call_begin() and call_end(). */
void filler_note_read_ahead(struct slot *slot);

/* The slot's pool is below its low mark: wakes the thread, or makes it if demand lasts. */
void filler_wants_fill(struct slot *slot);

/* From C_Initialize on: whether there may be a thread. */
void filler_permit(bool permitted);

/* Ends the thread, waiting for the one call to the token that it may be in. Its sessions stay open, because the target
 * is about to be finalized. No random call of the application is in flight. Returns whether a thread was permitted. */
bool filler_stop(void);

/* True on that thread: then the target's generator has called this module. */
bool filler_is_this_thread(void);

/* True once there was a thread: then the module stays loaded. */
bool filler_has_pinned(void);

#endif
