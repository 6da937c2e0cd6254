/* mechanisms.h - what is known of mechanisms, key types, curves and digests. */
#ifndef P11_PROXY_MECHANISMS_H
#define P11_PROXY_MECHANISMS_H

#include <stddef.h>
#include <stdint.h>

#define NO_MECHANISM UINT64_MAX

/*
 * Where further algorithms are named, by the PKCS#11 structure that the mechanism's parameter is.
 */
enum more_algorithms {
    MORE_NONE,
    MORE_DIGEST_INFO,          /* no parameter: the data may begin with a DigestInfo */
    MORE_OAEP,                 /* CK_RSA_PKCS_OAEP_PARAMS: hashAlg, mgf */
    MORE_PSS,                  /* CK_RSA_PKCS_PSS_PARAMS: hashAlg, mgf */
    MORE_ECDH1_KDF,            /* CK_ECDH1_DERIVE_PARAMS: kdf */
    MORE_ECMQV_KDF,            /* CK_ECMQV_DERIVE_PARAMS: kdf */
    MORE_X9_42_DH1_KDF,        /* CK_X9_42_DH1_DERIVE_PARAMS: kdf */
    MORE_X9_42_DH2_KDF,        /* CK_X9_42_DH2_DERIVE_PARAMS: kdf */
    MORE_X9_42_MQV_KDF,        /* CK_X9_42_MQV_DERIVE_PARAMS: kdf */
    MORE_PBKD2_PRF,            /* CK_PKCS5_PBKD2_PARAMS or ..PARAMS2: prf */
    MORE_HKDF_PRF,             /* CK_HKDF_PARAMS: prfHashMechanism */
    MORE_TLS12_MASTER_PRF,     /* CK_TLS12_MASTER_KEY_DERIVE_PARAMS: prfHashMechanism */
    MORE_TLS12_EXTENDED_PRF,   /* CK_TLS12_EXTENDED_MASTER_KEY_DERIVE_PARAMS: prfHashMechanism */
    MORE_TLS12_KEY_MAT_PRF,    /* CK_TLS12_KEY_MAT_PARAMS: prfHashMechanism */
    MORE_TLS_MAC_PRF,          /* CK_TLS_MAC_PARAMS: prfHashMechanism */
    MORE_TLS_KDF_PRF,          /* CK_TLS_KDF_PARAMS: prfMechanism */
    MORE_NSS_TLS_EXTENDED_PRF, /* CK_NSS_TLS_EXTENDED_MASTER_KEY_DERIVE_PARAMS: prfHashMechanism */
    MORE_WTLS_MASTER,          /* CK_WTLS_MASTER_KEY_DERIVE_PARAMS: DigestMechanism */
    MORE_WTLS_PRF,             /* CK_WTLS_PRF_PARAMS: DigestMechanism */
    MORE_WTLS_KEY_MAT,         /* CK_WTLS_KEY_MAT_PARAMS: DigestMechanism */
    MORE_SP800_108_PRF,        /* CK_SP800_108_KDF_PARAMS: prfType */
    MORE_SP800_108_FEEDBACK_PRF, /* CK_SP800_108_FEEDBACK_KDF_PARAMS: prfType */
    MORE_HASH_SIGN,              /* CK_HASH_SIGN_ADDITIONAL_CONTEXT: hash */
    MORE_XEDDSA_HASH,            /* CK_XEDDSA_PARAMS: hash */
    MORE_CMS,                    /* CK_CMS_SIG_PARAMS: pSigningMechanism, pDigestMechanism */
    MORE_KIP,                    /* CK_KIP_PARAMS: pMechanism */
    MORE_IKE_PRF,                /* CK_IKE*_PARAMS: prfMechanism, the first member of each */
    MORE_IKE1_APP_B_PRF,         /* a CK_MECHANISM_TYPE alone */
    MORE_NSS_MAC_CONSTANT_TIME,  /* CK_NSS_MAC_CONSTANT_TIME_PARAMS: macAlg */
    MORE_RSA_AES_WRAP,           /* CK_RSA_AES_KEY_WRAP_PARAMS: pOAEPParams */
    MORE_ECDH_AES_WRAP,          /* CK_ECDH_AES_KEY_WRAP_PARAMS: kdf */
};

