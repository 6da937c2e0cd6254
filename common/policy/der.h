/* der.h - reading DER, one element at a time, never past the end. */
#ifndef P11_PROXY_DER_H
#define P11_PROXY_DER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum der_tag {
    DER_INTEGER = 0x02,
    DER_OCTET_STRING = 0x04,
    DER_NULL = 0x05,
    DER_OID = 0x06,
    DER_UTF8_STRING = 0x0c,
    DER_PRINTABLE_STRING = 0x13,
    DER_SEQUENCE = 0x30,
};

/* Bytes that someone else owns; the reading functions move the start on. */
struct der {
    const uint8_t *bytes;
    size_t len_bytes;
};

/*
 * Takes the first element off in: its tag and its content.
 * False, with nothing changed, if in holds no whole element; lengths of up to four bytes, BER's
 * longer forms of a short length included, since a token may well take them. Any thread.
 */
bool der_take(struct der *in, uint8_t *tag, struct der *content);

/* The same, and the tag must be the one given. */
bool der_expect(struct der *in, uint8_t tag, struct der *content);

#endif
