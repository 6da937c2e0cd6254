/* keys.c - what is read as DER: the curve of a key, and the digest of a DigestInfo. */
#include "policy/policy.h"

#include <stdio.h>
#include <string.h>

enum der_tag {
    DER_INTEGER = 0x02,
    DER_OCTET_STRING = 0x04,
    DER_OID = 0x06,
    DER_UTF8_STRING = 0x0c,
    DER_PRINTABLE_STRING = 0x13,
    DER_SEQUENCE = 0x30,
};

struct der {
    const uint8_t *bytes;
    size_t len_bytes;
};

/*
 * Takes the first element off in, if it has that tag and its length is written as DER has it. False
 * otherwise, with nothing changed. A tag of more than one byte (0x1f in its low bits) is none of ours.
 */
static bool take(struct der *in, uint8_t tag, struct der *content)
{
    const uint8_t *bytes = in->bytes;
    size_t header = 2, len;

    if (in->len_bytes < header || bytes[0] != tag)
        return false;
    len = bytes[1];
    if (len >= 0x80) {
        size_t count = len & 0x7f;
        if (count == 0 || count > 3 || in->len_bytes - header < count || bytes[2] == 0)
            return false;
        len = 0;
        for (size_t i = 0; i < count; i++)
            len = len << 8 | bytes[header + i];
        header += count;
        if (len < 0x80)
            return false;
    }
    if (in->len_bytes - header < len)
        return false;
    *content = (struct der){bytes + header, len};
    in->bytes += header + len;
    in->len_bytes -= header + len;
    return true;
}

/* Of an order in hexadecimal, or of an OID: more than any in the tables. */
enum { TEXT_BYTES = 160 };

/* An OID's content, which has no other form in DER, as dotted text; "" if it is none or too long. */
static void dotted(char text[TEXT_BYTES], struct der oid)
{
    size_t len = 0;
    unsigned long arc = 0;

    for (size_t i = 0; i < oid.len_bytes && len + 24 < TEXT_BYTES; i++) {
        if (arc == 0 && oid.bytes[i] == 0x80)
            break;
        arc = arc << 7 | (oid.bytes[i] & 0x7f);
        if (oid.bytes[i] & 0x80)
            continue;
        unsigned long top = arc / 40 < 2 ? arc / 40 : 2;
        len += (size_t)(len == 0 ? sprintf(text, "%lu.%lu", top, arc - 40 * top)
                                 : sprintf(text + len, ".%lu", arc));
        arc = 0;
        if (i + 1 == oid.len_bytes)
            return;
    }
    text[0] = '\0';
}

uint64_t number_bits(const uint8_t *number, size_t number_bytes)
{
    while (number_bytes > 0 && *number == 0) {
        number++;
        number_bytes--;
    }
    return number_bytes == 0 ? 0
                             : 8 * (uint64_t)number_bytes - (uint64_t)(__builtin_clz(*number) - 24);
}

uint64_t curve_bits(const struct curve *curve)
{
    const char *digits = "0123456789abcdef";
    unsigned top = (unsigned)(strchr(digits, curve->order[0]) - digits);
    return 4 * strlen(curve->order) - (uint64_t)(__builtin_clz(top) - 28);
}

/* A big-endian number as the tables have orders: lower case, without leading zeros; "" if it is too long. */
static void hexadecimal(char text[TEXT_BYTES], struct der number)
{
    size_t len = 0;

    for (size_t i = 0; i < number.len_bytes && len + 2 < TEXT_BYTES; i++)
        if (len > 0 || number.bytes[i] != 0)
            len += (size_t)sprintf(text + len, len > 0 ? "%02x" : "%x", number.bytes[i]);
    text[len + 2 < TEXT_BYTES ? len : 0] = '\0';
}

/* The order in ECParameters (X9.62): version, fieldID, curve, base, order, cofactor. */
static bool take_order(struct der parameters, struct der *order)
{
    struct der skipped;

    return take(&parameters, DER_INTEGER, &skipped) && take(&parameters, DER_SEQUENCE, &skipped) &&
           take(&parameters, DER_SEQUENCE, &skipped) &&
           take(&parameters, DER_OCTET_STRING, &skipped) && take(&parameters, DER_INTEGER, order);
}

void key_info_params(struct key_info *key, const uint8_t *params, size_t params_bytes)
{
    struct der in = {params, params_bytes}, value, order;
    char oid[TEXT_BYTES] = "", in_hex[TEXT_BYTES] = "";
    const char *name = oid;
    size_t len = 0;

    *key = (struct key_info){
        .type = key->type, .bits = BITS_UNKNOWN, .set = key->set, .has_params = true};
    if (take(&in, DER_OID, &value)) {
        dotted(oid, value);
        len = strlen(oid);
    } else if (take(&in, DER_SEQUENCE, &value) && take_order(value, &order)) {
        key->spelled_out = true;
        key->bits = number_bits(order.bytes, order.len_bytes);
        hexadecimal(in_hex, order);
    } else if (take(&in, DER_PRINTABLE_STRING, &value) || take(&in, DER_UTF8_STRING, &value)) {
        name = (const char *)value.bytes;
        len = value.len_bytes;
    }
    for (size_t i = 0; i < curve_count && in.len_bytes == 0 && key->curve == NULL; i++)
        if (has_name(curves[i].names, name, len) || strcmp(in_hex, curves[i].order) == 0)
            key->curve = &curves[i];
    if (key->curve != NULL)
        key->bits = curve_bits(key->curve);
}

const struct policy_rule *policy_digest_info(const struct policy *policy, const uint8_t *data,
                                             size_t data_bytes)
{
    struct der in = {data, data_bytes}, info, algorithm, oid, digest;
    const struct policy_rule *rule = NULL;
    char text[TEXT_BYTES];

    if (policy == NULL || data == NULL || !take(&in, DER_SEQUENCE, &info) || in.len_bytes != 0 ||
        !take(&info, DER_SEQUENCE, &algorithm) || !take(&info, DER_OCTET_STRING, &digest) ||
        info.len_bytes != 0 || !take(&algorithm, DER_OID, &oid))
        return NULL;
    dotted(text, oid);
    for (size_t i = 0; i < digest_count && rule == NULL; i++) {
        if (strcmp(text, digests[i].oid) != 0)
            continue;
        rule = policy_mechanism(policy, digests[i].mechanism, USE_SIGN);
        if (rule == NULL && digests[i].rsa != 0)
            rule = policy_mechanism(policy, digests[i].rsa, USE_SIGN);
    }
    return rule;
}
