/* lists.c - the scripted target's functions, in three lists, and the interfaces that a script names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target.h"

enum { INTERFACES_MOST = 128, PLAIN_BYTES = (FUNCTIONS_2_40 + 1) * sizeof(void *) };

/* What functions.def says of a call with a mechanism. */
struct mechanism_call {
    CK_OBJECT_HANDLE used;
    const CK_ATTRIBUTE *templates[2];
    CK_ULONG counts[2];
    CK_OBJECT_HANDLE *results[2];
    const CK_BYTE *data;
    CK_ULONG data_bytes;
};
/* The others leave nothing open. */
enum {
    OPERATIONS = CKF_ENCRYPT | CKF_DECRYPT | CKF_DIGEST | CKF_SIGN | CKF_SIGN_RECOVER | CKF_VERIFY |
                 CKF_VERIFY_RECOVER | CKF_MESSAGE_ENCRYPT | CKF_MESSAGE_DECRYPT | CKF_MESSAGE_SIGN |
                 CKF_MESSAGE_VERIFY
};

static void begins(struct call *call, CK_FLAGS purpose, const CK_MECHANISM *mechanism,
                   const struct mechanism_call *with)
{
    call->part = BEGINS;
    call->purpose = purpose & OPERATIONS;
    call->mechanism = mechanism;
    memcpy(call->results, with->results, sizeof with->results);
}

static void takes(struct call *call, CK_FLAGS purpose, const CK_BYTE *data, CK_ULONG data_bytes,
                  const CK_BYTE *output)
{
    call->part = TAKES;
    call->purpose = purpose;
    call->data = data;
    call->data_bytes = data_bytes;
    call->output = output;
}

#define NOTE_CALL()           (void)0
#define NOTE_LOGIN(user_type) (void)0
#define NOTE_MECH(purpose, ...)                                                                    \
    begins(&call, purpose, pMechanism, &(const struct mechanism_call){__VA_ARGS__})
#define NOTE_EDIT(object, template, count)           call.part = CHANGES
#define NOTE_STEP(output)                            takes(&call, /* purpose= */ 0, NULL, 0, output)
#define NOTE_DATA(purpose, data, data_bytes, output) takes(&call, purpose, data, data_bytes, output)

/* in_240_C_Sign() and so on. */
#define VALUE(pair)              VALUE_ pair
#define VALUE_(type, n)          (uintptr_t)(n)
#define NAME_OF_FIRST(pair, ...) NAME_OF_ pair
#define NAME_OF_(type, n)        #n
#define PASTE(a, b, c)           PASTE_(a, b, c)
#define PASTE_(a, b, c)          a##_##b##_##c
#define IN(name)                 PASTE(in, VERSION, name)
#define DEFINE(name, more, ...)                                                                    \
    static CK_RV IN(name)(PARAMS(__VA_ARGS__))                                                     \
    {                                                                                              \
        struct call call = {.seen = {.function = FUNCTION_##name,                                  \
                                     .list = VERSION,                                              \
                                     .arguments = {P11_EACH(VALUE, __VA_ARGS__)}},                 \
                            .subject = NAME_OF_FIRST(__VA_ARGS__, )};                              \
        more;                                                                                      \
        return target_call(&call);                                                                 \
    }

#define VERSION 240
#define LIST    list_240
#include "one_list.h"
#define VERSION 300
#define LIST    list_300
#include "one_list.h"
#define VERSION 302
#define LIST    list_302
#include "one_list.h"

static bool is_without(const char *name)
{
    const char *at = script_now()->without;
    size_t len = strlen(name);
    if (at != NULL && strstr(at, "all") != NULL)
        return true;
    while (at != NULL && (at = strstr(at, name)) != NULL) {
        if (at[len] == ' ' || at[len] == '\0')
            return true;
        at += len;
    }
    return false;
}

EXPORT CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR ppFunctionList);
#ifndef WITHOUT_INTERFACES
EXPORT CK_RV C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList, CK_ULONG_PTR pulCount);
EXPORT CK_RV C_GetInterface(CK_UTF8CHAR_PTR pInterfaceName, CK_VERSION_PTR pVersion,
                            CK_INTERFACE_PTR_PTR ppInterface, CK_FLAGS flags);
#endif

