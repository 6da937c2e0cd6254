/* keyring.c - a target with mechanisms and keys of a test's choice, which does nothing with them. */
#include "keyring.h"

#include <stddef.h>
#include <string.h>

#include "functions.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT extern struct keyring keyring;
struct keyring keyring = {
    .key_type = CKK_RSA, .attribute = CKA_MODULUS, .value = {0x80}, .value_bytes = 2048 / 8};

/* What it does not do it says so. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define P11_UPTO 302
#define ROW(name, ...)                                                                             \
    static CK_RV no_##name(PARAMS(__VA_ARGS__))                                                    \
    {                                                                                              \
        return CKR_OK;                                                                             \
    }
#define MECH(purpose, keys, name, ...)                                                             \
    static CK_RV no_##name(PARAMS(__VA_ARGS__))                                                    \
    {                                                                                              \
        keyring.calls++;                                                                           \
        return CKR_OK;                                                                             \
    }
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

static CK_RV take(const CK_BYTE *data, CK_ULONG data_bytes)
{
    keyring.data_bytes = data_bytes;
    memcpy(keyring.data, data, data_bytes < sizeof keyring.data ? data_bytes : sizeof keyring.data);
    return keyring.answer;
}

static CK_RV sign(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pData, CK_ULONG ulDataLen,
                  CK_BYTE_PTR pSignature, CK_ULONG_PTR pulSignatureLen)
{
    return take(pData, ulDataLen);
}

static CK_RV verify(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pData, CK_ULONG ulDataLen,
                    CK_BYTE_PTR pSignature, CK_ULONG ulSignatureLen)
{
    return take(pData, ulDataLen);
}

static CK_RV update(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pPart, CK_ULONG ulPartLen)
{
    return take(pPart, ulPartLen);
}

static CK_RV verify_recover(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pSignature,
                            CK_ULONG ulSignatureLen, CK_BYTE_PTR pData, CK_ULONG_PTR pulDataLen)
{
    *pulDataLen = keyring.output_bytes;
    if (pData != NULL)
        memcpy(pData, keyring.output, keyring.output_bytes);
    return CKR_OK;
}

static CK_RV make(CK_SESSION_HANDLE hSession, CK_MECHANISM_PTR pMechanism,
                  CK_OBJECT_HANDLE hBaseKey, CK_ATTRIBUTE_PTR pTemplate, CK_ULONG ulAttributeCount,
                  CK_OBJECT_HANDLE_PTR phKey)
{
    keyring.calls++;
    *phKey = 77;
    return CKR_OK;
}

static CK_RV destroy(CK_SESSION_HANDLE hSession, CK_OBJECT_HANDLE hObject)
{
    keyring.destroyed++;
    if (keyring.destroying != NULL)
        keyring.destroying();
    return CKR_OK;
}

static CK_RV get_state(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pOperationState,
                       CK_ULONG_PTR pulOperationStateLen)
{
    *pulOperationStateLen = keyring.output_bytes;
    if (pOperationState != NULL)
        memcpy(pOperationState, keyring.output, keyring.output_bytes);
    return CKR_OK;
}

static CK_RV set_state(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pOperationState,
                       CK_ULONG ulOperationStateLen, CK_OBJECT_HANDLE hEncryptionKey,
                       CK_OBJECT_HANDLE hAuthenticationKey)
{
    keyring.calls++;
    return CKR_OK;
}

EXPORT CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR ppFunctionList)
{
    static struct p11_functions list = {
#define P11_UPTO       302
#define ROW(name, ...) .name = no_##name,
#include "functions.def"
    };
    list.version = (CK_VERSION){2, 40};
    list.C_OpenSession = open_session;
    list.C_CloseSession = close_session;
    list.C_GetMechanismList = mechanism_list;
    list.C_GetMechanismInfo = mechanism_info;
    list.C_GetAttributeValue = attribute_value;
    list.C_DestroyObject = destroy;
    list.C_Sign = list.C_SignRecover = list.C_Encrypt = sign;
    list.C_Verify = verify;
    list.C_SignUpdate = list.C_VerifyUpdate = update;
    list.C_VerifyRecover = verify_recover;
    list.C_DeriveKey = make;
    list.C_GetOperationState = get_state;
    list.C_SetOperationState = set_state;
    *ppFunctionList = (CK_FUNCTION_LIST_PTR)&list;
    return CKR_OK;
}
