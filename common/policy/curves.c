/* curves.c - what CKA_EC_PARAMS and a DigestInfo say: the two values that we read as DER. */
#include "policy/mechanisms.h"

#include <stdbool.h>
#include <string.h>

#include "policy/der.h"
#include "policy/policy_fold.h"

#define OID_HEADER_BYTES 2
#define UNKNOWN_CURVE    ((struct curve_params){NULL, UINT64_MAX})

static bool has_name(const char *names, const char *name, size_t name_bytes)
{
    while (*names) {
        size_t len = strcspn(names, "|");
        if (len == name_bytes && fold_same(names, name, len))
            return true;
        names += len + (names[len] == '|');
    }
    return false;
}

static struct curve_params by_name(struct der name)
{
    const char *text = (const char *)name.bytes;

    for (size_t i = 0; i < curves_count; i++) {
        if (has_name(text_at(curves[i].name), text, name.len_bytes) ||
            has_name(text_at(curves[i].aliases), text, name.len_bytes))
            return (struct curve_params){&curves[i], curves[i].order_bits};
    }
    return UNKNOWN_CURVE;
}

/* Content only: a length in BER's longer form makes it no other OID. */
static bool is_oid(const uint8_t *der, size_t der_bytes, struct der oid)
{
    return der_bytes - OID_HEADER_BYTES == oid.len_bytes &&
           memcmp(der + OID_HEADER_BYTES, oid.bytes, oid.len_bytes) == 0;
}

static struct curve_params by_oid(struct der oid)
{
    for (size_t i = 0; i < curves_count; i++) {
        if (is_oid(bytes_at(curves[i].der), curves[i].der_bytes, oid))
            return (struct curve_params){&curves[i], curves[i].order_bits};
    }
    return UNKNOWN_CURVE;
}

static bool is_number(const char *hexadecimal, struct der number)
{
    static const char digits[] = "0123456789abcdef";
    size_t nibbles = 2 * number.len_bytes;
    size_t first = number.bytes[0] < 0x10 ? 1 : 0;

    if (strlen(hexadecimal) != nibbles - first)
        return false;
    for (size_t i = first; i < nibbles; i++) {
        uint8_t nibble = i % 2 ? number.bytes[i / 2] & 15 : number.bytes[i / 2] >> 4;
        if (hexadecimal[i - first] != digits[nibble])
            return false;
    }
    return true;
}

static struct curve_params by_order(struct der order)
{
    while (order.len_bytes > 0 && order.bytes[0] == 0) {
        order.bytes++;
        order.len_bytes--;
    }
    if (order.len_bytes == 0)
        return (struct curve_params){NULL, 0};

    struct curve_params found = {NULL, 8 * (uint64_t)order.len_bytes};
    for (uint8_t top = order.bytes[0]; !(top & 0x80); top = (uint8_t)(top << 1))
        found.order_bits--;
    for (size_t i = 0; i < curves_count && !found.curve; i++) {
        if (curves[i].order_bits == found.order_bits && is_number(text_at(curves[i].order), order))
            found.curve = &curves[i];
    }
    return found;
}

/* ECParameters (X9.62): version, fieldID, curve, base, order, cofactor. */
static struct curve_params by_parameters(struct der parameters)
{
    struct der version, field, curve, base, order;

    if (!der_expect(&parameters, DER_INTEGER, &version) ||
        !der_expect(&parameters, DER_SEQUENCE, &field) ||
        !der_expect(&parameters, DER_SEQUENCE, &curve) ||
        !der_expect(&parameters, DER_OCTET_STRING, &base) ||
        !der_expect(&parameters, DER_INTEGER, &order))
        return UNKNOWN_CURVE;
    return by_order(order);
}

struct curve_params curve_params_read(const uint8_t *der, size_t der_bytes)
{
    struct der in = {der, der_bytes}, content;
    uint8_t tag;

    if (!der || !der_take(&in, &tag, &content) || in.len_bytes != 0)
        return UNKNOWN_CURVE;
    switch (tag) {
    case DER_OID:
        return by_oid(content);
    case DER_PRINTABLE_STRING:
    case DER_UTF8_STRING:
        return by_name(content);
    case DER_SEQUENCE:
        return by_parameters(content);
    default:
        return UNKNOWN_CURVE;
    }
}

const struct digest *digest_info_find(const uint8_t *data, size_t data_bytes)
{
    struct der in = {data, data_bytes}, info, algorithm, oid, digest;

    if (!data || !der_expect(&in, DER_SEQUENCE, &info) || in.len_bytes != 0 ||
        !der_expect(&info, DER_SEQUENCE, &algorithm) ||
        !der_expect(&info, DER_OCTET_STRING, &digest) || info.len_bytes != 0 ||
        !der_expect(&algorithm, DER_OID, &oid))
        return NULL;
    for (size_t i = 0; i < digests_count; i++) {
        if (is_oid(bytes_at(digests[i].der), digests[i].der_bytes, oid))
            return &digests[i];
    }
    return NULL;
}
