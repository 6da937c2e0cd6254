/* mechanisms.c - finds rows of the tables. */
#include "policy/mechanisms.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct mechanism *mechanism_find(uint64_t number)
{
    /* Rows may be added anywhere, so no binary search; nothing that is called often comes here. */
    for (size_t i = 0; i < mechanisms_count; i++) {
        if (mechanisms[i].number == number)
            return &mechanisms[i];
    }
    return NULL;
}

const struct key_type *key_type_find(uint64_t number)
{
    for (size_t i = 0; i < key_types_count; i++) {
        if (key_types[i].number == number)
            return &key_types[i];
    }
    return NULL;
}

const char *mechanism_name(uint64_t number, char *text, size_t text_bytes)
{
    const struct mechanism *row = mechanism_find(number);
    if (row)
        snprintf(text, text_bytes, "%.*s", (int)strcspn(text_at(row->names), "|"),
                 text_at(row->names));
    else
        snprintf(text, text_bytes, "0x%08" PRIx64, number);
    return text;
}
