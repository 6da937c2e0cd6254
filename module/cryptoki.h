/* cryptoki.h - p11-kit's PKCS#11 header, and what 3.0 and 3.2 added where that header is older. */
#ifndef P11_PROXY_CRYPTOKI_H
#define P11_PROXY_CRYPTOKI_H

#include <p11-kit/pkcs11.h>

typedef CK_FLAGS *CK_FLAGS_PTR;

/* p11-kit 0.24, of Debian 12, ends at 2.40; 0.25 has 3.0; 0.26 has 3.2. */
#ifndef CKF_INTERFACE_FORK_SAFE
typedef struct CK_INTERFACE {
    CK_UTF8CHAR *pInterfaceName;
    CK_VOID_PTR pFunctionList;
    CK_FLAGS flags;
} CK_INTERFACE;
typedef CK_INTERFACE *CK_INTERFACE_PTR;
typedef CK_INTERFACE **CK_INTERFACE_PTR_PTR;
#define CKF_INTERFACE_FORK_SAFE     0x00000001UL
#define CKR_TOKEN_RESOURCE_EXCEEDED 0x00000201UL
#endif
#ifndef CKF_MESSAGE_ENCRYPT
#define CKF_MESSAGE_ENCRYPT 0x00000002UL
#define CKF_MESSAGE_DECRYPT 0x00000004UL
#define CKF_MESSAGE_SIGN    0x00000008UL
#define CKF_MESSAGE_VERIFY  0x00000010UL
#endif
#ifndef CKF_ASYNC_SESSION
typedef CK_ULONG CK_SESSION_VALIDATION_FLAGS_TYPE;
typedef struct CK_ASYNC_DATA *CK_ASYNC_DATA_PTR;
#define CKF_ASYNC_SESSION        0x00000008UL
#define CKR_SEED_RANDOM_REQUIRED 0x00000205UL
#endif
#ifndef CKF_ENCAPSULATE
#define CKF_ENCAPSULATE 0x10000000UL
#define CKF_DECAPSULATE 0x20000000UL
#endif
#ifndef CKM_HASH_ML_DSA
#define CKM_HASH_ML_DSA  0x0000001fUL
#define CKM_HASH_SLH_DSA 0x00000034UL
#endif
#ifndef CKA_PARAMETER_SET
#define CKA_PARAMETER_SET 0x0000061dUL
#endif
/* The standard's number; p11-kit's header gives another. */
#undef CKR_FIPS_SELF_TEST_FAILED
#define CKR_FIPS_SELF_TEST_FAILED 0x000001b6UL
/* 2.40 has it, but not every header of that time. */
#ifndef CKR_CURVE_NOT_SUPPORTED
#define CKR_CURVE_NOT_SUPPORTED 0x00000140UL
#endif

#endif
