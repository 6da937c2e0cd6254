/* scripted.c - a target that does as a test's script says, with the rules of sessions and logins of a real token.
 *
 * Its calls run side by side: what they share is counted, not locked, so that no race of the module in front of it is
 * hidden. Only what a real token orders (opening, closing, logins) is ordered here.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "target.h"

struct target_shared *shared;

/* An RSA key of 2048 bits. */
static const struct keyring at_first = {
    .mechanisms = {CKM_RSA_PKCS, CKM_SHA256, CKM_MD5, CKM_AES_CBC},
    .count = 4,
    .info = {128, 4096, CKF_SIGN | CKF_DIGEST},
    .key_type = CKK_RSA,
    .attribute = CKA_MODULUS,
    .value = {0x80},
    .value_bytes = 2048 / 8,
    .cancel_answer = CKR_FUNCTION_NOT_SUPPORTED};

__attribute__((constructor)) static void map_shared(void)
{
    const char *path = getenv("TARGET_SHARED");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    int flags = fd >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (memory == MAP_FAILED || (path != NULL && fd < 0)) {
        perror("scripted target");
        abort();
    }
    if (fd >= 0)
        close(fd);
    shared = memory;
    const char *script = getenv("TARGET_SCRIPT");
    if (script != NULL && atomic_load(&shared->script_end) == 0)
        atomic_store(&shared->script_end,
                     (unsigned)snprintf(shared->script, SCRIPT_BYTES, "%s", script) % SCRIPT_BYTES);
    if (shared->keyring.count == 0)
        shared->keyring = at_first;
}

__attribute__((destructor)) static void unmap_shared(void)
{
    life_is_unloaded();
    munmap(shared, sizeof *shared);
}

/* The module names its thread. */
static bool is_filler(void)
{
    static __thread int known;
    char name[17] = "";
    if (known == 0) {
        prctl(PR_GET_NAME, name);
        known = strncmp(name, "p11-proxy", strlen("p11-proxy")) == 0 ? 2 : 1;
    }
    return known == 2;
}

void complain(const char *what, const struct call *call)
{
    if (atomic_fetch_add(&shared->complaints, 1) == 0)
        snprintf(shared->complaint, sizeof shared->complaint, "%s: %s on session %lu, by %s", what,
                 function_name(call->seen.function), call->seen.session,
                 call->seen.by_filler ? "the filler" : "a caller");
}

/* A sleep lasts longer than it was asked for, so what is short is waited for on the processor. */
static void last_for(int64_t duration_ns)
{
    static const int64_t longest_busy_ns = 200 * 1000;
    int64_t end_ns = clock_exact_ns() + duration_ns;
    if (duration_ns >= longest_busy_ns)
        nanosleep(&(struct timespec){duration_ns / NS_PER_S, duration_ns % NS_PER_S}, NULL);
    while (duration_ns < longest_busy_ns && clock_exact_ns() < end_ns)
        continue;
}

static void last_as_told(const struct call *call)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    const struct statement *lasts = call->course[MATTER_TIME];
    if (call->script->serial)
        pthread_mutex_lock(&one_at_a_time);
    last_for((int64_t)(lasts->value + lasts->for_a_byte * call->seen.bytes));
    if (call->script->serial)
        pthread_mutex_unlock(&one_at_a_time);
}

/* In any process that shares the memory. */
static void hold(const struct call *call)
{
    unsigned number = (unsigned)(call->course[MATTER_HOLD] - call->script->statements);
    unsigned released;
    atomic_fetch_add(&shared->held, 1);
    while ((released = atomic_load(&shared->released)) <= number)
        syscall(SYS_futex, &shared->released, FUTEX_WAIT, released, NULL, NULL, 0);
    atomic_fetch_sub(&shared->held, 1);
}

static void log_call(struct call *call, CK_RV rv)
{
    struct target_counts *counts = &shared->counts[call->seen.function][call->seen.by_filler];
    atomic_fetch_add_explicit(rv == CKR_OK ? &counts->good : &counts->failed, 1,
                              memory_order_relaxed);
    if (call->script->quiet)
        return;
    unsigned place = atomic_fetch_add_explicit(&shared->log_count, 1, memory_order_relaxed);
    if (place >= LOG_MOST)
        return;
    call->seen.rv = rv;
    call->seen.tid = syscall(SYS_gettid);
    shared->log[place] = call->seen;
    atomic_store_explicit(&shared->log[place].is_written, true, memory_order_release);
}

static work_fn *const works[FUNCTIONS] = {
#define P11_UPTO       302
#define ROW(name, ...) work_##name,
#include "functions.def"
};

static void count_in_keyring(struct keyring *keyring, const struct call *call)
{
    keyring->calls += call->part == BEGINS || call->part == CHANGES;
    keyring->data_calls += call->part == TAKES && call->with.data != NULL;
    keyring->reads += call->seen.function == FUNCTION_C_GetAttributeValue;
    keyring->destroyed += call->seen.function == FUNCTION_C_DestroyObject;
}

static CK_RV do_work(struct call *call)
{
    enum function function = call->seen.function;
    const struct statement *said = call->course[MATTER_WORK];
    work_fn *work = works[function];
    if (said != NULL && said->effect == FAILS)
        return said->value;
    if (said != NULL && said->effect == CALLS_BACK)
        atomic_load (&shared->calls_back)();
    if (function != FUNCTION_C_Initialize && !life_is_initialized())
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    CK_RV rv = token_check_subject(call);
    if (rv != CKR_OK)
        return rv;
    if (call->script->keyring)
        count_in_keyring(&shared->keyring, call);
    if (work == NULL && call->part == BEGINS)
        work = begin_operation;
    if (work == NULL && call->part == TAKES)
        work = continue_operation;
    return work != NULL ? work(call) : CKR_OK;
}

CK_RV target_call(struct call *call)
{
    struct target_call *seen = &call->seen;
    life_after_fork();
    call->script = script_now();
    seen->by_filler = is_filler();
    if (seen->function == FUNCTION_C_GenerateRandom || seen->function == FUNCTION_C_SeedRandom)
        seen->bytes = seen->arguments[2];
    token_find_subject(call);
    script_settle(call);
    const struct statement *holds = call->course[MATTER_HOLD];
    life_call_begins(call);
    if (holds != NULL && holds->effect == HOLDS_FIRST)
        hold(call);
    if (call->course[MATTER_TIME] != NULL)
        last_as_told(call);
    CK_RV rv = do_work(call);
    log_call(call, rv);
    if (holds != NULL && holds->effect == HOLDS)
        hold(call);
    life_call_ends(call);
    return rv;
}
