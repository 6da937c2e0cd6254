/* key.c - reads a key's type, size and curve, and remembers what tokens said. */
#include <string.h>

#include "base/lock.h"
#include "guard/internal.h"
#include "state/memory.h"

/* 32,768 bits, or explicit parameters of a curve; larger ones are taken for of unknown size, or an unknown curve. */
enum { ATTRIBUTE_MOST_BYTES = 4096, CACHE_PLACES = 256 };

/* A small table; a new key takes the place of an old one. */
struct key_cache {
    struct try_lock lock; /* guards the places */
    struct known_key keys[CACHE_PLACES];
};
static struct key_cache *cache;
IN_WIPED_MEMORY(cache, 1)

static bool get_number(const CK_ATTRIBUTE *attribute, CK_ULONG *number)
{
    if (attribute->pValue == NULL || attribute->ulValueLen != sizeof *number)
        return false;
    memcpy(number, attribute->pValue, sizeof *number);
    return true;
}

/* Where the size of a key stands: in an attribute of the key itself, and in another that a template may have. 0: it
 * stands nowhere. */
static const struct {
    CK_ATTRIBUTE_TYPE of_key, of_template;
} size_attributes[SIZE_OTHER + 1] = {
    [SIZE_MODULUS] = {CKA_MODULUS, CKA_MODULUS_BITS},
    [SIZE_PRIME] = {CKA_PRIME, CKA_PRIME_BITS},
    [SIZE_ORDER] = {CKA_EC_PARAMS, CKA_EC_PARAMS},
    [SIZE_CURVE] = {CKA_EC_PARAMS, CKA_EC_PARAMS},
    [SIZE_VALUE] = {CKA_VALUE_LEN, CKA_VALUE},
    [SIZE_SET] = {CKA_PARAMETER_SET, CKA_PARAMETER_SET},
};

static bool is_size_attribute(enum key_size_from from, CK_ATTRIBUTE_TYPE type)
{
    return type != 0 &&
           (type == size_attributes[from].of_key || type == size_attributes[from].of_template);
}

/* Notes what an attribute says of the size of a key of that type. False if it says nothing. */
static bool note_attribute(struct key_info *key, const CK_ATTRIBUTE *attribute)
{
    CK_ULONG len_bytes = attribute->ulValueLen, number = 0;
    bool has_bytes =
        len_bytes != CK_UNAVAILABLE_INFORMATION && (attribute->pValue != NULL || len_bytes == 0);
    bool has_number = get_number(attribute, &number);
    if (!is_size_attribute(key->type->size_from, attribute->type))
        return false;
    switch (attribute->type) {
    case CKA_MODULUS:
    case CKA_PRIME:
        if (has_bytes)
            key->bits = number_bits(attribute->pValue, len_bytes);
        return has_bytes;
    case CKA_EC_PARAMS:
        if (has_bytes)
            key_info_params(key, attribute->pValue, len_bytes);
        return has_bytes;
    case CKA_VALUE:
        number = len_bytes;
        has_number = has_bytes;
        __attribute__((fallthrough));
    case CKA_VALUE_LEN:
        if (has_number)
            key->bits = number > UINT64_MAX / 8 - 1 ? BITS_UNKNOWN - 1 : 8 * (uint64_t)number;
        return has_number;
    case CKA_PARAMETER_SET:
        if (has_number)
            key->set = number;
        return has_number;
    default: /* CKA_MODULUS_BITS, CKA_PRIME_BITS */
        if (has_number)
            key->bits = number;
        return has_number;
    }
}

/* The attribute with that number in both templates, one behind the other; NULL behind the last. */
static const CK_ATTRIBUTE *attribute_at(const struct key_use *use, CK_ULONG number)
{
    for (int t = 0; t < 2; t++) {
        CK_ULONG count = use->templates[t] != NULL ? use->counts[t] : 0;
        if (number < count)
            return &use->templates[t][number];
        number -= count;
    }
    return NULL;
}

/* The rule that denies a key of that type. *is_told: false if only the finished key tells its size. */
static const struct policy_rule *type_denied(const struct policy *policy, uint64_t mechanism,
                                             const struct key_type *type, const struct key_use *use,
                                             bool *is_told, CK_RV *code)
{
    struct key_info key = key_info_of(type);
    const CK_ATTRIBUTE *attribute;
    bool is_curve = false;
    const struct policy_rule *rule = policy_key(policy, mechanism, &key, &is_curve);
    *is_told = type->size_from == SIZE_FIXED || type->size_from == SIZE_OTHER;
    for (CK_ULONG i = 0; rule == NULL && (attribute = attribute_at(use, i)) != NULL; i++) {
        key = key_info_of(type);
        if (!note_attribute(&key, attribute))
            continue;
        *is_told = true;
        rule = policy_key(policy, mechanism, &key, &is_curve);
    }
    *code = is_curve ? CKR_CURVE_NOT_SUPPORTED : CKR_KEY_SIZE_RANGE;
    return rule;
}