/* In a plain list, the functions are those of 2.40 whatever it says. */
static void fill(struct p11_functions *list, const char *said, bool is_plain)
{
    unsigned major = 2;
    unsigned minor = 40;
    sscanf(said, "%u.%u", &major, &minor);
    *list = major < 3 || is_plain ? list_240 : minor < 2 ? list_300 : list_302;
    list->version = (CK_VERSION){(CK_BYTE)major, (CK_BYTE)minor};
    list->C_GetFunctionList = C_GetFunctionList;
#define P11_UPTO 302
#define ROW(name, ...)                                                                             \
    if (is_without(#name))                                                                         \
        list->name = NULL;
#include "functions.def"
#ifndef WITHOUT_INTERFACES
    if (list->C_GetInterface != NULL)
        list->C_GetInterface = C_GetInterface;
    if (list->C_GetInterfaceList != NULL)
        list->C_GetInterfaceList = C_GetInterfaceList;
#endif
}

/* Right before a page that faults, so that a module that reads on because of the version crashes. */
static struct p11_functions *put_before_the_end(const struct p11_functions *list)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_NONE) != 0)
        abort();
    return memcpy(memory + page - PLAIN_BYTES, list, PLAIN_BYTES);
}

static struct p11_functions *plain;

EXPORT CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR ppFunctionList)
{
    struct p11_functions list;
    const char *said = script_now()->plain;
    if (ppFunctionList == NULL)
        return CKR_ARGUMENTS_BAD;
    if (plain == NULL) {
        fill(&list, said != NULL ? said : "2.40", /* is_plain= */ true);
        plain = put_before_the_end(&list);
    }
    *ppFunctionList = (CK_FUNCTION_LIST_PTR)plain;
    return CKR_OK;
}

__attribute__((destructor)) static void unmap_plain(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (plain != NULL)
        munmap((char *)plain + PLAIN_BYTES - page, 2 * page);
}

static struct p11_functions lists[INTERFACES_MOST];
static CK_ULONG interface_count;

/* What stands there afterwards says that it did its work, and does not. */
static CK_RV exchanged(CK_SESSION_HANDLE session, CK_SESSION_INFO_PTR info)
{
    (void)session;
    (void)info;
    return CKR_VENDOR_DEFINED;
}

void lists_change(void)
{
    if (plain != NULL)
        plain->C_GetSessionInfo = exchanged;
    for (CK_ULONG i = 0; i < interface_count; i++)
        lists[i].C_GetSessionInfo = exchanged;
}

#ifndef WITHOUT_INTERFACES
static CK_INTERFACE interfaces[INTERFACES_MOST];

/* What a vendor's list looks like is the vendor's business. */
static const char *const vendor_list[] = {"whatever the vendor likes"};

static void add_interface(const char *said)
{
    bool vendor = strcmp(said, "vendor") == 0;
    if (interface_count == INTERFACES_MOST)
        abort();
    fill(&lists[interface_count], said, /* is_plain= */ false);
    interfaces[interface_count] = (CK_INTERFACE){
        .pInterfaceName = (CK_UTF8CHAR_PTR)(vendor ? "Vendor scripted" : "PKCS 11"),
        .pFunctionList = vendor ? (void *)vendor_list : &lists[interface_count],
        .flags = !vendor && strpbrk(said, "0123456789") == said && strchr(said, 'f') != NULL
                     ? CKF_INTERFACE_FORK_SAFE
                     : 0};
    if (strcmp(said, "null-list") == 0)
        interfaces[interface_count].pFunctionList = NULL;
    if (strcmp(said, "null-name") == 0)
        interfaces[interface_count].pInterfaceName = NULL;
    interface_count++;
}

static void make_interfaces(void)
{
    const struct script *script = script_now();
    char *words = strdup(script->interfaces != NULL ? script->interfaces : "2.40");
    char *rest = NULL;
    if (words == NULL)
        abort();
    for (unsigned long i = 0; i < script->many_interfaces; i++)
        add_interface("vendor");
    for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        add_interface(word);
    free(words);
}

EXPORT CK_RV C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList, CK_ULONG_PTR pulCount)
{
    const struct script *script = script_now();
    if (pulCount == NULL)
        return CKR_ARGUMENTS_BAD;
    CK_ULONG room = *pulCount;
    if (interface_count == 0)
        make_interfaces();
    if (pInterfacesList == NULL || !script->count_as_passed)
        *pulCount = interface_count + (pInterfacesList != NULL ? script->count_lies : 0);
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
    if (interface->pInterfaceName == NULL || has == NULL)
        return false;
    if (name != NULL && strcmp((const char *)name, (const char *)interface->pInterfaceName) != 0)
        return false;
    if (version != NULL && (has->major != version->major || has->minor != version->minor))
        return false;
    return (interface->flags & flags) == flags;
}

EXPORT CK_RV C_GetInterface(CK_UTF8CHAR_PTR pInterfaceName, CK_VERSION_PTR pVersion,
                            CK_INTERFACE_PTR_PTR ppInterface, CK_FLAGS flags)
{
    if (ppInterface == NULL)
        return CKR_ARGUMENTS_BAD;
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
