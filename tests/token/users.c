/* users.c - two users of tokens in one program, each with a module of its own; says what each call answers.
 *
 *     users MODULE-A MODULE-B STEP...
 *
 * A step is a user and what it does: Ai initializes, Af finalizes, Ao opens a session, Ac closes it, Al logs in,
 * Ad draws until a pool is warm, As asks for the session. "global" before all loads both with RTLD_GLOBAL.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cryptoki.h"

enum { DRAWS = 100 };

struct user {
    const CK_FUNCTION_LIST *fn;
    CK_SESSION_HANDLE session;
};

static CK_FUNCTION_LIST *load(const char *path, int flags)
{
    CK_C_GetFunctionList get_list = NULL;
    CK_FUNCTION_LIST *list = NULL;
    void *module = dlopen(path, RTLD_NOW | flags);
    if (module != NULL)
        get_list = (CK_C_GetFunctionList)dlsym(module, "C_GetFunctionList");
    if (get_list == NULL || get_list(&list) != CKR_OK) {
        fprintf(stderr, "users: %s: %s\n", path, module == NULL ? dlerror() : "no list");
        exit(2);
    }
    return list;
}

static CK_RV first_slot(const struct user *user, CK_SLOT_ID *slot)
{
    CK_SLOT_ID slots[8];
    CK_ULONG count = 8;
    CK_RV rv = user->fn->C_GetSlotList(CK_TRUE, slots, &count);
    if (rv == CKR_OK)
        *slot = slots[0];
    return rv;
}

/* The first answer that is not CKR_OK. Zeros are as bad. */
static CK_RV draw(const struct user *user)
{
    static const CK_BYTE zeros[32];
    static const struct timespec a_moment = {.tv_nsec = 1000 * 1000};
    for (int i = 0; i < DRAWS; i++) {
        CK_BYTE bytes[32] = {0};
        CK_RV rv = user->fn->C_GenerateRandom(user->session, bytes, sizeof bytes);
        if (rv != CKR_OK)
            return rv;
        if (memcmp(bytes, zeros, sizeof zeros) == 0)
            return CKR_DEVICE_ERROR;
        if (i % 20 == 0)
            nanosleep(&a_moment, NULL);
    }
    return CKR_OK;
}

static CK_RV step(struct user *user, char what)
{
    CK_C_INITIALIZE_ARGS args = {.flags = CKF_OS_LOCKING_OK};
    CK_SESSION_INFO info;
    CK_SLOT_ID slot = 0;
    CK_RV rv;
    switch (what) {
    case 'i':
        return user->fn->C_Initialize(&args);
    case 'f':
        return user->fn->C_Finalize(NULL);
    case 'o':
        rv = first_slot(user, &slot);
        return rv != CKR_OK ? rv
                            : user->fn->C_OpenSession(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION,
                                                      NULL, NULL, &user->session);
    case 'c':
        return user->fn->C_CloseSession(user->session);
    case 'l':
        return user->fn->C_Login(user->session, CKU_USER, (CK_UTF8CHAR_PTR) "1234", 4);
    case 'd':
        return draw(user);
    case 's':
        return user->fn->C_GetSessionInfo(user->session, &info);
    default:
        fprintf(stderr, "users: what is '%c'?\n", what);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    struct user users[2] = {0};
    int flags = RTLD_LOCAL;
    if (argc > 1 && strcmp(argv[1], "global") == 0) {
        flags = RTLD_GLOBAL;
        argv++;
        argc--;
    }
    if (argc < 4) {
        fprintf(stderr, "usage: users [global] MODULE-A MODULE-B STEP...\n");
        return 2;
    }
    users[0].fn = load(argv[1], flags);
    users[1].fn = load(argv[2], flags);
    for (int i = 3; i < argc; i++) {
        printf("%s", argv[i]);
        fflush(stdout);
        printf(" 0x%lx\n", step(&users[argv[i][0] == 'B'], argv[i][1]));
    }
    puts("end");
    return 0;
}
