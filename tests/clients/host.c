/* host.c - a program with a token: loads a module in one of several ways, works with it, and says what each call
 * answered.
 *
 *     host MODULE [global|namespace]     RTLD_GLOBAL, or a link namespace of its own (dlmopen)
 *
 * It draws in four threads and in a child that starts anew, and ends with C_Finalize and dlclose().
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cryptoki.h"

enum { THREADS = 4, DRAWS = 300, LARGE_BYTES = 5000 };

static const CK_FUNCTION_LIST *fn;
static CK_SLOT_ID slot;

/* One line a step. What differs from run to run is not in it. */
static CK_RV say(const char *what, CK_RV rv)
{
    printf("%s 0x%lx\n", what, rv);
    fflush(stdout);
    return rv;
}

static CK_RV open_session(CK_SESSION_HANDLE *session)
{
    return fn->C_OpenSession(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, session);
}

/* The first answer that is not CKR_OK, or CKR_DEVICE_ERROR for bytes that are none. */
static CK_RV draw(CK_SESSION_HANDLE session, CK_ULONG len_bytes)
{
    static const CK_BYTE zeros[32];
    CK_BYTE bytes[LARGE_BYTES] = {0};
    CK_RV rv = fn->C_GenerateRandom(session, bytes, len_bytes);
    if (rv == CKR_OK && memcmp(bytes, zeros, sizeof zeros) == 0)
        return CKR_DEVICE_ERROR;
    return rv;
}

static void *draw_often(void *answer)
{
    CK_RV *rv = answer;
    CK_SESSION_HANDLE session;
    *rv = open_session(&session);
    for (int i = 0; *rv == CKR_OK && i < DRAWS; i++)
        *rv = draw(session, i % 100 == 99 ? LARGE_BYTES : 32);
    if (*rv == CKR_OK)
        *rv = fn->C_CloseSession(session);
    return NULL;
}

static void draw_in_threads(void)
{
    pthread_t threads[THREADS];
    CK_RV answers[THREADS];
    int started = 0;
    while (started < THREADS &&
           pthread_create(&threads[started], NULL, draw_often, &answers[started]) == 0)
        started++;
    printf("%d threads\n", started);
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        say("a thread's draws", answers[i]);
    }
}

/* A digest is an operation with a mechanism. */
static CK_RV digest(CK_SESSION_HANDLE session)
{
    CK_MECHANISM sha256 = {.mechanism = CKM_SHA256};
    CK_BYTE hash[32];
    CK_ULONG hash_bytes = sizeof hash;
    CK_RV rv = fn->C_DigestInit(session, &sha256);
    return rv == CKR_OK ? fn->C_Digest(session, (CK_BYTE_PTR) "hello", 5, hash, &hash_bytes) : rv;
}

static void work(void)
{
    CK_C_INITIALIZE_ARGS args = {.flags = CKF_OS_LOCKING_OK};
    CK_SLOT_ID slots[8];
    CK_ULONG count = 8;
    CK_SESSION_HANDLE session;
    say("C_Initialize", fn->C_Initialize(&args));
    if (say("C_GetSlotList", fn->C_GetSlotList(CK_TRUE, slots, &count)) == CKR_OK && count > 0)
        slot = slots[0];
    say("C_OpenSession", open_session(&session));
    say("a draw", draw(session, 32));
    say("a digest", digest(session));
    say("C_Login", fn->C_Login(session, CKU_USER, (CK_UTF8CHAR_PTR) "1234", 4));
    draw_in_threads();
}

static void *load(const char *path, const char *mode)
{
#ifdef LM_ID_NEWLM
    if (strcmp(mode, "namespace") == 0)
        return dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
#endif
    return dlopen(path, RTLD_NOW | (strcmp(mode, "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL));
}

int main(int argc, char **argv)
{
    CK_C_GetFunctionList get_list = NULL;
    CK_FUNCTION_LIST *list = NULL;
    void *module = argc > 1 ? load(argv[1], argc > 2 ? argv[2] : "") : NULL;
    if (module != NULL)
        get_list = (CK_C_GetFunctionList)dlsym(module, "C_GetFunctionList");
    if (get_list == NULL || get_list(&list) != CKR_OK) {
        fprintf(stderr, "host: %s\n", argc > 1 ? dlerror() : "usage: host MODULE [global|namespace]");
        return 2;
    }
    fn = list;
    work();
    pid_t child = fork();
    if (child == 0) {
        /* Tokens differ in what they say to a child that starts anew; they are to say it through the proxy too. */
        puts("a child");
        work();
        exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        printf("the child ended with %d\n", status);
    say("C_Finalize", fn->C_Finalize(NULL));
    puts(dlclose(module) == 0 ? "end" : "dlclose failed");
    return 0;
}
