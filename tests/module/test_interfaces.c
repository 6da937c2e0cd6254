/* test_interfaces.c - what the proxy offers is what its target offers, from lists of its own. */
#include "run.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { INTERFACES_MOST = 16 };

typedef CK_RV (*list_getter)(CK_INTERFACE_PTR, CK_ULONG_PTR);
typedef CK_RV (*interface_getter)(CK_UTF8CHAR_PTR, CK_VERSION_PTR, CK_INTERFACE_PTR_PTR, CK_FLAGS);

/* Our own, with what they are told to offer, and real ones, which may not be installed. */
static const struct {
    const char *name;
    const char *interfaces;
} targets[] = {
    {"recording", "2.40"},
    {"recording", "2.20"},
    {"recording", "3.0 2.40"},
    {"recording", "3.0f 2.20"},
    {"recording", "3.1 3.0 2.40"},
    {"recording", "3.2 3.0 2.40 vendor"},
    {"recording", "vendor 3.2f"},
    {"recording_plain", ""},
    {"leaning", "3.0 2.40"},
    {"counting", ""},
    {"/usr/lib/softhsm/libsofthsm2.so", ""},
    {"/usr/lib/x86_64-linux-gnu/libsoftokn3.so", ""},
    {"/usr/lib/x86_64-linux-gnu/opensc-pkcs11.so", ""},
    {"/usr/lib/x86_64-linux-gnu/libykcs11.so", ""},
    {"/usr/lib/x86_64-linux-gnu/p11-kit-proxy.so", ""},
};

static void *bare;
static list_getter get_interfaces;
static interface_getter get_interface;

/* Loads the proxy before the target of that number. False if it is not there. */
static bool begin(int number)
{
    const char *path = target_path(targets[number].name);
    if (access(path, R_OK) != 0)
        return false;
    setenv("RECORDING_INTERFACES", targets[number].interfaces, 1);
    bare = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(bare != NULL, "%s", dlerror());
    proxy_before(targets[number].name, "");
    get_interfaces = (list_getter)dlsym(proxy, "C_GetInterfaceList");
    get_interface = (interface_getter)dlsym(proxy, "C_GetInterface");
    ck_assert(get_interfaces != NULL && get_interface != NULL);
    return true;
}

/* A getter of the target's own: one that it is only linked with does not count. */
static void *own_symbol(const char *name)
{
    Dl_info own;
    Dl_info found;
    void *symbol = dlsym(bare, name);
    dladdr(dlsym(bare, "C_GetFunctionList"), &own);
    return symbol != NULL && dladdr(symbol, &found) != 0 && own.dli_fbase == found.dli_fbase
               ? symbol
               : NULL;
}

static const CK_VERSION *version_of(const CK_INTERFACE *interface)
{
    return interface->pFunctionList;
}

static bool is_standard(const CK_INTERFACE *interface)
{
    return strcmp((const char *)interface->pInterfaceName, "PKCS 11") == 0;
}

static CK_ULONG bare_interfaces(CK_INTERFACE *interfaces)
{
    static CK_FUNCTION_LIST_PTR plain;
    CK_ULONG count = INTERFACES_MOST;
    list_getter get = (list_getter)own_symbol("C_GetInterfaceList");
    if (get != NULL) {
        EXPECT(get(interfaces, &count), CKR_OK);
        return count;
    }
    EXPECT(((CK_C_GetFunctionList)dlsym(bare, "C_GetFunctionList"))(&plain), CKR_OK);
    interfaces[0] = (CK_INTERFACE){(CK_UTF8CHAR_PTR) "PKCS 11", plain, 0};
    return 1;
}

static CK_ULONG functions_of(const CK_VERSION *version)
{
    if (version->major < 3)
        return FUNCTIONS_2_40;
    return version->minor < 2 ? FUNCTIONS_3_0 : FUNCTIONS_3_2;
}

