/* slow.c - a target like a real token: SoftHSM, with the time that a slower device takes for random bytes.
 *
 * P11_SLOW_TARGET     the module below (default: Debian's SoftHSM)
 * P11_SLOW_RANDOM_US  how long C_GenerateRandom takes besides, in microseconds; callers wait side by side
 * P11_SLOW_CALLS      a file that holds two 64-bit numbers: calls of C_GenerateRandom, and bytes asked for
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cryptoki.h"

static const char softhsm[] = "/usr/lib/softhsm/libsofthsm2.so";

/* nanosleep() wakes some 50 us late, so short waits are spent awake. */
enum { SLEEP_LEAST_US = 200 };

struct counts {
    _Atomic uint64_t calls;
    _Atomic uint64_t bytes;
};

static CK_FUNCTION_LIST list;
static const CK_FUNCTION_LIST *below;
static struct counts uncounted;
static struct counts *counts = &uncounted;
static long wait_us;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void take_time(void)
{
    int64_t until_ns = now_ns() + (int64_t)wait_us * 1000;
    if (wait_us >= SLEEP_LEAST_US) {
        struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
            ;
    }
    while (now_ns() < until_ns)
        ;
}

static CK_RV slow_C_GenerateRandom(CK_SESSION_HANDLE session, CK_BYTE_PTR bytes, CK_ULONG len_bytes)
{
    atomic_fetch_add(&counts->calls, 1);
    atomic_fetch_add(&counts->bytes, len_bytes);
    if (wait_us > 0)
        take_time();
    return below->C_GenerateRandom(session, bytes, len_bytes);
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
    if (fd < 0 || ftruncate(fd, sizeof *counts) != 0) {
        perror(path);
        abort();
    }
    void *page = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        perror(path);
        abort();
    }
    counts = page;
    close(fd);
}

/* All functions but two are those of the module below, at no cost at all. */
static CK_RV load(void)
{
    const char *path = getenv("P11_SLOW_TARGET");
    const char *us = getenv("P11_SLOW_RANDOM_US");
    void *module = dlopen(path != NULL ? path : softhsm, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        fprintf(stderr, "slow.so: %s\n", dlerror());
        return CKR_GENERAL_ERROR;
    }
    CK_RV(*get)
    (CK_FUNCTION_LIST **) = (CK_RV(*)(CK_FUNCTION_LIST **))dlsym(module, "C_GetFunctionList");
    CK_FUNCTION_LIST *found;
    CK_RV rv = get != NULL ? get(&found) : CKR_GENERAL_ERROR;
    if (rv != CKR_OK)
        return rv;
    list = *found;
    list.C_GetFunctionList = slow_C_GetFunctionList;
    list.C_GenerateRandom = slow_C_GenerateRandom;
    wait_us = us != NULL ? strtol(us, NULL, 10) : 0;
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
