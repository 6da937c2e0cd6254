/* policy_parse.h - one item of a list: its name and its conditions. */
#ifndef P11_PROXY_POLICY_PARSE_H
#define P11_PROXY_POLICY_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIZE_CONDITIONS_MAX 16 /* of one item */
#define SIZE_SPANS_MAX      (SIZE_CONDITIONS_MAX + 1)
#define LARGEST_SIZE        (UINT64_MAX - 1) /* UINT64_MAX is "unknown" */

struct size_span {
    uint64_t from, to; /* bits, both included */
};

struct item {
    const char *name; /* in the text that was parsed */
    size_t name_len;
    size_t said_len; /* longer where the name says a size: AES_128 has the name AES */

    bool has_sizes;
    struct size_span denied[SIZE_SPANS_MAX]; /* in order, apart from each other */
    size_t denied_count;

    bool certificates_only; /* usage or jdkCA: a condition that is never met here */
    bool has_date;
    int64_t from_s; /* denied from this second on */
};

/*
 * Parses an item whose white space is single blanks already. A name is everything up to the first
 * condition (keySize, denyAfter, usage, jdkCA), as some curves have a blank in their names. NULL on
 * success, otherwise what would have been right; *item is then undefined. Any thread.
 */
const char *item_parse(struct item *item, const char *text);

/*
 * NUMBER_NONE: does not look like a mechanism number. NUMBER_WRONG: does, but is none that we take.
 */
enum number_kind {
    NUMBER_NONE,
    NUMBER_RIGHT,
    NUMBER_WRONG,
};

/*
 * Reads a mechanism number: 0x... , decimal, or CKM_VENDOR_DEFINED+number. Decimal only for vendor
 * numbers and numbers in mechanisms.def, so that a forgotten 0x does not make another mechanism of
 * it. Any thread.
 */
enum number_kind item_number(const char *text, size_t len, uint64_t *number);

#endif
