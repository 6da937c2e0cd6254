/* fuzz_parameters.c - any mechanism with any parameter, and any attribute of a key.
 *
 * The input is four bytes of a mechanism's number, little-endian, and its parameter. Where the parameter has
 * a pointer to another mechanism, a second one is put there that is made of the same input.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guard/guard_parameters.h"
#include "guard/key_facts.h"

enum { NUMBER_BYTES = 4 };

/* Denies something of every kind. */
static const char disabled[] =
    "MD5, SHA1, SHA256, SHA512, HmacSHA1, HmacSHA256, TLSv1, BLAKE2b-256, "
    "SHA384withRSASSA-PSS, CKM_HASH_ML_DSA_SHA3_256, RSA keySize < 2048, secp192r1, "
    "EC keySize < 224, AES keySize < 192, ML-DSA-44, DH keySize < 1024";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Memory of exactly that size, so that a read beyond it is seen. Never NULL. */
static void *exactly(const void *bytes, size_t len_bytes)
{
    void *copy = malloc(len_bytes != 0 ? len_bytes : 1);
    must(copy != NULL);
    if (len_bytes != 0)
        memcpy(copy, bytes, len_bytes);
    return copy;
}

static const struct pointer {
    enum more_algorithms structure;
    size_t word;
    bool is_mechanism;
} pointers[] = {
#define IS_MECHANISM 0
#define IS_DIGEST    0
#define IS_HASH      0
#define IS_MGF       0
#define IS_KDF       0
#define IS_PRF       0
#define IS_INNER     1
#define IS_OAEP      2
#define MEMBER(structure, word, type, name, what)                                                  \
    {IS_##what == 0 ? MORE_NONE : MORE_##structure, word, IS_##what == 1},
#include "guard/parameters.def"
};

/* Arbitrary bytes are no address that anybody may read. */
static void set_pointers(uint64_t number, uint8_t *parameter, size_t len_bytes, CK_MECHANISM *inner,
                         void *oaep)
{
    const struct mechanism *row = mechanism_find(number);
    for (size_t i = 0; row != NULL && i < sizeof pointers / sizeof *pointers; i++) {
        size_t at = pointers[i].word * sizeof(CK_ULONG);
        void *there = pointers[i].is_mechanism ? (void *)inner : oaep;
        if (row->more != MORE_NONE && pointers[i].structure == row->more &&
            len_bytes >= at + sizeof there)
            memcpy(parameter + at, &there, sizeof there);
    }
}

static void fuzz_attribute(const struct policy *policy, uint64_t number, void *value,
                           size_t len_bytes)
{
    static const CK_ATTRIBUTE_TYPE types[] = {
        CKA_MODULUS,   CKA_MODULUS_BITS, CKA_PRIME,         CKA_PRIME_BITS, CKA_VALUE,
        CKA_VALUE_LEN, CKA_EC_PARAMS,    CKA_PARAMETER_SET, CKA_CLASS,      CKA_KEY_TYPE};
    CK_RV code;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        CK_KEY_TYPE type = number % 0x50;
        CK_ATTRIBUTE template[] = {{CKA_KEY_TYPE, &type, sizeof type},
                                   {types[i], value, len_bytes}};
        struct key_facts facts = key_facts_of(number);
        key_facts_add(&facts, template, 2);
        (void)key_facts_denied(policy, number, &facts, &code);
        (void)template_is_key(template, 2);
    }
}

static struct policy *compile(void)
{
    struct policy *policy = NULL;
    struct message error;
    struct policy_sources sources = {.list = disabled, .list_from = "fuzz", .list_line = 1};
    must(policy_compile(&policy, &sources, &error) == 0);
    return policy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct policy *policy;
    uint32_t number;
    if (policy == NULL)
        policy = compile();
    if (size < NUMBER_BYTES)
        return 0;
    memcpy(&number, data, NUMBER_BYTES);
    size -= NUMBER_BYTES;

    uint8_t *parameter = exactly(data + NUMBER_BYTES, size);
    uint8_t *inner_parameter = exactly(parameter, size);
    void *oaep = exactly(&(const CK_RSA_PKCS_OAEP_PARAMS){.hashAlg = CKM_SHA_1, .mgf = 1},
                         sizeof(CK_RSA_PKCS_OAEP_PARAMS));
    CK_MECHANISM inner = {size >= NUMBER_BYTES ? parameter[0] | (CK_ULONG)parameter[1] << 8 : 0,
                          inner_parameter, size};
    fuzz_attribute(policy, number, parameter, size);
    /* A mechanism within itself, to any depth. */
    set_pointers(inner.mechanism, inner_parameter, size, &inner, oaep);
    set_pointers(number, parameter, size, &inner, oaep);

    CK_MECHANISM whole = {number, parameter, size};
    const struct policy_rule *denied = parameters_denied(policy, USE_SIGN, &whole);
    must(parameters_denied(NULL, USE_SIGN, &whole) == NULL);
    /* What is seen in a part of the parameter is seen in the whole. */
    for (size_t len_bytes = 0; len_bytes < size && len_bytes < 100; len_bytes++) {
        void *part = exactly(parameter, len_bytes);
        CK_MECHANISM cut = {number, part, len_bytes};
        must(parameters_denied(policy, USE_SIGN, &cut) == NULL || denied != NULL);
        free(part);
    }
    free(parameter);
    free(inner_parameter);
    free(oaep);
    return 0;
}
