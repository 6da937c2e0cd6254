/* words.h - finds a word among known ones, and measures how near a mistyped one is. Any thread. */
#ifndef P11_PROXY_WORDS_H
#define P11_PROXY_WORDS_H

#include <stddef.h>

/* The place of word in a list such as "auto, never, require", from 0; -1 if it is not there. */
int word_number(const char *word, const char *words);

/*
 * The fewest letters to add, drop or change that turn typed into known, upper and lower case alike.
 * SIZE_MAX if one of them is longer than 127 bytes.
 */
size_t edit_distance(const char *typed, const char *known);

#endif
