/* token.c - loads a PKCS#11 module and talks to it, as a small application would. */
#include "token.h"
#include "tool.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What dlsym() finds in a library that the module is linked with is not the module's. */
static bool are_of_one_file(const void *a, const void *b)
{
    Dl_info of_a, of_b;
    return dladdr(a, &of_a) != 0 && dladdr(b, &of_b) != 0 && of_a.dli_fbase == of_b.dli_fbase;
}

int token_load(struct token_module *module, const char *path, struct message *message)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CK_RV rv;
    if (handle == NULL) {
        message_set(message, "cannot be loaded: %s", dlerror());
        return -EINVAL;
    }
    token_get_list *get = (token_get_list *)dlsym(handle, "C_GetFunctionList");
    if (get == NULL) {
        message_set(message, "is no PKCS#11 module: it has no C_GetFunctionList");
        return -EINVAL;
    }
    *module = (struct token_module){0};
    rv = get(&module->list);
    if (rv != CKR_OK || module->list == NULL) {
        message_set(message, "is not usable: C_GetFunctionList answers %s", token_code(rv));
        return -EINVAL;
    }
    void *interfaces = dlsym(handle, "C_GetInterfaceList");
    if (interfaces != NULL && are_of_one_file(interfaces, (void *)get))
        module->interfaces = (token_get_interfaces *)interfaces;
    return 0;
}

bool token_is_started(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    token_get_list *get =
        handle != NULL ? (token_get_list *)dlsym(handle, "C_GetFunctionList") : NULL;
    CK_FUNCTION_LIST *list;
    CK_INFO info;
    return get != NULL && get(&list) == CKR_OK && list->C_GetInfo(&info) == CKR_OK;
}

CK_RV token_start(const struct token_module *module, const char *reserved, bool *locks)
{
    CK_C_INITIALIZE_ARGS args = {.flags = CKF_OS_LOCKING_OK, .pReserved = (void *)reserved};
    CK_RV rv = module->list->C_Initialize(&args);
    *locks = rv != CKR_CANT_LOCK;
    args.flags = 0;
    return *locks ? rv : module->list->C_Initialize(&args);
}

const char *token_code(CK_RV rv)
{
    static const struct {
        CK_RV code;
        const char *name;
    } names[] = {
#define CODE(name) {name, #name}
        CODE(CKR_OK),
        CODE(CKR_HOST_MEMORY),
        CODE(CKR_GENERAL_ERROR),
        CODE(CKR_FUNCTION_FAILED),
        CODE(CKR_ARGUMENTS_BAD),
        CODE(CKR_NEED_TO_CREATE_THREADS),
        CODE(CKR_CANT_LOCK),
        CODE(CKR_DEVICE_ERROR),
        CODE(CKR_DEVICE_MEMORY),
        CODE(CKR_DEVICE_REMOVED),
        CODE(CKR_FUNCTION_NOT_SUPPORTED),
        CODE(CKR_SESSION_COUNT),
        CODE(CKR_TOKEN_NOT_PRESENT),
        CODE(CKR_TOKEN_NOT_RECOGNIZED),
        CODE(CKR_USER_NOT_LOGGED_IN),
        CODE(CKR_RANDOM_NO_RNG),
        CODE(CKR_CRYPTOKI_NOT_INITIALIZED),
#undef CODE
    };
    static char number[24];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].code == rv)
            return names[i].name;
    }
    snprintf(number, sizeof number, "0x%lx", rv);
    return number;
}

void token_text(char *out, const CK_UTF8CHAR *text, size_t bytes)
{
    memcpy(out, text, bytes);
    while (bytes > 0 && (out[bytes - 1] == ' ' || out[bytes - 1] == '\0'))
        bytes--;
    out[bytes] = '\0';
    make_plain(out);
}

int in_child(child_work *work, void *context)
{
    int status = -1;
    pid_t child;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        work(context);
        _exit(0); /* without the module's exit handlers */
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}
