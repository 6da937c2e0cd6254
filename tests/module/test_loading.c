/* test_loading.c - loading and unloading, with and without C_Finalize; a configuration that is not right is one message and
 * CKR_GENERAL_ERROR, never half in force. */
#include "fixture.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

static CK_BYTE bytes[64];

static unsigned mappings_of(const char *path)
{
    char line[PATH_MAX + 128];
    unsigned count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (fgets(line, sizeof line, maps) != NULL)
        count += strstr(line, path) != NULL;
    fclose(maps);
    return count;
}

static void unload(void)
{
    ck_assert_int_eq(dlclose(proxy), 0);
}

static bool is_unloaded(void)
{
    return mappings_of(getenv("TEST_MODULE")) + mappings_of(target_path("scripted")) == 0;
}

/* One life as far as dlclose(), and what each call of it answered. */
enum { ROUNDS = 3, ANSWERS = 14 };

static void live(CK_FUNCTION_LIST_PTR list, void *args, bool finalizes, CK_RV *answers)
{
    CK_SESSION_HANDLE own = CK_INVALID_HANDLE;
    CK_SESSION_INFO info;
    *answers++ = list->C_GetSessionInfo(1, &info);
    *answers++ = list->C_Initialize(args);
    *answers++ = list->C_GetSessionInfo(1, &info);
    *answers++ = list->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &own);
    for (int i = 0; i < 8; i++)
        *answers++ = list->C_GenerateRandom(own, bytes, sizeof bytes);
    *answers++ = list->C_GetSessionInfo(own, &info);
    *answers++ = finalizes ? list->C_Finalize(NULL) : CKR_OK;
}

/* The right answer is what the same program gets from the target alone. */
TEST_EACH(without_a_thread_each_load_starts_afresh_as_with_the_target_alone, 0, 6)
{
    void *const args[] = {&os_locking, &no_threads, NULL};
    CK_RV bare[ANSWERS], proxied[ANSWERS];
    proxy_with("");
    unload();
    for (int round = 0; round < ROUNDS; round++) {
        void *target = dlopen(target_path("scripted"), RTLD_NOW | RTLD_LOCAL);
        live(list_of(target), args[_i / 2], _i % 2 != 0, bare);
        dlclose(target);
        proxy_load();
        live(fn, args[_i / 2], _i % 2 != 0, proxied);
        unload();
        ck_assert(is_unloaded());
        ck_assert_mem_eq(proxied, bare, sizeof bare);
    }
}

