/* test_rows.c - every function reaches its namesake in the target, with its arguments and its answer. */
#include "fixture.h"

#include "rows.h"

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
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        if (strcmp(name, apart[i]) == 0)
            return true;
    return false;
}

static void load(const char *said, CK_BYTE major, CK_BYTE minor)
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
    load("", versions[_i][0], versions[_i][1]);
    initialize();
    for (size_t a = 0; a < sizeof answers / sizeof *answers; a++)
        for (unsigned i = 0; i < rows_of(list_version); i++)
            if (!is_apart(rows[i].name))
                row_is_handed_on(&rows[i], answers[a]);
}

TEST(finalize_reaches_its_namesake_with_its_argument)
{
    load("C_Finalize: fail 0x80004711", 3, 2);
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
        load("without all", 3, 2);
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
