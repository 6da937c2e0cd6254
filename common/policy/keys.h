/* keys.h - what rules ask of a key, and the values that are read as DER. */
#ifndef P11_PROXY_KEYS_H
#define P11_PROXY_KEYS_H

#include "policy/tables.h"

#define BITS_UNKNOWN UINT64_MAX
#define SET_UNKNOWN  UINT64_MAX

/* All that a rule can ask. No secret. */
struct key_info {
    const struct key_type *type; /* NULL: not known, or in no table */
    uint64_t bits;               /* BITS_UNKNOWN: not known */
    uint64_t set;                /* CKA_PARAMETER_SET; SET_UNKNOWN: not known */
    const struct curve *curve;   /* NULL: none that is known */
    bool has_params;             /* CKA_EC_PARAMS was there, understood or not */
    bool spelled_out;            /* as explicit parameters: known by its order alone */
};

/* Nothing but the type. */
static inline struct key_info key_info_of(const struct key_type *type)
{
    return (struct key_info){.type = type, .bits = BITS_UNKNOWN, .set = SET_UNKNOWN};
}

/*
 * Notes the curve that a value of CKA_EC_PARAMS names, and its order's bits: an OID, a PrintableString
 * or UTF8String with the curve's name, or explicit parameters. No curve is noted if the value is not
 * one strict DER value, or if nothing in the table fits. Any thread.
 */
void key_info_params(struct key_info *key, const uint8_t *params, size_t params_bytes);

/* Bits of a big-endian number without its leading zeros. Any thread. */
uint64_t number_bits(const uint8_t *number, size_t number_bytes);

/* Bits of a curve's group order. Any thread. */
uint64_t curve_bits(const struct curve *curve);

/*
 * The digest that a whole DigestInfo names (PKCS #1 v1.5, "EMSA-PKCS1-v1_5": SEQUENCE of
 * AlgorithmIdentifier and OCTET STRING), with or without NULL parameters. NULL if data is something
 * else or the digest unknown. Any thread.
 */
const struct digest *digest_info_find(const uint8_t *data, size_t data_bytes);

#endif
