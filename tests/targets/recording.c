/* recording.c - a target that has every function, in lists and interfaces of choice. What they do is in
 * answering.c.
 *
 * RECORDING_INTERFACES   what it offers, the default first: versions, "vendor"; an "f" behind a version
 *                        is CKF_INTERFACE_FORK_SAFE. "2.40" if it is not set
 * RECORDING_PLAIN        the version that C_GetFunctionList's list claims. It has 68 functions whatever it says
 * RECORDING_NULL         names of functions that are NULL in all lists
 */
#include "recording.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "functions.h"

#define EXPORT __attribute__((visibility("default")))

enum { INTERFACES_MOST = 8, PLAIN_BYTES = (FUNCTIONS_2_40 + 1) * sizeof(void *) };

#define VALUE(pair)     VALUE_ pair
#define VALUE_(type, n) (uintptr_t)(n)
#define NAME(pair)      NAME_ pair
#define NAME_(type, n)  #n
#define KIND(pair)      KIND_ pair
/* clang-format off */
#define KIND_(type, n)                                                                             \
    _Generic((type)0, CK_ULONG: KIND_NUMBER, CK_BBOOL: KIND_NUMBER, CK_BYTE *: KIND_BYTES,          \
             CK_ULONG *: KIND_NUMBERS, CK_MECHANISM *: KIND_MECHANISM,                             \
             CK_ATTRIBUTE *: KIND_ATTRIBUTES, CK_VOID_PTR: KIND_ANYTHING, default: KIND_OTHER)
/* clang-format on */

#define P11_UPTO 302
#define ROW(name, ...)                                                                             \
    static CK_RV recording_##name(PARAMS(__VA_ARGS__))                                             \
    {                                                                                              \
        static const char *const names[] = {P11_EACH(NAME, __VA_ARGS__)};                          \
        static const enum kind kinds[] = {P11_EACH(KIND, __VA_ARGS__)};                            \
        const uintptr_t arguments[] = {P11_EACH(VALUE, __VA_ARGS__)};                              \
        return recording_answer(&(struct call){.function = #name,                                  \
                                               .count = sizeof arguments / sizeof *arguments,      \
                                               .arguments = arguments,                             \
                                               .names = names,                                     \
                                               .kinds = kinds});                                   \
    }
#include "functions.def"

static const struct p11_functions full_list = {
#define P11_UPTO       302
#define ROW(name, ...) .name = recording_##name,
#include "functions.def"
};

/* Whether the word is in the list of words. */
static bool is_null(const char *name)
{
    const char *at = getenv("RECORDING_NULL");
    size_t len = strlen(name);
    while (at != NULL && (at = strstr(at, name)) != NULL) {
        if (at[len] == ' ' || at[len] == '\0')
            return true;
        at += len;
    }
    return false;
}

CK_RV C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList, CK_ULONG_PTR pulCount);
CK_RV C_GetInterface(CK_UTF8CHAR_PTR pInterfaceName, CK_VERSION_PTR pVersion,
                     CK_INTERFACE_PTR_PTR ppInterface, CK_FLAGS flags);

static void fill(struct p11_functions *list, const char *version)
{
    unsigned major = 2;
    unsigned minor = 40;
    *list = full_list;
    sscanf(version, "%u.%u", &major, &minor);
    list->version = (CK_VERSION){(CK_BYTE)major, (CK_BYTE)minor};
#define P11_UPTO 302
#define ROW(name, ...)                                                                             \
    if (is_null(#name))                                                                            \
        list->name = NULL;
#include "functions.def"
    if (list->C_GetFunctionList != NULL)
        list->C_GetFunctionList = C_GetFunctionList;
#ifndef WITHOUT_INTERFACES
    if (list->C_GetInterfaceList != NULL)
        list->C_GetInterfaceList = C_GetInterfaceList;
    if (list->C_GetInterface != NULL)
        list->C_GetInterface = C_GetInterface;
#endif
}

/* Right before a page that faults: whoever reads on because of the version dies. */
static void *put_before_the_end(const struct p11_functions *list)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_NONE) != 0)
        abort();
    return memcpy(memory + page - PLAIN_BYTES, list, PLAIN_BYTES);
}

EXPORT CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR ppFunctionList)
{
    static void *plain;
    const char *version = getenv("RECORDING_PLAIN");
    if (plain == NULL) {
        struct p11_functions list;
        fill(&list, version != NULL ? version : "2.40");
        plain = put_before_the_end(&list);
    }
    *ppFunctionList = plain;
    return CKR_OK;
}

#ifndef WITHOUT_INTERFACES
static CK_INTERFACE interfaces[INTERFACES_MOST];
static CK_ULONG interface_count;

/* What a vendor's list looks like is nobody's business. */
static const char *const vendor_list[] = {"whatever the vendor likes"};

static void make_interfaces(void)
{
    static struct p11_functions lists[INTERFACES_MOST];
    const char *wanted = getenv("RECORDING_INTERFACES");
    char *words = strdup(wanted != NULL ? wanted : "2.40");
    char *rest = NULL;
    if (words == NULL)
        abort();
    for (char *word = strtok_r(words, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        bool vendor = strcmp(word, "vendor") == 0;
        fill(&lists[interface_count], word);
        interfaces[interface_count] = (CK_INTERFACE){
            .pInterfaceName = (CK_UTF8CHAR_PTR)(vendor ? "Vendor recording" : "PKCS 11"),
            .pFunctionList = vendor ? (void *)vendor_list : &lists[interface_count],
            .flags = !vendor && strchr(word, 'f') != NULL ? CKF_INTERFACE_FORK_SAFE : 0};
        interface_count++;
    }
    free(words);
}

EXPORT CK_RV C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList, CK_ULONG_PTR pulCount)
{
    CK_ULONG room = *pulCount;
    if (interface_count == 0)
        make_interfaces();
    *pulCount = interface_count;
    if (pInterfacesList == NULL)
        return CKR_OK;
    if (room < interface_count)
        return CKR_BUFFER_TOO_SMALL;
    memcpy(pInterfacesList, interfaces, interface_count * sizeof *interfaces);
    return CKR_OK;
}

static bool fits(const CK_INTERFACE *interface, const CK_UTF8CHAR *name, const CK_VERSION *version,
                 CK_FLAGS flags)
{
    const CK_VERSION *has = interface->pFunctionList;
    if (name != NULL && strcmp((const char *)name, (const char *)interface->pInterfaceName) != 0)
        return false;
    if (version != NULL && (has->major != version->major || has->minor != version->minor))
        return false;
    return (interface->flags & flags) == flags;
}

EXPORT CK_RV C_GetInterface(CK_UTF8CHAR_PTR pInterfaceName, CK_VERSION_PTR pVersion,
                            CK_INTERFACE_PTR_PTR ppInterface, CK_FLAGS flags)
{
    if (interface_count == 0)
        make_interfaces();
    for (CK_ULONG i = 0; i < interface_count; i++)
        if (fits(&interfaces[i], pInterfaceName, pVersion, flags)) {
            *ppInterface = &interfaces[i];
            return CKR_OK;
        }
    return CKR_FUNCTION_FAILED;
}
#endif
