/* slow.c - a target like a real token: SoftHSM, with the time that a slower device takes for random bytes.
 *
 * P11_SLOW_TARGET     the module below (default: Debian's SoftHSM)
 * P11_SLOW_RANDOM_US  how long C_GenerateRandom takes besides, in microseconds
 * P11_SLOW_SIGN_US    how long C_Sign takes besides
 * P11_SLOW_SERIAL     1: one of these calls at a time, as on a card. Else callers wait side by side
 * P11_SLOW_CALLS      a file that holds three 64-bit numbers: calls of C_GenerateRandom, bytes asked for, bytes given
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cryptoki.h"

static const char softhsm[] = "/usr/lib/softhsm/libsofthsm2.so";

struct counts {
    _Atomic uint64_t calls;
    _Atomic uint64_t bytes;
    _Atomic uint64_t given;
};

static CK_FUNCTION_LIST list;
static const CK_FUNCTION_LIST *below;
static struct counts uncounted;
static struct counts *counts = &uncounted;
static long random_us;
static long sign_us;
static long serial;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

/* nanosleep() wakes some 50 us late, so short waits are spent awake. */
static void begin_and_wait(long duration_us)
{
    enum { SLEEP_LEAST_US = 200 };
    struct timespec from;
    struct timespec now;
    if (serial)
        pthread_mutex_lock(&one_at_a_time);
    if (duration_us >= SLEEP_LEAST_US)
        nanosleep(&(struct timespec){duration_us / 1000000, duration_us % 1000000 * 1000}, NULL);
    else if (duration_us > 0) {
        clock_gettime(CLOCK_MONOTONIC, &from);
        do
            clock_gettime(CLOCK_MONOTONIC, &now);
        while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 <
               duration_us);
    }
}

static void end(void)
{
    if (serial)
        pthread_mutex_unlock(&one_at_a_time);
}

static CK_RV slow_C_GenerateRandom(CK_SESSION_HANDLE session, CK_BYTE_PTR bytes, CK_ULONG len_bytes)
{
    atomic_fetch_add(&counts->calls, 1);
    atomic_fetch_add(&counts->bytes, len_bytes);
    begin_and_wait(random_us);
    CK_RV rv = below->C_GenerateRandom(session, bytes, len_bytes);
    end();
    if (rv == CKR_OK)
        atomic_fetch_add(&counts->given, len_bytes);
    return rv;
}

static CK_RV slow_C_Sign(CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG data_bytes,
                         CK_BYTE_PTR signature, CK_ULONG_PTR signature_bytes)
{
    begin_and_wait(sign_us);
    CK_RV rv = below->C_Sign(session, data, data_bytes, signature, signature_bytes);
    end();
    return rv;
}

static CK_RV slow_C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR out)
{
    *out = &list;
    return CKR_OK;
}

/* In a file that is mapped: what a process that crashed had asked for can be read too. */
static void count_in(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    void *page = fd < 0 || ftruncate(fd, sizeof *counts) != 0
                     ? MAP_FAILED
                     : mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        perror(path);
        abort();
    }
    counts = page;
    close(fd);
}

static long number(const char *variable)
{
    const char *text = getenv(variable);
    return text != NULL ? strtol(text, NULL, 10) : 0;
}

/* All functions but three are those of the module below, at no cost at all. */
static CK_RV load(void)
{
    const char *path = getenv("P11_SLOW_TARGET");
    void *module = dlopen(path != NULL ? path : softhsm, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        fprintf(stderr, "slow.so: %s\n", dlerror());
        return CKR_GENERAL_ERROR;
    }
    CK_C_GetFunctionList get = (CK_C_GetFunctionList)dlsym(module, "C_GetFunctionList");
    CK_FUNCTION_LIST *found;
    CK_RV rv = get != NULL ? get(&found) : CKR_GENERAL_ERROR;
    if (rv != CKR_OK)
        return rv;
    list = *found;
    list.C_GetFunctionList = slow_C_GetFunctionList;
    list.C_GenerateRandom = slow_C_GenerateRandom;
    list.C_Sign = slow_C_Sign;
    random_us = number("P11_SLOW_RANDOM_US");
    sign_us = number("P11_SLOW_SIGN_US");
    serial = number("P11_SLOW_SERIAL");
    if (getenv("P11_SLOW_CALLS") != NULL)
        count_in(getenv("P11_SLOW_CALLS"));
    below = found;
    return CKR_OK;
}

__attribute__((visibility("default"))) CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR out)
{
    CK_RV rv = below != NULL ? CKR_OK : load();
    return rv == CKR_OK ? slow_C_GetFunctionList(out) : rv;
}