const struct policy_rule *templates_denied(const struct policy *policy, uint64_t mechanism,
                                           const struct key_type *type, const struct key_use *use,
                                           bool *unsure, CK_RV *code)
{
    const struct policy_rule *rule = NULL;
    const CK_ATTRIBUTE *attribute;
    CK_ULONG number;
    bool is_told = false;
    *code = CKR_KEY_SIZE_RANGE;
    if (type != NULL)
        rule = type_denied(policy, mechanism, type, use, &is_told, code);
    *unsure = !is_told;
    for (CK_ULONG i = 0; rule == NULL && (attribute = attribute_at(use, i)) != NULL; i++) {
        if (attribute->type != CKA_KEY_TYPE || !get_number(attribute, &number))
            continue;
        const struct key_type *other = key_type_find(number);
        if (other == NULL || other == type)
            continue;
        rule = type_denied(policy, mechanism, other, use, &is_told, code);
        *unsure = *unsure && !is_told;
    }
    return rule;
}

bool template_tells_size(const CK_ATTRIBUTE *template, CK_ULONG count)
{
    for (CK_ULONG i = 0; template != NULL && i < count; i++)
        for (enum key_size_from from = SIZE_NONE; from <= SIZE_OTHER; from++)
            if (template[i].type == CKA_KEY_TYPE || is_size_attribute(from, template[i].type))
                return true;
    return false;
}

/* Apart from its callers, which may have the smallest of stacks. */
__attribute__((noinline)) static void read_size(struct key_info *key, CK_SESSION_HANDLE session,
                                                CK_OBJECT_HANDLE handle)
{
    uint8_t value[ATTRIBUTE_MOST_BYTES];
    CK_ATTRIBUTE size = {size_attributes[key->type->size_from].of_key, value, sizeof value};
    CK_RV rv = target()->C_GetAttributeValue(session, handle, &size, 1);
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
    if (key->type != NULL && size_attributes[key->type->size_from].of_key != 0)
        read_size(key, session, handle);
    return true;
}

static struct known_key *place_of(const struct slot *slot, CK_OBJECT_HANDLE handle)
{
    uint64_t mixed = ((uint64_t)handle ^ (uint64_t)(uintptr_t)slot) * 0x9E3779B97F4A7C15ULL;
    return &cache->keys[mixed >> 32 & (CACHE_PLACES - 1)];
}

static unsigned version_of(const struct slot *slot, bool on_token)
{
    return atomic_load(on_token ? &slot->keys_version : &slot->session_keys_version);
}

static bool is_current_locked(const struct known_key *place, const struct slot *slot,
                              CK_OBJECT_HANDLE handle)
{
    return place->slot == slot && place->handle == handle &&
           place->version == version_of(slot, place->on_token);
}

bool key_find(struct known_key *key, CK_SESSION_HANDLE session, CK_OBJECT_HANDLE handle)
{
    struct slot *slot = session_slot(session);
    struct known_key *place = place_of(slot, handle);
    *key = (struct known_key){.slot = slot, .handle = handle};
    if (slot == NULL)
        return read_key(&key->info, &key->on_token, session, handle);

    /* Read before the token is asked, so that an answer is not used if keys changed while it was on its way. */
    unsigned versions[] = {version_of(slot, false), version_of(slot, true)};
    bool found = false;
    if (try_lock_acquire(&cache->lock)) {
        found = is_current_locked(place, slot, handle);
        if (found)
            *key = *place;
        try_lock_release(&cache->lock);
    }
    if (found)
        return true;
    if (!read_key(&key->info, &key->on_token, session, handle))
        return false;
    key->version = versions[key->on_token];
    if (try_lock_acquire(&cache->lock)) {
        *place = *key;
        try_lock_release(&cache->lock);
    }
    return true;
}

void key_note_permitted(const struct known_key *key, uint64_t mechanism, enum purpose purpose)
{
    struct known_key *place = place_of(key->slot, key->handle);
    if (key->slot == NULL || !try_lock_acquire(&cache->lock))
        return;
    /* The version is that of the key that was judged: another key may have its handle by now. */
    if (place->slot == key->slot && place->handle == key->handle &&
        place->on_token == key->on_token && place->version == key->version) {
        place->permitted_mechanism = mechanism;
        place->permitted_purpose = purpose;
    }
    try_lock_release(&cache->lock);
}

bool key_is_permitted(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE handle, uint64_t mechanism,
                      enum purpose purpose)
{
    const struct slot *slot = session_slot(session);
    const struct known_key *place = place_of(slot, handle);
    if (slot == NULL || !try_lock_acquire(&cache->lock))
        return false;
    bool permitted = place->permitted_purpose == purpose &&
                     place->permitted_mechanism == mechanism &&
                     is_current_locked(place, slot, handle);
    try_lock_release(&cache->lock);
    return permitted;
}
