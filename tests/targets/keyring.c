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
    TO_WRAP = 0, /* leaves nothing open */
    TO_UNWRAP = 0,
    TO_MAKE_KEYS = 0,
    TO_MESSAGE_VERIFY = CKF_MESSAGE_VERIFY,
    TO_MESSAGE_SIGN = CKF_MESSAGE_SIGN,
    TO_MESSAGE_DECRYPT = CKF_MESSAGE_DECRYPT,
    TO_MESSAGE_ENCRYPT = CKF_MESSAGE_ENCRYPT,
    TO_VERIFY_RECOVER = CKF_VERIFY_RECOVER,
    TO_VERIFY = CKF_VERIFY,
    TO_SIGN_RECOVER = CKF_SIGN_RECOVER,
    TO_SIGN = CKF_SIGN,
    TO_DIGEST = CKF_DIGEST,
    TO_DECRYPT = CKF_DECRYPT,
    TO_ENCRYPT = CKF_ENCRYPT
};
static CK_FLAGS open_operations;

static CK_RV begin(enum purpose purpose, const CK_MECHANISM *mechanism, const struct key_use *keys)
{
    keyring.calls++;
    for (int i = 0; i < 2; i++)
        if (keys->results[i] != NULL)
            *keys->results[i] = KEYRING_MADE + (CK_OBJECT_HANDLE)i;
    if (mechanism != NULL)
        open_operations |= purpose;
    return CKR_OK;
}

/* A call without room for an output is a question for its length. */
#define ALWAYS ((CK_BYTE_PTR)1) /* its row has no output, */
#define NEVER  ((CK_BYTE_PTR)2) /* and does not end the operation */
static CK_RV take(enum purpose purpose, const CK_BYTE *data, CK_ULONG data_bytes, CK_BYTE *output)
{
    keyring.data_calls++;
    if (!(open_operations & purpose))
        return CKR_OPERATION_NOT_INITIALIZED;
    keyring.data_bytes = data_bytes;
    if (data_bytes > keyring.longest_bytes)
        keyring.longest_bytes = data_bytes;
    memcpy(keyring.data, data, data_bytes < sizeof keyring.data ? data_bytes : sizeof keyring.data);
    if (output == NULL || output == NEVER)
        return CKR_OK;
    if (output != ALWAYS)
        memset(output, 0x5a, KEYRING_OUTPUT);
    open_operations &= ~(CK_FLAGS)purpose;
    return CKR_OK;
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
#define EDIT(object, template, count, name, ...)                                                   \
    DOES(name, keyring.calls++; return CKR_OK, __VA_ARGS__)
#define DATA(purpose, data, data_bytes, output, name, ...)                                         \
    DOES(name, return take(purpose, data, data_bytes, output), __VA_ARGS__)
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
    return CKR_OK;
}

static CK_RV session_cancel(CK_SESSION_HANDLE hSession, CK_FLAGS flags)
{
    keyring.cancelled |= flags;
    if (keyring.cancel_answer != CKR_OK)
        return keyring.cancel_answer;
    open_operations &= ~flags;
    return CKR_OK;
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
