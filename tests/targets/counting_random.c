/* counting_random.c - the counting target's random bytes: slow, short, refused or stuck on demand. */
#include <alloca.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "counting.h"
#include "words.h"

static const uint64_t LONGEST_BUSY_NS = 200 * 1000;
static const uint64_t NS_PER_S = 1000 * 1000 * 1000;

enum { FAULT_NOTHING_WRITTEN = 1, FAULT_HALF_WRITTEN = 2, FAULT_STUCK = 3 };

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

/* Calls under way, and whether none may be. */
static atomic_uint inside;
static atomic_bool over;

atomic_uint counting_overlaps;
void (*counting_during_random)(void);

void random_after_fork(void)
{
    pthread_mutex_init(&one_at_a_time, NULL);
    atomic_store(&inside, 0);
    atomic_store(&over, false);
}

void random_life_changes(bool finalizing)
{
    atomic_store(&over, finalizing);
    if (finalizing && atomic_load(&inside) != 0)
        atomic_fetch_add(&counting_overlaps, 1);
}

/* As with a module whose static objects are destroyed while its functions run. */
__attribute__((destructor)) static void end_of_process(void)
{
    enum { MET_THE_END = 99 };
    struct knobs knobs;
    knobs_read(&knobs);
    if (knobs.strict_exit && atomic_load(&inside) != 0)
        _exit(MET_THE_END);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* A sleep lasts longer than it was asked for; what is short is waited for on the processor. */
static void last_for(uint64_t duration_ns)
{
    struct timespec sleep = {(time_t)(duration_ns / NS_PER_S), (long)(duration_ns % NS_PER_S)};
    if (duration_ns >= LONGEST_BUSY_NS) {
        nanosleep(&sleep, NULL);
        return;
    }
    for (uint64_t end = now_ns() + duration_ns; duration_ns != 0 && now_ns() < end;)
        continue;
}

/* All that was ever made, for a test to look for; in the file that COUNTING_MADE names. */
static void note_made(const uint8_t *bytes, unsigned long len_bytes)
{
    char path[PATH_MAX];
    knobs_path("COUNTING_MADE", path);
    int fd = path[0] != '\0' ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    if (write(fd, bytes, len_bytes) != (ssize_t)len_bytes)
        abort();
    close(fd);
}

static void write_words(uint8_t *buf, unsigned long len_bytes, struct word word)
{
    word.counter = stream_take((len_bytes + WORD_BYTES - 1) / WORD_BYTES);
    for (unsigned long i = 0; i < len_bytes; i++) {
        uint64_t whole = word_make(&word);
        buf[i] = (uint8_t)(whole >> i % WORD_BYTES * 8);
        word.counter += i % WORD_BYTES == WORD_BYTES - 1;
    }
    note_made(buf, len_bytes);
}

static CK_RV answer_locked(const struct one_session *session, const uint8_t *buf,
                           unsigned long len_bytes, const struct knobs *knobs)
{
    if (session == NULL)
        return CKR_SESSION_HANDLE_INVALID;
    if (counting.random_calls++ >= knobs->fail_after)
        return knobs->fail_code;
    if (knobs->login_for_random && counting.tokens[session->token].login == NOBODY)
        return CKR_USER_NOT_LOGGED_IN;
    if (buf == NULL && len_bytes != 0)
        return CKR_ARGUMENTS_BAD;
    if (len_bytes != 0 && (len_bytes < knobs->random_min || len_bytes > knobs->random_max))
        return knobs->random_refusal;
    return CKR_OK;
}

static void generate(uint8_t *buf, unsigned long len_bytes, struct word word, unsigned long fault)
{
    switch (fault) {
    case FAULT_NOTHING_WRITTEN:
        break;
    case FAULT_HALF_WRITTEN:
        write_words(buf, len_bytes / 2, word);
        break;
    case FAULT_STUCK:
        for (unsigned long i = 0; i < len_bytes; i++)
            buf[i] = (uint8_t)(0x0102030405060708 >> i % WORD_BYTES * 8);
        break;
    default:
        write_words(buf, len_bytes, word);
    }
}

/* As a module does that copies by vectors. */
static void leave_in_registers(const uint8_t *bytes, unsigned long len_bytes)
{
#ifdef __x86_64__
    uint8_t last[16] = {0};
    memcpy(last, bytes, len_bytes < sizeof last ? len_bytes : sizeof last);
    __asm__ volatile("movdqu %0, %%xmm15" : : "m"(last) : "xmm15");
    explicit_bzero(last, sizeof last);
#endif
}

static __attribute__((noinline)) void use_stack(size_t len_bytes)
{
    volatile char *bytes = alloca(len_bytes + 1);
    for (size_t at = 0; at <= len_bytes; at += 1024)
        bytes[at] = 1;
}

static CK_RV random_bytes(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pRandomData, CK_ULONG ulRandomLen)
{
    struct knobs knobs;
    struct word word = {0};
    if (!counting_enter())
        return call_log("C_GenerateRandom", (long)hSession, NO_NUMBER, (long)ulRandomLen,
                        CKR_CRYPTOKI_NOT_INITIALIZED);
    knobs_read(&knobs);
    const struct one_session *session = session_of_locked(hSession);
    CK_RV rv = answer_locked(session, pRandomData, ulRandomLen, &knobs);
    if (counting.random_calls > knobs.faulty_calls)
        knobs.fault = 0;
    if (session != NULL) {
        word.slot = session->token;
        word.login = counting.tokens[word.slot].login;
        word.seed = counting.tokens[word.slot].seeds;
    }
    counting_leave();
    if (knobs.serial)
        pthread_mutex_lock(&one_at_a_time);
    use_stack(knobs.stack_kib * 1024);
    last_for(knobs.delay_us * 1000 + knobs.byte_ns * ulRandomLen);
    if (counting_during_random != NULL)
        counting_during_random();
    if (rv == CKR_OK)
        generate(pRandomData, ulRandomLen, word, knobs.fault);
    if (knobs.serial)
        pthread_mutex_unlock(&one_at_a_time);
    call_log("C_GenerateRandom", (long)hSession, (long)word.slot, (long)ulRandomLen, rv);
    gate_pass();
    if (knobs.wants_loader)
        dlsym(RTLD_DEFAULT, "no such symbol");
    if (rv == CKR_OK && pRandomData != NULL)
        leave_in_registers(pRandomData, ulRandomLen);
    return rv;
}

static CK_RV counting_C_GenerateRandom(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pRandomData,
                                       CK_ULONG ulRandomLen)
{
    atomic_fetch_add(&inside, 1);
    if (atomic_load(&over))
        atomic_fetch_add(&counting_overlaps, 1);
    CK_RV rv = random_bytes(hSession, pRandomData, ulRandomLen);
    atomic_fetch_sub(&inside, 1);
    return rv;
}

static CK_RV counting_C_SeedRandom(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pSeed,
                                   CK_ULONG ulSeedLen)
{
    struct knobs knobs;
    (void)pSeed;
    knobs_read(&knobs);
    CK_RV rv = CKR_CRYPTOKI_NOT_INITIALIZED;
    if (counting_enter()) {
        const struct one_session *session = session_of_locked(hSession);
        rv = session != NULL ? knobs.seed_code : CKR_SESSION_HANDLE_INVALID;
        if (rv == CKR_OK)
            counting.tokens[session->token].seeds++;
        counting_leave();
    }
    return call_log("C_SeedRandom", (long)hSession, NO_NUMBER, (long)ulSeedLen, rv);
}

void counting_add_random(struct p11_functions *list)
{
    list->C_GenerateRandom = counting_C_GenerateRandom;
    list->C_SeedRandom = counting_C_SeedRandom;
}
