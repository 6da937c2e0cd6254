/* key.c - reads a key's type, size and curve, and remembers what tokens said. */
#include "guard/key.h"

#include <string.h>

#include "base/lock.h"
#include "state/memory.h"
#include "state/sessions.h"
#include "target/target.h"

/* 32,768 bits, or explicit parameters of a curve; larger ones are taken for of unknown size, or an unknown curve. */
enum { ATTRIBUTE_MOST_BYTES = 4096, CACHE_PLACES = 256 };

/* A small table; a new key takes the place of an old one. */
struct key_cache {
    struct try_lock lock; /* guards the places */
    struct cached_key {
        const struct slot *slot; /* NULL: free place */
        CK_OBJECT_HANDLE handle;
        bool on_token;
        unsigned version; /* the slot's keys_version; of a session object session_keys_version */
        struct key_info info;
    } keys[CACHE_PLACES];
};
static struct key_cache *cache;

void key_cache_prepare(void)
{
    cache = memory_part(sizeof *cache);
}

static bool get_number(const CK_ATTRIBUTE *attribute, CK_ULONG *number)
{
    if (attribute->pValue == NULL || attribute->ulValueLen != sizeof *number)
        return false;
    memcpy(number, attribute->pValue, sizeof *number);
    return true;
}

/* Notes what an attribute says of the size of a key of that type. False if it says nothing. */
static bool note_attribute(struct key_info *key, const CK_ATTRIBUTE *attribute)
{
    CK_ULONG len_bytes = attribute->ulValueLen, number = 0;
    bool has_bytes =
        len_bytes != CK_UNAVAILABLE_INFORMATION && (attribute->pValue != NULL || len_bytes == 0);
    bool has_number = get_number(attribute, &number);
    switch (key->type->size_from) {
    case SIZE_MODULUS:
    case SIZE_PRIME:
        if (attribute->type == (key->type->size_from == SIZE_MODULUS ? CKA_MODULUS : CKA_PRIME) &&
            has_bytes)
            key->bits = number_bits(attribute->pValue, len_bytes);
        else if (attribute->type ==
                     (key->type->size_from == SIZE_MODULUS ? CKA_MODULUS_BITS : CKA_PRIME_BITS) &&
                 has_number)
            key->bits = number;
        break;
    case SIZE_ORDER:
    case SIZE_CURVE:
        if (attribute->type == CKA_EC_PARAMS && has_bytes)
            key_info_params(key, attribute->pValue, len_bytes);
        break;
    case SIZE_VALUE:
        if (attribute->type == CKA_VALUE && has_bytes)
            number = len_bytes;
        else if (attribute->type != CKA_VALUE_LEN || !has_number)
            return false;
        key->bits = number > UINT64_MAX / 8 - 1 ? BITS_UNKNOWN - 1 : 8 * (uint64_t)number;
        break;
    case SIZE_SET:
        if (attribute->type == CKA_PARAMETER_SET && has_number)
            key->set = number;
        break;
    default:
        break;
    }
    return key->bits != BITS_UNKNOWN || key->set != SET_UNKNOWN || key->has_params;
}

/* The rule that denies a key of that type. *is_told: false if only the finished key tells its size. */
static const struct policy_rule *type_denied(const struct policy *policy, uint64_t mechanism,
                                             const struct key_type *type,
                                             const CK_ATTRIBUTE *const templates[2],
                                             const CK_ULONG counts[2], bool *is_told, CK_RV *code)
{
    struct key_info key = key_info_of(type);
    bool is_curve = false;
    const struct policy_rule *rule = policy_key(policy, mechanism, &key, &is_curve);
    *is_told = type->size_from == SIZE_FIXED || type->size_from == SIZE_OTHER;
    for (int t = 0; t < 2; t++)
        for (CK_ULONG i = 0; templates[t] != NULL && i < counts[t] && rule == NULL; i++) {
            key = key_info_of(type);
            if (!note_attribute(&key, &templates[t][i]))
                continue;
            *is_told = true;
            rule = policy_key(policy, mechanism, &key, &is_curve);
        }
    *code = is_curve ? CKR_CURVE_NOT_SUPPORTED : CKR_KEY_SIZE_RANGE;
    return rule;
}

const struct policy_rule *templates_denied(const struct policy *policy, uint64_t mechanism,
                                           const struct key_type *type,
                                           const CK_ATTRIBUTE *const templates[2],
                                           const CK_ULONG counts[2], bool *unsure, CK_RV *code)
{
    const struct policy_rule *rule = NULL;
    CK_ULONG number;
    bool is_told = false;
    *code = CKR_KEY_SIZE_RANGE;
    if (type != NULL)
        rule = type_denied(policy, mechanism, type, templates, counts, &is_told, code);
    *unsure = !is_told;
    for (int t = 0; t < 2; t++)
        for (CK_ULONG i = 0; templates[t] != NULL && i < counts[t] && rule == NULL; i++) {
            if (templates[t][i].type != CKA_KEY_TYPE || !get_number(&templates[t][i], &number))
                continue;
            const struct key_type *other = key_type_find(number);
            if (other == NULL || other == type)
                continue;
            rule = type_denied(policy, mechanism, other, templates, counts, &is_told, code);
            *unsure = *unsure && !is_told;
        }
    return rule;
}

