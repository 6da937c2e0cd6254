/* test_unload.c - dlclose(), with and without C_Finalize, and what a program finds that loads us again.
 *
 * The right answer to most of it is what the same program gets from the target alone.
 */
#include "run.h"

#include <dirent.h>

#include "unload_fixture.h"

/* AddressSanitizer's allocator maps as it likes. */
#ifdef __SANITIZE_ADDRESS__
enum { MAPPINGS_ARE_THE_PROGRAMS = 0 };
#else
enum { MAPPINGS_ARE_THE_PROGRAMS = 1 };
#endif

enum { ROUNDS = 5, ANSWERS_MOST = 64 };

static uint8_t bytes[64];
static unsigned count_in(const char *folder)
{
    unsigned count = 0;
    DIR *entries = opendir(folder);
    while (readdir(entries) != NULL)
        count++;
    closedir(entries);
    return count;
}
/* One life as far as dlclose(), and what each call of it answered. */
static unsigned live(CK_RV *answers, void *args, bool finalize)
{
    CK_SESSION_HANDLE session = CK_INVALID_HANDLE;
    CK_SESSION_INFO info;
    unsigned count = 0;
    answers[count++] = fn->C_GetSessionInfo(1, &info);
    answers[count++] = fn->C_Initialize(args);
    answers[count++] = fn->C_GetSessionInfo(1, &info);
    answers[count++] = fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session);
    for (int i = 0; i < 20; i++)
        answers[count++] = fn->C_GenerateRandom(session, bytes, sizeof bytes);
    if (finalize)
        answers[count++] = fn->C_Finalize(NULL);
    return count;
}

static void compare_lives(void *args, bool finalize)
{
    CK_RV bare[ROUNDS][ANSWERS_MOST];
    CK_RV proxied[ROUNDS][ANSWERS_MOST];
    unsigned count = 0;
    for (int i = 0; i < ROUNDS; i++) {
        load(target_path("counting"));
        count = live(bare[i], args, finalize);
        unload();
        ck_assert(!is_mapped(target_path("counting")));
    }
    for (int i = 0; i < ROUNDS; i++) {
        load(getenv("TEST_MODULE"));
        ck_assert_uint_eq(live(proxied[i], args, finalize), count);
        unload();
        expect_nothing_of_us();
        for (unsigned k = 0; k < count; k++)
            ck_assert_msg(proxied[i][k] == bare[i][k], "round %d: answer %u is 0x%lx, not 0x%lx", i,
                          k, proxied[i][k], bare[i][k]);
    }
}

START_TEST(each_load_starts_afresh_as_with_the_target_alone)
{
    begin("");
    unload();
    compare_lives(&os_locking, /* finalize= */ false);
    compare_lives(&os_locking, /* finalize= */ true);
    compare_lives(&no_threads, /* finalize= */ false);
    compare_lives(NULL, /* finalize= */ false);
    compare_lives(NULL, /* finalize= */ true);
}
END_TEST

START_TEST(warm_pools_and_threads_leave_nothing_behind_and_no_byte_comes_twice)
{
    unsigned descriptors = 0;
    unsigned mappings = 0;
    begin_a_thread_and_end_it();
    unsigned threads = threads_now();
    unsetenv("COUNTING_LOG");
    begin("x-pool-max-age: 1min\nx-disabled-algorithms: MD5");
    for (int i = 0; i < 100; i++) {
        load(getenv("TEST_MODULE"));
        initialize();
        for (CK_SLOT_ID session = 0; session < 300; session++)
            open_session(0, 0);
        words_draw(open_session(0, 0), 16, 4096);
        dlclose(proxy);
        /* begin() loaded it once as well. */
        if (i == 0)
            unload();
        expect_nothing_of_us();
        if (i == 10) {
            descriptors = count_in("/proc/self/fd");
            mappings = lines_of_maps_with("");
        }
    }
    ck_assert(threads_become(threads));
    ck_assert_uint_eq(count_in("/proc/self/fd"), descriptors);
    /* The target's shared counter is mapped anew each time; the C library may map a heap or two. */
    if (MAPPINGS_ARE_THE_PROGRAMS)
        ck_assert_uint_lt(lines_of_maps_with(""), mappings + 89 + 10);
    words_check(10000);
}
END_TEST
START_TEST(of_two_loads_the_last_close_unloads)
{
    begin("");
    void *again = dlopen(getenv("TEST_MODULE"), RTLD_NOW | RTLD_LOCAL);
    initialize();
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 4096);
    ck_assert_int_eq(dlclose(again), 0);
    words_draw(session, 16, 4096);
    EXPECT(fn->C_Initialize(&os_locking), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    unload();
    expect_nothing_of_us();
    words_check(900);
}
END_TEST

