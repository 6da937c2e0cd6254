/* registered.c - the modules that p11-kit gives to programs. */
#include "registered.h"

#include <fcntl.h>
#include <p11-kit/p11-kit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "token.h"

enum {
    ANSWER_S = 30,
    TOKENS_MOST = 64,
    TOKEN_ID_BYTES = 96 /* label, manufacturer, model and serial number, as CK_TOKEN_INFO begins */
};

struct question {
    struct registered *answer; /* in memory that the child shares */
    const char *module_path;
    const char *reference;
};

static bool is_file(CK_FUNCTION_LIST *module, const char *path)
{
    char *name = p11_kit_module_get_filename(module);
    struct stat a, b;
    bool is = name != NULL && stat(name, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
              a.st_ino == b.st_ino;
    free(name);
    return is;
}

/* The identities of the initialised tokens of a module. */
static size_t list_tokens(CK_FUNCTION_LIST *module, CK_TOKEN_INFO infos[TOKENS_MOST])
{
    CK_SLOT_ID slots[TOKENS_MOST];
    CK_ULONG slot_count = TOKENS_MOST;
    size_t count = 0;
    if (module == NULL || module->C_GetSlotList(CK_TRUE, slots, &slot_count) != CKR_OK)
        return 0;
    for (CK_ULONG i = 0; i < slot_count; i++)
        count += module->C_GetTokenInfo(slots[i], &infos[count]) == CKR_OK &&
                 (infos[count].flags & CKF_TOKEN_INITIALIZED) != 0;
    return count;
}

static void copy_option(char *out, CK_FUNCTION_LIST *module, const char *name)
{
    char *value = p11_kit_config_option(module, name);
    snprintf(out, NAMES_BYTES, "%s", value != NULL ? value : "");
    free(value);
}

/* A token of the module that is in wanted; NULL if there is none. */
static const CK_TOKEN_INFO *common_token(CK_FUNCTION_LIST *module, const CK_TOKEN_INFO *wanted,
                                         size_t wanted_count)
{
    static CK_TOKEN_INFO infos[TOKENS_MOST];
    size_t count = list_tokens(module, infos);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < wanted_count; j++) {
            if (memcmp(&infos[i], &wanted[j], TOKEN_ID_BYTES) == 0)
                return &infos[i];
        }
    }
    return NULL;
}

static void add_double(struct registered *answer, CK_FUNCTION_LIST *module,
                       const CK_TOKEN_INFO *token)
{
    size_t at = answer->double_count;
    char *name = p11_kit_module_get_name(module);
    if (at < DOUBLES_MOST && name != NULL) {
        snprintf(answer->doubles[at].name, NAME_MAX, "%s", name);
        copy_option(answer->doubles[at].disabled_in, module, "disable-in");
        if (token != NULL)
            token_text(answer->doubles[at].label, token->label, sizeof token->label);
        answer->double_count++;
    }
    free(name);
}

static void find(void *context)
{
    static CK_TOKEN_INFO wanted[TOKENS_MOST];
    const struct question *question = context;
    struct registered *answer = question->answer;
    int nowhere = open("/dev/null", O_WRONLY);
    CK_FUNCTION_LIST **modules, *reference = NULL;
    /* For what the modules print. */
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    setenv("P11_PROXY_LOG", "off", /* overwrite= */ 1);
    alarm(ANSWER_S);
    modules = p11_kit_modules_load_and_initialize(0);
    for (size_t i = 0; modules != NULL && modules[i] != NULL; i++) {
        if (is_file(modules[i], question->reference))
            reference = modules[i];
        answer->is_module = reference != NULL;
        if (!is_file(modules[i], question->module_path))
            continue;
        answer->has_proxy = true;
        copy_option(answer->disabled_in, modules[i], "disable-in");
    }
    if (reference == NULL && question->reference != question->module_path) {
        reference = p11_kit_module_load(question->reference, 0);
        answer->is_module = reference != NULL;
        if (reference != NULL && p11_kit_module_initialize(reference) != CKR_OK)
            reference = NULL;
    }
    answer->token_count = list_tokens(reference, wanted);
    for (size_t i = 0; modules != NULL && modules[i] != NULL; i++) {
        const CK_TOKEN_INFO *token = common_token(modules[i], wanted, answer->token_count);
        bool is_reference = is_file(modules[i], question->reference);
        if (!is_file(modules[i], question->module_path) && (is_reference || token != NULL))
            add_double(answer, modules[i], token);
    }
}

bool registered_find(struct registered *registered, const char *module_path, const char *reference)
{
    struct registered *answer =
        mmap(NULL, sizeof *answer, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct question question = {answer, module_path, reference};
    bool found = answer != MAP_FAILED && in_child(find, &question) == 0;
    *registered = found ? *answer : (struct registered){0};
    if (answer != MAP_FAILED)
        munmap(answer, sizeof *answer);
    return found;
}

void registered_folder(char folder[PATH_MAX], const struct config_places *places)
{
    enum config_user mode;
    struct message message;
    if (config_user_mode(&mode, places, &message) == 0 && mode != CONFIG_USER_NONE)
        snprintf(folder, PATH_MAX, "%.*s/modules", PATH_MAX - 16, places->user_config);
    else
        snprintf(folder, PATH_MAX, "%s", places->system_modules);
}
