/* test_loading.c - loading and unloading, with and without C_Finalize. */
#include "fixture.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
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
    CK_FUNCTION_LIST_PTR list;
    proxy_with("");
    unload();
    for (int round = 0; round < ROUNDS; round++) {
        void *target = dlopen(target_path("scripted"), RTLD_NOW | RTLD_LOCAL);
        EXPECT(((CK_C_GetFunctionList)dlsym(target, "C_GetFunctionList"))(&list), CKR_OK);
        live(list, args[_i / 2], _i % 2 != 0, bare);
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
    begin("x-pool-max-age: 1min");
    draw_until_filled(session);
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
    served_once(1024);
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
    served_once(1000);
}

/* Less than the smallest allocation of each: what libc keeps for the moment counts as allocated. */
TEST(a_thousand_lives_leave_no_thread_no_descriptor_and_no_memory)
{
    enum { LIVES = 1000, SETTLED = 50, LIVES_MAY_LEAVE_BYTES = 16 * 1024 };
    unsigned descriptors = 0;
    size_t allocated_bytes = 0;
    begin_a_thread_and_end_it();
    unsigned threads = threads_now();
    script("quiet");
    proxy_with("x-disabled-algorithms: MD5");
    for (int i = 0; i < LIVES; i++) {
        initialize();
        draw(open_session(0, 0), 64, i % 10 == 0 ? 16384 : 1024);
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
        if (i == SETTLED) {
            descriptors = entries_of("/proc/self/fd");
            allocated_bytes = mallinfo2().uordblks;
        }
    }
    WAIT_UNTIL(threads_now() == threads);
    ck_assert_uint_eq(entries_of("/proc/self/fd"), descriptors);
    ck_assert_uint_lt(mallinfo2().uordblks, allocated_bytes + LIVES_MAY_LEAVE_BYTES);
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
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        reap(child);
        proxy_load();
        fn->C_Finalize(NULL);
    }
}

TEST(a_hundred_loads_leave_no_descriptor_and_no_mapping)
{
    unsigned descriptors = 0;
    unsigned mappings = 0;
    script("quiet");
    proxy_with("x-disabled-algorithms: MD5\nx-pool-threads: never");
    for (int i = 0; i < 100; i++) {
        initialize();
        for (int k = 0; k < 300; k++)
            open_session(0, 0);
        draw(open_session(0, 0), 16, 4096);
        unload();
        ck_assert(is_unloaded());
        if (i == 10) {
            descriptors = entries_of("/proc/self/fd");
            mappings = mappings_of("");
        }
        proxy_load();
    }
    unload();
    ck_assert_uint_eq(entries_of("/proc/self/fd"), descriptors);
    if (!IS_SANITIZED)
        ck_assert_uint_le(mappings_of(""), mappings + 10); /* the C library may map a heap or two */
    served_once(100 * 512);
}
