/* users.c - two users of tokens in one program, each with a module of its own; says what each call answers.
 *
 *     users [global|namespace] MODULE-A MODULE-B STEP...
 *
 * A step is a user and what it does: Ai initializes, Af finalizes, Ao opens a session, Ac closes it, Al logs in,
 * Ad draws until a pool is warm, Ab draws much at once, Ah makes a digest, At draws in four threads, As asks for the
 * session, Ak forks a child that starts anew and exits, Au unloads the module, Ar loads it again. The modules that are
 * used are loaded first: with RTLD_GLOBAL after "global", and in a link namespace of its own after "namespace".
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cryptoki.h"

enum { DRAWS = 100, THREADS = 4, LARGE_BYTES = 5000 };

struct user {
    const char *path;
    void *module;
    const CK_FUNCTION_LIST *fn;
    CK_SESSION_HANDLE session;
};

static const char *mode = "";

static void load(struct user *user)
{
    CK_C_GetFunctionList get_list = NULL;
    CK_FUNCTION_LIST *list = NULL;
#ifdef LM_ID_NEWLM
    if (strcmp(mode, "namespace") == 0)
        user->module = dlmopen(LM_ID_NEWLM, user->path, RTLD_NOW);
    else
#endif
        user->module =
            dlopen(user->path, RTLD_NOW | (strcmp(mode, "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL));
    if (user->module != NULL)
        get_list = (CK_C_GetFunctionList)dlsym(user->module, "C_GetFunctionList");
    if (get_list == NULL || get_list(&list) != CKR_OK) {
        fprintf(stderr, "users: %s: %s\n", user->path,
                user->module == NULL ? dlerror() : "no list");
        exit(2);
    }
    user->fn = list;
}

static CK_RV open_session(const struct user *user, CK_SESSION_HANDLE *session)
{
    CK_SLOT_ID slots[8] = {0};
    CK_ULONG count = 8;
    CK_RV rv = user->fn->C_GetSlotList(CK_TRUE, slots, &count);
    if (rv != CKR_OK)
        return rv;
    return user->fn->C_OpenSession(slots[0], CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL,
                                   session);
}

/* The first answer that is not CKR_OK. Zeros are as bad. Now and then a draw is large, or late. */
static CK_RV draw(const struct user *user, CK_SESSION_HANDLE session)
{
    static const CK_BYTE zeros[32];
    static const struct timespec a_moment = {.tv_nsec = 1000 * 1000};
    for (int i = 0; i < DRAWS; i++) {
        CK_BYTE bytes[LARGE_BYTES] = {0};
        CK_RV rv = user->fn->C_GenerateRandom(session, bytes, i % 50 == 49 ? LARGE_BYTES : 32);
        if (rv != CKR_OK)
            return rv;
        if (memcmp(bytes, zeros, sizeof zeros) == 0)
            return CKR_DEVICE_ERROR;
        if (i % 20 == 0)
            nanosleep(&a_moment, NULL);
    }
    return CKR_OK;
}

/* At once, and for more than a pool holds at first. */
static CK_RV burst(const struct user *user)
{
    CK_BYTE bytes[1000];
    CK_RV rv = CKR_OK;
    for (int i = 0; rv == CKR_OK && i < DRAWS; i++)
        rv = user->fn->C_GenerateRandom(user->session, bytes, sizeof bytes);
    return rv;
}

struct worker {
    const struct user *user;
    pthread_t thread;
    CK_RV rv;
};

static void *draw_alone(void *argument)
{
    struct worker *worker = argument;
    CK_SESSION_HANDLE session;
    worker->rv = open_session(worker->user, &session);
    if (worker->rv == CKR_OK)
        worker->rv = draw(worker->user, session);
    if (worker->rv == CKR_OK)
        worker->rv = worker->user->fn->C_CloseSession(session);
    return NULL;
}

/* The first bad answer of any. Where no thread can be made, the draws are made without. */
static CK_RV draw_in_threads(const struct user *user)
{
    struct worker workers[THREADS];
    CK_RV rv = CKR_OK;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.user = user};
        if (pthread_create(&workers[i].thread, NULL, draw_alone, &workers[i]) != 0) {
            draw_alone(&workers[i]);
            workers[i].thread = pthread_self();
        }
    }
    for (int i = 0; i < THREADS; i++) {
        if (!pthread_equal(workers[i].thread, pthread_self()))
            pthread_join(workers[i].thread, NULL);
        if (rv == CKR_OK)
            rv = workers[i].rv;
    }
    return rv;
}

static CK_RV digest(const struct user *user)
{
    CK_MECHANISM sha256 = {.mechanism = CKM_SHA256};
    CK_BYTE hash[32];
    CK_ULONG hash_bytes = sizeof hash;
    CK_RV rv = user->fn->C_DigestInit(user->session, &sha256);
    if (rv != CKR_OK)
        return rv;
    return user->fn->C_Digest(user->session, (CK_BYTE_PTR) "hello", 5, hash, &hash_bytes);
}

static void do_step(struct user *user, const char *name);

/* Tokens differ in what they say to a child that starts anew. How it ended, as waitpid() has it. */
static CK_RV child_starts_anew(struct user *user)
{
    /* The last one is a burst, so that the module may be at work when the child ends. */
    static const char *const steps[] = {"i", "o", "h", "l", "d", "t", "b"};
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
            do_step(user, steps[i]);
        exit(0);
    }
    if (child > 0)
        waitpid(child, &status, 0);
    return (CK_RV)status;
}

static CK_RV step(struct user *user, char what)
{
    CK_C_INITIALIZE_ARGS args = {.flags = CKF_OS_LOCKING_OK};
    CK_SESSION_INFO info;
    switch (what) {
    case 'i':
        return user->fn->C_Initialize(&args);
    case 'f':
        return user->fn->C_Finalize(NULL);
    case 'o':
        return open_session(user, &user->session);
    case 'c':
        return user->fn->C_CloseSession(user->session);
    case 'l':
        return user->fn->C_Login(user->session, CKU_USER, (CK_UTF8CHAR_PTR) "1234", 4);
    case 'd':
        return draw(user, user->session);
    case 'b':
        return burst(user);
    case 'h':
        return digest(user);
    case 't':
        return draw_in_threads(user);
    case 's':
        return user->fn->C_GetSessionInfo(user->session, &info);
    case 'k':
        return child_starts_anew(user);
    case 'u':
        return (CK_RV)dlclose(user->module);
    case 'r':
        dlclose(user->module);
        load(user);
        return CKR_OK;
    default:
        fprintf(stderr, "users: what is '%c'?\n", what);
        exit(2);
    }
}

/* What differs from run to run is not printed. */
static void do_step(struct user *user, const char *name)
{
    printf("%s", name);
    fflush(stdout);
    printf(" 0x%lx\n", step(user, name[strlen(name) - 1]));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "global") == 0 || strcmp(argv[1], "namespace") == 0)) {
        mode = argv[1];
        argv++;
        argc--;
    }
    if (argc < 4) {
        fprintf(stderr, "usage: users [global|namespace] MODULE-A MODULE-B STEP...\n");
        return 2;
    }
    struct user users[2] = {{.path = argv[1]}, {.path = argv[2]}};
    bool is_used[2] = {false, false};
    for (int i = 3; i < argc; i++)
        is_used[argv[i][0] == 'B'] = true;
    for (int i = 0; i < 2; i++)
        if (is_used[i])
            load(&users[i]);
    for (int i = 3; i < argc; i++)
        do_step(&users[argv[i][0] == 'B'], argv[i]);
    puts("end");
    return 0;
}
