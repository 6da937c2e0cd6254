/* work.c - the scripted target's life (C_Initialize, C_Finalize, forks, and calls that meet them), its random bytes, which
 * say where they come from, and its operations and keys. */
#include <alloca.h>
#include <string.h>
#include <unistd.h>

#include "target.h"
#include "words.h"

enum allowed { ANY_THREADS, NO_THREAD_OF_YOURS, ONE_CALL_AT_A_TIME };

static atomic_bool initialized;
static _Atomic enum allowed allowed;
static atomic_int owner;
static atomic_uint inside; /* calls under way; those that wait for an event are none */

/* A test may pass a pointer that is none. */
static const CK_C_INITIALIZE_ARGS *args_of(const struct call *call)
{
    uintptr_t pointer = call->seen.arguments[0];
    return pointer > sizeof(CK_C_INITIALIZE_ARGS) ? (const void *)pointer : NULL;
}

static void remember(const struct call *call)
{
    unsigned place = atomic_fetch_add(&shared->init_count, 1);
    if (place >= INITS_MOST)
        return;
    shared->inits[place].pointer = (void *)call->seen.arguments[0];
    if (args_of(call) != NULL)
        shared->inits[place].args = *args_of(call);
}

/* A caller may well end a life beside its own calls, and is then on its own. */
void life_call_begins(const struct call *call)
{
    enum function function = call->seen.function;
    if (function == FUNCTION_C_WaitForSlotEvent)
        return;
    unsigned others = atomic_fetch_add(&inside, 1);
    if (function == FUNCTION_C_Initialize)
        remember(call);
    if (function == FUNCTION_C_Finalize && others != 0)
        atomic_fetch_add(&shared->finalize_met, 1);
    enum allowed now = atomic_load(&allowed);
    if (now != ANY_THREADS && call->seen.by_filler)
        complain("a thread that the application did not allow", call);
    if (now == ONE_CALL_AT_A_TIME && others != 0)
        complain("a call beside another, without locks", call);
}

void life_call_ends(const struct call *call)
{
    if (call->seen.function != FUNCTION_C_WaitForSlotEvent)
        atomic_fetch_sub(&inside, 1);
}

/* As with a module whose static objects are destroyed while its functions run. */
void life_is_unloaded(void)
{
    enum { MET_THE_END = 99 };
    if (script_now()->strict_exit && atomic_load(&inside) != 0)
        _exit(MET_THE_END);
}

/* In a child, locks may be held by threads that it does not have; and a strict token wants to be initialised anew. */
__attribute__((constructor)) void life_after_fork(void)
{
    int self = getpid();
    int before = atomic_load_explicit(&owner, memory_order_relaxed);
    if (before == self)
        return;
    if (before != 0) {
        atomic_store(&inside, 0);
        sessions_forget_lock();
        if (!script_now()->lax_fork)
            atomic_store(&initialized, false);
    }
    atomic_store(&owner, self);
}

bool life_is_initialized(void)
{
    return atomic_load(&initialized);
}

CK_RV work_C_Initialize(struct call *call)
{
    const CK_C_INITIALIZE_ARGS none = {0};
    const CK_C_INITIALIZE_ARGS *args = args_of(call) != NULL ? args_of(call) : &none;
    int callbacks = (args->CreateMutex != NULL) + (args->DestroyMutex != NULL) +
                    (args->LockMutex != NULL) + (args->UnlockMutex != NULL);
    if (callbacks % 4 != 0)
        return CKR_ARGUMENTS_BAD;
    if (atomic_exchange(&initialized, true))
        return CKR_CRYPTOKI_ALREADY_INITIALIZED;
    sessions_forget();
    if ((args->flags & CKF_OS_LOCKING_OK) == 0 && callbacks == 0)
        atomic_store(&allowed, ONE_CALL_AT_A_TIME);
    else if ((args->flags & CKF_LIBRARY_CANT_CREATE_OS_THREADS) != 0)
        atomic_store(&allowed, NO_THREAD_OF_YOURS);
    else
        atomic_store(&allowed, ANY_THREADS);
    if (call->script->changing_list)
        lists_change();
    return CKR_OK;
}

