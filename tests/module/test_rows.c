/* test_rows.c - every function reaches its namesake in the target, with its arguments and its answer. */
#include "run.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "recording.h"

/* What stands behind every pointer that is passed: enough of it for whoever reads or writes there. */
static _Alignas(16) unsigned char scratch[64 * 1024];

static struct recording *recording;
static const struct p11_functions *list;

/* An argument is made of its name: unlike that of its neighbours, and the same each time. */
static uintptr_t value_of(const char *name, bool is_pointer)
{
    unsigned hash = 17;
    for (; *name != '\0'; name++)
        hash = hash * 31 + (unsigned char)*name;
    return is_pointer ? (uintptr_t)&scratch[hash % 2039 * 16] : hash % 1021 + 1;
}

/* All numbers of PKCS#11 are one of two types, all else is an address. */
#define IS_POINTER(type)                                                                           \
    _Generic((type)0, unsigned long : false, unsigned char : false, default : true)
#define MADE(pair)        MADE_ pair
#define MADE_(type, n)    (type) value_of(#n, IS_POINTER(type))
#define AS_WORD(pair)     AS_WORD_ pair
#define AS_WORD_(type, n) (uintptr_t)(type) value_of(#n, IS_POINTER(type))

struct row {
    const char *name;
    CK_RV (*call)(void);
    unsigned count;
    uintptr_t arguments[ARGUMENTS_MOST];
};

#define P11_UPTO 302
#define ROW(name, ...)                                                                             \
    static CK_RV call_##name(void)                                                                 \
    {                                                                                              \
        return list->name(P11_EACH(MADE, __VA_ARGS__));                                            \
    }
#include "functions.def"

static struct row rows[FUNCTIONS_3_2];

