/* application.c - an application: draws and is refused through the module MODULE, a line
 * of input at a time.
 *
 * application MODULE
 *
 * Prints its PID once it has called C_Initialize. Each line is an order, answered by a line with a
 * code.
 */
#include <dlfcn.h>
#include <p11-kit/pkcs11.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DRAWS = 1000, SLOTS_MOST = 64 };

static CK_FUNCTION_LIST *list;
static CK_SESSION_HANDLE session;

static void open_session(void)
{
    CK_SLOT_ID slots[SLOTS_MOST];
    CK_ULONG count = SLOTS_MOST;
    CK_TOKEN_INFO info;

    if (list->C_GetSlotList(CK_TRUE, slots, &count) != CKR_OK)
        count = 0;
    for (CK_ULONG i = 0; i < count && session == 0; i++) {
        if (list->C_GetTokenInfo(slots[i], &info) == CKR_OK &&
            memcmp(info.label, "proxy-test ", 11) == 0)
            list->C_OpenSession(slots[i], CKF_SERIAL_SESSION, NULL, NULL, &session);
    }
}

static CK_RV digest(CK_MECHANISM_TYPE type)
{
    CK_MECHANISM mechanism = {.mechanism = type};
    CK_BYTE hash[64], data[] = "data";
    CK_ULONG hash_bytes = sizeof hash;
    CK_RV rv = list->C_DigestInit(session, &mechanism);

    return rv == CKR_OK ? list->C_Digest(session, data, sizeof data, hash, &hash_bytes) : rv;
}

static CK_RV obey(const char *order)
{
    CK_BYTE bytes[32];
    CK_RV rv = CKR_OK;

    if (strcmp(order, "md5\n") == 0)
        return digest(CKM_MD5);
    if (strcmp(order, "end\n") == 0)
        return list->C_Finalize(NULL);
    for (int i = 0; i < DRAWS && rv == CKR_OK; i++)
        rv = list->C_GenerateRandom(session, bytes, sizeof bytes);
    return rv;
}

int main(int argc, char **argv)
{
    CK_C_INITIALIZE_ARGS args = {.flags = CKF_OS_LOCKING_OK};
    void *module = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    CK_C_GetFunctionList get =
        module != NULL ? (CK_C_GetFunctionList)dlsym(module, "C_GetFunctionList") : NULL;
    char order[32];

    if (get == NULL || get(&list) != CKR_OK || list->C_Initialize(&args) != CKR_OK)
        return EXIT_FAILURE;
    open_session();
    printf("%ld\n", (long)getpid());
    fflush(stdout);
    while (fgets(order, sizeof order, stdin) != NULL) {
        printf("0x%lx\n", obey(order));
        fflush(stdout);
    }
    return EXIT_SUCCESS;
}
