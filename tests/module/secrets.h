/* secrets.h - looks through a text for bytes that must not be in it, in any form that a program might print. */
#ifndef P11_PROXY_TEST_SECRETS_H
#define P11_PROXY_TEST_SECRETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SECRET_BYTES = 8 };

/* Every piece of SECRET_BYTES of these is a secret from now on. Before the first search. */
void secrets_add(const uint8_t *bytes, size_t len_bytes);

/*
 * Where in text one is found: as it is, as bytes in hex or decimal (with or without something between
 * them, in this order or the other) or as one number in hex or decimal, with or without a sign. NULL: nowhere.
 */
const char *secrets_find(const char *text, size_t len_bytes);

#endif