CK_RV work_C_Finalize(struct call *call)
{
    if (call->seen.arguments[0] != 0)
        return CKR_ARGUMENTS_BAD;
    if (!atomic_exchange(&initialized, false))
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    atomic_store(&allowed, ANY_THREADS);
    sessions_forget();
    return CKR_OK;
}

CK_RV work_C_GetInfo(struct call *call)
{
    CK_INFO *info = (CK_INFO *)call->seen.arguments[0];
    unsigned list = call->seen.list;
    if (info == NULL)
        return CKR_ARGUMENTS_BAD;
    memset(info, ' ', sizeof *info);
    info->cryptokiVersion = (CK_VERSION){(CK_BYTE)(list / 100), (CK_BYTE)(list % 100)};
    info->flags = 0;
    return CKR_OK;
}

static atomic_uint seeds[TOKENS_MOST];

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

/* The same for the same number, and no words of the stream. */
static void write_made_of(uint64_t number, uint8_t *buf, size_t len_bytes)
{
    for (size_t i = 0; i < len_bytes; i++)
        buf[i] = (uint8_t)(word_scramble(number + i / WORD_BYTES) >> i % WORD_BYTES * 8);
}

static __attribute__((noinline)) void use_stack(size_t len_bytes)
{
    volatile char *bytes = alloca(len_bytes + 1);
    for (size_t at = 0; at <= len_bytes; at += 1024)
        bytes[at] = 1;
}

CK_RV work_C_GenerateRandom(struct call *call)
{
    uint8_t *buf = (uint8_t *)call->seen.arguments[1];
    size_t len_bytes = call->seen.bytes;
    const struct statement *said = call->course[MATTER_WORK];
    enum effect effect = said != NULL ? said->effect : DOES_ITS_WORK;
    struct word word = {.slot = (unsigned)(call->script->first_token + call->slot_id),
                        .login = token_login(call->slot_id),
                        .seed = atomic_load(&seeds[call->slot_id])};
    if (call->script->login_for_random && word.login == LOGIN_NONE)
        return CKR_USER_NOT_LOGGED_IN;
    if (buf == NULL)
        return len_bytes != 0 ? CKR_ARGUMENTS_BAD : CKR_OK;
    use_stack(call->script->stack_kib * 1024);
    if (effect == WRITES_HALF)
        len_bytes /= 2;
    if (effect == WRITES_SOME && said->value < len_bytes)
        len_bytes = said->value;
    if (effect == IS_STUCK)
        memset(buf, 0x5a, len_bytes);
    else if (effect == REPEATS)
        write_made_of(1, buf, len_bytes); /* of 0 the first word is zero */
    else
        write_words(buf, len_bytes, word);
    return CKR_OK;
}

CK_RV work_C_SeedRandom(struct call *call)
{
    if (call->seen.arguments[1] == 0 && call->seen.bytes != 0)
        return CKR_ARGUMENTS_BAD;
    atomic_fetch_add(&seeds[call->slot_id], 1);
    return CKR_OK;
}

/* One operation at a time, as on SoftHSM, unless they may begin anew. */
CK_RV begin_operation(struct call *call)
{
    if (call->mechanism == NULL)
        return CKR_ARGUMENTS_BAD;
    for (int i = 0; i < 2; i++)
        if (call->with.results[i] != NULL)
            *call->with.results[i] = KEYRING_MADE + (CK_OBJECT_HANDLE)i;
    if (call->purpose != 0 && !call->script->keyring &&
        session_operations(call->seen.session, 0, 0) != 0)
        return CKR_OPERATION_ACTIVE;
    session_operations(call->seen.session, 0, call->purpose);
    return CKR_OK;
}

