/* target.c - loads the module that calls are forwarded to, and learns what it has. */
#include "target/target.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef CK_RV (*get_function_list)(CK_FUNCTION_LIST_PTR_PTR);
typedef CK_RV (*get_interface_list)(CK_INTERFACE_PTR, CK_ULONG_PTR);
typedef CK_RV (*get_interface)(CK_UTF8CHAR_PTR, CK_VERSION_PTR, CK_INTERFACE_PTR_PTR, CK_FLAGS);

/* More interfaces than any module has: a target that claims more is believed so far. */
enum { INTERFACES_MAX = 1024 };

/* The one that is loaded. One that was loaded before stays so for good, because its code may be in use. */
static struct {
    void *handle; /* NULL: none */
    CK_INTERFACE *interfaces;
    size_t interfaces_count;
    get_interface interface;
    const struct p11_functions *lists[TARGET_LISTS]; /* the target's own */
} loaded;

/* The start of the object that address lies in, NULL if none. */
static const void *object_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

/* A getter counts only if it is the target's own, because dlsym() also finds those of the libraries that the
 * target is linked with. */
static void *own_symbol(void *handle, const char *name, const void *object)
{
    void *symbol = dlsym(handle, name);
    return symbol != NULL && object_of(symbol) == object ? symbol : NULL;
}

bool target_is_standard(const CK_INTERFACE *interface)
{
    return interface->pInterfaceName != NULL && interface->pFunctionList != NULL &&
           strcmp((const char *)interface->pInterfaceName, "PKCS 11") == 0;
}

/* Asked for the count first, and then with exactly that one: there are targets that copy all that they have, and
 * targets that leave the count as it was passed. */
static void learn_interfaces(get_interface_list list)
{
    CK_ULONG count = 0;
    if (list(NULL, &count) != CKR_OK || count == 0 || count > INTERFACES_MAX)
        return;
    CK_ULONG room = count;
    CK_INTERFACE *interfaces = calloc(room, sizeof *interfaces);
    if (interfaces == NULL)
        return;
    if (list(interfaces, &count) != CKR_OK) {
        free(interfaces);
        return;
    }
    loaded.interfaces = interfaces;
    loaded.interfaces_count = count < room ? count : room;
}

/* How many functions the target's list of that number has, by the version that it claims. */
static unsigned functions_of(unsigned number)
{
    CK_VERSION version = target_list_version(number);
    unsigned both = version.major * 100U + version.minor;
    return both >= 302 ? FUNCTIONS_3_2 : both >= 300 ? FUNCTIONS_3_0 : FUNCTIONS_2_40;
}

/* Fills our table of that number. A table is an array of functions behind its version; forward.c checks that. */
static void fill_list(unsigned number)
{
    enum { VERSION = 1 }; /* which takes the room of one function */
    void **to = (void **)&target_lists[number];
    void *const *none = (void *const *)&target_has_none;
    void *const *from = (void *const *)loaded.lists[number];
    unsigned count = from != NULL ? functions_of(number) : 0;
    for (unsigned i = VERSION; i < VERSION + FUNCTIONS_3_2; i++) {
        void *function = i < VERSION + count && from[i] != NULL ? from[i] : none[i];
        __atomic_store_n(&to[i], function, __ATOMIC_RELEASE);
    }
}

void target_refresh(void)
{
    for (unsigned i = 0; i < TARGET_LISTS; i++)
        if (loaded.lists[i] != NULL)
            fill_list(i);
}

unsigned target_list_number(const void *list)
{
    unsigned number = 0;
    while (number < TARGET_LISTS && loaded.lists[number] != NULL && loaded.lists[number] != list)
        number++;
    if (number < TARGET_LISTS && loaded.lists[number] == NULL) {
        loaded.lists[number] = list;
        fill_list(number);
    }
    return number;
}

CK_VERSION target_list_version(unsigned number)
{
    static const CK_VERSION none = {0, 0}, plain_most = {2, 40};
    const struct p11_functions *list = loaded.lists[number];
    if (list == NULL)
        return none;
    return number == 0 && list->version.major > 2 ? plain_most : list->version;
}

static void learn(void *handle, CK_FUNCTION_LIST *plain, const void *object)
{
    get_interface_list list = (get_interface_list)own_symbol(handle, "C_GetInterfaceList", object);
    free(loaded.interfaces);
    memset(&loaded, 0, sizeof loaded);
    loaded.handle = handle;
    loaded.interface = (get_interface)own_symbol(handle, "C_GetInterface", object);
    loaded.lists[0] = (const struct p11_functions *)plain;
    for (unsigned i = 0; i < TARGET_LISTS; i++)
        fill_list(i);
    if (list != NULL)
        learn_interfaces(list);
    for (size_t i = 0; i < loaded.interfaces_count; i++)
        if (target_is_standard(&loaded.interfaces[i]))
            target_list_number(loaded.interfaces[i].pFunctionList);
}

/* dlopen() would wait for a FIFO's other end. */
static bool is_regular_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool target_load(const char *path, char *message, size_t message_bytes)
{
    /* What was loaded once needs its file no more. */
    if (loaded.handle == NULL && !is_regular_file(path)) {
        snprintf(message, message_bytes, "the target is no file that can be loaded: '%s'", path);
        return false;
    }
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
    CK_FUNCTION_LIST *plain = NULL;
    get_function_list getter = (get_function_list)dlsym(handle, "C_GetFunctionList");
    const void *object = getter != NULL ? object_of(getter) : NULL;
    const char *wrong = NULL;
    if (getter == NULL)
        wrong = "is no PKCS#11 module, it has no C_GetFunctionList";
    else if (object == object_of(&target_lists))
        wrong = "is this proxy itself, where a token's module would be right";
    else if (getter(&plain) != CKR_OK || plain == NULL)
        wrong = "is no usable PKCS#11 module, its C_GetFunctionList fails";
    if (wrong != NULL) {
        snprintf(message, message_bytes, "the target %s: '%s'", wrong, path);
        dlclose(handle);
        return false;
    }
    learn(handle, plain, object);
    return true;
}

void target_unload(void)
{
    if (loaded.handle != NULL)
        dlclose(loaded.handle);
    free(loaded.interfaces);
}

bool target_is_loaded(void)
{
    return loaded.handle != NULL;
}

const CK_INTERFACE *target_interfaces(size_t *count)
{
    *count = loaded.interfaces_count;
    return loaded.interfaces;
}

get_interface target_get_interface(void)
{
    return loaded.interface;
}
