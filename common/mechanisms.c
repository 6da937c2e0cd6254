/* mechanisms.c - the tables of mechanisms, key types, digests and parameter sets. */
#include "mechanisms.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

const struct mechanism mechanisms[] = {
#define MECHANISM(number, names, atoms, full_names, more, size)                                    \
    {number, names, atoms, full_names, MORE_##more, SIZE_##size},
#include "mechanisms.def"
#undef MECHANISM
};
const size_t mechanisms_count = sizeof mechanisms / sizeof *mechanisms;

const struct key_type key_types[] = {
#define KEY_TYPE(number, names, size, bits) {number, names, SIZE_##size, bits},
#include "keytypes.def"
#undef KEY_TYPE
};
const size_t key_types_count = sizeof key_types / sizeof *key_types;

const struct digest digests[] = {
#define DIGEST(name, mechanism, rsa, oid, der) {name, mechanism, rsa, oid, BYTES(der)},
#include "digests.def"
#undef DIGEST
};
const size_t digests_count = sizeof digests / sizeof *digests;

const struct parameter_set parameter_sets[] = {
#define PARAMETER_SET(key_type, number, name) {key_type, number, name},
#include "paramsets.def"
#undef PARAMETER_SET
};
const size_t parameter_sets_count = sizeof parameter_sets / sizeof *parameter_sets;

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
        snprintf(text, text_bytes, "%.*s", (int)strcspn(row->names, "|"), row->names);
    else
        snprintf(text, text_bytes, "0x%08" PRIx64, number);
    return text;
}