static void make_rows(void)
{
    struct row *row = rows;
#define P11_UPTO 302
#define ROW(row_name, ...)                                                                         \
    {                                                                                              \
        const uintptr_t arguments[] = {P11_EACH(AS_WORD, __VA_ARGS__)};                            \
        row->name = #row_name;                                                                     \
        row->call = call_##row_name;                                                               \
        row->count = sizeof arguments / sizeof *arguments;                                         \
        memcpy(row->arguments, arguments, sizeof arguments);                                       \
        row++;                                                                                     \
    }
#include "functions.def"
    ck_assert_ptr_eq(row, &rows[FUNCTIONS_3_2]);
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

static const struct p11_functions *interface_list(CK_BYTE major, CK_BYTE minor)
{
    CK_RV (*get)(CK_UTF8CHAR_PTR, CK_VERSION_PTR, CK_INTERFACE_PTR_PTR, CK_FLAGS);
    CK_VERSION version = {major, minor};
    CK_INTERFACE *interface = NULL;
    get = (__typeof__(get))dlsym(proxy, "C_GetInterface");
    EXPECT(get((CK_UTF8CHAR_PTR) "PKCS 11", &version, &interface, 0), CKR_OK);
    return interface->pFunctionList;
}

static void load_3_2(const char *nulls)
{
    setenv("RECORDING_INTERFACES", "3.2 3.0 2.40", 1);
    setenv("RECORDING_NULL", nulls, 1);
    proxy_before("recording", "x-pool: off");
    recording = target_symbol("recording");
    list = interface_list(3, 2);
    make_rows();
}

static void row_is_handed_on(const struct row *row, CK_RV answer)
{
    recording->answer = answer;
    recording->calls = 0;
    CK_RV rv = row->call();
    ck_assert_msg(rv == answer, "%s answers 0x%lx, not 0x%lx", row->name, rv, answer);
    ck_assert_msg(recording->calls == 1, "%s: %u calls", row->name, recording->calls);
    ck_assert_str_eq(recording->function, row->name);
    ck_assert_uint_eq(recording->count, row->count);
    for (unsigned i = 0; i < row->count; i++)
        ck_assert_msg(recording->arguments[i] == row->arguments[i], "%s: argument %u", row->name,
                      i);
}

START_TEST(every_row_reaches_its_namesake_with_its_arguments_and_answer)
{
    static const CK_RV answers[] = {CKR_OK, 0x80004711, CKR_BUFFER_TOO_SMALL, CKR_DEVICE_REMOVED,
                                    CKR_CRYPTOKI_NOT_INITIALIZED};
    load_3_2("");
    initialize();
    for (size_t a = 0; a < sizeof answers / sizeof *answers; a++)
        for (unsigned i = 0; i < FUNCTIONS_3_2; i++)
            if (!is_apart(rows[i].name))
                row_is_handed_on(&rows[i], answers[a]);
}
END_TEST

START_TEST(the_rows_can_be_told_apart)
{
    load_3_2("");
    for (unsigned i = 0; i < FUNCTIONS_3_2; i++)
        for (unsigned a = 0; a < rows[i].count; a++)
            for (unsigned b = 0; b < a; b++)
                ck_assert_msg(rows[i].arguments[a] != rows[i].arguments[b], "%s: %u and %u",
                              rows[i].name, a, b);
}
END_TEST

START_TEST(initialize_and_finalize_reach_their_namesakes)
{
    load_3_2("");
    recording->answer = 0x80004711;
    EXPECT(list->C_Initialize(&no_threads), 0x80004711);
    ck_assert_str_eq(recording->function, "C_Initialize");
    ck_assert_uint_eq(recording->arguments[0], (uintptr_t)&no_threads);
    recording->answer = CKR_OK;
    EXPECT(list->C_Initialize(&no_threads), CKR_OK);

    recording->answer = 0x80004711;
    EXPECT(list->C_Finalize(scratch), 0x80004711);
    ck_assert_str_eq(recording->function, "C_Finalize");
    ck_assert_uint_eq(recording->arguments[0], (uintptr_t)scratch);
}
END_TEST

/* Through every list, also the one that claims 2.40. */
START_TEST(all_lists_lead_to_the_same_functions)
{
    load_3_2("");
    const struct p11_functions *older[] = {interface_list(3, 0), interface_list(2, 40),
                                           (const struct p11_functions *)fn};
    static const unsigned counts[] = {FUNCTIONS_3_0, FUNCTIONS_2_40, FUNCTIONS_2_40};
    for (size_t i = 0; i < sizeof older / sizeof *older; i++)
        ck_assert_mem_eq((void *const *)older[i] + 1, (void *const *)list + 1,
                         counts[i] * sizeof(void *));
}
END_TEST

START_TEST(what_the_target_has_not_answers_that_it_is_not_supported)
{
    static const char all[] =
#define P11_UPTO       302
#define ROW(name, ...) #name " "
#include "functions.def"
        "";
    load_3_2(all);
    for (unsigned i = 0; i < FUNCTIONS_3_2; i++) {
        ck_assert_msg(((void *const *)list)[i + 1] != NULL, "%s is NULL", rows[i].name);
        if (!is_apart(rows[i].name))
            EXPECT(rows[i].call(), CKR_FUNCTION_NOT_SUPPORTED);
    }
    ck_assert_uint_eq(recording->calls, 0);
}
END_TEST

START_TEST(before_a_target_is_there_every_row_says_not_initialized)
{
    proxy_configured("");
    list = (const struct p11_functions *)fn;
    make_rows();
    for (unsigned i = 0; i < FUNCTIONS_3_2; i++)
        if (!is_apart(rows[i].name))
            EXPECT(rows[i].call(), CKR_CRYPTOKI_NOT_INITIALIZED);
    EXPECT(fn->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
}
END_TEST

/* The recording target's plain list ends before a page that faults. */
START_TEST(a_plain_list_that_claims_3_2_is_read_no_further_than_2_40)
{
    setenv("RECORDING_PLAIN", "3.2", 1);
    proxy_before("recording_plain", "x-pool: off");
    recording = target_symbol("recording");
    list = (const struct p11_functions *)fn;
    make_rows();
    initialize();
    ck_assert_uint_eq(fn->version.major, 2);
    ck_assert_uint_eq(fn->version.minor, 40);
    for (unsigned i = 0; i < FUNCTIONS_2_40; i++)
        if (!is_apart(rows[i].name))
            row_is_handed_on(&rows[i], CKR_OK);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, every_row_reaches_its_namesake_with_its_arguments_and_answer);
    tcase_add_test(tcase, the_rows_can_be_told_apart);
    tcase_add_test(tcase, initialize_and_finalize_reach_their_namesakes);
    tcase_add_test(tcase, all_lists_lead_to_the_same_functions);
    tcase_add_test(tcase, what_the_target_has_not_answers_that_it_is_not_supported);
    tcase_add_test(tcase, before_a_target_is_there_every_row_says_not_initialized);
    tcase_add_test(tcase, a_plain_list_that_claims_3_2_is_read_no_further_than_2_40);
}

int main(void)
{
    return run_tests("rows", add_tests);
}
