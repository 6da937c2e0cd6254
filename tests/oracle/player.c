/* player.c - calls one module as a script says, and writes what came of each call.
 *
 *     player MODULE SCRIPT [RESERVED]
 *
 * A line of a script is a function and its arguments, NAME=VALUE as value.h has them:
 *     C_OpenSession slotID=slot0 flags=4 pApplication=0 Notify=0 phSession=&s1
 * or "slots", which learns the slots, "interfaces", "pause MS", or "reload", which closes the module and loads it
 * again. Each becomes one line of output, written at once: a module that crashes shows where. RESERVED stands in
 * pReserved of the structures for C_Initialize.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "value.h"
#include "functions.h"

enum { HANG_S = 60, LINE_MAX_LEN = 32768 };

static void *module;
static const struct p11_functions *fn;
static size_t fn_size; /* how much of it the module has */

static struct value arguments[ARGUMENTS_MAX];
static size_t argument_count;

static unsigned long argument(const char *name)
{
    for (size_t i = 0; i < argument_count; i++)
        if (strcmp(arguments[i].name, name) == 0)
            return arguments[i].word;
    fprintf(stderr, "player: a call lacks %s\n", name);
    exit(2);
}

#define GIVEN(pair)  GIVEN_ pair
#define GIVEN_(t, n) (t) argument(#n)
#define ROW(name, ...)                                                                             \
    static CK_RV call_##name(void)                                                                 \
    {                                                                                              \
        return fn->name(P11_EACH(GIVEN, __VA_ARGS__));                                             \
    }
#define P11_UPTO 302
#include "functions.def"

static const struct {
    const char *name;
    CK_RV (*call)(void);
    size_t offset;
} calls[] = {
#define ROW(name, ...) {#name, call_##name, offsetof(struct p11_functions, name)},
#define P11_UPTO       302
#include "functions.def"
};

/* The newest list that we know, through the one getter or the other. */
static bool find_list(void)
{
    static const struct {
        CK_VERSION version;
        size_t functions;
    } newest_first[] = {{{3, 2}, FUNCTIONS_3_2}, {{3, 0}, FUNCTIONS_3_0}};
    CK_RV (*get_interface)(CK_UTF8CHAR *, CK_VERSION *, CK_INTERFACE **, CK_FLAGS);
    CK_RV (*get_list)(const struct p11_functions **);
    *(void **)&get_interface = dlsym(module, "C_GetInterface");
    *(void **)&get_list = dlsym(module, "C_GetFunctionList");
    for (int i = 0; i < 2 && get_interface != NULL; i++) {
        CK_VERSION wanted = newest_first[i].version;
        CK_INTERFACE *interface = NULL;
        if (get_interface((CK_UTF8CHAR *)"PKCS 11", &wanted, &interface, 0) != CKR_OK)
            continue;
        fn = interface->pFunctionList;
        fn_size = (newest_first[i].functions + 1) * sizeof(void *);
        if (fn->version.major == wanted.major && fn->version.minor == wanted.minor)
            return true;
    }
    fn_size = (FUNCTIONS_2_40 + 1) * sizeof(void *);
    return get_list != NULL && get_list(&fn) == CKR_OK;
}

static void load(const char *path)
{
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        fprintf(stderr, "player: %s\n", dlerror());
        exit(2);
    }
    if (!find_list()) {
        fprintf(stderr, "player: %s has no list of functions\n", path);
        exit(2);
    }
    printf("list %u.%u\n", fn->version.major, fn->version.minor);
}

/* All that the module offers, and what it says to a request for each and for some that no module offers. */
static void show_interfaces(void)
{
    CK_INTERFACE offered[32];
    CK_ULONG count = 32;
    CK_FUNCTION_LIST *plain = NULL;
    CK_RV rv = fn->C_GetInterfaceList(offered, &count);
    CK_INTERFACE *found;
    printf("interfaces 0x%lx 0x%lx", fn->C_GetFunctionList(&plain), rv);
    printf(" %u.%u", plain->version.major, plain->version.minor);
    for (CK_ULONG i = 0; rv == CKR_OK && i < count; i++) {
        CK_VERSION *version = offered[i].pFunctionList;
        CK_RV asked =
            fn->C_GetInterface(offered[i].pInterfaceName, version, &found, offered[i].flags);
        printf(" '%s',%u.%u,%lx,0x%lx", (char *)offered[i].pInterfaceName, version->major,
               version->minor, offered[i].flags, asked);
    }
    for (unsigned minor = 0; minor < 50; minor += 10)
        for (unsigned major = 2; major <= 4; major++)
            for (CK_FLAGS flags = 0; flags < 3; flags++) {
                CK_VERSION version = {(CK_BYTE)major, (CK_BYTE)minor};
                printf(" 0x%lx",
                       fn->C_GetInterface((CK_UTF8CHAR *)"PKCS 11", &version, &found, flags));
            }
    printf(" 0x%lx", fn->C_GetInterface(NULL, NULL, &found, 0));
    printf(" 0x%lx\n", fn->C_GetInterface((CK_UTF8CHAR *)"Vendor", NULL, &found, 0));
}

