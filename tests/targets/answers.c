/* answers.c - the scripted target makes up what it answers and writes, from what it was called with.
 *
 * The same call gives the same answer: a code, mostly CKR_OK, and what stands in every buffer and number that
 * the function may write to. So a module that changes an argument, a byte or the answer of a call is found
 * out. Handles of sessions and addresses do not count, since they differ from run to run.
 */
#include <string.h>

#include "call.h"

static const CK_RV codes[] = {
    CKR_BUFFER_TOO_SMALL,   CKR_DEVICE_ERROR,           CKR_DEVICE_REMOVED,
    CKR_FUNCTION_CANCELED,  CKR_OPERATION_ACTIVE,       CKR_PENDING,
    CKR_SESSION_CLOSED,     CKR_SESSION_HANDLE_INVALID, CKR_TOKEN_NOT_PRESENT,
    CKR_USER_NOT_LOGGED_IN, CKR_DATA_INVALID,           CKR_VENDOR_DEFINED + 17};

enum { ONE_FAILS_IN = 6 };

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
    return hash ^ hash >> 29;
}

static uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t len_bytes)
{
    const uint8_t *at = bytes;
    hash = mix(hash, bytes == NULL ? ~0ULL : len_bytes);
    for (size_t i = 0; bytes != NULL && i < len_bytes; i++)
        hash = mix(hash, at[i]);
    return hash;
}

static uint64_t mix_mechanism(uint64_t hash, const CK_MECHANISM *mechanism)
{
    if (mechanism == NULL)
        return mix(hash, ~0ULL);
    hash = mix(hash, mechanism->mechanism);
    return mix_bytes(hash, mechanism->pParameter, mechanism->ulParameterLen);
}

static uint64_t mix_attributes(uint64_t hash, const CK_ATTRIBUTE *rows, CK_ULONG count)
{
    for (CK_ULONG i = 0; rows != NULL && i < count; i++) {
        hash = mix(hash, rows[i].type);
        hash = mix_bytes(hash, rows[i].pValue, rows[i].ulValueLen);
    }
    return mix(hash, rows == NULL);
}

static bool is_session(const struct call *call, unsigned i)
{
    return strcmp(call->names[i], "hSession") == 0;
}

/* The argument after a pointer says how much there is. */
static bool is_followed_by(const struct call *call, unsigned i, enum kind kind)
{
    return i + 1 < call->count && call->kinds[i + 1] == kind;
}

static bool is_string(const struct call *call, unsigned i)
{
    return strcmp(call->names[i], "pFunctionName") == 0;
}

/* How many bytes stand there to be read. */
static size_t readable(const struct call *call, unsigned i)
{
    if (call->arguments[i] == 0)
        return 0;
    if (is_string(call, i))
        return strlen((const char *)call->arguments[i]);
    if (strcmp(call->names[i], "pLabel") == 0)
        return sizeof((CK_TOKEN_INFO *)0)->label;
    return is_followed_by(call, i, KIND_NUMBER) ? call->arguments[i + 1] : 0;
}

static uint64_t hash_of(const struct call *call)
{
    uint64_t hash = mix_bytes(1, call->name, strlen(call->name));
    for (unsigned i = 0; i < call->count; i++) {
        const void *pointer = (const void *)call->arguments[i];
        CK_ULONG next = i + 1 < call->count ? call->arguments[i + 1] : 0;
        switch (call->kinds[i]) {
        case KIND_NUMBER:
            hash = mix(hash, is_session(call, i) ? session_calls(call->arguments[i])
                                                 : call->arguments[i]);
            break;
        case KIND_BYTES:
        case KIND_ANYTHING:
            hash = mix_bytes(hash, pointer, readable(call, i));
            break;
        case KIND_NUMBERS:
            hash = mix_bytes(hash, pointer, sizeof(CK_ULONG));
            break;
        case KIND_MECHANISM:
            hash = mix_mechanism(hash, pointer);
            break;
        case KIND_ATTRIBUTES:
            hash = mix_attributes(hash, pointer, next);
            break;
        case KIND_OTHER:
            hash = mix(hash, pointer == NULL);
        }
    }
    return hash;
}

static void write_bytes(void *to, size_t len_bytes, uint64_t hash)
{
    for (size_t i = 0; i < len_bytes; i++)
        ((uint8_t *)to)[i] = (uint8_t)(mix(hash, i) >> 7);
}

static void write_template(CK_ATTRIBUTE *rows, CK_ULONG count, uint64_t hash)
{
    for (CK_ULONG i = 0; rows != NULL && i < count; i++)
        if (rows[i].pValue != NULL)
            write_bytes(rows[i].pValue, rows[i].ulValueLen, hash + i);
        else
            rows[i].ulValueLen = hash % 100;
}

/* How much stands behind a pointer that is not one of the common ones. */
static size_t size_of_other(const char *name)
{
    return strcmp(name, "pResult") == 0 ? sizeof(CK_ULONG) : 0;
}

/* Bytes with the length behind them: as many as there is room for, but not more than a few. */
static void write_output(uint8_t *bytes, CK_ULONG *len_bytes, uint64_t hash)
{
    CK_ULONG made = hash % 90;
    if (len_bytes == NULL)
        return;
    if (bytes != NULL)
        write_bytes(bytes, *len_bytes < made ? *len_bytes : made, hash);
    *len_bytes = made;
}

/* Bytes to write, with a length behind them. */
static bool is_output(const struct call *call, unsigned i)
{
    return call->kinds[i] == KIND_BYTES && is_followed_by(call, i, KIND_NUMBERS) &&
           !is_string(call, i);
}

static void write_all(const struct call *call, uint64_t hash)
{
    for (unsigned i = 0; i < call->count; i++) {
        void *pointer = (void *)call->arguments[i];
        hash = mix(hash, i);
        switch (call->kinds[i]) {
        case KIND_BYTES:
            if (is_output(call, i))
                write_output(pointer, (CK_ULONG *)call->arguments[i + 1], hash);
            break;
        case KIND_NUMBERS:
            if (pointer != NULL && (i == 0 || !is_output(call, i - 1)))
                *(CK_ULONG *)pointer = hash % 0xffffff + 1;
            break;
        case KIND_ATTRIBUTES:
            if (call->function == FUNCTION_C_GetAttributeValue)
                write_template(pointer, call->arguments[i + 1], hash);
            break;
        case KIND_ANYTHING:
            /* A message's parameter, which is read and written. */
            if (pointer != NULL && is_followed_by(call, i, KIND_NUMBER))
                write_bytes(pointer, call->arguments[i + 1], hash);
            break;
        case KIND_OTHER:
            if (pointer != NULL)
                write_bytes(pointer, size_of_other(call->names[i]), hash);
            break;
        default:
            break;
        }
    }
}

CK_RV any_answer(struct call *call)
{
    if (!call->script->made_up)
        return CKR_OK;
    uint64_t hash = hash_of(call);
    write_all(call, hash);
    if (hash / 97 % ONE_FAILS_IN != 0)
        return CKR_OK;
    return codes[hash / 97 / ONE_FAILS_IN % (sizeof codes / sizeof *codes)];
}
