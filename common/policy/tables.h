/* tables.h - what is known of mechanisms, key types, curves and digests. */
#ifndef P11_PROXY_TABLES_H
#define P11_PROXY_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_MECHANISM UINT64_MAX

/* What a mechanism is asked to do: the kind of the function that takes it. */
enum mechanism_use {
    USE_DIGEST, /* C_DigestInit */
    USE_SIGN,   /* C_SignInit, C_VerifyInit and their like */
    USE_CIPHER, /* C_EncryptInit, C_DecryptInit, C_WrapKey, C_UnwrapKey and their like */
    USE_OTHER,  /* generating, deriving, encapsulating */
    USES
};

/* Sets of uses. */
enum {
    FOR_DIGEST = 1 << USE_DIGEST,
    FOR_SIGN = 1 << USE_SIGN,
    FOR_CIPHER = 1 << USE_CIPHER,
    FOR_OTHER = 1 << USE_OTHER,
    FOR_SIGN_CIPHER = FOR_SIGN | FOR_CIPHER,
    FOR_ANY = (1 << USES) - 1
};

/* clang-format off */
/* What a mechanism's parameter is, if it names further algorithms: the structures are told in module/guard/parameters.def. */
enum more_algorithms {
    MORE_NONE,
    MORE_OAEP, MORE_PSS, MORE_ECDH1_KDF, MORE_ECMQV_KDF, MORE_X9_42_DH1_KDF, MORE_X9_42_DH2_KDF,
    MORE_X9_42_MQV_KDF, MORE_PBKD2_PRF, MORE_HKDF_PRF, MORE_TLS12_MASTER_PRF, MORE_TLS12_EXTENDED_PRF,
    MORE_TLS12_KEY_MAT_PRF, MORE_TLS_MAC_PRF, MORE_TLS_KDF_PRF, MORE_NSS_TLS_EXTENDED_PRF,
    MORE_WTLS_MASTER, MORE_WTLS_PRF, MORE_WTLS_KEY_MAT, MORE_SP800_108_PRF, MORE_SP800_108_FEEDBACK_PRF,
    MORE_HASH_SIGN, MORE_XEDDSA_HASH, MORE_CMS, MORE_KIP, MORE_IKE_PRF, MORE_IKE1_APP_B_PRF,
    MORE_NSS_MAC_CONSTANT_TIME, MORE_RSA_AES_WRAP, MORE_ECDH_AES_WRAP
};
/* clang-format on */

/* What tells the size of a key. */
enum key_size_from {
    SIZE_NONE,    /* no key, or any key */
    SIZE_MODULUS, /* bits of CKA_MODULUS; CKA_MODULUS_BITS in a generation template */
    SIZE_PRIME,   /* bits of CKA_PRIME; CKA_PRIME_BITS in a generation template */
    SIZE_ORDER,   /* bits of the group order of the curve in CKA_EC_PARAMS */
    SIZE_CURVE,   /* the same, for Edwards and Montgomery curves */
    SIZE_VALUE,   /* 8 * CKA_VALUE_LEN */
    SIZE_FIXED,   /* one size only: the key type's */
    SIZE_SET,     /* CKA_PARAMETER_SET, which has no bits */
    SIZE_OTHER,   /* something that no rule can speak of */
};

/* Names are separated by '|', and empty ones mean nothing. The first one is the one to print. */
struct mechanism {
    uint64_t number;
    const char *names;             /* as headers spell it; atoms; full names */
    uint8_t uses, more, size_from; /* FOR_..., enum more_algorithms, enum key_size_from */
};

enum { GENERATORS_MAX = 4 };
struct key_type {
    uint64_t number;
    const char *names;
    enum key_size_from size_from;
    uint64_t bits;                       /* of every key of this type; 0: they differ */
    const char *sets;                    /* what CKA_PARAMETER_SET stands for, from 1; or NULL */
    uint64_t generators[GENERATORS_MAX]; /* mechanisms; the unused ones are 0, NO_MECHANISM: none */
};

struct curve {
    const char *names; /* and OIDs, dotted */
    const char *order; /* lower case hexadecimal, no leading zero */
};

/* Numbers of mechanisms and of two other lists; 0 for none. */
struct digest {
    uint64_t mechanism;
    const char *oid;
    uint64_t rsa, hmac, pss, ml_dsa, slh_dsa;
    uint64_t mgf, prf; /* CKG_MGF1_..., CKP_PKCS5_PBKD2_HMAC_... */
};

/* The tables, constant for the life of the program. Any thread, as all functions here. */
extern const struct mechanism mechanisms[];
extern const struct key_type key_types[];
extern const struct curve curves[];
extern const struct digest digests[];
extern const size_t mechanism_count, key_type_count, curve_count, digest_count;

/* A row by its number; NULL if there is none. */
const struct mechanism *mechanism_find(uint64_t number);
const struct key_type *key_type_find(uint64_t number);

/* The type of the keys that a mechanism generates; NULL if it generates none. */
const struct key_type *key_type_generated(uint64_t mechanism);

/*
 * Writes the mechanism's first name, or its number as 0x%08x if it has none, with a final NUL. Cuts
 * the text if it needs more than text_bytes; 48 hold every name of the table. Returns text.
 */
const char *mechanism_name(uint64_t number, char *text, size_t text_bytes);

/* Steps through names: begin with *name NULL. False if there is no more. */
bool next_name(const char *names, const char **name, size_t *len);

/* Whether one of the names is this one, in whatever case. */
bool has_name(const char *names, const char *name, size_t len);

#endif
