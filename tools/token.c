/* token.c - loads a PKCS#11 module and talks to it, as a small application would. */
#include "tool.h"

#include <dlfcn.h>
#include <p11-kit/p11-kit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef CK_RV token_get_list(CK_FUNCTION_LIST **list);

bool token_is_started(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    token_get_list *get =
        handle != NULL ? (token_get_list *)dlsym(handle, "C_GetFunctionList") : NULL;
    CK_FUNCTION_LIST *list;
    CK_INFO info;
    return get != NULL && get(&list) == CKR_OK && list->C_GetInfo(&info) == CKR_OK;
}

bool token_start(CK_FUNCTION_LIST **list, const char *path, const char *reserved, bool *locks,
                 struct message *message)
{
    CK_C_INITIALIZE_ARGS args = {.flags = CKF_OS_LOCKING_OK, .pReserved = (void *)reserved};
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    token_get_list *get =
        handle != NULL ? (token_get_list *)dlsym(handle, "C_GetFunctionList") : NULL;
    *list = NULL;
    if (handle == NULL)
        message_set(message, "cannot be loaded: %s", dlerror());
    else if (get == NULL)
        message_set(message, "is no PKCS#11 module: it has no C_GetFunctionList");
    if (get == NULL)
        return false;
    CK_RV rv = get(list);
    message_set(message, "is not usable: C_GetFunctionList answers %s", token_code(rv));
    if (rv != CKR_OK || *list == NULL)
        return false;
    rv = (*list)->C_Initialize(&args);
    *locks = rv != CKR_CANT_LOCK;
    args.flags = 0;
    if (!*locks)
        rv = (*list)->C_Initialize(&args);
    message_set(message, "does not start: C_Initialize answers %s", token_code(rv));
    return rv == CKR_OK;
}

CK_RV token_slots(CK_FUNCTION_LIST *list, CK_SLOT_ID slots[SLOTS_MOST], CK_ULONG *count)
{
    *count = SLOTS_MOST;
    CK_RV rv = list->C_GetSlotList(CK_TRUE, slots, count);
    if (rv != CKR_OK)
        *count = 0;
    return rv;
}

const char *token_code(CK_RV rv)
{
    static char text[128];
    snprintf(text, sizeof text, "0x%lx (%s)", rv, p11_kit_strerror(rv));
    return text;
}

void token_text(char *out, const CK_UTF8CHAR *text, size_t bytes)
{
    memcpy(out, text, bytes);
    while (bytes > 0 && (out[bytes - 1] == ' ' || out[bytes - 1] == '\0'))
        bytes--;
    out[bytes] = '\0';
    make_plain(out);
}

void *shared_memory(size_t bytes)
{
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, /* fd= */ -1, 0);
    if (memory == MAP_FAILED) {
        perror("p11-proxy");
        exit(EXIT_BAD);
    }
    return memory;
}

int in_child(void (*work)(void *), void *context)
{
    enum { RETURNED = 111 }; /* is no code of a module that ends the process */
    int status = -1;
    pid_t child;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        work(context);
        _exit(RETURNED); /* without the module's exit handlers */
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status == 0)
        return -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == RETURNED ? 0 : status;
}
