/* counting.c - stands before a real token's module, and counts what it is asked for.
 *
 * COUNTING_TARGET  that module
 * COUNTING_CALLS   a file that gets a 64-bit number: calls of C_GenerateRandom. A map of it outlives a crash
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cryptoki.h"

static CK_FUNCTION_LIST list;
static const CK_FUNCTION_LIST *below;
static _Atomic uint64_t uncounted, *calls = &uncounted;

static CK_RV counting_C_GenerateRandom(CK_SESSION_HANDLE session, CK_BYTE_PTR bytes,
                                       CK_ULONG len_bytes)
{
    atomic_fetch_add(calls, 1);
    return below->C_GenerateRandom(session, bytes, len_bytes);
}

static CK_RV counting_C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR out)
{
    *out = &list;
    return CKR_OK;
}

static void count_in(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    void *page = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof *calls) == 0)
        page = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        perror(path);
        abort();
    }
    calls = page;
    close(fd);
}

/* All functions but two are those of the module below, at no cost at all. */
static CK_RV load(void)
{
    CK_FUNCTION_LIST *found;
    void *module = dlopen(getenv("COUNTING_TARGET"), RTLD_NOW | RTLD_LOCAL);
    CK_C_GetFunctionList get =
        module != NULL ? (CK_C_GetFunctionList)dlsym(module, "C_GetFunctionList") : NULL;
    CK_RV rv = get != NULL ? get(&found) : CKR_GENERAL_ERROR;
    if (rv != CKR_OK) {
        fprintf(stderr, "counting.so: %s\n", module != NULL ? "no function list" : dlerror());
        return rv;
    }
    list = *found;
    list.C_GetFunctionList = counting_C_GetFunctionList;
    list.C_GenerateRandom = counting_C_GenerateRandom;
    if (getenv("COUNTING_CALLS") != NULL)
        count_in(getenv("COUNTING_CALLS"));
    below = found;
    return CKR_OK;
}

__attribute__((visibility("default"))) CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR out)
{
    CK_RV rv = below != NULL ? CKR_OK : load();
    return rv == CKR_OK ? counting_C_GetFunctionList(out) : rv;
}