/* Its code is run by the thread, so it stays. */
TEST(with_a_thread_it_stays_loaded_and_says_that_it_is_initialized)
{
    begin_filled();
    CK_FUNCTION_LIST_PTR list = fn;
    unload();
    proxy_load();
    ck_assert_ptr_eq(fn, list);
    EXPECT(fn->C_Initialize(&os_locking), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    draw(session, 16, 4096);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    unload();
    proxy_load();
    initialize();
    draw(open_session(0, 0), 16, 4096);
}

TEST(what_failed_to_initialize_unloads_too)
{
    script("C_Initialize: fail 0x6");
    proxy_with("");
    EXPECT(fn->C_Initialize(&os_locking), CKR_FUNCTION_FAILED);
    unload();
    ck_assert(is_unloaded());
    setenv("P11_PROXY_TARGET", "/nonexistent.so", 1);
    proxy_load();
    EXPECT(fn->C_Initialize(&os_locking), CKR_GENERAL_ERROR);
    unload();
    ck_assert(is_unloaded());
}

/* A second target is a copy of the module. */
TEST(a_copy_beside_has_a_life_of_its_own)
{
    begin("x-pool-threads: never");
    CK_FUNCTION_LIST_PTR first = fn;
    const char *copy = copy_of(getenv("TEST_MODULE"), "copy.so");
    setenv("TEST_MODULE", copy, 1);
    proxy_load();
    ck_assert_ptr_ne(fn, first);
    EXPECT(fn->C_Initialize(&os_locking), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    draw(open_session(0, 0), 16, 4096);
    unload();
    ck_assert_uint_eq(mappings_of(copy), 0);
    fn = first;
    draw(session, 16, 4096);
}

/* _i: a thousand lives that end; a hundred loads without C_Finalize. Of the memory a life may leave less than the smallest
 * allocation: what libc keeps for the moment counts as allocated, and it may map a heap or two. */
TEST_EACH(lives_and_loads_leave_nothing_behind, 0, 2)
{
    enum { SETTLED = 50, MAY_LEAVE_BYTES = 16 * 1024, MAPPINGS_MAY_LEAVE = 10 };
    unsigned descriptors = 0, mappings = 0;
    size_t allocated_bytes = 0;
    begin_a_thread_and_end_it();
    unsigned threads = threads_now();
    script("quiet");
    proxy_with(_i == 0 ? "x-disabled-algorithms: MD5"
                       : "x-disabled-algorithms: MD5\nx-pool-threads: never");
    for (int i = 0; i < (_i == 0 ? 1000 : 100); i++) {
        initialize();
        for (int k = 0; _i == 1 && k < 300; k++)
            open_session(0, 0);
        draw(open_session(0, 0), 64, i % 10 == 0 ? 16384 : 1024);
        if (_i == 0)
            EXPECT(fn->C_Finalize(NULL), CKR_OK);
        else {
            unload();
            ck_assert(is_unloaded());
            proxy_load();
        }
        if (i == SETTLED) {
            descriptors = entries_of("/proc/self/fd");
            mappings = mappings_of("");
            allocated_bytes = mallinfo2().uordblks;
        }
    }
    WAIT_UNTIL(threads_now() == threads);
    ck_assert_uint_eq(entries_of("/proc/self/fd"), descriptors);
    ck_assert(_i == 1 || mallinfo2().uordblks < allocated_bytes + MAY_LEAVE_BYTES);
    ck_assert(IS_SANITIZED || mappings_of("") <= mappings + MAPPINGS_MAY_LEAVE);
}

/* A library's constructor waits for a thread that draws: the loader's lock is held meanwhile. */
static bool drawn_first;

static void *draw_first(void *unused)
{
    drawn_first = fn->C_GenerateRandom(open_session(0, 0), bytes, 16) == CKR_OK;
    return unused;
}

static void wait_for_a_first_draw(void)
{
    start_threads(1, draw_first, NULL);
    join_threads();
}

TEST(a_first_draw_does_not_need_the_loader)
{
    proxy_with("");
    initialize();
    setenv("CONSTRUCTOR_CALLS", text_of("%tx", (ptrdiff_t)wait_for_a_first_draw), 1);
    ck_assert_ptr_nonnull(dlopen(target_path("constructor"), RTLD_NOW));
    ck_assert(drawn_first);
}

/* Of two loads the last close unloads. The target stays as it is for a program that uses it as well. */
TEST(what_is_used_elsewhere_stays)
{
    begin("x-pool-threads: never");
    CK_FUNCTION_LIST_PTR list = bare_list();
    void *again = dlopen(getenv("TEST_MODULE"), RTLD_NOW | RTLD_LOCAL);
    draw(session, 16, 1024);
    ck_assert_int_eq(dlclose(again), 0);
    draw(session, 16, 1024);
    EXPECT(fn->C_Initialize(&os_locking), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    unload();
    ck_assert_uint_eq(mappings_of(getenv("TEST_MODULE")), 0);
    ck_assert_uint_eq(CALLS(C_Finalize) + CALLS(C_CloseSession), 0);
    EXPECT(list->C_GenerateRandom(session, bytes, 8), CKR_OK);
    EXPECT(list->C_Initialize(NULL), CKR_CRYPTOKI_ALREADY_INITIALIZED);
}

/* A fork calls handlers; of code that is gone, it may be. */
TEST(a_fork_after_unloading_is_harmless)
{
    SKIP_IF_SANITIZED();
    proxy_with("");
    for (int i = 0; i < 10; i++) {
        initialize();
        draw(open_session(0, 0), 16, i % 2 == 0 ? 1024 : 16384);
        if (i % 3 == 0)
            EXPECT(fn->C_Finalize(NULL), CKR_OK);
        unload();
        reap(child_that(NULL));
        proxy_load();
        fn->C_Finalize(NULL);
    }
}

/* "%s" stands for the folder of the test, which has links to the target and to the proxy. */
static const struct {
    const char *settings;
    const char *said; /* part of the message */
} wrongs[] = {
    {"", "x-target"},
    {"x-target: %s/missing.so", "missing.so"},
    {"x-target: %s", "is"},
    {"x-target: %s/config", "config"},
    {"x-target: libs/relative.so", "relative.so"},
    {"x-target: no-such-module-anywhere.so", "no-such-module-anywhere.so"},
    {"x-target: /lib/x86_64-linux-gnu/libm.so.6", "libm.so.6"},
    {"x-target: %s/link.so", "itself"},
    {"x-target: %s/target.so\nx-pol: on", "x-pol"},
    {"x-target: %s/target.so\nx-disabled-algorithms: MD5, SHA9", "config:2:"},
    {"x-target: %s/target.so\nx-disabled-algorithms: MD5, SHA9", "SHA9"},
    {"x-target: %s/target.so\nx-disabled-algorithms-file: %s/missing", "missing"},
    {"x-target: %s/target.so\nx-disabled-algorithms-file: %s", "is"},
    {"x-target: %s/target.so\nx-disabled-algorithms: MD5\nx-policy: audit\n"
     "x-disabled-algorithms-file: %s/no",
     "/no"},
};

static void configured(const char *settings)
{
    ck_assert_int_eq(symlink(getenv("TEST_MODULE"), in_root("link.so")), 0);
    copy_of(target_path("scripted"), "target.so");
    capture_stderr();
    proxy_configured(settings);
}

TEST_EACH(each_wrong_configuration_is_a_message_and_a_general_error, 0, COUNT_OF(wrongs))
{
    configured(text_of(wrongs[_i].settings, root, root));
    ck_assert_uint_eq(messages_with(""), 0); /* the list alone says nothing */
    EXPECT(fn->C_Initialize(&os_locking), CKR_GENERAL_ERROR);
    ck_assert_msg(messages_with("") == 1, "%u messages for: %s", messages_with(""),
                  wrongs[_i].settings);
    ck_assert_msg(messages_with(wrongs[_i].said) == 1, "no word of '%s'", wrongs[_i].said);
    EXPECT(fn->C_GetInfo(&(CK_INFO){0}), CKR_CRYPTOKI_NOT_INITIALIZED);
    EXPECT(fn->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
}

TEST(a_wrong_configuration_can_be_mended_without_unloading)
{
    configured(text_of("x-target: %s/missing.so", root));
    EXPECT(fn->C_Initialize(&os_locking), CKR_GENERAL_ERROR);
    copy_of(target_path("scripted"), "missing.so");
    EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
}

/* A copy is another object: each copy's target is the other. */
TEST_EACH(the_proxy_or_a_copy_of_it_as_target_ends_in_an_error, 0, 2)
{
    const char *module = getenv("TEST_MODULE");
    configured(text_of("x-target: %s", _i == 0 ? module : copy_of(module, "copy.so")));
    ck_assert_uint_ne(fn->C_Initialize(&os_locking), CKR_OK);
    ck_assert(_i == 1 || messages_with("itself") == 1);
}

/* A daemon that gave up its rights, or sees another root, starts anew in the middle of its life. The token's own
 * module needs no file for that. _i: whether the file was named by the environment or found. */
TEST_EACH(a_configuration_that_went_out_of_reach_stays_in_force, 0, 2)
{
    CK_MECHANISM md5 = {CKM_MD5, NULL, 0};
    configured(text_of("x-target: %s/target.so\nx-disabled-algorithms: MD5\nx-log: stderr", root));
    for (int life = 0; life < 3; life++) {
        EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
        EXPECT(fn->C_DigestInit(open_session(0, 0), &md5), CKR_MECHANISM_INVALID);
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
        ck_assert_uint_eq(messages_with("out of reach"), (unsigned)life);
        if (life > 0)
            continue;
        unlink(in_root("config"));
        unlink(in_root("target.so"));
        if (_i == 1) {
            /* Defaults are no policy. */
            unsetenv("P11_PROXY_CONFIG");
            setenv("P11_PROXY_TARGET", target_path("scripted"), 1);
        }
    }
}

/* What was read for the lists is read again by C_Initialize. _i: which variable changes; 2: the file. */
TEST_EACH(what_changed_after_the_lists_is_seen, 0, 3)
{
    proxy_with("");
    if (_i == 2)
        write_in_root("config", "x-pool: /nonexistent\n");
    else
        setenv(_i == 0 ? "P11_PROXY_CONFIG" : "P11_PROXY_TARGET", "/nonexistent", 1);
    EXPECT(fn->C_Initialize(&os_locking), CKR_GENERAL_ERROR);
    ck_assert_uint_eq(messages_with("/nonexistent"), 1);
}