START_TEST(what_was_hardly_used_unloads_too)
{
    begin("");
    unload();
    expect_nothing_of_us();

    /* Loaded, and not even asked for its list. */
    ck_assert_int_eq(dlclose(dlopen(getenv("TEST_MODULE"), RTLD_NOW)), 0);
    expect_nothing_of_us();

    setenv("COUNTING_INIT_CODE", "0x6", 1);
    load(getenv("TEST_MODULE"));
    EXPECT(fn->C_Initialize(&os_locking), CKR_FUNCTION_FAILED);
    unload();
    expect_nothing_of_us();
    unsetenv("COUNTING_INIT_CODE");

    setenv("P11_PROXY_TARGET", "/nonexistent.so", 1);
    load(getenv("TEST_MODULE"));
    EXPECT(fn->C_Initialize(&os_locking), CKR_GENERAL_ERROR);
    unload();
    expect_nothing_of_us();
}
END_TEST

START_TEST(a_target_that_the_program_uses_as_well_stays_as_it_is)
{
    CK_FUNCTION_LIST_PTR bare;
    words_begin();
    proxy_before("counting", "");
    EXPECT(((CK_C_GetFunctionList)target_symbol("C_GetFunctionList"))(&bare), CKR_OK);
    initialize();
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 8192);
    unsigned before = target_calls("C_Finalize") + target_calls("C_CloseSession");
    unload();
    ck_assert_uint_eq(target_calls("C_Finalize") + target_calls("C_CloseSession"), before);
    ck_assert(!is_mapped(getenv("TEST_MODULE")));
    EXPECT(bare->C_GenerateRandom(session, bytes, 8), CKR_OK);
    EXPECT(bare->C_Initialize(NULL), CKR_CRYPTOKI_ALREADY_INITIALIZED);
}
END_TEST

static void copy_file(const char *from, const char *to)
{
    char block[65536];
    FILE *in = fopen(from, "re");
    FILE *out = fopen(to, "we");
    for (size_t len; (len = fread(block, 1, sizeof block, in)) > 0;)
        ck_assert_uint_eq(fwrite(block, 1, len, out), len);
    fclose(in);
    ck_assert_int_eq(fclose(out), 0);
}

START_TEST(a_copy_beside_goes_on)
{
    char copy[128];
    begin("");
    CK_FUNCTION_LIST_PTR first = fn;
    void *first_handle = proxy;
    initialize();
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 4096);
    snprintf(copy, sizeof copy, "%s/copy.so", root);
    copy_file(getenv("TEST_MODULE"), copy);
    load(copy);
    EXPECT(fn->C_Initialize(&os_locking), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    words_draw(open_session(0, 0), 16, 4096);
    unload();
    ck_assert(!is_mapped(copy));
    fn = first;
    proxy = first_handle;
    words_draw(session, 16, 4096);
    unload();
    expect_nothing_of_us();
    words_check(1200);
}
END_TEST

START_TEST(out_of_reach_of_its_file_it_stays)
{
    char copy[128];
    begin("");
    unload();
    snprintf(copy, sizeof copy, "%s/copy.so", root);
    copy_file(getenv("TEST_MODULE"), copy);
    load(copy);
    ck_assert_int_eq(remove(copy), 0);
    initialize();
    words_draw(open_session(0, 0), 16, 8192);
    CK_FUNCTION_LIST_PTR list = fn;
    unload();
    ck_assert(is_mapped(copy));
    ck_assert_uint_eq(messages_with("stays loaded after dlclose()"), 1);
    fn = list;
    EXPECT(fn->C_Initialize(&os_locking), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    words_draw(open_session(0, 0), 16, 8192);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    words_check(900);
}
END_TEST
static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, each_load_starts_afresh_as_with_the_target_alone);
    tcase_add_test(tcase, warm_pools_and_threads_leave_nothing_behind_and_no_byte_comes_twice);
    tcase_add_test(tcase, of_two_loads_the_last_close_unloads);
    tcase_add_test(tcase, what_was_hardly_used_unloads_too);
    tcase_add_test(tcase, a_target_that_the_program_uses_as_well_stays_as_it_is);
    tcase_add_test(tcase, a_copy_beside_goes_on);
    tcase_add_test(tcase, out_of_reach_of_its_file_it_stays);
}

int main(void)
{
    return run_tests("unload", add_tests);
}
