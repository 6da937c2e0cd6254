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

/* Calls under way; those that wait for an event are none. */
static atomic_uint inside;
static atomic_uint random_inside;

/* A test may pass a pointer that is none. */
static const CK_C_INITIALIZE_ARGS *args_at(void *pointer)
{
    return (uintptr_t)pointer > sizeof(CK_C_INITIALIZE_ARGS) ? pointer : NULL;
}

static unsigned callbacks_in(const CK_C_INITIALIZE_ARGS *args)
{
    return (args->CreateMutex != NULL) + (args->DestroyMutex != NULL) + (args->LockMutex != NULL) +
           (args->UnlockMutex != NULL);
}

static void remember(void *pointer)
{
    unsigned place = atomic_fetch_add(&shared->init_count, 1);
    if (place >= INITS_MOST)
        return;
    shared->inits[place].pointer = pointer;
    if (args_at(pointer) != NULL)
        shared->inits[place].args = *args_at(pointer);
}

/* A caller may well end a life beside its own calls, and is then on its own. */
void life_call_begins(const struct call *call)
{
    enum function function = call->seen.function;
    if (function == FUNCTION_C_WaitForSlotEvent)
        return;
    unsigned others = atomic_fetch_add(&inside, 1);
    if (function == FUNCTION_C_GenerateRandom)
        atomic_fetch_add(&random_inside, 1);
    if (function == FUNCTION_C_Initialize)
        remember((void *)call->seen.arguments[0]);
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
    if (call->seen.function == FUNCTION_C_WaitForSlotEvent)
        return;
    atomic_fetch_sub(&inside, 1);
    if (call->seen.function == FUNCTION_C_GenerateRandom)
        atomic_fetch_sub(&random_inside, 1);
}

/* As with a module whose static objects are destroyed while its functions run. */
void life_is_unloaded(void)
{
    enum { MET_THE_END = 99 };
    if (script_now()->strict_exit && atomic_load(&random_inside) != 0)
        _exit(MET_THE_END);
}

__attribute__((constructor)) static void remember_owner(void)
{
    atomic_store(&owner, getpid());
}

/* In a child, locks may be held by threads that it does not have; and a strict token wants to be initialised anew. */
void life_after_fork(void)
{
    int self = getpid();
    if (atomic_load_explicit(&owner, memory_order_relaxed) == self)
        return;
    atomic_store(&inside, 0);
    atomic_store(&random_inside, 0);
    sessions_forget_lock();
    if (!script_now()->lax_fork)
        atomic_store(&initialized, false);
    atomic_store(&owner, self);
}

bool life_is_initialized(void)
{
    return atomic_load(&initialized);
}

static CK_RV begin(void *pointer)
{
    const CK_C_INITIALIZE_ARGS *args = args_at(pointer);
    if (args != NULL && callbacks_in(args) % 4 != 0)
        return CKR_ARGUMENTS_BAD;
    if (atomic_exchange(&initialized, true))
        return CKR_CRYPTOKI_ALREADY_INITIALIZED;
    sessions_forget();
    bool locks =
        args != NULL && ((args->flags & CKF_OS_LOCKING_OK) != 0 || callbacks_in(args) == 4);
    bool no_threads = args == NULL || (args->flags & CKF_LIBRARY_CANT_CREATE_OS_THREADS) != 0;
    atomic_store(&allowed, !locks       ? ONE_CALL_AT_A_TIME
                           : no_threads ? NO_THREAD_OF_YOURS
                                        : ANY_THREADS);
    if (script_now()->changing_list)
        lists_change();
    return CKR_OK;
}

static CK_RV end(const void *reserved)
{
    if (reserved != NULL)
        return CKR_ARGUMENTS_BAD;
    if (!atomic_exchange(&initialized, false))
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    atomic_store(&allowed, ANY_THREADS);
    sessions_forget();
    return CKR_OK;
}

static CK_RV tell_info(unsigned list, CK_INFO *info)
{
    if (!life_is_initialized())
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    if (info == NULL)
        return CKR_ARGUMENTS_BAD;
    memset(info, ' ', sizeof *info);
    info->cryptokiVersion =
        list == 240 ? (CK_VERSION){2, 40} : (CK_VERSION){3, (CK_BYTE)(list % 100)};
    info->flags = 0;
    return CKR_OK;
}

