/* keyring.c - a target with mechanisms and keys of a test's choice, which minds which operations are open. */
#include "keyring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "functions.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT extern struct keyring keyring;
struct keyring keyring = {.key_type = CKK_RSA,
                          .attribute = CKA_MODULUS,
                          .value = {0x80},
                          .value_bytes = 2048 / 8,
                          .cancel_answer = CKR_FUNCTION_NOT_SUPPORTED};

/* What functions.def says of keys and operations. */
struct key_use {
    CK_OBJECT_HANDLE used;
    const CK_ATTRIBUTE *templates[2];
    CK_ULONG counts[2];
    CK_OBJECT_HANDLE *results[2];
    const CK_BYTE *data;
    CK_ULONG data_bytes;
};
enum purpose {
    TO_ENCRYPT,
    TO_DECRYPT,
    TO_DIGEST,
    TO_SIGN,
    TO_SIGN_RECOVER,
    TO_VERIFY,
    TO_VERIFY_RECOVER,
    TO_MESSAGE_ENCRYPT,
    TO_MESSAGE_DECRYPT,
    TO_MESSAGE_SIGN,
    TO_MESSAGE_VERIFY,
    TO_VERIFY_SIGNATURE,
    OPERATIONS,
    TO_WRAP = OPERATIONS,
    TO_MAKE_KEYS,
    TO_UNWRAP
};
static bool is_open[OPERATIONS];

static CK_RV begin(enum purpose purpose, const CK_MECHANISM *mechanism, const struct key_use *keys)
{
    keyring.calls++;
    for (int i = 0; i < 2; i++)
        if (keys->results[i] != NULL)
            *keys->results[i] = KEYRING_MADE + (CK_OBJECT_HANDLE)i;
    if (purpose < OPERATIONS)
        is_open[purpose] = mechanism != NULL;
    return CKR_OK;
}

static CK_RV take(enum purpose purpose, const CK_BYTE *data, CK_ULONG data_bytes)
{
    keyring.data_calls++;
    if (!is_open[purpose])
        return CKR_OPERATION_NOT_INITIALIZED;
    if (keyring.answer == CKR_OPERATION_NOT_INITIALIZED || keyring.answer == CKR_BUFFER_TOO_SMALL)
        return keyring.answer;
    keyring.data_bytes = data_bytes;
    if (data_bytes > keyring.longest_bytes)
        keyring.longest_bytes = data_bytes;
    memcpy(keyring.data, data, data_bytes < sizeof keyring.data ? data_bytes : sizeof keyring.data);
    if (keyring.answer != CKR_OK)
        is_open[purpose] = false;
    return keyring.answer;
}

/* A call without room for an output is a question for its length. */
#define ALWAYS ((CK_BYTE_PTR)1) /* its row has no output */
static CK_RV take_whole(enum purpose purpose, const CK_BYTE *data, CK_ULONG data_bytes,
                        CK_BYTE *output)
{
    CK_RV rv = take(purpose, data, data_bytes);
    if (rv != CKR_OK || output == NULL)
        return rv;
    if (output != ALWAYS)
        memset(output, 0x5a, KEYRING_OUTPUT);
    is_open[purpose] = false;
    return CKR_OK;
}

