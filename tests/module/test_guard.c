/* test_guard.c - what is disabled never reaches the token, through any function that takes a mechanism. */
#include "fixture.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MECHANISM_FUNCTIONS = 21, NULL_PARAMETER = -1 };

static _Alignas(16) unsigned char scratch[4096];

static const struct p11_functions *list;
static CK_SESSION_HANDLE session;
static CK_MECHANISM mechanism;
static CK_MECHANISM *mechanism_argument = &mechanism;

/* Counts are 0, so that no template is read; handles of keys are 1; pointers lead to zeros. */
static uintptr_t value_of(const char *name, bool is_pointer)
{
    if (strcmp(name, "hSession") == 0)
        return session;
    if (strcmp(name, "pMechanism") == 0)
        return (uintptr_t)mechanism_argument;
    return is_pointer ? (uintptr_t)scratch : name[0] == 'h';
}

#define IS_POINTER(type)                                                                           \
    _Generic((type)0, unsigned long : false, unsigned char : false, default : true)
#define MADE(pair)     MADE_ pair
#define MADE_(type, n) (type) value_of(#n, IS_POINTER(type))

struct row {
    const char *name;
    CK_RV (*call)(void);
};

#define P11_UPTO 302
#define ROW(name, ...)
#define MECH(purpose, keys, name, ...)                                                             \
    static CK_RV call_##name(void)                                                                 \
    {                                                                                              \
        return list->name(P11_EACH(MADE, __VA_ARGS__));                                            \
    }
#include "functions.def"

static const struct row rows[] = {
#define P11_UPTO 302
#define ROW(name, ...)
#define MECH(purpose, keys, name, ...) {#name, call_##name},
#include "functions.def"
};

_Static_assert(sizeof rows / sizeof *rows == MECHANISM_FUNCTIONS,
               "3.2 has 21 functions with a mechanism");

/* How many of a row's parameters are mechanisms; of the rows that are no MECH there is none. */
#define IS_MECHANISM(pair)     IS_MECHANISM_ pair
#define IS_MECHANISM_(type, n) _Generic((type)0, CK_MECHANISM_PTR : 1, default : 0)
#define P11_UPTO               302
#define MECH(purpose, keys, ...)
#define ROW(name, ...) static const char without_##name[] = {P11_EACH(IS_MECHANISM, __VA_ARGS__)};
#include "functions.def"

static void start(const char *settings)
{
    char whole[1024];
    snprintf(whole, sizeof whole, "x-pool: off\n%s", settings);
    script("interfaces 3.2 3.0 2.40");
    proxy_with(whole);
    list = newest_list();
    initialize();
    session = open_session(0, 0);
}

/* Calls one, in a session of its own; *reached: how many calls reach the target. */
static CK_RV call(const struct row *row, unsigned *reached)
{
    session = open_session(0, 0);
    unsigned before = target_calls_in_all();
    CK_RV rv = row->call();
    *reached = target_calls_in_all() - before;
    return rv;
}

static void all_answer(CK_RV rv, unsigned calls)
{
    unsigned reached;
    for (size_t i = 0; i < MECHANISM_FUNCTIONS; i++) {
        CK_RV got = call(&rows[i], &reached);
        ck_assert_msg(got == rv, "%s answers 0x%lx, not 0x%lx", rows[i].name, got, rv);
        ck_assert_msg(reached == calls, "%s: %u calls reach the target", rows[i].name, reached);
    }
}

START_TEST(every_function_that_takes_a_mechanism_is_guarded)
{
    unsigned found = 0;
#define P11_UPTO 302
#define MECH(purpose, keys, ...)
#define ROW(name, ...)                                                                             \
    for (size_t i = 0; i < sizeof without_##name; i++)                                             \
        found += (unsigned)without_##name[i];
#include "functions.def"
    ck_assert_uint_eq(found, 0);
}
END_TEST

/* By name, by number, by a vendor's number. */
static const struct {
    const char *disabled;
    CK_MECHANISM_TYPE denied, permitted;
} lists[] = {
    {"MD5", CKM_MD5_RSA_PKCS, CKM_SHA256_RSA_PKCS},
    {"CKM_RSA_X_509", CKM_RSA_X_509, CKM_RSA_PKCS},
    {"SHA1", 0x220, 0x250},
    {"0x80001234", 0x80001234, 0x80001235},
    {"2147483970", 0x80000142, 0x142},
    {"0xCE534353", 0xCE534353, 0xCE534354},
    {"RSA", 0, 0x7fffffff},
    {"0x7fffffff", 0x7fffffff, 0x80000142},
    {"CKM_MD5", CKM_MD5, 0x100000000 | CKM_MD5}, /* no number is cut */
    {"0x180000001", 0x180000001, 0x80000001},
};
enum { LISTS = sizeof lists / sizeof *lists };

START_TEST(a_denied_mechanism_never_reaches_the_token)
{
    char settings[128];
    snprintf(settings, sizeof settings, "x-disabled-algorithms: %s", lists[_i].disabled);
    start(settings);
    mechanism.mechanism = lists[_i].denied;
    all_answer(CKR_MECHANISM_INVALID, 0);
    mechanism.mechanism = lists[_i].permitted;
    all_answer(CKR_OK, 1);
}
END_TEST

START_TEST(no_mechanism_is_handed_on_unread)
{
    start("x-disabled-algorithms: RSA, MD5, AES, RSA keySize < 2048");
    unsigned reached;
    mechanism_argument = NULL;
    for (size_t i = 0; i < MECHANISM_FUNCTIONS; i++) {
        call(&rows[i], &reached);
        ck_assert_msg(reached == 1, "%s: %u calls reach the target", rows[i].name, reached);
    }
}
END_TEST

/* In the last bytes before a page that faults. */
static void *at_the_end(size_t len_bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(memory != MAP_FAILED && mprotect(memory + page, page, PROT_NONE) == 0);
    return memory + page - len_bytes;
}

/* Every mechanism of a table of 0x5000 numbers and some vendors' numbers, with parameters that are too short. */
START_TEST(short_and_missing_parameters_are_for_the_token_to_judge)
{
    static const int lengths[] = {NULL_PARAMETER, 0, 1, 3, 7};
    start("x-disabled-algorithms: CKM_MD2");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t len_bytes = lengths[i] == NULL_PARAMETER ? 64 : (size_t)lengths[i];
        mechanism.pParameter = lengths[i] == NULL_PARAMETER ? NULL : at_the_end(len_bytes);
        mechanism.ulParameterLen = len_bytes;
        for (CK_MECHANISM_TYPE type = 0; type < 0x5000; type++) {
            mechanism.mechanism = type;
            EXPECT(list->C_DeriveKey(session, &mechanism, 1, NULL, 0, (void *)scratch),
                   type == CKM_MD2 ? CKR_MECHANISM_INVALID : CKR_OK);
        }
    }
}
END_TEST

