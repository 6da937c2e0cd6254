/* target.c - loads the module that we forward to, and learns what it has. */
#include "target/target.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef CK_RV (*get_function_list)(CK_FUNCTION_LIST_PTR_PTR);
typedef CK_RV (*get_interface_list)(CK_INTERFACE_PTR, CK_ULONG_PTR);
typedef CK_RV (*get_interface)(CK_UTF8CHAR_PTR, CK_VERSION_PTR, CK_INTERFACE_PTR_PTR, CK_FLAGS);

/* More interfaces than any module has; a target that claims more is asked for its standard ones by name. */
enum { INTERFACES_MAX = 64 };

struct loaded {
    void *handle;
    char *path; /* that it was asked for by, NULL if out of memory */
    CK_FUNCTION_LIST *plain;
    get_interface_list list_interfaces;
    get_interface interface;
};

static struct loaded loaded;

/* All that were loaded, to be closed at the end. */
struct handle {
    void *handle;
    struct handle *earlier;
};

static struct handle *handles;

/* The start of the object that address lies in, NULL if none. */
static const void *object_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

/* A getter counts only if it is the target's own: dlsym() also finds those of the libraries that
 * the target is linked with. */
static void *own_symbol(void *handle, const char *name, const void *object)
{
    void *symbol = dlsym(handle, name);
    return symbol != NULL && object_of(symbol) == object ? symbol : NULL;
}

static bool is_standard(const CK_INTERFACE *interface)
{
    return interface->pInterfaceName != NULL && interface->pFunctionList != NULL &&
           strcmp((const char *)interface->pInterfaceName, "PKCS 11") == 0;
}

static unsigned version_of(const struct p11_functions *list)
{
    return list == NULL ? 0 : list->version.major * 100U + list->version.minor;
}

/* Of the target's standard interfaces the one with the highest version that we know. */
static const struct p11_functions *best_list(const struct loaded *from)
{
    const struct p11_functions *best = NULL;
    CK_INTERFACE interfaces[INTERFACES_MAX];
    CK_ULONG count = INTERFACES_MAX;
    if (from->list_interfaces == NULL || from->list_interfaces(interfaces, &count) != CKR_OK)
        count = 0;
    for (CK_ULONG i = 0; i < count && i < INTERFACES_MAX; i++)
        if (is_standard(&interfaces[i]) &&
            version_of(interfaces[i].pFunctionList) > version_of(best))
            best = interfaces[i].pFunctionList;

    CK_VERSION asked[] = {{3, 2}, {3, 1}, {3, 0}};
    CK_INTERFACE *one = NULL;
    for (size_t i = 0; best == NULL && from->interface != NULL && i < sizeof asked / sizeof *asked;
         i++)
        if (from->interface((CK_UTF8CHAR_PTR) "PKCS 11", &asked[i], &one, 0) == CKR_OK &&
            one != NULL && is_standard(one))
            best = one->pFunctionList;
    return best;
}

/* Takes over the first so many functions of a list, where it has them. lists.c checks how lists are laid out. */
static void take_over(struct p11_functions *table, const struct p11_functions *list, unsigned count)
{
    enum { VERSION = 1 }; /* which comes before them, in the room of one */
    void **to = (void **)table + VERSION;
    void *const *from = (void *const *)list + VERSION;
    for (unsigned i = 0; i < count; i++)
        if (from[i] != NULL)
            to[i] = from[i];
}

static void fill_table(const struct loaded *from)
{
    struct p11_functions table = not_in_target;
    const struct p11_functions *best = best_list(from);
    unsigned upto = version_of(best);

    /* Never past 2.40 in the plain list: there are modules whose list claims 3.2 and ends before. */
    take_over(&table, (const struct p11_functions *)from->plain, FUNCTIONS_2_40);
    if (best != NULL)
        take_over(&table, best,
                  upto >= 302   ? FUNCTIONS_3_2
                  : upto >= 300 ? FUNCTIONS_3_0
                                : FUNCTIONS_2_40);
    target = table;
}

static bool remember(void *handle)
{
    struct handle *one = malloc(sizeof *one);
    if (one == NULL)
        return false;
    *one = (struct handle){.handle = handle, .earlier = handles};
    handles = one;
    return true;
}

bool target_load(const char *path, char *message, size_t message_bytes)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *why = dlerror();
        snprintf(message, message_bytes, "the target cannot be loaded: %s",
                 why != NULL ? why : path);
        return false;
    }
    if (handle == loaded.handle) {
        dlclose(handle);
        return true;
    }
    struct loaded new = {.handle = handle};
    void *getter = dlsym(handle, "C_GetFunctionList");
    const void *object = getter != NULL ? object_of(getter) : NULL;
    if (getter == NULL) {
        snprintf(message, message_bytes,
                 "the target is no PKCS#11 module, it has no C_GetFunctionList: '%s'", path);
    } else if (object == object_of(&target)) {
        snprintf(message, message_bytes,
                 "the target is this proxy itself, where a token's module would be right: '%s'",
                 path);
    } else if (((get_function_list)getter)(&new.plain) != CKR_OK || new.plain == NULL) {
        snprintf(message, message_bytes,
                 "the target is no usable PKCS#11 module, its C_GetFunctionList fails: '%s'", path);
    } else if (!remember(handle)) {
        snprintf(message, message_bytes, "the target cannot be loaded: no memory");
    } else {
        new.list_interfaces = (get_interface_list)own_symbol(handle, "C_GetInterfaceList", object);
        new.interface = (get_interface)own_symbol(handle, "C_GetInterface", object);
        fill_table(&new);
        free(loaded.path);
        new.path = strdup(path);
        loaded = new;
        return true;
    }
    dlclose(handle);
    return false;
}

bool target_is_loaded_from(const char *path)
{
    return path != NULL && loaded.path != NULL && strcmp(path, loaded.path) == 0;
}

void target_unload(bool close)
{
    for (struct handle *one = handles, *earlier; one != NULL; one = earlier) {
        earlier = one->earlier;
        if (close)
            dlclose(one->handle);
        free(one);
    }
    free(loaded.path);
    loaded.path = NULL;
}

bool target_is_loaded(void)
{
    return loaded.handle != NULL;
}

const CK_FUNCTION_LIST *target_plain_list(void)
{
    return loaded.plain;
}

CK_RV (*target_interface_list(void))(CK_INTERFACE_PTR, CK_ULONG_PTR)
{
    return loaded.list_interfaces;
}

CK_RV (*target_interface(void))(CK_UTF8CHAR_PTR, CK_VERSION_PTR, CK_INTERFACE_PTR_PTR, CK_FLAGS)
{
    return loaded.interface;
}
