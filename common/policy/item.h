/* item.h - one item of a list: its name and its conditions. */
#ifndef P11_PROXY_ITEM_H
#define P11_PROXY_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIZE_RANGES_MAX = 16 };
#define LARGEST_SIZE (UINT64_MAX - 1) /* UINT64_MAX is "unknown" */

struct size_range {
    uint64_t from, to; /* bits, both included */
};

struct item {
    const char *name; /* in the text that was parsed */
    size_t name_len;

    bool has_sizes;
    struct size_range denied[SIZE_RANGES_MAX]; /* in order, apart from each other */
    size_t denied_count;

    bool certificates_only; /* usage or jdkCA: a condition that is never met here */
    bool has_date;
    int64_t from_s; /* denied from this second on */
};

/*
 * Parses an item whose white space is single blanks already. A name is everything up to the first
 * condition (keySize, denyAfter, usage, jdkCA), because some curves have a blank in their names. NULL
 * on success, otherwise what would have been right; *item is then undefined. Any thread.
 */
const char *item_parse(struct item *item, const char *text);

enum number_kind {
    NUMBER_NONE, /* does not look like a mechanism number */
    NUMBER_RIGHT,
    NUMBER_WRONG, /* looks like one, but is none that is taken */
};

/*
 * Reads a mechanism number: 0x..., decimal, or CKM_VENDOR_DEFINED+number. Decimal only for vendor
 * numbers and numbers of mechanisms.def, so that a forgotten 0x does not make another mechanism of
 * it. Any thread.
 */
enum number_kind item_number(const char *text, size_t len, uint64_t *number);

#endif
