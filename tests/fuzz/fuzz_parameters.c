/* fuzz_parameters.c - any mechanism with any parameter, and any attribute of a key.
 *
 * The input is four bytes of a mechanism's number, little-endian, and its parameter. Where the parameter has
 * a pointer to another mechanism, one is put there that is made of the same input.
 */
#include "fuzz.h"
#include "guard/guard.h"
#include "state/memory.h"

enum { NUMBER_BYTES = 4 };

/* Denies something of every kind. */
static const char disabled[] =
    "MD5, SHA1, SHA256, SHA512, HmacSHA1, HmacSHA256, TLSv1, BLAKE2b-256, "
    "SHA384withRSASSA-PSS, CKM_HASH_ML_DSA_SHA3_256, RSA keySize < 2048, secp192r1, "
    "EC keySize < 224, AES keySize < 192, ML-DSA-44, DH keySize < 1024";

/* There is no token here to read a key from. */
struct p11_functions target_lists[TARGET_LISTS];

void *memory_part(size_t part_bytes)
{
    return calloc(1, part_bytes);
}

struct slot *session_slot(CK_SESSION_HANDLE handle)
{
    (void)handle;
    return NULL;
}

static const struct member {
    enum more_algorithms structure;
    size_t word;
    const char *what;
} members[] = {
#define MEMBER(structure, word, type, name, what) {MORE_##structure, word, #what},
#include "guard/parameters.def"
};

/* Arbitrary bytes are no address that may be read: those of a mechanism, and of the parameter of OAEP, stand there. */
static void set_pointers(uint64_t number, uint8_t *parameter, size_t len_bytes,
                         const CK_MECHANISM *inner)
{
    static CK_RSA_PKCS_OAEP_PARAMS oaep = {.hashAlg = CKM_SHA_1, .mgf = 1};
    const struct mechanism *row = mechanism_find(number);
    for (size_t i = 0; row != NULL && i < sizeof members / sizeof *members; i++) {
        bool is_inner = strcmp(members[i].what, "INNER") == 0;
        const void *address = is_inner ? (const void *)inner : &oaep;
        if (members[i].structure == row->more &&
            (is_inner || strcmp(members[i].what, "OAEP") == 0) &&
            len_bytes >= (members[i].word + 1) * sizeof address)
            memcpy(parameter + members[i].word * sizeof address, &address, sizeof address);
    }
}

/* An attribute given twice denies what one of the two does. */
static void fuzz_attribute(const struct policy *policy, uint64_t number, void *value,
                           size_t len_bytes)
{
    static const CK_ATTRIBUTE_TYPE types[] = {
        CKA_MODULUS,   CKA_MODULUS_BITS, CKA_PRIME,         CKA_PRIME_BITS, CKA_VALUE,
        CKA_VALUE_LEN, CKA_EC_PARAMS,    CKA_PARAMETER_SET, CKA_CLASS,      CKA_KEY_TYPE};
    const CK_MECHANISM generates = {number, NULL, 0};
    bool unsure;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        CK_KEY_TYPE type = number % 0x50;
        CK_ATTRIBUTE template[] = {{types[i], value, len_bytes},
                                   {CKA_KEY_TYPE, &type, sizeof type},
                                   {types[i], value, len_bytes / 2}};
        struct guarded_call call = {.policy = policy,
                                    .mechanism = &generates,
                                    .templates = {template, template + 2},
                                    .counts = {2, 0}};
        bool one = templates_denied(&call, NULL, &unsure).rule != NULL;
        call.counts[1] = 1;
        must(!one || templates_denied(&call, NULL, &unsure).rule != NULL);
        (void)template_tells_size(template, 3);
    }
}

static struct policy *compile(void)
{
    struct policy *policy = NULL;
    struct message error;
    struct policy_sources sources = {.list = {disabled, "fuzz", NULL, 1, NULL}};
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
    CK_MECHANISM inner = {size >= NUMBER_BYTES ? parameter[0] | (CK_ULONG)parameter[1] << 8 : 0,
                          inner_parameter, size};
    CK_MECHANISM whole = {number, parameter, size};
    fuzz_attribute(policy, number, parameter, size);
    /* A mechanism within itself, to any depth. */
    set_pointers(inner.mechanism, inner_parameter, size, &inner);
    set_pointers(number, parameter, size, &inner);

    bool denied = parameters_denied(policy, USE_SIGN, &whole).rule != NULL;
    must(parameters_denied(NULL, USE_SIGN, &whole).rule == NULL);
    /* What is seen in a part of the parameter is seen in the whole. */
    for (size_t len_bytes = 0; len_bytes < size && len_bytes < 100; len_bytes++) {
        void *part = exactly(parameter, len_bytes);
        CK_MECHANISM cut = {number, part, len_bytes};
        must(parameters_denied(policy, USE_SIGN, &cut).rule == NULL || denied);
        free(part);
    }
    free(parameter);
    free(inner_parameter);
    return 0;
}
