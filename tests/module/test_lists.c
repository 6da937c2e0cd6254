/* test_lists.c - what the proxy offers is what its target offers, from lists of its own; every function reaches its namesake
 * in the target, with its arguments and its answer. */
#include "fixture.h"

#include <dlfcn.h>
#include <unistd.h>

#include "rows.h"

enum { INTERFACES_MOST = 128 };

typedef CK_RV (*list_getter)(CK_INTERFACE_PTR, CK_ULONG_PTR);
typedef CK_RV (*interface_getter)(CK_UTF8CHAR_PTR, CK_VERSION_PTR, CK_INTERFACE_PTR_PTR, CK_FLAGS);

/* Our own, with what they are told to offer, and real ones, which may not be installed. */
static const struct {
    const char *name;
    const char *script;
} targets[] = {
    {"scripted", ""},
    {"scripted", "interfaces 2.20"},
    {"scripted", "interfaces 3.0 2.40"},
    {"scripted", "interfaces 3.0f 2.20"},
    {"scripted", "interfaces 3.1 3.0 2.40"},
    {"scripted", "interfaces 3.2 3.0 2.40 vendor"},
    {"scripted", "interfaces vendor 3.2f"},
    {"scripted", "interfaces 3.0 2.40; count as passed"},
    {"scripted", "interfaces 3.0 2.40; many interfaces 65"},
    {"scripted_plain", ""},
    {"leaning", "interfaces 3.0 2.40"},
    {"/usr/lib/softhsm/libsofthsm2.so", ""},
    {"/usr/lib/x86_64-linux-gnu/libsoftokn3.so", ""},
    {"/usr/lib/x86_64-linux-gnu/opensc-pkcs11.so", ""},
    {"/usr/lib/x86_64-linux-gnu/libykcs11.so", ""},
    {"/usr/lib/x86_64-linux-gnu/p11-kit-proxy.so", ""},
};

static void *bare;
static list_getter get_interfaces;
static interface_getter get_interface;

#define SKIP_IF_MISSING(number)                                                                    \
    SKIP_IF(access(target_path(targets[number].name), R_OK) != 0, "that module is not installed")

