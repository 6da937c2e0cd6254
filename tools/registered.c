/* registered.c - the modules that p11-kit gives to programs. */
#include "tool.h"

#include <p11-kit/p11-kit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ANSWER_S = 30,
    TOKEN_ID_BYTES = 96 /* label, manufacturer, model and serial number, as CK_TOKEN_INFO begins */
};

/* For the child. */
struct question {
    const char *module_path, *target;
    struct registered *answer; /* in memory that it shares */
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
static size_t list_tokens(CK_FUNCTION_LIST *module, CK_TOKEN_INFO infos[SLOTS_MOST])
{
    CK_SLOT_ID slots[SLOTS_MOST];
    CK_ULONG slot_count = 0;
    size_t count = 0;
    if (module != NULL)
        token_slots(module, slots, &slot_count);
    for (CK_ULONG i = 0; i < slot_count; i++)
        count += module->C_GetTokenInfo(slots[i], &infos[count]) == CKR_OK &&
                 (infos[count].flags & CKF_TOKEN_INITIALIZED) != 0;
    return count;
}

static bool has_one_of(CK_FUNCTION_LIST *module, const CK_TOKEN_INFO *wanted, size_t wanted_count)
{
    static CK_TOKEN_INFO infos[SLOTS_MOST];
    size_t count = list_tokens(module, infos);
    for (size_t i = 0; i < count * wanted_count; i++) {
        if (memcmp(&infos[i / wanted_count], &wanted[i % wanted_count], TOKEN_ID_BYTES) == 0)
            return true;
    }
    return false;
}

static void find(void *context)
{
    const struct question *asked = context;
    struct registered *answer = asked->answer;
    static CK_TOKEN_INFO wanted[SLOTS_MOST];
    const char *path = asked->target != NULL ? asked->target : asked->module_path;
    CK_FUNCTION_LIST **modules, *reference = NULL;
    bool is_quiet = freopen("/dev/null", "w", stderr) != NULL &&
                    freopen("/dev/null", "w", stdout) != NULL &&
                    setenv("P11_PROXY_LOG", "off", /* overwrite= */ 1) == 0;
    alarm(ANSWER_S);
    modules = is_quiet ? p11_kit_modules_load_and_initialize(0) : NULL;
    for (size_t i = 0; modules != NULL && modules[i] != NULL; i++) {
        answer->has_proxy |= is_file(modules[i], asked->module_path);
        if (is_file(modules[i], path))
            reference = modules[i];
    }
    answer->is_module = reference != NULL;
    if (reference == NULL && asked->target != NULL) {
        reference = p11_kit_module_load(path, 0);
        answer->is_module = reference != NULL;
        if (reference != NULL && p11_kit_module_initialize(reference) != CKR_OK)
            reference = NULL;
    }
    size_t wanted_count = list_tokens(reference, wanted);
    for (size_t i = 0; modules != NULL && modules[i] != NULL; i++) {
        bool is_double = !is_file(modules[i], asked->module_path) &&
                         (modules[i] == reference || has_one_of(modules[i], wanted, wanted_count));
        if (is_double && answer->double_count < DOUBLES_MOST) {
            char *name = p11_kit_module_get_name(modules[i]);
            snprintf(answer->doubles[answer->double_count++], NAME_MAX, "%s", name);
            free(name);
        }
    }
}

bool registered_find(struct registered *registered, const char *module_path, const char *target)
{
    struct registered *answer = shared_memory(sizeof *answer);
    struct question question = {module_path, target, answer};
    bool found = in_child(find, &question) == 0;
    *registered = found ? *answer : (struct registered){0};
    return found;
}

void registered_folder(char folder[PATH_MAX], const struct config_places *places)
{
    bool has_own = places->user_config[0] != '\0';
    snprintf(folder, PATH_MAX, "%.*s%s", PATH_MAX - 16,
             has_own ? places->user_config : places->system_modules, has_own ? "/modules" : "");
}
