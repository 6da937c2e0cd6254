/* users.c - two users of tokens in one program, each with a module of its own; says what each call answers.
 *
 *     users local|global|namespace MODULE-A MODULE-B STEP...
 *
 * A step is a user and what it does, for example Ai: i initializes, f finalizes, o opens a session, c closes it, l logs
 * in, d draws until a pool is warm, b draws much at once, h and m make digests with SHA-256 and MD5, t draws in four
 * threads, s asks for the session and its token, k forks a child that starts anew and exits, u unloads the module, which the next
 * step loads again. All modules that are used are loaded first: with RTLD_LOCAL, with RTLD_GLOBAL, or in a link
 * namespace of its own. Without steps they are read from standard input, one a line.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cryptoki.h"

enum { DRAWS = 100, THREADS = 4, LARGE_BYTES = 5000 };

struct user {
    const char *path;
    void *module;
    const CK_FUNCTION_LIST *fn; /* NULL while it is not loaded */
    CK_SESSION_HANDLE session;
};

static const char *mode;

static void load(struct user *user)
{
    int visible = strcmp(mode, "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
    CK_C_GetFunctionList get_list = NULL;
    CK_FUNCTION_LIST *list = NULL;
#ifdef LM_ID_NEWLM
    if (strcmp(mode, "namespace") == 0)
        user->module = dlmopen(LM_ID_NEWLM, user->path, RTLD_NOW);
    else
#endif
        user->module = dlopen(user->path, RTLD_NOW | visible);
    if (user->module != NULL)
        get_list = (CK_C_GetFunctionList)dlsym(user->module, "C_GetFunctionList");
    if (get_list == NULL || get_list(&list) != CKR_OK) {
        fprintf(stderr, "users: %s: %s\n", user->path,
                user->module == NULL ? dlerror() : "no list");
        exit(2);
    }
    user->fn = list;
}

static CK_RV open_session(struct user *user)
{
    CK_SLOT_ID slots[8] = {0};
    CK_ULONG count = 8;
    CK_RV rv = user->fn->C_GetSlotList(CK_TRUE, slots, &count);
    return rv != CKR_OK ? rv
                        : user->fn->C_OpenSession(slots[0], CKF_SERIAL_SESSION | CKF_RW_SESSION,
                                                  NULL, NULL, &user->session);
}

/* The first answer that is not CKR_OK. Zeros are as bad. Now and then one is large; between small ones is a moment, in
 * which the filler may run. */
static CK_RV draw(const struct user *user, CK_ULONG small_bytes, useconds_t moment_us)
{
    static const CK_BYTE zeros[32];
    CK_RV rv = CKR_OK;
    for (int i = 0; rv == CKR_OK && i < DRAWS; i++) {
        CK_BYTE bytes[LARGE_BYTES] = {0};
        rv = user->fn->C_GenerateRandom(user->session, bytes,
                                        i % 50 == 49 ? LARGE_BYTES : small_bytes);
        if (rv == CKR_OK && memcmp(bytes, zeros, sizeof zeros) == 0)
            return CKR_DEVICE_ERROR;
        if (i % 20 == 0)
            usleep(moment_us);
    }
    return rv;
}

/* With a session of its own. What it returns is NULL, or not if something failed. */
static void *draw_alone(void *of)
{
    struct user user = *(struct user *)of;
    return open_session(&user) == CKR_OK && draw(&user, 32, 1000) == CKR_OK &&
                   user.fn->C_CloseSession(user.session) == CKR_OK
               ? NULL
               : of;
}

/* In as many threads as can be made here. */
static CK_RV draw_in_threads(struct user *user)
{
    pthread_t threads[THREADS];
    CK_RV rv = CKR_OK;
    int made = 0;
    while (made < THREADS && pthread_create(&threads[made], NULL, draw_alone, user) == 0)
        made++;
    while (made-- > 0) {
        void *failed = NULL;
        pthread_join(threads[made], &failed);
        if (failed != NULL)
            rv = CKR_FUNCTION_FAILED;
    }
    return rv;
}

static CK_RV digest(const struct user *user, CK_MECHANISM_TYPE type)
{
    CK_MECHANISM mechanism = {.mechanism = type};
    CK_BYTE hash[32] = {0};
    CK_ULONG hash_bytes = sizeof hash;
    CK_RV rv = user->fn->C_DigestInit(user->session, &mechanism);
    return rv != CKR_OK ? rv : user->fn->C_Digest(user->session, hash, 5, hash, &hash_bytes);
}

static CK_RV ask(const struct user *user)
{
    CK_SESSION_INFO session;
    CK_TOKEN_INFO token;
    CK_RV rv = user->fn->C_GetSessionInfo(user->session, &session);
    return rv != CKR_OK ? rv : user->fn->C_GetTokenInfo(session.slotID, &token);
}

static void do_steps(struct user *user, const char *steps);

/* How the child ended, as waitpid() has it. Its last step is a burst, so that the module may be at work then. */
static CK_RV child_starts_anew(struct user *user)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        do_steps(user, "iohldtb");
        exit(0);
    }
    if (child > 0)
        waitpid(child, &status, 0);
    return (CK_RV)status;
}

static CK_RV step(struct user *user, char what)
{
    CK_C_INITIALIZE_ARGS args = {.flags = CKF_OS_LOCKING_OK};
    if (user->fn == NULL)
        load(user);
    switch (what) {
    case 'i':
        return user->fn->C_Initialize(&args);
    case 'f':
        return user->fn->C_Finalize(NULL);
    case 'o':
        return open_session(user);
    case 'c':
        return user->fn->C_CloseSession(user->session);
    case 'l':
        return user->fn->C_Login(user->session, CKU_USER, (CK_UTF8CHAR_PTR) "1234", 4);
    case 'd':
        return draw(user, 32, 1000);
    case 'b':
        return draw(user, 1000, 0);
    case 'h':
        return digest(user, CKM_SHA256);
    case 'm':
        return digest(user, CKM_MD5);
    case 't':
        return draw_in_threads(user);
    case 's':
        return ask(user);
    case 'k':
        return child_starts_anew(user);
    case 'u':
        user->fn = NULL;
        return (CK_RV)dlclose(user->module);
    default:
        abort();
    }
}

static void do_steps(struct user *user, const char *steps)
{
    for (; *steps != '\0' && *steps != '\n'; steps++) {
        printf("%c", *steps);
        fflush(stdout); /* a child must not print it again */
        printf(" 0x%lx\n", step(user, *steps));
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    char line[64];
    if (argc < 4)
        return 2;
    mode = argv[1];
    struct user users[2] = {{.path = argv[2]}, {.path = argv[3]}};
    for (char **text = argv + 4; *text != NULL; text++)
        if (users[**text == 'B'].fn == NULL)
            load(&users[**text == 'B']);
    for (char **text = argv + 4; *text != NULL; text++) {
        putchar(**text);
        do_steps(&users[**text == 'B'], *text + 1);
    }
    while (argc == 4 && fgets(line, sizeof line, stdin) != NULL) {
        putchar(line[0]);
        do_steps(&users[line[0] == 'B'], line + 1);
    }
    puts("end");
    return 0;
}