static void is_ours_and_full(const CK_INTERFACE *interface)
{
    Dl_info self;
    Dl_info home;
    void *const *functions = interface->pFunctionList;
    dladdr((void *)get_interface, &self);
    for (CK_ULONG i = 1; i <= functions_of(version_of(interface)); i++) {
        ck_assert_msg(functions[i] != NULL, "function %lu is NULL", i);
        ck_assert_int_ne(dladdr(functions[i], &home), 0);
        ck_assert_ptr_eq(home.dli_fbase, self.dli_fbase);
    }
}

START_TEST(the_same_interfaces_are_offered_in_the_same_order)
{
    CK_INTERFACE theirs[INTERFACES_MOST];
    CK_INTERFACE ours[INTERFACES_MOST];
    CK_ULONG count = INTERFACES_MOST;
    if (!begin(_i))
        return;
    CK_ULONG wanted = bare_interfaces(theirs);
    EXPECT(get_interfaces(ours, &count), CKR_OK);
    ck_assert_uint_eq(count, wanted);
    for (CK_ULONG i = 0; i < count; i++) {
        ck_assert_str_eq((char *)ours[i].pInterfaceName, (char *)theirs[i].pInterfaceName);
        ck_assert_uint_eq(ours[i].flags, theirs[i].flags);
        if (!is_standard(&ours[i])) {
            ck_assert_ptr_eq(ours[i].pFunctionList, theirs[i].pFunctionList);
            continue;
        }
        ck_assert_uint_eq(version_of(&ours[i])->major, version_of(&theirs[i])->major);
        ck_assert_uint_eq(version_of(&ours[i])->minor, version_of(&theirs[i])->minor);
        ck_assert_ptr_ne(ours[i].pFunctionList, theirs[i].pFunctionList);
        is_ours_and_full(&ours[i]);
    }
}
END_TEST

START_TEST(the_plain_list_has_the_targets_version_and_no_hole)
{
    CK_FUNCTION_LIST_PTR plain;
    if (!begin(_i))
        return;
    EXPECT(((CK_C_GetFunctionList)dlsym(bare, "C_GetFunctionList"))(&plain), CKR_OK);
    ck_assert_uint_eq(fn->version.major, plain->version.major);
    ck_assert_uint_eq(fn->version.minor, plain->version.minor);
    CK_INTERFACE as_interface = {(CK_UTF8CHAR_PTR) "PKCS 11", fn, 0};
    is_ours_and_full(&as_interface);
}
END_TEST

START_TEST(each_offered_interface_can_be_asked_for)
{
    CK_INTERFACE ours[INTERFACES_MOST];
    CK_ULONG count = INTERFACES_MOST;
    CK_INTERFACE *one;
    if (!begin(_i))
        return;
    EXPECT(get_interfaces(ours, &count), CKR_OK);
    for (CK_ULONG i = 0; i < count; i++) {
        CK_VERSION version = is_standard(&ours[i]) ? *version_of(&ours[i]) : (CK_VERSION){0, 0};
        one = NULL;
        EXPECT(get_interface(ours[i].pInterfaceName, is_standard(&ours[i]) ? &version : NULL, &one,
                             ours[i].flags),
               CKR_OK);
        ck_assert_ptr_eq(one->pFunctionList, ours[i].pFunctionList);
    }
    EXPECT(get_interface(NULL, NULL, &one, 0), CKR_OK);
    ck_assert_ptr_nonnull(one);
    ck_assert_ptr_nonnull(one->pFunctionList);
    CK_INTERFACE *again;
    EXPECT(get_interface(NULL, NULL, &again, 0), CKR_OK);
    ck_assert_ptr_eq(one, again);
}
END_TEST

