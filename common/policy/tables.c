/* tables.c - the tables, and finding rows in them. */
#include "policy/tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/message.h"

const struct mechanism mechanisms[] = {
#define MECHANISM(number, names, atoms, full_names, uses, more, size)                              \
    {number, names "|" atoms "|" full_names, FOR_##uses, MORE_##more, SIZE_##size},
#include "policy/mechanisms.def"
#undef MECHANISM
};

const struct key_type key_types[] = {
#define KEY_TYPE(number, names, size, bits, ...)                                                   \
    {number, names, SIZE_##size, bits, NULL, {__VA_ARGS__}},
#define KEY_TYPE_OF_SETS(number, names, sets, ...)                                                 \
    {number, names, SIZE_SET, 0, sets, {__VA_ARGS__}},
#include "policy/keytypes.def"
#undef KEY_TYPE
#undef KEY_TYPE_OF_SETS
};

const struct curve curves[] = {
#define CURVE(...) {__VA_ARGS__},
#include "policy/curves.def"
#undef CURVE
};

const struct digest digests[] = {
#define DIGEST(...) {__VA_ARGS__},
#include "policy/digests.def"
#undef DIGEST
};

#define ROWS(table) (sizeof(table) / sizeof *(table))
const size_t mechanism_count = ROWS(mechanisms), key_type_count = ROWS(key_types),
             curve_count = ROWS(curves), digest_count = ROWS(digests);

/* Rows may be added anywhere, so no binary search; nothing that is called often comes here. */
const struct mechanism *mechanism_find(uint64_t number)
{
    for (size_t i = 0; i < mechanism_count; i++)
        if (mechanisms[i].number == number)
            return &mechanisms[i];
    return NULL;
}

const struct key_type *key_type_find(uint64_t number)
{
    for (size_t i = 0; i < key_type_count; i++)
        if (key_types[i].number == number)
            return &key_types[i];
    return NULL;
}

const struct key_type *key_type_generated(uint64_t mechanism)
{
    for (size_t i = 0; i < key_type_count; i++)
        for (size_t j = 0; j < GENERATORS_MAX; j++)
            /* Mechanism 0 generates RSA keys and stands first there; other zeros are unused. */
            if (key_types[i].generators[j] == mechanism && (mechanism != 0 || j == 0))
                return mechanism == NO_MECHANISM ? NULL : &key_types[i];
    return NULL;
}

const char *mechanism_name(uint64_t number, char *text, size_t text_bytes)
{
    const struct mechanism *row = mechanism_find(number);

    if (row != NULL)
        snprintf(text, text_bytes, "%.*s", (int)strcspn(row->names, "|"), row->names);
    else
        snprintf(text, text_bytes, "0x%08" PRIx64, number);
    return text;
}

bool next_name(const char *names, const char **name, size_t *len)
{
    const char *at = *name == NULL ? names : *name + *len;

    *name = at += strspn(at, "|");
    *len = strcspn(at, "|");
    return *len > 0;
}

bool has_name(const char *names, const char *name, size_t len)
{
    const char *one = NULL;
    size_t one_len;

    while (next_name(names, &one, &one_len))
        if (one_len == len && same_text(one, name, len))
            return true;
    return false;
}
