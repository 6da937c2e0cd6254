/* tables.c - the tables of mechanisms, key types, curves, digests and parameter sets.
 *
 * Their texts lie in one constant, and rows say where in it. Pointers instead would be some two thousand, which the
 * loader writes anew in each process that loads us, into pages that no two processes share then.
 */
#include "policy/mechanisms.h"

#define FIELD(table)            FIELD_(table, __LINE__)
#define FIELD_(table, line)     FIELD_JOIN(table, line)
#define FIELD_JOIN(table, line) table##_##line

static const struct texts {
#define ROW(table, texts) char FIELD(table)[sizeof(texts)];
#include "policy/texts.def"
} texts = {
#define ROW(table, texts) texts,
#include "policy/texts.def"
};

/* A text of the row in this line, behind others of so many bytes. */
#define PLACE(table, others_bytes)                                                                 \
    {                                                                                              \
        offsetof(struct texts, FIELD(table)) + (others_bytes)                                      \
    }

const char *text_at(struct text_place place)
{
    return (const char *)&texts + place.offset;
}

const uint8_t *bytes_at(struct text_place place)
{
    return (const uint8_t *)text_at(place);
}

const struct mechanism mechanisms[] = {
#define MECHANISM(number, names, atoms, full_names, more, size)                                    \
    {number,                                                                                       \
     PLACE(mechanism, 0),                                                                          \
     PLACE(mechanism, sizeof names),                                                               \
     PLACE(mechanism, sizeof names + sizeof atoms),                                                \
     MORE_##more,                                                                                  \
     SIZE_##size},
#include "policy/mechanisms.def"
#undef MECHANISM
};
const size_t mechanisms_count = sizeof mechanisms / sizeof *mechanisms;

const struct key_type key_types[] = {
#define KEY_TYPE(number, names, size, bits) {number, PLACE(key_type, 0), SIZE_##size, bits},
#include "policy/keytypes.def"
#undef KEY_TYPE
};
const size_t key_types_count = sizeof key_types / sizeof *key_types;

const struct curve curves[] = {
#define CURVE(name, aliases, oid, der, order_bits, order)                                          \
    {PLACE(curve, 0),                                                                              \
     PLACE(curve, sizeof name),                                                                    \
     PLACE(curve, sizeof name + sizeof aliases),                                                   \
     PLACE(curve, sizeof name + sizeof aliases + sizeof oid + sizeof order),                       \
     sizeof der - 1,                                                                               \
     order_bits,                                                                                   \
     PLACE(curve, sizeof name + sizeof aliases + sizeof oid)},
#include "policy/curves.def"
#undef CURVE
};
const size_t curves_count = sizeof curves / sizeof *curves;

const struct digest digests[] = {
#define DIGEST(name, mechanism, rsa, oid, der)                                                     \
    {PLACE(digest, 0),                                                                             \
     mechanism,                                                                                    \
     rsa,                                                                                          \
     PLACE(digest, sizeof name),                                                                   \
     PLACE(digest, sizeof name + sizeof oid),                                                      \
     sizeof der - 1},
#include "policy/digests.def"
#undef DIGEST
};
const size_t digests_count = sizeof digests / sizeof *digests;

const struct parameter_set parameter_sets[] = {
#define PARAMETER_SET(key_type, number, name) {key_type, number, PLACE(parameter_set, 0)},
#include "policy/paramsets.def"
#undef PARAMETER_SET
};
const size_t parameter_sets_count = sizeof parameter_sets / sizeof *parameter_sets;
