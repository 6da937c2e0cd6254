/* nearest.h - how far a mistyped word is from a known one. */
#ifndef P11_PROXY_NEAREST_H
#define P11_PROXY_NEAREST_H

#include <stddef.h>

/*
 * The fewest letters to add, drop or change that turn typed into known, upper and lower case alike.
 * A word over 127 bytes is far from everything: SIZE_MAX. Any thread.
 */
size_t edit_distance(const char *typed, const char *known);

#endif