bool template_is_key(const CK_ATTRIBUTE *template, CK_ULONG count)
{
    CK_ULONG class;
    for (CK_ULONG i = 0; template != NULL && i < count; i++)
        if (template[i].type == CKA_CLASS && get_number(&template[i], &class) &&
            (class == CKO_PUBLIC_KEY || class == CKO_PRIVATE_KEY || class == CKO_SECRET_KEY))
            return true;
    return false;
}

bool template_tells_size(const CK_ATTRIBUTE *template, CK_ULONG count)
{
    static const CK_ATTRIBUTE_TYPE types[] = {CKA_MODULUS,    CKA_MODULUS_BITS,  CKA_PRIME,
                                              CKA_PRIME_BITS, CKA_EC_PARAMS,     CKA_VALUE,
                                              CKA_VALUE_LEN,  CKA_PARAMETER_SET, CKA_KEY_TYPE};
    for (CK_ULONG i = 0; template != NULL && i < count; i++)
        for (size_t j = 0; j < sizeof types / sizeof *types; j++)
            if (template[i].type == types[j])
                return true;
    return false;
}

/* The one attribute that tells the size of a key that the token has; CKA_KEY_TYPE: none does. */
static CK_ATTRIBUTE_TYPE telling_attribute(const struct key_type *type)
{
    switch (type != NULL ? type->size_from : SIZE_NONE) {
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
    default:
        return CKA_KEY_TYPE;
    }
}

/* Apart from its callers, which may have the smallest of stacks. */
__attribute__((noinline)) static void read_size(struct key_info *key, CK_SESSION_HANDLE session,
                                                CK_OBJECT_HANDLE handle)
{
    uint8_t value[ATTRIBUTE_MOST_BYTES];
    CK_ATTRIBUTE size = {telling_attribute(key->type), value, sizeof value};
    CK_RV rv = size.type != CKA_KEY_TYPE ? target()->C_GetAttributeValue(session, handle, &size, 1)
                                         : CKR_ATTRIBUTE_TYPE_INVALID;
    if (rv == CKR_OK && size.ulValueLen <= sizeof value)
        note_attribute(key, &size);
    else if (rv == CKR_BUFFER_TOO_SMALL && size.type == CKA_EC_PARAMS)
        key->has_params = true;
}

static bool read_key(struct key_info *key, bool *on_token, CK_SESSION_HANDLE session,
                     CK_OBJECT_HANDLE handle)
{
    CK_KEY_TYPE type = CK_UNAVAILABLE_INFORMATION;
    CK_BBOOL is_token_object = CK_FALSE;
    CK_ATTRIBUTE first[] = {{CKA_KEY_TYPE, &type, sizeof type},
                            {CKA_TOKEN, &is_token_object, sizeof is_token_object}};
    target()->C_GetAttributeValue(session, handle, first, sizeof first / sizeof *first);
    if (first[0].ulValueLen != sizeof type || type == CK_UNAVAILABLE_INFORMATION)
        return false;
    *on_token = first[1].ulValueLen == sizeof is_token_object && is_token_object != CK_FALSE;
    *key = key_info_of(key_type_find(type));
    read_size(key, session, handle);
    return true;
}

bool key_find(struct key_info *key, CK_SESSION_HANDLE session, CK_OBJECT_HANDLE handle)
{
    struct slot *slot = session_slot(session);
    struct cached_key fresh = {.slot = slot, .handle = handle};
    if (slot == NULL)
        return read_key(key, &fresh.on_token, session, handle);

    uint64_t mixed = ((uint64_t)handle ^ (uint64_t)(uintptr_t)slot) * 0x9E3779B97F4A7C15ULL;
    struct cached_key *place = &cache->keys[mixed >> 32 & (CACHE_PLACES - 1)];
    /* Read before the token is asked, so that an answer is not used if keys changed while it was on its way. */
    unsigned versions[] = {atomic_load(&slot->session_keys_version),
                           atomic_load(&slot->keys_version)};
    bool found = false;
    if (try_lock_acquire(&cache->lock)) {
        found = place->slot == slot && place->handle == handle &&
                place->version == versions[place->on_token];
        if (found)
            *key = place->info;
        try_lock_release(&cache->lock);
    }
    if (found)
        return true;
    if (!read_key(key, &fresh.on_token, session, handle))
        return false;
    fresh.version = versions[fresh.on_token];
    fresh.info = *key;
    if (try_lock_acquire(&cache->lock)) {
        *place = fresh;
        try_lock_release(&cache->lock);
    }
    return true;
}