/* What tells the size of the mechanism's key. */
enum key_size_from {
    SIZE_NONE,    /* it has no key, or any key */
    SIZE_MODULUS, /* bits of CKA_MODULUS; CKA_MODULUS_BITS in a generation template */
    SIZE_PRIME,   /* bits of CKA_PRIME; CKA_PRIME_BITS in a generation template */
    SIZE_ORDER,   /* bits of the group order of the curve in CKA_EC_PARAMS */
    SIZE_CURVE,   /* the same, for Edwards and Montgomery curves */
    SIZE_VALUE,   /* 8 * CKA_VALUE_LEN */
    SIZE_FIXED,   /* one size only: the key type's */
    SIZE_SET,     /* CKA_PARAMETER_SET */
    SIZE_OTHER,   /* something that no rule can speak of */
};

/* Where one of the tables' texts is; see tables.c. */
struct text_place {
    uint32_t offset;
};

struct mechanism {
    uint64_t number;
    struct text_place names;      /* separated by '|', as are the next two */
    struct text_place atoms;      /* "" if there are none */
    struct text_place full_names; /* "" if there are none */
    enum more_algorithms more;
    enum key_size_from size_from;
};

struct key_type {
    uint64_t number;
    struct text_place names; /* separated by '|' */
    enum key_size_from size_from;
    uint64_t bits; /* of every key of this type; 0: they differ */
};

struct curve {
    struct text_place name;
    struct text_place aliases; /* separated by '|', or "" */
    struct text_place oid;
    struct text_place der;
    size_t der_bytes;
    uint64_t order_bits;
    struct text_place order; /* lower case hexadecimal, no leading zero */
};

struct digest {
    struct text_place name;
    uint64_t mechanism;
    uint64_t rsa_mechanism; /* digests and signs with RSA; NO_MECHANISM if there is none */
    struct text_place oid;
    struct text_place der;
    size_t der_bytes;
};

struct parameter_set {
    uint64_t key_type;
    uint64_t number;
    struct text_place name;
};

/* The tables, constant for the life of the program. Any thread. */
extern const struct mechanism mechanisms[];
extern const size_t mechanisms_count;
extern const struct key_type key_types[];
extern const size_t key_types_count;
extern const struct curve curves[];
extern const size_t curves_count;
extern const struct digest digests[];
extern const size_t digests_count;
extern const struct parameter_set parameter_sets[];
extern const size_t parameter_sets_count;

/* What is there: a text with its final NUL; so many bytes as the row says. Any thread. */
const char *text_at(struct text_place place);
const uint8_t *bytes_at(struct text_place place);

/* The row of a mechanism or key type; NULL if there is none. Any thread. */
const struct mechanism *mechanism_find(uint64_t number);
const struct key_type *key_type_find(uint64_t number);

/*
 * Writes the mechanism's first name, or its number as 0x%08x where it has none, with a final NUL.
 * Cuts the text if it needs more than text_bytes (48 hold every name of the table). Returns text.
 * Any thread.
 */
const char *mechanism_name(uint64_t number, char *text, size_t text_bytes);

/*
 * The digest that a whole DigestInfo names (PKCS #1 v1.5, "EMSA-PKCS1-v1_5": SEQUENCE of
 * AlgorithmIdentifier and OCTET STRING), with or without NULL parameters. NULL if data is something
 * else or the digest unknown. Reads data_bytes of data and no more. Any thread.
 */
const struct digest *digest_info_find(const uint8_t *data, size_t data_bytes);

/* What CKA_EC_PARAMS says. */
struct curve_params {
    const struct curve *curve; /* NULL: none that we know */
    uint64_t order_bits;       /* UINT64_MAX: it does not say */
};

/*
 * Reads the value of CKA_EC_PARAMS: an OID, a PrintableString that names the curve, or explicit
 * parameters, which are recognised by their group order. Anything else: nothing known. Any thread.
 */
struct curve_params curve_params_read(const uint8_t *der, size_t der_bytes);

#endif
