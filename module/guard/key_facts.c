/* key_facts.c - reads a key's type, size and curve. */
#include "guard/key_facts.h"

#include <string.h>

#include "target/target.h"

/* 32,768 bits, or explicit parameters of a curve; larger ones are taken for of unknown size. */
enum { ATTRIBUTE_MOST_BYTES = 4096 };

/* What an attribute holds, NULL if the template does not have it or says no value. */
static const CK_ATTRIBUTE *find(const CK_ATTRIBUTE *template, CK_ULONG count,
                                CK_ATTRIBUTE_TYPE type)
{
    for (CK_ULONG i = 0; template != NULL && i < count; i++)
        if (template[i].type == type && template[i].ulValueLen != CK_UNAVAILABLE_INFORMATION &&
            (template[i].pValue != NULL || template[i].ulValueLen == 0))
            return &template[i];
    return NULL;
}

static bool find_number(const CK_ATTRIBUTE *template, CK_ULONG count, CK_ATTRIBUTE_TYPE type,
                        CK_ULONG *number)
{
    const CK_ATTRIBUTE *attribute = find(template, count, type);
    if (attribute == NULL || attribute->ulValueLen != sizeof *number)
        return false;
    memcpy(number, attribute->pValue, sizeof *number);
    return true;
}

static enum key_size_from size_from(const struct key_facts *facts)
{
    return facts->info.type != NULL ? facts->info.type->size_from : SIZE_NONE;
}

/* The size of the number in one attribute; or the number in the other, which says it itself. */
static void add_bits(struct key_facts *facts, const CK_ATTRIBUTE *template, CK_ULONG count,
                     CK_ATTRIBUTE_TYPE number, CK_ATTRIBUTE_TYPE bits)
{
    const CK_ATTRIBUTE *attribute = find(template, count, number);
    CK_ULONG said;
    if (attribute != NULL)
        facts->info.bits = number_bits(attribute->pValue, attribute->ulValueLen);
    else if (find_number(template, count, bits, &said))
        facts->info.bits = said;
}

/* A secret's length in bytes, or the secret itself, of which only the length is of interest. */
static void add_length(struct key_facts *facts, const CK_ATTRIBUTE *template, CK_ULONG count)
{
    const CK_ATTRIBUTE *value = find(template, count, CKA_VALUE);
    CK_ULONG len_bytes;
    if (value != NULL)
        len_bytes = value->ulValueLen;
    else if (!find_number(template, count, CKA_VALUE_LEN, &len_bytes))
        return;
    facts->info.bits = len_bytes > UINT64_MAX / 8 - 1 ? UINT64_MAX - 1 : 8 * (uint64_t)len_bytes;
}

static void add_curve(struct key_facts *facts, const CK_ATTRIBUTE *template, CK_ULONG count)
{
    const CK_ATTRIBUTE *attribute = find(template, count, CKA_EC_PARAMS);
    if (attribute == NULL || attribute->ulValueLen == 0)
        return;
    key_info_params(&facts->info, attribute->pValue, attribute->ulValueLen);
}

void key_facts_add(struct key_facts *facts, const CK_ATTRIBUTE *template, CK_ULONG count)
{
    CK_ULONG number;
    if (find_number(template, count, CKA_KEY_TYPE, &number))
        facts->info.type = key_type_find(number);
    switch (size_from(facts)) {
    case SIZE_MODULUS:
        add_bits(facts, template, count, CKA_MODULUS, CKA_MODULUS_BITS);
        break;
    case SIZE_PRIME:
        add_bits(facts, template, count, CKA_PRIME, CKA_PRIME_BITS);
        break;
    case SIZE_ORDER:
    case SIZE_CURVE:
        add_curve(facts, template, count);
        break;
    case SIZE_VALUE:
        add_length(facts, template, count);
        break;
    case SIZE_SET:
        if (find_number(template, count, CKA_PARAMETER_SET, &number))
            facts->info.set = number;
        break;
    case SIZE_NONE:
    case SIZE_FIXED:
    case SIZE_OTHER:
        break;
    }
}

struct key_facts key_facts_of(uint64_t generating_mechanism)
{
    return (struct key_facts){.info = key_info_of(key_type_generated(generating_mechanism))};
}

bool template_is_key(const CK_ATTRIBUTE *template, CK_ULONG count)
{
    CK_ULONG class;
    return find_number(template, count, CKA_CLASS, &class) &&
           (class == CKO_PUBLIC_KEY || class == CKO_PRIVATE_KEY || class == CKO_SECRET_KEY);
}

/* The one attribute that tells the size of keys of that type. */
static CK_ATTRIBUTE_TYPE telling_attribute(const struct key_facts *facts)
{
    switch (size_from(facts)) {
    case SIZE_MODULUS:
        return CKA_MODULUS;
    case SIZE_PRIME:
        return CKA_PRIME;
    case SIZE_ORDER:
    case SIZE_CURVE:
        return CKA_EC_PARAMS;
    case SIZE_VALUE:
        return CKA_VALUE_LEN;
    case SIZE_SET:
        return CKA_PARAMETER_SET;
    case SIZE_NONE:
    case SIZE_FIXED:
    case SIZE_OTHER:
        break;
    }
    return CKA_KEY_TYPE;
}

bool key_facts_read(struct key_facts *facts, CK_SESSION_HANDLE session, CK_OBJECT_HANDLE key)
{
    CK_KEY_TYPE type = CK_UNAVAILABLE_INFORMATION;
    CK_BBOOL on_token = CK_FALSE;
    uint8_t value[ATTRIBUTE_MOST_BYTES];
    CK_ATTRIBUTE first[] = {{CKA_KEY_TYPE, &type, sizeof type},
                            {CKA_TOKEN, &on_token, sizeof on_token}};
    *facts = key_facts_of(NO_MECHANISM);
    target()->C_GetAttributeValue(session, key, first, sizeof first / sizeof *first);
    if (first[0].ulValueLen != sizeof type || type == CK_UNAVAILABLE_INFORMATION)
        return false;
    facts->info.type = key_type_find(type);
    facts->on_token = first[1].ulValueLen == sizeof on_token && on_token != CK_FALSE;

    CK_ATTRIBUTE second = {telling_attribute(facts), value, sizeof value};
    if (second.type != CKA_KEY_TYPE &&
        target()->C_GetAttributeValue(session, key, &second, 1) == CKR_OK &&
        second.ulValueLen <= sizeof value)
        key_facts_add(facts, &second, 1);
    return true;
}

const struct policy_rule *key_facts_denied(const struct policy *policy, uint64_t mechanism,
                                           const struct key_facts *facts, CK_RV *code)
{
    bool is_curve;
    const struct policy_rule *rule = policy_key(policy, mechanism, &facts->info, &is_curve);
    *code = is_curve ? CKR_CURVE_NOT_SUPPORTED : CKR_KEY_SIZE_RANGE;
    return rule;
}

bool key_facts_are_enough(const struct key_facts *facts)
{
    switch (size_from(facts)) {
    case SIZE_SET:
        return facts->info.set != SET_UNKNOWN;
    case SIZE_FIXED:
    case SIZE_OTHER:
        return true;
    case SIZE_NONE:
        return facts->info.type != NULL;
    default:
        return facts->info.bits != BITS_UNKNOWN;
    }
}