bool life_knows(struct call *call, CK_RV *rv)
{
    void *first = (void *)call->seen.arguments[0];
    switch (call->seen.function) {
    case FUNCTION_C_Initialize:
        *rv = begin(first);
        return true;
    case FUNCTION_C_Finalize:
        *rv = end(first);
        return true;
    case FUNCTION_C_GetInfo:
        *rv = tell_info(call->seen.list, first);
        return true;
    default:
        return false;
    }
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

static CK_RV random_bytes(const struct call *call)
{
    uint8_t *buf = (uint8_t *)call->seen.arguments[1];
    size_t len_bytes = call->seen.bytes;
    const struct statement *said = call->course[MATTER_WORK];
    enum effect effect = said != NULL ? said->effect : DOES_ITS_WORK;
    struct word word = {.slot = call->token, .login = token_login(call->token)};
    if (call->script->login_for_random && word.login == LOGIN_NONE)
        return CKR_USER_NOT_LOGGED_IN;
    if (buf == NULL)
        return len_bytes != 0 ? CKR_ARGUMENTS_BAD : CKR_OK;
    word.seed = atomic_load(&seeds[call->token]);
    use_stack(call->script->stack_kib * 1024);
    if (effect == IS_STUCK)
        memset(buf, 0x5a, len_bytes);
    else if (effect == REPEATS)
        write_made_of(0, buf, len_bytes);
    else if (effect == WRITES_HALF)
        write_words(buf, len_bytes / 2, word);
    else if (effect == WRITES_SOME)
        write_words(buf, said->value < len_bytes ? said->value : len_bytes, word);
    else
        write_words(buf, len_bytes, word);
    return CKR_OK;
}

static CK_RV seed(const struct call *call)
{
    if (call->seen.arguments[1] == 0 && call->seen.bytes != 0)
        return CKR_ARGUMENTS_BAD;
    atomic_fetch_add(&seeds[call->token], 1);
    return CKR_OK;
}

/* One operation at a time, as on SoftHSM, unless they may begin anew. */
static CK_RV begin_operation(const struct call *call)
{
    if (call->mechanism == NULL)
        return CKR_ARGUMENTS_BAD;
    for (int i = 0; i < 2; i++)
        if (call->results[i] != NULL)
            *call->results[i] = KEYRING_MADE + (CK_OBJECT_HANDLE)i;
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
    for (CK_ULONG i = 0; call->data != NULL && i < call->data_bytes; i++)
        hash = word_scramble(hash + call->data[i]);
    write_made_of(hash, output, OUTPUT_BYTES);
    return CKR_OK;
}

static void keep_data(struct keyring *keyring, const struct call *call)
{
    keyring->data_bytes = call->data_bytes;
    if (call->data_bytes > keyring->longest_bytes)
        keyring->longest_bytes = call->data_bytes;
    memcpy(keyring->data, call->data,
           call->data_bytes < KEYRING_BYTES ? call->data_bytes : KEYRING_BYTES);
}

/* Without room for its output, a call is a question for the length. */
static CK_RV go_on(const struct call *call)
{
    CK_FLAGS begun = session_operations(call->seen.session, 0, 0);
    CK_RV rv = CKR_OK;
    if ((call->purpose != 0 ? begun & call->purpose : begun) == 0)
        return CKR_OPERATION_NOT_INITIALIZED;
    if (call->script->keyring && call->data != NULL)
        keep_data(&shared->keyring, call);
    if (call->output == NEVER)
        return CKR_OK;
    if (call->output != ALWAYS)
        rv = give_output(call, (CK_BYTE *)call->output);
    if (call->output != NULL && rv != CKR_BUFFER_TOO_SMALL)
        session_operations(call->seen.session, call->purpose != 0 ? call->purpose : begun, 0);
    return rv;
}

static CK_RV cancel(const struct call *call)
{
    if (shared->keyring.cancel_answer == CKR_OK)
        session_operations(call->seen.session, call->seen.arguments[1], 0);
    return shared->keyring.cancel_answer;
}

static CK_RV give_attribute(CK_ATTRIBUTE *attribute)
{
    const struct keyring *keyring = &shared->keyring;
    const void *value = attribute->type == CKA_KEY_TYPE         ? (const void *)&keyring->key_type
                        : attribute->type == keyring->attribute ? keyring->value
                                                                : NULL;
    CK_ULONG value_bytes =
        attribute->type == CKA_KEY_TYPE ? sizeof keyring->key_type : keyring->value_bytes;
    bool fits = attribute->pValue == NULL || attribute->ulValueLen >= value_bytes;
    attribute->ulValueLen = value != NULL && fits ? value_bytes : CK_UNAVAILABLE_INFORMATION;
    if (value == NULL)
        return CKR_ATTRIBUTE_TYPE_INVALID;
    if (fits && attribute->pValue != NULL)
        memcpy(attribute->pValue, value, value_bytes);
    return fits ? CKR_OK : CKR_BUFFER_TOO_SMALL;
}

static CK_RV give_attributes(CK_ATTRIBUTE *template, CK_ULONG count)
{
    CK_RV rv = CKR_OK;
    for (CK_ULONG i = 0; i < count; i++) {
        CK_RV one = give_attribute(&template[i]);
        rv = one != CKR_OK ? one : rv;
    }
    return rv;
}

static void count(struct keyring *keyring, const struct call *call)
{
    keyring->calls += call->part == BEGINS || call->part == CHANGES;
    keyring->data_calls += call->part == TAKES && call->data != NULL;
    keyring->reads += call->seen.function == FUNCTION_C_GetAttributeValue;
    keyring->destroyed += call->seen.function == FUNCTION_C_DestroyObject;
}

bool work_knows(struct call *call, CK_RV *rv)
{
    const uintptr_t *with = call->seen.arguments;
    if (call->script->keyring)
        count(&shared->keyring, call);
    if (call->seen.function == FUNCTION_C_GenerateRandom)
        *rv = random_bytes(call);
    else if (call->seen.function == FUNCTION_C_SeedRandom)
        *rv = seed(call);
    else if (call->seen.function == FUNCTION_C_SessionCancel)
        *rv = cancel(call);
    else if (call->seen.function == FUNCTION_C_GetAttributeValue)
        *rv = give_attributes((CK_ATTRIBUTE *)with[2], with[3]);
    else if (call->part == BEGINS)
        *rv = begin_operation(call);
    else if (call->part == TAKES)
        *rv = go_on(call);
    else
        return false;
    return true;
}