static void begin_before(const char *name, const char *said, const char *settings)
{
    script("%s", said);
    bare = dlopen(target_path(name), RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(bare != NULL, "%s", dlerror());
    proxy_before(name, settings);
    get_interfaces = (list_getter)dlsym(proxy, "C_GetInterfaceList");
    get_interface = (interface_getter)dlsym(proxy, "C_GetInterface");
    ck_assert(get_interfaces != NULL && get_interface != NULL);
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
    CK_ULONG count = INTERFACES_MOST;
    list_getter get = (list_getter)own_symbol("C_GetInterfaceList");
    if (get != NULL) {
        EXPECT(get(NULL, &count), CKR_OK);
        EXPECT(get(interfaces, &count), CKR_OK);
        return count;
    }
    interfaces[0] = (CK_INTERFACE){(CK_UTF8CHAR_PTR) "PKCS 11", list_of(bare), 0};
    return 1;
}

static bool is_same_version(const CK_VERSION *one, const CK_VERSION *other)
{
    return memcmp(one, other, sizeof *one) == 0;
}

TEST_EACH(the_same_interfaces_are_offered_in_the_same_order_and_can_be_asked_for, 0,
          COUNT_OF(targets))
{
    CK_INTERFACE theirs[INTERFACES_MOST];
    CK_INTERFACE ours[INTERFACES_MOST];
    CK_INTERFACE *one, *again;
    CK_ULONG count = INTERFACES_MOST;
    SKIP_IF_MISSING(_i);
    begin_before(targets[_i].name, targets[_i].script, "");
    ck_assert(is_same_version(&fn->version, &list_of(bare)->version));
    CK_ULONG wanted = bare_interfaces(theirs);
    EXPECT(get_interfaces(ours, &count), CKR_OK);
    ck_assert_uint_eq(count, wanted);
    for (CK_ULONG i = 0; i < count; i++) {
        CK_VERSION version = is_standard(&ours[i]) ? *version_of(&ours[i]) : (CK_VERSION){0, 0};
        ck_assert_str_eq((char *)ours[i].pInterfaceName, (char *)theirs[i].pInterfaceName);
        ck_assert_uint_eq(ours[i].flags, theirs[i].flags);
        EXPECT(get_interface(ours[i].pInterfaceName, is_standard(&ours[i]) ? &version : NULL, &one,
                             ours[i].flags),
               CKR_OK);
        ck_assert_ptr_eq(one->pFunctionList, ours[i].pFunctionList);
        if (!is_standard(&ours[i])) {
            ck_assert_ptr_eq(ours[i].pFunctionList, theirs[i].pFunctionList);
            continue;
        }
        ck_assert(is_same_version(&version, version_of(&theirs[i])));
        ck_assert_ptr_ne(ours[i].pFunctionList, theirs[i].pFunctionList);
    }
    EXPECT(get_interface(NULL, NULL, &one, 0), CKR_OK);
    EXPECT(get_interface(NULL, NULL, &again, 0), CKR_OK);
    ck_assert_ptr_eq(one, again);
}

/* Unknown flags are an error, but there are modules that do not look. */
TEST_EACH(what_is_not_offered_is_the_same_error_and_touches_nothing, 0, COUNT_OF(targets))
{
    CK_INTERFACE never, ours[INTERFACES_MOST];
    CK_INTERFACE *one = &never, *other;
    CK_VERSION unknown = {9, 9};
    CK_ULONG count = 0;
    SKIP_IF_MISSING(_i);
    begin_before(targets[_i].name, targets[_i].script, "");
    interface_getter theirs = (interface_getter)own_symbol("C_GetInterface");
    ck_assert_uint_ne(get_interface((CK_UTF8CHAR_PTR) "PKCS 11", &unknown, &one, 0), CKR_OK);
    ck_assert_uint_ne(get_interface((CK_UTF8CHAR_PTR) "Vendor X", NULL, &one, 0), CKR_OK);
    ck_assert_ptr_eq(one, &never);
    EXPECT(get_interface(NULL, NULL, &one, ~0UL),
           theirs == NULL ? CKR_ARGUMENTS_BAD : theirs(NULL, NULL, &other, ~0UL));
    EXPECT(get_interface(NULL, NULL, NULL, 0), CKR_ARGUMENTS_BAD);
    EXPECT(get_interfaces(NULL, NULL), CKR_ARGUMENTS_BAD);
    EXPECT(get_interfaces(NULL, &count), CKR_OK);
    CK_ULONG all = count--;
    EXPECT(get_interfaces(ours, &count), CKR_BUFFER_TOO_SMALL);
    ck_assert_uint_eq(count, all);
    EXPECT(fn->C_GetFunctionList(NULL), CKR_ARGUMENTS_BAD);
}

/* Without a list, without a name, and more of them than there are. */
TEST_EACH(odd_interfaces_are_survived, 0, 5)
{
    static const char *const oddities[] = {
        "interfaces null-list 3.0 2.40", "interfaces null-name 3.0 2.40",
        "interfaces 3.0 2.40; count lies 7", "interfaces null-list",
        "interfaces null-name null-list 2.40; many interfaces 65; count lies 300"};
    CK_INTERFACE ours[INTERFACES_MOST];
    CK_ULONG count = INTERFACES_MOST;
    begin_before("scripted", oddities[_i], "");
    EXPECT(get_interfaces(ours, &count), CKR_OK);
    for (CK_ULONG i = 0; i < count; i++)
        ck_assert_ptr_nonnull(ours[i].pInterfaceName);
    initialize();
    draw(open_session(0, 0), 16, 4096);
}

/* What a vendor's functions take is not known, so no rule could be enforced there. */
TEST_EACH(vendor_interfaces_are_not_offered_under_a_policy, 0, 3)
{
    static const char *const policies[] = {"x-disabled-algorithms: MD5",
                                           "x-disabled-algorithms: MD5\nx-policy: audit", ""};
    CK_INTERFACE *interface = NULL;
    CK_ULONG count = 0;
    begin_before("scripted", "interfaces vendor 3.0 2.40", policies[_i]);
    EXPECT(get_interfaces(NULL, &count), CKR_OK);
    ck_assert_uint_eq(count, _i == 0 ? 2 : 3);
    EXPECT(get_interface(NULL, NULL, &interface, 0), CKR_OK);
    ck_assert_int_eq(is_standard(interface), _i == 0);
    EXPECT(get_interface((CK_UTF8CHAR_PTR) "Vendor scripted", NULL, &interface, 0),
           _i == 0 ? CKR_ARGUMENTS_BAD : CKR_OK);
}

/* A target that puts its functions there when it knows what it has. */
TEST(entries_that_change_in_initialize_are_called)
{
    CK_SESSION_INFO info;
    begin_before("scripted", "interfaces 3.0 2.40; changing list", "");
    begin_again();
    EXPECT(fn->C_GetSessionInfo(session, &info), CKR_VENDOR_DEFINED);
    EXPECT(interface_list(3, 0)->C_GetSessionInfo(session, &info), CKR_VENDOR_DEFINED);
    EXPECT(interface_list(2, 40)->C_GetSessionInfo(session, &info), CKR_VENDOR_DEFINED);
    draw(session, 16, 4096);
}

/* What stands behind every pointer that is passed: room for all that a function reads or writes there. */
static _Alignas(16) unsigned char scratch[64 * 1024];

static unsigned list_version;

/* An argument is made of its name: unlike that of its neighbours, and the same each time. */
static uintptr_t value_of(const char *name, bool is_pointer)
{
    unsigned hash = 17;
    for (; *name != '\0'; name++)
        hash = hash * 31 + (unsigned char)*name;
    return is_pointer ? (uintptr_t)&scratch[hash % 2039 * 16] : hash % 1021 + 1;
}

/* The getters answer by themselves; life begins and ends with arguments that are read. */
static bool is_apart(const char *name)
{
    static const char *const apart[] = {"C_Initialize", "C_Finalize", "C_GetFunctionList",
                                        "C_GetInterfaceList", "C_GetInterface"};
    for (size_t i = 0; i < COUNT_OF(apart); i++)
        if (strcmp(name, apart[i]) == 0)
            return true;
    return false;
}

static void load_rows(const char *said, CK_BYTE major, CK_BYTE minor)
{
    script("interfaces 3.2 3.0 2.40; %s", said);
    proxy_with("x-pool: off");
    list = interface_list(major, minor);
    list_version = major * 100U + minor;
}

/* Nothing of what its pointers lead to changes on the way. */
static void row_is_handed_on(const struct row *row, CK_RV answer)
{
    static const unsigned char zeros[sizeof scratch];
    unsigned calls = atomic_load(&shared->log_count);
    script_anew("");
    script("any: fail 0x%lx", answer);
    CK_RV rv = row->call();
    ck_assert_msg(rv == answer, "%s answers 0x%lx, not 0x%lx", row->name, rv, answer);
    ck_assert_msg(shared->log_count == calls + 1, "%s: %u calls", row->name,
                  shared->log_count - calls);
    const struct target_call *call = &shared->log[calls];
    ck_assert_msg(call->function == row - rows, "%s: another function is called", row->name);
    ck_assert_msg(call->list == list_version, "%s: the target's list %u is called", row->name,
                  call->list);
    for (unsigned i = 0; i < passed_count; i++) {
        ck_assert_msg(call->arguments[i] == passed[i], "%s: argument %u", row->name, i);
        for (unsigned other = 0; other < i; other++)
            ck_assert_msg(passed[i] != passed[other], "%s: %u and %u", row->name, i, other);
    }
    ck_assert_msg(memcmp(scratch, zeros, sizeof zeros) == 0, "%s writes something", row->name);
}

static unsigned rows_of(unsigned version)
{
    return version == 240 ? FUNCTIONS_2_40 : version == 300 ? FUNCTIONS_3_0 : FUNCTIONS_3_2;
}

TEST_EACH(every_row_of_every_list_reaches_its_namesake_with_its_arguments_and_answer, 0, 3)
{
    static const CK_RV answers[] = {CKR_OK, 0x80004711, CKR_BUFFER_TOO_SMALL, CKR_DEVICE_REMOVED,
                                    CKR_CRYPTOKI_NOT_INITIALIZED};
    static const CK_BYTE versions[][2] = {{3, 2}, {3, 0}, {2, 40}};
    load_rows("", versions[_i][0], versions[_i][1]);
    initialize();
    for (size_t a = 0; a < COUNT_OF(answers); a++)
        for (unsigned i = 0; i < rows_of(list_version); i++)
            if (!is_apart(rows[i].name))
                row_is_handed_on(&rows[i], answers[a]);
}

TEST(finalize_reaches_its_namesake_with_its_argument)
{
    load_rows("C_Finalize: fail 0x80004711", 3, 2);
    initialize();
    EXPECT(list->C_Finalize(scratch), 0x80004711);
    ck_assert_uint_eq(LAST_CALL(C_Finalize)->arguments[0], (uintptr_t)scratch);
}

/* _i: before there is a target, and in the place of what the target has not. */
TEST_EACH(no_row_is_missing_in_any_list, 0, 2)
{
    CK_RV rv = _i == 0 ? CKR_CRYPTOKI_NOT_INITIALIZED : CKR_FUNCTION_NOT_SUPPORTED;
    if (_i == 0) {
        proxy_configured("");
        list = (const struct p11_functions *)fn;
    } else
        load_rows("without all", 3, 2);
    for (unsigned i = 0; i < (_i == 0 ? FUNCTIONS_2_40 : FUNCTIONS_3_2); i++) {
        ck_assert_msg(((void *const *)list)[i + 1] != NULL, "%s is NULL", rows[i].name);
        if (!is_apart(rows[i].name))
            EXPECT(rows[i].call(), rv);
    }
    ck_assert_uint_eq(target_calls_in_all(), 0);
}

/* The target's plain list ends before a page that faults. */
TEST(a_plain_list_that_claims_3_2_is_read_no_further_than_2_40)
{
    script("plain 3.2");
    proxy_before("scripted_plain", "x-pool: off");
    list = (const struct p11_functions *)fn;
    list_version = 240;
    initialize();
    ck_assert_uint_eq(fn->version.major, 2);
    ck_assert_uint_eq(fn->version.minor, 40);
    for (unsigned i = 0; i < FUNCTIONS_2_40; i++)
        if (!is_apart(rows[i].name))
            row_is_handed_on(&rows[i], CKR_OK);
}
