/* lists.c - the scripted target's functions, in three lists, and the interfaces that a script names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target.h"

enum { INTERFACES_MOST = 128 };

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

#define EXPORT __attribute__((visibility("default")))
#ifdef WITHOUT_INTERFACES
#define EXPORT_UNLESS_PLAIN
#else
#define EXPORT_UNLESS_PLAIN EXPORT
#endif
EXPORT CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR ppFunctionList);
EXPORT_UNLESS_PLAIN CK_RV C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList,
                                             CK_ULONG_PTR pulCount);
EXPORT_UNLESS_PLAIN CK_RV C_GetInterface(CK_UTF8CHAR_PTR pInterfaceName, CK_VERSION_PTR pVersion,
                                         CK_INTERFACE_PTR_PTR ppInterface, CK_FLAGS flags);

/* What functions.def says of a call. */
#define NOTE_CALL()           .part = NO_PART
#define NOTE_SEED()           .part = NO_PART
#define NOTE_LOGIN(user_type) .part = NO_PART
#define NOTE_MECH(what_for, ...)                                                                   \
    .part = BEGINS, .purpose = (what_for)&OPERATIONS, .mechanism = pMechanism, .with = {__VA_ARGS__}
#define NOTE_EDIT(object, template, count) .part = CHANGES
#define NOTE_STEP(gives)                   .part = TAKES, .output = (gives)
#define NOTE_DATA(what_for, bytes, count, gives)                                                   \
    .part = TAKES, .purpose = (what_for), .output = (gives),                                       \
    .with = {.data = (bytes), .data_bytes = (count)}

/* in_240_C_Sign() and so on. */
#define VALUE(pair)              VALUE_ pair
#define VALUE_(type, n)          (uintptr_t)(n)
#define NAME_OF_FIRST(pair, ...) NAME_OF_ pair
#define NAME_OF_(type, n)        #n
#define PASTE(a, b, c)           PASTE_(a, b, c)
#define PASTE_(a, b, c)          a##_##b##_##c
#define IN(name)                 PASTE(in, VERSION, name)
#define DEFINE(name, note, ...)                                                                    \
    static CK_RV IN(name)(PARAMS(__VA_ARGS__))                                                     \
    {                                                                                              \
        return target_call(&(struct call){.seen = {.function = FUNCTION_##name,                    \
                                                   .list = VERSION,                                \
                                                   .arguments = {P11_EACH(VALUE, __VA_ARGS__)}},   \
                                          .subject = NAME_OF_FIRST(__VA_ARGS__, ),                 \
                                          note});                                                  \
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

static bool is_among(const char *name, const char *names)
{
    size_t len = strlen(name);
    for (const char *at = names; at != NULL && (at = strstr(at, name)) != NULL; at += len)
        if (at[len] == ' ' || at[len] == '\0')
            return true;
    return false;
}

/* In a plain list, the functions are those of 2.40 whatever it says. */
static void fill(struct p11_functions *list, const char *said, bool is_plain)
{
    unsigned major = 2;
    unsigned minor = 40;
    const char *without = script_now()->without;
    bool without_all = is_among("all", without);
    sscanf(said, "%u.%u", &major, &minor);
    *list = major < 3 || is_plain ? list_240 : minor < 2 ? list_300 : list_302;
    list->version = (CK_VERSION){(CK_BYTE)major, (CK_BYTE)minor};
#define P11_UPTO 302
#define ROW(name, ...)                                                                             \
    if (without_all || is_among(#name, without))                                                   \
        list->name = NULL;
#include "functions.def"
    list->C_GetFunctionList = C_GetFunctionList;
    if (list->C_GetInterface != NULL)
        list->C_GetInterface = C_GetInterface;
    if (list->C_GetInterfaceList != NULL)
        list->C_GetInterfaceList = C_GetInterfaceList;
}

/* Right before a page that faults, so that a module that reads on because of the version crashes. */
static struct p11_functions *make_plain(void)
{
    const char *said = script_now()->plain;
    size_t plain_bytes = (FUNCTIONS_2_40 + 1) * sizeof(void *);
    struct p11_functions list;
    char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + PAGE, PAGE, PROT_NONE) != 0)
        abort();
    fill(&list, said != NULL ? said : "2.40", /* is_plain= */ true);
    return memcpy(memory + PAGE - plain_bytes, &list, plain_bytes);
}

static struct p11_functions *plain;

EXPORT CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR ppFunctionList)
{
    if (ppFunctionList == NULL)
        return CKR_ARGUMENTS_BAD;
    if (plain == NULL)
        plain = make_plain();
    *ppFunctionList = (CK_FUNCTION_LIST_PTR)plain;
    return CKR_OK;
}

__attribute__((destructor)) static void unmap_plain(void)
{
    if (plain != NULL)
        munmap((void *)((uintptr_t)plain / PAGE * PAGE), 2 * PAGE);
}

static struct p11_functions lists[INTERFACES_MOST];
static CK_INTERFACE interfaces[INTERFACES_MOST];
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

/* What a vendor's list looks like is the vendor's business. */
static void add_interface(const char *said)
{
    static const char *const vendor_list[] = {"whatever the vendor likes"};
    bool is_vendor = strcmp(said, "vendor") == 0;
    bool is_named = strcmp(said, "null-name") != 0;
    bool has_list = strcmp(said, "null-list") != 0;
    if (interface_count == INTERFACES_MOST)
        abort();
    void *list = is_vendor ? (void *)vendor_list : &lists[interface_count];
    fill(&lists[interface_count], said, /* is_plain= */ false);
    interfaces[interface_count++] =
        (CK_INTERFACE){.pInterfaceName = (CK_UTF8CHAR_PTR)(is_vendor  ? "Vendor scripted"
                                                           : is_named ? "PKCS 11"
                                                                      : NULL),
                       .pFunctionList = has_list ? list : NULL,
                       .flags = said[strlen(said) - 1] == 'f' ? CKF_INTERFACE_FORK_SAFE : 0};
}

static void make_interfaces(void)
{
    const struct script *script = script_now();
    char words[SCRIPT_BYTES];
    char *rest = NULL;
    if (interface_count != 0)
        return;
    strcpy(words, script->interfaces != NULL ? script->interfaces : "2.40");
    for (unsigned long i = 0; i < script->many_interfaces; i++)
        add_interface("vendor");
    for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        add_interface(word);
}

CK_RV C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList, CK_ULONG_PTR pulCount)
{
    const struct script *script = script_now();
    if (pulCount == NULL)
        return CKR_ARGUMENTS_BAD;
    CK_ULONG room = *pulCount;
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

CK_RV C_GetInterface(CK_UTF8CHAR_PTR pInterfaceName, CK_VERSION_PTR pVersion,
                     CK_INTERFACE_PTR_PTR ppInterface, CK_FLAGS flags)
{
    if (ppInterface == NULL)
        return CKR_ARGUMENTS_BAD;
    make_interfaces();
    for (CK_ULONG i = 0; i < interface_count; i++)
        if (fits(&interfaces[i], pInterfaceName, pVersion, flags)) {
            *ppInterface = &interfaces[i];
            return CKR_OK;
        }
    return CKR_FUNCTION_FAILED;
}
