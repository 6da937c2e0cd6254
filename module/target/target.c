/* target.c - loads the module that calls are forwarded to, and learns what it has. */
#include "target/target.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* What answers where the target has no function, or where there is no target yet. */
#define ROW(name, ...)                                                                             \
    static CK_RV too_early_##name(PARAMS(__VA_ARGS__))                                             \
    {                                                                                              \
        return CKR_CRYPTOKI_NOT_INITIALIZED;                                                       \
    }                                                                                              \
    static CK_RV missing_##name(PARAMS(__VA_ARGS__))                                               \
    {                                                                                              \
        return CKR_FUNCTION_NOT_SUPPORTED;                                                         \
    }
#include "functions.def"

struct p11_functions target_lists[TARGET_LISTS] = {
    [0 ... TARGET_LISTS - 1] =
        {
#define ROW(name, ...) .name = too_early_##name,
#include "functions.def"
        },
};

static const struct p11_functions missing = {
#define ROW(name, ...) .name = missing_##name,
#include "functions.def"
};

enum { INTERFACES_MOST = 1024 };

struct target_loaded target_loaded;

/* The start of the object that address lies in, NULL if none. */
static const void *object_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

/* A getter counts only if it lies where C_GetFunctionList does, because dlsym() also finds those of the libraries that
 * the target is linked with. */
static void *own_symbol(void *handle, const char *name)
{
    void *symbol = dlsym(handle, name);
    return object_of(symbol) == object_of(dlsym(handle, "C_GetFunctionList")) ? symbol : NULL;
}

bool target_is_standard(const CK_INTERFACE *interface)
{
    return interface->pInterfaceName != NULL && interface->pFunctionList != NULL &&
           strcmp((const char *)interface->pInterfaceName, "PKCS 11") == 0;
}

CK_VERSION target_list_version(unsigned number)
{
    const struct p11_functions *list = target_loaded.lists[number];
    unsigned major = list != NULL ? list->version.major : 0;
    return major == 0 || (number == 0 && major > 2) ? (CK_VERSION){2, 40} : list->version;
}

/* Fills our table of that number. A table is an array of functions behind its version; forward.c checks that. */
static void fill_list(unsigned number)
{
    CK_VERSION version = target_list_version(number);
    unsigned both = version.major * 100U + version.minor;
    unsigned count = both >= 302 ? FUNCTIONS_3_2 : both >= 300 ? FUNCTIONS_3_0 : FUNCTIONS_2_40;
    void **to = (void **)&target_lists[number];
    void *const *none = (void *const *)&missing;
    void *const *from = (void *const *)target_loaded.lists[number];
    for (unsigned i = 1; i <= FUNCTIONS_3_2; i++) {
        void *function = from != NULL && i <= count && from[i] != NULL ? from[i] : none[i];
        __atomic_store_n(&to[i], function, __ATOMIC_RELEASE);
    }
}

void target_refresh(void)
{
    for (unsigned i = 0; i < TARGET_LISTS; i++)
        fill_list(i);
}

unsigned target_list_number(const void *list)
{
    unsigned number = 0;
    while (number < TARGET_LISTS && target_loaded.lists[number] != NULL &&
           target_loaded.lists[number] != list)
        number++;
    if (number < TARGET_LISTS && target_loaded.lists[number] == NULL) {
        target_loaded.lists[number] = list;
        fill_list(number);
    }
    return number;
}

/* The interfaces are asked for their count first, and then with exactly that one: there are targets that copy all that
 * they have, and targets that leave the count as it was passed. More than any module has is not believed. */
static void learn(void *handle, CK_FUNCTION_LIST *plain)
{
    __typeof__(missing.C_GetInterfaceList) list = own_symbol(handle, "C_GetInterfaceList");
    CK_ULONG count = 0;
    free(target_loaded.interfaces);
    target_loaded = (struct target_loaded){.handle = handle,
                                           .interface = own_symbol(handle, "C_GetInterface"),
                                           .lists = {(const struct p11_functions *)plain}};
    target_refresh();
    if (list == NULL || list(NULL, &count) != CKR_OK || count == 0 || count > INTERFACES_MOST)
        return;
    CK_ULONG room = count;
    CK_INTERFACE *interfaces = target_loaded.interfaces = calloc(room, sizeof *interfaces);
    if (interfaces == NULL || list(interfaces, &count) != CKR_OK)
        return;
    target_loaded.interfaces_count = count < room ? count : room;
    for (size_t i = 0; i < target_loaded.interfaces_count; i++)
        if (target_is_standard(&interfaces[i]))
            target_list_number(interfaces[i].pFunctionList);
}

bool target_load(const char *path, struct message *message)
{
    CK_FUNCTION_LIST *plain = NULL;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        message_set(message, "the target cannot be loaded: %s", dlerror());
        return false;
    }
    if (handle == target_loaded.handle) {
        dlclose(handle);
        return true;
    }
    CK_C_GetFunctionList getter = (CK_C_GetFunctionList)dlsym(handle, "C_GetFunctionList");
    bool is_own = getter != NULL && object_of(getter) == object_of(&target_lists);
    if (getter == NULL || is_own || getter(&plain) != CKR_OK || plain == NULL) {
        message_set(message, "the target is %s: '%s'",
                    is_own ? "this proxy itself, where a token's module would be right"
                           : "no PKCS#11 module, its C_GetFunctionList is missing or fails",
                    path);
        dlclose(handle);
        return false;
    }
    learn(handle, plain);
    return true;
}

void target_unload(void)
{
    if (target_loaded.handle != NULL)
        dlclose(target_loaded.handle);
    free(target_loaded.interfaces);
}