static CK_RV end(enum purpose purpose)
{
    CK_RV rv = is_open[purpose] ? CKR_OK : CKR_OPERATION_NOT_INITIALIZED;
    keyring.data_calls++;
    if (keyring.no_parts)
        return CKR_OPERATION_NOT_INITIALIZED;
    is_open[purpose] = false;
    return rv;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define KEYS(...)                                                                                  \
    &(const struct key_use)                                                                        \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define NO_KEY KEYS(.used = CK_INVALID_HANDLE)
#define DOES(name, does, ...)                                                                      \
    static CK_RV does_##name(PARAMS(__VA_ARGS__))                                                  \
    {                                                                                              \
        does;                                                                                      \
    }
#define P11_UPTO       302
#define ROW(name, ...) DOES(name, return CKR_OK, __VA_ARGS__)
#define MECH(purpose, keys, name, ...)                                                             \
    DOES(name, return begin(purpose, pMechanism, keys), __VA_ARGS__)
#define MAKE(object, template, count, name, ...)                                                   \
    DOES(name, keyring.calls++; return CKR_OK, __VA_ARGS__)
#define EDIT(object, template, count, name, ...)                                                   \
    DOES(name, keyring.calls++; return CKR_OK, __VA_ARGS__)
#define PART(purpose, data, data_bytes, name, ...)                                                 \
    DOES(name, return take(purpose, data, data_bytes), __VA_ARGS__)
#define DATA(purpose, data, data_bytes, output, name, ...)                                         \
    DOES(name, return take_whole(purpose, data, data_bytes, output), __VA_ARGS__)
#include "functions.def"

static CK_RV open_session(CK_SLOT_ID slotID, CK_FLAGS flags, CK_VOID_PTR pApplication,
                          CK_NOTIFY Notify, CK_SESSION_HANDLE_PTR phSession)
{
    *phSession = 100 + ++keyring.sessions;
    return CKR_OK;
}

static CK_RV close_session(CK_SESSION_HANDLE hSession)
{
    return keyring.close_answer;
}

static CK_RV mechanism_list(CK_SLOT_ID slotID, CK_MECHANISM_TYPE_PTR pMechanismList,
                            CK_ULONG_PTR pulCount)
{
    CK_ULONG room = *pulCount;
    *pulCount = keyring.count;
    if (pMechanismList == NULL) {
        keyring.count += keyring.grows;
        return CKR_OK;
    }
    if (room < keyring.count)
        return CKR_BUFFER_TOO_SMALL;
    memcpy(pMechanismList, keyring.mechanisms, keyring.count * sizeof *pMechanismList);
    return CKR_OK;
}

static CK_RV mechanism_info(CK_SLOT_ID slotID, CK_MECHANISM_TYPE type, CK_MECHANISM_INFO_PTR pInfo)
{
    *pInfo = keyring.info;
    return CKR_OK;
}

static CK_RV give(CK_ATTRIBUTE *attribute, const void *value, CK_ULONG value_bytes)
{
    if (attribute->pValue != NULL && attribute->ulValueLen < value_bytes) {
        attribute->ulValueLen = CK_UNAVAILABLE_INFORMATION;
        return CKR_BUFFER_TOO_SMALL;
    }
    if (attribute->pValue != NULL)
        memcpy(attribute->pValue, value, value_bytes);
    attribute->ulValueLen = value_bytes;
    return CKR_OK;
}

static CK_RV attribute_value(CK_SESSION_HANDLE hSession, CK_OBJECT_HANDLE hObject,
                             CK_ATTRIBUTE_PTR pTemplate, CK_ULONG ulCount)
{
    CK_RV rv = CKR_OK;
    keyring.reads++;
    for (CK_ULONG i = 0; i < ulCount; i++) {
        CK_RV one = CKR_ATTRIBUTE_TYPE_INVALID;
        if (pTemplate[i].type == CKA_KEY_TYPE)
            one = give(&pTemplate[i], &keyring.key_type, sizeof keyring.key_type);
        else if (pTemplate[i].type == CKA_TOKEN)
            one = give(&pTemplate[i], &keyring.key_on_token, sizeof keyring.key_on_token);
        else if (pTemplate[i].type == keyring.attribute)
            one = give(&pTemplate[i], keyring.value, keyring.value_bytes);
        else
            pTemplate[i].ulValueLen = CK_UNAVAILABLE_INFORMATION;
        if (one != CKR_OK)
            rv = one;
    }
    return rv;
}

static CK_RV destroy(CK_SESSION_HANDLE hSession, CK_OBJECT_HANDLE hObject)
{
    keyring.destroyed++;
    if (keyring.destroying != NULL)
        keyring.destroying();
    return CKR_OK;
}

static CK_RV sign_final(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pSignature,
                        CK_ULONG_PTR pulSignatureLen)
{
    return end(TO_SIGN);
}

static CK_RV verify_final(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pSignature,
                          CK_ULONG ulSignatureLen)
{
    return end(TO_VERIFY);
}

static CK_RV verify_signature_final(CK_SESSION_HANDLE hSession)
{
    return end(TO_VERIFY_SIGNATURE);
}

static CK_RV session_cancel(CK_SESSION_HANDLE hSession, CK_FLAGS flags)
{
    keyring.cancelled |= flags;
    if (keyring.cancel_answer != CKR_OK)
        return keyring.cancel_answer;
    is_open[TO_ENCRYPT] &= !(flags & CKF_ENCRYPT);
    is_open[TO_DECRYPT] &= !(flags & CKF_DECRYPT);
    is_open[TO_SIGN] &= !(flags & CKF_SIGN);
    is_open[TO_SIGN_RECOVER] &= !(flags & CKF_SIGN_RECOVER);
    is_open[TO_VERIFY] &= !(flags & CKF_VERIFY);
    is_open[TO_VERIFY_SIGNATURE] &= !(flags & CKF_VERIFY);
    return CKR_OK;
}

static CK_RV give_output(CK_BYTE_PTR output, CK_ULONG_PTR output_bytes)
{
    CK_ULONG room = *output_bytes;
    *output_bytes = keyring.output_bytes;
    if (output == NULL)
        return CKR_OK;
    if (room < keyring.output_bytes)
        return CKR_BUFFER_TOO_SMALL;
    memcpy(output, keyring.output, keyring.output_bytes);
    return CKR_OK;
}

static CK_RV verify_recover(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pSignature,
                            CK_ULONG ulSignatureLen, CK_BYTE_PTR pData, CK_ULONG_PTR pulDataLen)
{
    CK_RV rv =
        is_open[TO_VERIFY_RECOVER] ? give_output(pData, pulDataLen) : CKR_OPERATION_NOT_INITIALIZED;
    is_open[TO_VERIFY_RECOVER] &= pData == NULL || rv == CKR_BUFFER_TOO_SMALL;
    return rv;
}

static struct p11_functions lists[2];

static void *list_of(CK_BYTE major, CK_BYTE minor)
{
    struct p11_functions *list = &lists[major > 2];
    *list = (struct p11_functions){
#define P11_UPTO       302
#define ROW(name, ...) .name = does_##name,
#include "functions.def"
    };
    list->version = (CK_VERSION){major, minor};
    list->C_OpenSession = open_session;
    list->C_CloseSession = close_session;
    list->C_GetMechanismList = mechanism_list;
    list->C_GetMechanismInfo = mechanism_info;
    list->C_GetAttributeValue = attribute_value;
    list->C_DestroyObject = destroy;
    list->C_SignFinal = sign_final;
    list->C_VerifyFinal = verify_final;
    list->C_VerifySignatureFinal = verify_signature_final;
    list->C_VerifyRecover = verify_recover;
    list->C_SessionCancel = session_cancel;
    return list;
}

EXPORT CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR ppFunctionList)
{
    *ppFunctionList = list_of(2, 40);
    return CKR_OK;
}

/* One interface, of version 3.2. */
static CK_INTERFACE interface = {(CK_UTF8CHAR_PTR) "PKCS 11", NULL, 0};

EXPORT CK_RV C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList, CK_ULONG_PTR pulCount);
EXPORT CK_RV C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList, CK_ULONG_PTR pulCount)
{
    interface.pFunctionList = list_of(3, 2);
    if (pInterfacesList != NULL)
        *pInterfacesList = interface;
    *pulCount = 1;
    return CKR_OK;
}

EXPORT CK_RV C_GetInterface(CK_UTF8CHAR_PTR pInterfaceName, CK_VERSION_PTR pVersion,
                            CK_INTERFACE_PTR_PTR ppInterface, CK_FLAGS flags);
EXPORT CK_RV C_GetInterface(CK_UTF8CHAR_PTR pInterfaceName, CK_VERSION_PTR pVersion,
                            CK_INTERFACE_PTR_PTR ppInterface, CK_FLAGS flags)
{
    interface.pFunctionList = list_of(3, 2);
    *ppInterface = &interface;
    return CKR_OK;
}