/* Made of the data. Its length is the parameter behind it. */
static CK_RV give_output(const struct call *call, CK_BYTE *output)
{
    enum { OUTPUT_BYTES = 32 };
    uint64_t hash = 1;
    unsigned place = ARGUMENTS_MOST - 1;
    while (place != 0 && call->seen.arguments[place - 1] != (uintptr_t)output)
        place--;
    CK_ULONG *room = (CK_ULONG *)call->seen.arguments[place];
    if (room == NULL)
        return CKR_ARGUMENTS_BAD;
    bool fits = *room >= OUTPUT_BYTES;
    *room = OUTPUT_BYTES;
    if (output == NULL || !fits)
        return output == NULL ? CKR_OK : CKR_BUFFER_TOO_SMALL;
    for (CK_ULONG i = 0; call->with.data != NULL && i < call->with.data_bytes; i++)
        hash = word_scramble(hash + call->with.data[i]);
    write_made_of(hash, output, OUTPUT_BYTES);
    return CKR_OK;
}

static void keep_data(struct keyring *keyring, const CK_BYTE *data, CK_ULONG data_bytes)
{
    keyring->data_bytes = data_bytes;
    if (data_bytes > keyring->longest_bytes)
        keyring->longest_bytes = data_bytes;
    memcpy(keyring->data, data, data_bytes < KEYRING_BYTES ? data_bytes : KEYRING_BYTES);
}

/* Without room for its output, a call is a question for the length. */
CK_RV continue_operation(struct call *call)
{
    CK_FLAGS begun = session_operations(call->seen.session, 0, 0);
    CK_RV rv = CKR_OK;
    if ((call->purpose != 0 ? begun & call->purpose : begun) == 0)
        return CKR_OPERATION_NOT_INITIALIZED;
    if (call->script->keyring && call->with.data != NULL)
        keep_data(&shared->keyring, call->with.data, call->with.data_bytes);
    if (call->output == NEVER)
        return CKR_OK;
    if (call->output != ALWAYS)
        rv = give_output(call, (CK_BYTE *)call->output);
    if (call->output != NULL && rv != CKR_BUFFER_TOO_SMALL)
        session_operations(call->seen.session, call->purpose != 0 ? call->purpose : begun, 0);
    return rv;
}

CK_RV work_C_SessionCancel(struct call *call)
{
    if (shared->keyring.cancel_answer == CKR_OK)
        session_operations(call->seen.session, call->seen.arguments[1], 0);
    return shared->keyring.cancel_answer;
}

static CK_RV give_attribute(CK_ATTRIBUTE *attribute)
{
    const struct keyring *keyring = &shared->keyring;
    bool is_type = attribute->type == CKA_KEY_TYPE;
    const void *value = is_type ? (const void *)&keyring->key_type : keyring->value;
    CK_ULONG value_bytes = is_type ? sizeof keyring->key_type : keyring->value_bytes;
    CK_ULONG room = attribute->pValue != NULL ? attribute->ulValueLen : value_bytes;
    attribute->ulValueLen = CK_UNAVAILABLE_INFORMATION;
    if (!is_type && attribute->type != keyring->attribute)
        return CKR_ATTRIBUTE_TYPE_INVALID;
    if (room < value_bytes)
        return CKR_BUFFER_TOO_SMALL;
    attribute->ulValueLen = value_bytes;
    if (attribute->pValue != NULL)
        memcpy(attribute->pValue, value, value_bytes);
    return CKR_OK;
}

CK_RV work_C_GetAttributeValue(struct call *call)
{
    CK_ATTRIBUTE *template = (CK_ATTRIBUTE *)call->seen.arguments[2];
    CK_RV rv = CKR_OK;
    for (CK_ULONG i = 0; i < call->seen.arguments[3]; i++) {
        CK_RV one = give_attribute(&template[i]);
        rv = one != CKR_OK ? one : rv;
    }
    return rv;
}
