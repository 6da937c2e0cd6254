/* key.c - reads a key's type, size and curve, judges keys that are used or made, and remembers which are permitted. */
#include <string.h>

#include "base/lock.h"
#include "guard/guard.h"
#include "state/memory.h"

/* 32,768 bits, or explicit parameters of a curve; larger ones are taken for of unknown size, or an unknown curve. */
enum { ATTRIBUTE_MOST_BYTES = 4096, CACHE_PLACES = 256 };

/* A small table; a new key takes the place of an old one. */
struct permitted_key {
    const struct slot *slot; /* NULL: none */
    CK_OBJECT_HANDLE handle;
    CK_MECHANISM_TYPE mechanism;
    CK_FLAGS purpose;
    unsigned version; /* the slot's keys_version before the token was asked */
};
static struct key_cache {
    struct try_lock lock; /* guards the keys */
    struct permitted_key keys[CACHE_PLACES];
} * cache;
IN_WIPED_MEMORY(cache, 1)

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

static bool get_number(const CK_ATTRIBUTE *attribute, CK_ULONG *number)
{
    if (attribute->pValue == NULL || attribute->ulValueLen != sizeof *number)
        return false;
    memcpy(number, attribute->pValue, sizeof *number);
    return true;
}

static uint64_t bits_of(CK_ULONG bytes)
{
    return bytes > UINT64_MAX / 8 - 1 ? BITS_UNKNOWN - 1 : 8 * (uint64_t)bytes;
}

/* Notes what an attribute says of the size of a key of that type. False if it says nothing. */
static bool note_attribute(struct key_info *key, const CK_ATTRIBUTE *attribute)
{
    CK_ULONG len_bytes = attribute->ulValueLen, number = 0;
    if (!is_size_attribute(key->type->size_from, attribute->type) ||
        len_bytes == CK_UNAVAILABLE_INFORMATION || (attribute->pValue == NULL && len_bytes != 0))
        return false;
    if (attribute->type == CKA_MODULUS || attribute->type == CKA_PRIME)
        key->bits = number_bits(attribute->pValue, len_bytes);
    else if (attribute->type == CKA_EC_PARAMS)
        key_info_params(key, attribute->pValue, len_bytes);
    else if (attribute->type == CKA_VALUE)
        key->bits = bits_of(len_bytes);
    else if (!get_number(attribute, &number))
        return false;
    else if (attribute->type == CKA_PARAMETER_SET)
        key->set = number;
    else
        key->bits = attribute->type == CKA_VALUE_LEN ? bits_of(number) : number;
    return true;
}

/* Whether a key is denied to a mechanism, or to any (NO_MECHANISM). */
static struct refusal key_denied(const struct policy *policy, uint64_t mechanism,
                                 const struct key_info *key)
{
    bool is_curve = false;
    const struct policy_rule *rule = policy_key(policy, mechanism, key, &is_curve);
    return (struct refusal){rule, is_curve ? CKR_CURVE_NOT_SUPPORTED : CKR_KEY_SIZE_RANGE};
}

/*
 * Rules about a mechanism's keys mean the keys that it works with, and those that it generates. A derived or unwrapped
 * key is another matter: an AES key from ECDH is no small ECDH key.
 */
struct refusal made_key_denied(const struct guarded_call *call, const struct key_info *key)
{
    bool generates = call->mechanism != NULL && call->used == CK_INVALID_HANDLE;
    return key_denied(call->policy, generates ? call->mechanism->mechanism : NO_MECHANISM, key);
}

/* The attribute with that number in both templates, one behind the other; NULL behind the last. */
static const CK_ATTRIBUTE *attribute_at(const struct guarded_call *call, CK_ULONG number)
{
    for (int t = 0; t < 2; t++) {
        CK_ULONG count = call->templates[t] != NULL ? call->counts[t] : 0;
        if (number < count)
            return &call->templates[t][number];
        number -= count;
    }
    return NULL;
}

/* The same for a key of that type. Clears *unsure if not only the finished key tells its size. */
static struct refusal type_denied(const struct guarded_call *call, const struct key_type *type,
                                  bool *unsure)
{
    struct key_info key = key_info_of(type);
    struct refusal refusal = made_key_denied(call, &key);
    const CK_ATTRIBUTE *attribute;
    if (type->size_from == SIZE_FIXED || type->size_from == SIZE_OTHER)
        *unsure = false;
    for (CK_ULONG i = 0; refusal.rule == NULL && (attribute = attribute_at(call, i)) != NULL; i++) {
        key = key_info_of(type);
        if (!note_attribute(&key, attribute))
            continue;
        *unsure = false;
        refusal = made_key_denied(call, &key);
    }
    return refusal;
}

