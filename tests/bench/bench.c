/* bench.c - time, medians, loading a module. */
#include "bench.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS_MAX = 128 };

void fail(const char *what, const char *detail)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, detail);
    exit(EXIT_FAILURE);
}

void must(const char *function, CK_RV rv)
{
    char code[32];
    snprintf(code, sizeof code, "0x%lx", rv);
    if (rv != CKR_OK)
        fail(function, code);
}

int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void rest_ns(int64_t duration_ns)
{
    struct timespec pause = {.tv_sec = duration_ns / 1000000000,
                             .tv_nsec = duration_ns % 1000000000};
    while (nanosleep(&pause, &pause) != 0)
        ;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double median_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

CK_FUNCTION_LIST *load_module(const char *path)
{
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL)
        fail("cannot load the module", dlerror());
    CK_C_GetFunctionList get = (CK_C_GetFunctionList)dlsym(module, "C_GetFunctionList");
    CK_FUNCTION_LIST *fn;
    if (get == NULL)
        fail("not a PKCS#11 module", path);
    must("C_GetFunctionList", get(&fn));
    return fn;
}

void initialize(CK_FUNCTION_LIST *fn)
{
    CK_C_INITIALIZE_ARGS args = {.flags = CKF_OS_LOCKING_OK};
    must("C_Initialize", fn->C_Initialize(&args));
}

CK_SLOT_ID find_slot(CK_FUNCTION_LIST *fn, CK_FLAGS wanted, long index)
{
    CK_SLOT_ID slots[SLOTS_MAX] = {0};
    CK_ULONG count = SLOTS_MAX;
    must("C_GetSlotList", fn->C_GetSlotList(CK_TRUE, slots, &count));
    for (CK_ULONG i = 0; i < count; i++) {
        CK_TOKEN_INFO info = {.flags = 0};
        if (wanted != 0 &&
            (fn->C_GetTokenInfo(slots[i], &info) != CKR_OK || (info.flags & wanted) != wanted))
            continue;
        if (index-- == 0)
            return slots[i];
    }
    fail("no such token", "is SOFTHSM2_CONF set to one's?");
}

CK_SESSION_HANDLE open_session(CK_FUNCTION_LIST *fn, CK_SLOT_ID slot)
{
    CK_SESSION_HANDLE session;
    must("C_OpenSession", fn->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &session));
    return session;
}

void open_sessions(struct subject *subject, CK_SLOT_ID slot, long count)
{
    subject->count = count;
    subject->sessions = calloc((size_t)count, sizeof *subject->sessions);
    for (long i = 0; i < count; i++)
        subject->sessions[i] = open_session(subject->fn, slot);
}

struct target_counts target_counts(void)
{
    static const volatile struct target_counts none, *counts;
    const char *path = getenv("P11_SLOW_CALLS");
    if (counts == NULL && path != NULL) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0 || ftruncate(fd, sizeof *counts) != 0)
            fail(path, strerror(errno));
        void *page = mmap(NULL, sizeof *counts, PROT_READ, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED)
            fail(path, strerror(errno));
        close(fd);
        counts = page;
    }
    return counts != NULL ? *counts : none;
}

static const struct op *const groups[] = {ops_random, ops_threads, ops_peers, ops_calls, ops_lives};

const struct op *find_op(const char *text, long *argument)
{
    size_t len = strcspn(text, ":");
    *argument = text[len] == ':' ? strtol(text + len + 1, NULL, 10) : 0;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (const struct op *op = groups[g]; op->name != NULL; op++)
            if (strlen(op->name) == len && strncmp(op->name, text, len) == 0)
                return op;
    fprintf(stderr, "there is no '%s', but there are\n", text);
    print_ops();
    exit(EXIT_FAILURE);
}

void print_ops(void)
{
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (const struct op *op = groups[g]; op->name != NULL; op++)
            fprintf(stderr, "  %-16s %s\n", op->name, op->what);
}
