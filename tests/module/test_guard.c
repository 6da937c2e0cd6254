/* test_guard.c - what is disabled never reaches the token, through any function that takes a mechanism. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rows.h"

enum { MECHANISM_FUNCTIONS = 21 };

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

struct row {
    const char *name;
    CK_RV (*call)(void);
};

#define P11_UPTO 302
#define ROW(name, ...)
#define MECH(purpose, keys, name, ...) CALLER(name, __VA_ARGS__)
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
    list = interface_list(3, 2);
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

TEST(every_function_that_takes_a_mechanism_is_guarded)
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

/* By name, by number, by a vendor's number. */
static const struct {
    const char *disabled;
    CK_MECHANISM_TYPE denied, permitted;
} lists[] = {
    {"MD5", CKM_MD5_RSA_PKCS, CKM_SHA256_RSA_PKCS},
    {"0x80001234", 0x80001234, 0x80001235},
    {"RSA", 0, 0x7fffffff},
    {"CKM_MD5", CKM_MD5, 0x100000000 | CKM_MD5}, /* no number is cut */
};
enum { LISTS = sizeof lists / sizeof *lists };

TEST_EACH(a_denied_mechanism_never_reaches_the_token, 0, LISTS)
{
    char settings[128];
    snprintf(settings, sizeof settings, "x-disabled-algorithms: %s", lists[_i].disabled);
    start(settings);
    mechanism.mechanism = lists[_i].denied;
    all_answer(CKR_MECHANISM_INVALID, 0);
    mechanism.mechanism = lists[_i].permitted;
    all_answer(CKR_OK, 1);
}

TEST(no_mechanism_is_handed_on_unread)
{
    start("x-disabled-algorithms: RSA, MD5, AES, RSA keySize < 2048");
    unsigned reached;
    mechanism_argument = NULL;
    for (size_t i = 0; i < MECHANISM_FUNCTIONS; i++) {
        call(&rows[i], &reached);
        ck_assert_msg(reached == 1, "%s: %u calls reach the target", rows[i].name, reached);
    }
}

TEST(audit_permits_counts_and_logs_once)
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

/* The reader of the log sees what the list means. */
TEST_EACH(the_start_says_what_is_in_force, 0, 3)
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

TEST(refusals_are_logged_once_with_the_place_of_the_rule)
{
    start("x-disabled-algorithms: DES,   MD5");
    mechanism.mechanism = CKM_MD5;
    all_answer(CKR_MECHANISM_INVALID, 0);
    ck_assert_uint_eq(messages_with("/config:3: 'MD5' refuses CKM_MD5 in C_EncryptInit"), 1);
    ck_assert_uint_eq(messages_with("refuses"), 1);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    ck_assert_uint_eq(messages_with("'MD5' refused CKM_MD5, 21 times in all"), 1);
    initialize();
    session = open_session(0, 0);
    EXPECT(list->C_DigestInit(session, &mechanism), CKR_MECHANISM_INVALID);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    ck_assert_uint_eq(messages_with("'MD5' refused CKM_MD5, 1 time in all"), 1);
}

/* A child of a process that had it goes on under it, without any call of its own. */
TEST(a_forked_child_goes_on_under_the_policy)
{
    start("x-disabled-algorithms: MD5");
    mechanism.mechanism = CKM_MD5;
    int status = -1;
    pid_t child = check_fork();
    if (child == 0) {
        unsigned before = target_calls_in_all();
        for (size_t i = 0; i < MECHANISM_FUNCTIONS; i++)
            if (rows[i].call() != CKR_MECHANISM_INVALID)
                _exit(1);
        _exit(target_calls_in_all() == before ? 0 : 2);
    }
    /* One after the other: the target counts the calls of both. */
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    all_answer(CKR_MECHANISM_INVALID, 0);
}

int main(void)
{
    return test_main("guard", set_up, tear_down);
}