START_TEST(what_is_not_offered_is_an_error_that_touches_nothing)
{
    CK_INTERFACE never;
    CK_INTERFACE *one = &never;
    CK_INTERFACE ours[INTERFACES_MOST];
    CK_VERSION unknown = {9, 9};
    CK_ULONG count = 0;
    if (!begin(_i))
        return;
    ck_assert_uint_ne(get_interface((CK_UTF8CHAR_PTR) "PKCS 11", &unknown, &one, 0), CKR_OK);
    ck_assert_uint_ne(get_interface((CK_UTF8CHAR_PTR) "Vendor X", NULL, &one, 0), CKR_OK);
    ck_assert_ptr_eq(one, &never);
    /* Unknown flags are an error, but there are modules that do not look. */
    interface_getter theirs = (interface_getter)own_symbol("C_GetInterface");
    CK_INTERFACE *other;
    CK_RV rv = get_interface(NULL, NULL, &one, ~0UL);
    ck_assert(theirs != NULL ? rv == theirs(NULL, NULL, &other, ~0UL) : rv != CKR_OK);
    EXPECT(get_interface(NULL, NULL, NULL, 0), CKR_ARGUMENTS_BAD);
    EXPECT(get_interfaces(NULL, NULL), CKR_ARGUMENTS_BAD);
    EXPECT(get_interfaces(NULL, &count), CKR_OK);
    ck_assert_uint_gt(count, 0);
    CK_ULONG all = count--;
    EXPECT(get_interfaces(ours, &count), CKR_BUFFER_TOO_SMALL);
    ck_assert_uint_eq(count, all);
    EXPECT(fn->C_GetFunctionList(NULL), CKR_ARGUMENTS_BAD);
}
END_TEST

START_TEST(null_members_of_the_target_are_filled)
{
    CK_BYTE bytes[8];
    CK_ULONG len_bytes = sizeof bytes;
    knob("NULL_MEMBERS", "1");
    proxy_before("counting", "");
    initialize();
    CK_SESSION_HANDLE session = open_session(0, 0);
    CK_INTERFACE as_interface = {(CK_UTF8CHAR_PTR) "PKCS 11", fn, 0};
    get_interface = (interface_getter)dlsym(proxy, "C_GetInterface");
    is_ours_and_full(&as_interface);
    EXPECT(fn->C_GetFunctionStatus(session), CKR_FUNCTION_NOT_SUPPORTED);
    EXPECT(fn->C_DigestKey(session, 1), CKR_FUNCTION_NOT_SUPPORTED);
    EXPECT(fn->C_SignEncryptUpdate(session, bytes, 8, bytes, &len_bytes),
           CKR_FUNCTION_NOT_SUPPORTED);
    EXPECT(fn->C_SetPIN(session, bytes, 4, bytes, 4), CKR_FUNCTION_NOT_SUPPORTED);
    EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
}
END_TEST

/* Anything more would capture calls inside a target that is loaded after it. */
START_TEST(three_symbols_are_exported)
{
    char command[512];
    char names[1024];
    FILE *pipe;
    snprintf(command, sizeof command,
             "nm -D --defined-only %s | cut -d' ' -f3 | grep -v '^__' | sort | tr '\\n' ' '",
             getenv("TEST_MODULE"));
    pipe = popen(command, "re");
    names[fread(names, 1, sizeof names - 1, pipe)] = '\0';
    pclose(pipe);
    ck_assert_str_eq(names, "C_GetFunctionList C_GetInterface C_GetInterfaceList ");
}
END_TEST

static void add_tests(TCase *tcase)
{
    int count = sizeof targets / sizeof *targets;
    tcase_add_loop_test(tcase, the_same_interfaces_are_offered_in_the_same_order, 0, count);
    tcase_add_loop_test(tcase, the_plain_list_has_the_targets_version_and_no_hole, 0, count);
    tcase_add_loop_test(tcase, each_offered_interface_can_be_asked_for, 0, count);
    tcase_add_loop_test(tcase, what_is_not_offered_is_an_error_that_touches_nothing, 0, count);
    tcase_add_test(tcase, null_members_of_the_target_are_filled);
    tcase_add_test(tcase, three_symbols_are_exported);
}

int main(void)
{
    return run_tests("interfaces", add_tests);
}