START_TEST(audit_permits_counts_and_logs_once)
{
    start("x-policy: audit\nx-disabled-algorithms: MD5, SHA1");
    mechanism.mechanism = CKM_MD5_RSA_PKCS;
    all_answer(CKR_OK, 1);
    all_answer(CKR_OK, 1);
    ck_assert_uint_eq(messages_with("'MD5' would refuse CKM_MD5_RSA_PKCS in C_EncryptInit"), 1);
    ck_assert_uint_eq(messages_with("CKM_MD5_RSA_PKCS"), 1);
    mechanism.mechanism = CKM_MD5;
    all_answer(CKR_OK, 1);
    ck_assert_uint_eq(messages_with("'MD5' would refuse CKM_MD5 in"), 1);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    ck_assert_uint_eq(messages_with("'MD5' would have refused CKM_MD5_RSA_PKCS, 42 times in all"),
                      1);
}
END_TEST

START_TEST(a_single_refusal_was_one_time)
{
    start("x-disabled-algorithms: MD5");
    mechanism.mechanism = CKM_MD5;
    EXPECT(list->C_DigestInit(session, &mechanism), CKR_MECHANISM_INVALID);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    ck_assert_uint_eq(messages_with("'MD5' refused CKM_MD5, 1 time in all"), 1);
}
END_TEST

/* Whoever reads it sees that the list means what was meant. */
START_TEST(the_start_says_what_is_in_force)
{
    start(_i == 0   ? "x-disabled-algorithms: CKM_MD2, SSLv3, secp192r1, RSA keySize < 2048"
          : _i == 1 ? "x-disabled-algorithms: CKM_MD2, CKM_DES_CBC\nx-policy: audit"
                    : "");
    static const char *const said[] = {
        "policy: in force (mechanisms: 8, curves: 1, parameter sets: 0, rules about key sizes: 1)",
        "policy: audited (mechanisms: 2, curves: 0, parameter sets: 0, rules about key sizes: 0)",
        "policy: none"};
    ck_assert_uint_eq(messages_with(said[_i]), 1);
}
END_TEST

START_TEST(refusals_are_logged_once_with_the_place_of_the_rule)
{
    start("x-disabled-algorithms: DES,   MD5");
    mechanism.mechanism = CKM_MD5;
    all_answer(CKR_MECHANISM_INVALID, 0);
    ck_assert_uint_eq(messages_with("/config:3: 'MD5' refuses CKM_MD5 in C_EncryptInit"), 1);
    ck_assert_uint_eq(messages_with("refuses"), 1);
}
END_TEST

/* A child of a process that had it goes on under it, without any call of its own. */
START_TEST(a_forked_child_goes_on_under_the_policy)
{
    start("x-disabled-algorithms: MD5");
    mechanism.mechanism = CKM_MD5;
    if (check_fork() == 0) {
        all_answer(CKR_MECHANISM_INVALID, 0);
        exit(EXIT_SUCCESS);
    }
    all_answer(CKR_MECHANISM_INVALID, 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, every_function_that_takes_a_mechanism_is_guarded);
    tcase_add_loop_test(tcase, a_denied_mechanism_never_reaches_the_token, 0, LISTS);
    tcase_add_test(tcase, no_mechanism_is_handed_on_unread);
    tcase_add_test(tcase, short_and_missing_parameters_are_for_the_token_to_judge);
    tcase_add_test(tcase, audit_permits_counts_and_logs_once);
    tcase_add_test(tcase, a_single_refusal_was_one_time);
    tcase_add_loop_test(tcase, the_start_says_what_is_in_force, 0, 3);
    tcase_add_test(tcase, refusals_are_logged_once_with_the_place_of_the_rule);
    tcase_add_test(tcase, a_forked_child_goes_on_under_the_policy);
}

int main(void)
{
    return run_tests("guard", add_tests);
}
