/* test_recursion.c - a token whose generator is OpenSSL's, which was told to ask a PKCS#11 module: us. */
#include "run.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>

#include "words_seen.h"

static CK_SESSION_HANDLE session;

static void begin(const char *settings)
{
    words_begin();
    proxy_before("counting", settings);
    initialize();
    session = open_session(0, 0);
}

/* By the prefetch's thread as well. */
static _Atomic CK_RV answers_inside[3];
static atomic_uint times_inside;

static void come_back(void)
{
    static __thread bool inside;
    CK_BYTE bytes[1025];
    if (inside)
        ck_abort_msg("the token is asked while it is asked");
    inside = true;
    atomic_fetch_add(&times_inside, 1);
    answers_inside[0] = fn->C_GenerateRandom(session, bytes, sizeof bytes);
    answers_inside[1] = fn->C_GenerateRandom(session, bytes, 1);
    answers_inside[2] = fn->C_Finalize(NULL);
    inside = false;
}

START_TEST(a_generator_that_comes_back_to_us_is_answered_at_once)
{
    CK_BYTE bytes[2048];
    begin(_i == 0 ? "x-pool: off" : _i == 1 ? "x-pool-threads: never" : "");
    *(void (**)(void))target_symbol("counting_during_random") = come_back;
    EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
    EXPECT(fn->C_GenerateRandom(session, bytes, 16), CKR_OK);
    wait_until_quiet();
    ck_assert_uint_ge(times_inside, 2);
    ck_assert_uint_eq(answers_inside[0], CKR_FUNCTION_FAILED);
    /* What is held may be had, and nothing else. */
    ck_assert(answers_inside[1] == CKR_FUNCTION_FAILED || (_i != 0 && answers_inside[1] == CKR_OK));
    ck_assert_uint_eq(answers_inside[2], CKR_FUNCTION_FAILED);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}
END_TEST

/* OpenSSL's struct rand_meth_st, as long as there is one. */
struct rand_method {
    int (*seed)(const void *, int);
    int (*bytes)(unsigned char *, int);
    void (*cleanup)(void);
    int (*add)(const void *, int, double);
    int (*pseudo_bytes)(unsigned char *, int);
    int (*status)(void);
};

static unsigned asked, refused;

static int bytes_of_token(unsigned char *bytes, int len)
{
    asked++;
    if (fn->C_GenerateRandom(session, bytes, (CK_ULONG)len) == CKR_OK)
        return 1;
    refused++;
    return 0;
}

static int is_seeded(void)
{
    return 1;
}

/* SoftHSM without us runs out of stack here: that is its own. Through us its own answer comes back. */
START_TEST(softhsm_whose_openssl_asks_us_ends_in_its_own_error)
{
    static const struct rand_method asks_us = {
        .bytes = bytes_of_token, .pseudo_bytes = bytes_of_token, .status = is_seeded};
    CK_BYTE bytes[2048];
    proxy_before_softhsm(_i == 0 ? "x-pool: off" : "x-pool-threads: never");
    session = open_session(softhsm_slot(), 0);
    void *openssl = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_NOLOAD);
    int (*set_method)(const struct rand_method *) = NULL;
    if (openssl != NULL)
        set_method = (int (*)(const struct rand_method *))dlsym(openssl, "RAND_set_rand_method");
    if (set_method == NULL) {
        puts("softhsm_whose_openssl_asks_us_ends_in_its_own_error: skipped, this SoftHSM has no "
             "OpenSSL 3");
        return;
    }
    ck_assert_int_eq(set_method(&asks_us), 1);
    ck_assert_uint_ne(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
    ck_assert_uint_ge(asked, 1);
    ck_assert_uint_eq(refused, asked);
    set_method(NULL);
    EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_generator_that_comes_back_to_us_is_answered_at_once, 0, 3);
    tcase_add_loop_test(tcase, softhsm_whose_openssl_asks_us_ends_in_its_own_error, 0, 2);
}

int main(void)
{
    return run_tests("recursion", add_tests);
}