static void learn_slots(void)
{
    CK_SLOT_ID slots[32] = {0};
    CK_ULONG count = 32;
    CK_RV rv = fn->C_GetSlotList(CK_FALSE, slots, &count);
    printf("slots 0x%lx", rv);
    if (rv == CKR_OK) {
        values_learn_slots(slots, count);
        for (CK_ULONG i = 0; i < count; i++)
            printf(" %lx", slots[i]);
    }
    putchar('\n');
}

static void pause_ms(const char *ms)
{
    struct timespec time = {.tv_nsec = strtol(ms, NULL, 10) * 1000000};
    nanosleep(&time, NULL);
    puts("pause");
}

static void parse(char *rest)
{
    argument_count = 0;
    for (char *word = strtok(rest, " "); word != NULL; word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        if (equals == NULL || argument_count == ARGUMENTS_MAX) {
            fprintf(stderr, "player: what is '%s'?\n", word);
            exit(2);
        }
        struct value *value = &arguments[argument_count++];
        memset(value, 0, sizeof *value);
        *equals = '\0';
        snprintf(value->name, sizeof value->name, "%s", word);
        snprintf(value->text, sizeof value->text, "%s", equals + 1);
    }
    for (size_t i = 0; i < argument_count; i++)
        value_make(&arguments[i]);
}

static void play(const char *function)
{
    size_t i = 0;
    while (i < sizeof calls / sizeof *calls && strcmp(calls[i].name, function) != 0)
        i++;
    if (i == sizeof calls / sizeof *calls) {
        fprintf(stderr, "player: no function '%s'\n", function);
        exit(2);
    }
    void *member = NULL;
    if (calls[i].offset < fn_size)
        memcpy(&member, (const char *)fn + calls[i].offset, sizeof member);
    if (member == NULL) {
        printf("%s absent\n", function);
        return;
    }
    printf("%s", function);
    fflush(stdout);
    CK_RV rv = calls[i].call();
    printf(" 0x%lx", rv);
    /* The time of day is in a token's information. */
    if (strcmp(function, "C_GetTokenInfo") == 0 && arguments[1].block_len >= sizeof(CK_TOKEN_INFO))
        memset(((CK_TOKEN_INFO *)arguments[1].block)->utcTime, 0, 16);
    for (size_t a = 0; a < argument_count; a++)
        value_show(&arguments[a], a + 1 < argument_count ? &arguments[a + 1] : NULL, rv, stdout);
    putchar('\n');
}

int main(int argc, char **argv)
{
    static char line[LINE_MAX_LEN];
    if (argc < 3) {
        fprintf(stderr, "usage: player MODULE SCRIPT [RESERVED]\n");
        return 2;
    }
    init_reserved = argc > 3 ? argv[3] : NULL;
    setvbuf(stdout, NULL, _IOLBF, LINE_MAX_LEN);
    alarm(HANG_S);
    load(argv[1]);
    FILE *script = fopen(argv[2], "re");
    while (script != NULL && fgets(line, sizeof line, script) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *rest = line + strcspn(line, " ");
        if (*rest != '\0')
            *rest++ = '\0';
        if (*line == '\0' || *line == '#')
            continue;
        if (strcmp(line, "slots") == 0)
            learn_slots();
        else if (strcmp(line, "interfaces") == 0 && fn_size > (FUNCTIONS_2_40 + 1) * sizeof(void *))
            show_interfaces();
        else if (strcmp(line, "interfaces") == 0)
            puts("no interfaces");
        else if (strcmp(line, "pause") == 0)
            pause_ms(rest);
        else if (strcmp(line, "reload") == 0) {
            printf("reload ");
            dlclose(module);
            load(argv[1]);
        } else {
            parse(rest);
            play(line);
        }
    }
    puts("end");
    return 0;
}
