/* random.c - the scripted target's random bytes, which say where they come from; and operations that use keys. */
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "call.h"
#include "words.h"

static atomic_uint seeds[TOKENS_MOST];
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void write_words(uint8_t *buf, size_t len_bytes, struct word word)
{
    size_t whole = (len_bytes + WORD_BYTES - 1) / WORD_BYTES;
    word.counter = atomic_fetch_add_explicit(&shared->words, whole, memory_order_relaxed) + 1;
    for (; len_bytes != 0; word.counter++) {
        uint64_t made = word_make(&word);
        size_t part = len_bytes < WORD_BYTES ? len_bytes : WORD_BYTES;
        memcpy(buf, &made, part);
        buf += part;
        len_bytes -= part;
    }
}

/* The same in each call, and no word of the stream. */
static void write_again(uint8_t *buf, size_t len_bytes)
{
    for (size_t i = 0; i < len_bytes; i++)
        buf[i] = (uint8_t)(word_scramble(i / WORD_BYTES) >> i % WORD_BYTES * 8);
}

static void generate(const struct call *call, uint8_t *buf, size_t len_bytes, struct word word)
{
    switch (call->work.effect) {
    case WRITES_SOME:
        write_words(buf, call->work.value < len_bytes ? call->work.value : len_bytes, word);
        break;
    case WRITES_HALF:
        write_words(buf, len_bytes / 2, word);
        break;
    case IS_STUCK:
        memset(buf, 0x5a, len_bytes);
        break;
    case REPEATS:
        write_again(buf, len_bytes);
        break;
    default:
        write_words(buf, len_bytes, word);
    }
}

static __attribute__((noinline)) void use_stack(size_t len_bytes)
{
    volatile char *bytes = alloca(len_bytes + 1);
    for (size_t at = 0; at <= len_bytes; at += 1024)
        bytes[at] = 1;
}

static CK_RV random_bytes(const struct call *call)
{
    uint8_t *buf = (uint8_t *)call->arguments[1];
    size_t len_bytes = call->arguments[2];
    struct word word = {.slot = call->token, .login = token_login(call->token)};
    if (call->script->login_for_random && word.login == LOGIN_NONE)
        return CKR_USER_NOT_LOGGED_IN;
    if (buf == NULL)
        return len_bytes != 0 ? CKR_ARGUMENTS_BAD : CKR_OK;
    word.seed = atomic_load(&seeds[call->token]);
    if (call->script->serial)
        pthread_mutex_lock(&one_at_a_time);
    use_stack(call->script->stack_kib * 1024);
    generate(call, buf, len_bytes, word);
    if (call->script->serial)
        pthread_mutex_unlock(&one_at_a_time);
    if (call->script->loader)
        dlsym(RTLD_DEFAULT, "no such symbol");
    return CKR_OK;
}

bool random_knows(struct call *call, CK_RV *rv)
{
    if (call->function == FUNCTION_C_GenerateRandom) {
        *rv = random_bytes(call);
        return true;
    }
    if (call->function != FUNCTION_C_SeedRandom)
        return false;
    *rv = call->arguments[1] != 0 || call->arguments[2] == 0 ? CKR_OK : CKR_ARGUMENTS_BAD;
    if (*rv == CKR_OK)
        atomic_fetch_add(&seeds[call->token], 1);
    return true;
}

/* Digests and signatures are as long as this, and made of the data and the key. */
enum { OUTPUT_BYTES = 32 };

static CK_RV give_output(const void *data, CK_ULONG data_bytes, uint8_t *output, CK_ULONG *room)
{
    uint64_t hash = 1;
    if (room == NULL)
        return CKR_ARGUMENTS_BAD;
    bool fits = *room >= OUTPUT_BYTES;
    *room = OUTPUT_BYTES;
    if (output == NULL || !fits)
        return output == NULL ? CKR_OK : CKR_BUFFER_TOO_SMALL;
    for (CK_ULONG i = 0; data != NULL && i < data_bytes; i++)
        hash = word_scramble(hash + ((const uint8_t *)data)[i]);
    for (int i = 0; i < OUTPUT_BYTES; i++)
        output[i] = (uint8_t)(word_scramble(hash + (unsigned)i / 8) >> i % 8 * 8);
    return CKR_OK;
}

/* One operation at a time, which its output ends. Keys: 1, and 2 for a user who is logged in. */
static CK_RV begin_operation(const struct call *call)
{
    CK_OBJECT_HANDLE key = call->function == FUNCTION_C_DigestInit ? 1 : call->arguments[2];
    if (call->arguments[1] == 0)
        return CKR_ARGUMENTS_BAD;
    if (key == 0 || key > 2)
        return CKR_KEY_HANDLE_INVALID;
    if (key == 2 && token_login(call->token) != LOGIN_USER)
        return CKR_USER_NOT_LOGGED_IN;
    return session_change_operation(call->session, 0, call->function) ? CKR_OK
                                                                      : CKR_OPERATION_ACTIVE;
}

static CK_RV end_operation(const struct call *call, enum function begun, bool has_data)
{
    const uintptr_t *output = call->arguments + (has_data ? 3 : 1);
    struct session session;
    if (!session_find(call->session, &session) || session.operation != begun)
        return CKR_OPERATION_NOT_INITIALIZED;
    CK_RV rv = give_output(has_data ? (const void *)call->arguments[1] : NULL, call->arguments[2],
                           (uint8_t *)output[0], (CK_ULONG *)output[1]);
    if (output[0] != 0 && rv != CKR_BUFFER_TOO_SMALL)
        session_change_operation(call->session, begun, 0);
    return rv;
}

bool operations_know(struct call *call, CK_RV *rv)
{
    switch (call->function) {
    case FUNCTION_C_DigestInit:
    case FUNCTION_C_SignInit:
        *rv = begin_operation(call);
        return true;
    case FUNCTION_C_Digest:
    case FUNCTION_C_Sign:
        *rv = end_operation(
            call, call->function == FUNCTION_C_Digest ? FUNCTION_C_DigestInit : FUNCTION_C_SignInit,
            /* has_data= */ true);
        return true;
    case FUNCTION_C_DigestFinal:
    case FUNCTION_C_SignFinal:
        *rv = end_operation(call,
                            call->function == FUNCTION_C_DigestFinal ? FUNCTION_C_DigestInit
                                                                     : FUNCTION_C_SignInit,
                            /* has_data= */ false);
        return true;
    default:
        return false;
    }
}