struct refusal templates_denied(const struct guarded_call *call, const struct key_type *type,
                                bool *unsure)
{
    struct refusal refusal = {NULL, CKR_OK};
    const CK_ATTRIBUTE *attribute;
    CK_ULONG number;
    *unsure = true;
    if (type != NULL)
        refusal = type_denied(call, type, unsure);
    for (CK_ULONG i = 0; refusal.rule == NULL && (attribute = attribute_at(call, i)) != NULL; i++)
        if (attribute->type == CKA_KEY_TYPE && get_number(attribute, &number) &&
            (type = key_type_find(number)) != NULL)
            refusal = type_denied(call, type, unsure);
    return refusal;
}

bool template_tells_size(const CK_ATTRIBUTE *template, CK_ULONG count)
{
    for (CK_ULONG i = 0; template != NULL && i < count; i++)
        for (enum key_size_from from = SIZE_NONE; from <= SIZE_OTHER; from++)
            if (template[i].type == CKA_KEY_TYPE || is_size_attribute(from, template[i].type))
                return true;
    return false;
}

/* Not inlined, because callers may have the smallest of stacks. */
__attribute__((noinline)) bool key_read(struct key_info *key, CK_SESSION_HANDLE session,
                                        CK_OBJECT_HANDLE handle)
{
    uint8_t value[ATTRIBUTE_MOST_BYTES];
    CK_KEY_TYPE number = CK_UNAVAILABLE_INFORMATION;
    CK_ATTRIBUTE type = {CKA_KEY_TYPE, &number, sizeof number};
    target()->C_GetAttributeValue(session, handle, &type, 1);
    if (type.ulValueLen != sizeof number || number == CK_UNAVAILABLE_INFORMATION)
        return false;
    *key = key_info_of(key_type_find(number));
    CK_ATTRIBUTE size = {0, value, sizeof value};
    if (key->type != NULL)
        size.type = size_attributes[key->type->size_from].of_key;
    if (size.type == 0)
        return true;
    CK_RV rv = target()->C_GetAttributeValue(session, handle, &size, 1);
    if (rv == CKR_OK && size.ulValueLen <= sizeof value)
        note_attribute(key, &size);
    else if (rv == CKR_BUFFER_TOO_SMALL && size.type == CKA_EC_PARAMS)
        key->has_params = true;
    return true;
}

static struct permitted_key *place_of(const struct slot *slot, CK_OBJECT_HANDLE handle)
{
    uint64_t mixed = ((uint64_t)handle ^ (uint64_t)(uintptr_t)slot) * 0x9E3779B97F4A7C15ULL;
    return &cache->keys[mixed >> 32 & (CACHE_PLACES - 1)];
}

bool key_is_permitted(const struct guarded_call *call)
{
    const struct slot *slot = session_slot(call->session);
    const struct permitted_key *key = place_of(slot, call->used);
    if (slot == NULL || !try_lock_acquire(&cache->lock))
        return false;
    bool permitted = key->handle == call->used && key->mechanism == call->mechanism->mechanism &&
                     key->purpose == call->purpose && key->slot == slot &&
                     key->version == atomic_load(&slot->keys_version);
    try_lock_release(&cache->lock);
    return permitted;
}

struct refusal used_key_denied(const struct guarded_call *call, bool remember)
{
    struct slot *slot = session_slot(call->session);
    struct permitted_key key = {slot, call->used, call->mechanism->mechanism, call->purpose, 0};
    struct key_info info;
    /* Read first, so that what the token says is not believed if keys changed meanwhile. */
    if (slot != NULL)
        key.version = atomic_load(&slot->keys_version);
    if (!key_read(&info, call->session, call->used))
        return (struct refusal){NULL, CKR_OK};
    struct refusal refusal = key_denied(call->policy, key.mechanism, &info);
    if (refusal.rule == NULL && remember && slot != NULL && try_lock_acquire(&cache->lock)) {
        *place_of(slot, call->used) = key;
        try_lock_release(&cache->lock);
    }
    return refusal;
}
