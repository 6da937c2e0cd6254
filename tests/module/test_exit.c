/* test_exit.c - programs end as they like, in the middle of a fill, and the end of the process meets no call. */
#include "fixture.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static CK_BYTE bytes[64];

static void *exit_here(void *unused)
{
    exit(0);
    return unused;
}

static void finalize_at_exit(void)
{
    CK_RV rv = fn->C_Finalize(NULL);
    if (rv != CKR_OK && rv != CKR_CRYPTOKI_NOT_INITIALIZED)
        _exit(7);
}

static void draw_at_exit(void)
{
    for (int i = 0; i < 200; i++)
        fn->C_GenerateRandom(session, bytes, sizeof bytes);
}

static void unload_at_exit(void)
{
    dlclose(proxy);
}

static void exit_simply(void)
{
    exit(0);
}

static void exit_from_a_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, exit_here, NULL);
    pause();
}

static void exit_quickly(void)
{
    quick_exit(0);
}

static void become_another_program(void)
{
    execl("/bin/true", "true", (char *)NULL);
}

static void end_the_main_thread(void)
{
    pthread_exit(NULL);
}

static void finalize_and_unload(void)
{
    finalize_at_exit();
    dlclose(proxy);
    exit(0);
}

static void exit_from_a_child(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        fn->C_GenerateRandom(session, bytes, sizeof bytes);
        exit(0);
    }
    waitpid(child, &status, 0);
    exit(status == 0 ? 0 : 8);
}

static void (*const endings[])(void) = {
    exit_simply,         exit_from_a_thread,  exit_quickly,     become_another_program,
    end_the_main_thread, finalize_and_unload, exit_from_a_child};
static void (*const at_exits[])(void) = {NULL, finalize_at_exit, draw_at_exit, unload_at_exit};

enum { ENDINGS = sizeof endings / sizeof *endings, AT_EXITS = sizeof at_exits / sizeof *at_exits };

/* Handlers of the application run after ours if they were registered before C_Initialize, else before. */
static int way_out;
static bool registers_early;

static void live_and_end(void)
{
    void (*at_exit)(void) = at_exits[way_out / ENDINGS];
    if (at_exit != NULL && registers_early)
        atexit(at_exit);
    CHILD_EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
    if (at_exit != NULL && !registers_early)
        atexit(at_exit);
    CHILD_EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_OK);
    while (CALLS(C_GenerateRandom, .by = FILLER) == 0)
        CHILD_EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
    endings[way_out % ENDINGS]();
}

/* At exit() a target's static objects are destroyed: SoftHSM crashes if that meets a call, and this target says so. */
TEST_EACH(a_program_ends_as_it_likes_and_its_end_meets_no_call, 0, (ENDINGS + 1) * AT_EXITS)
{
    SKIP_IF_SANITIZED();
    registers_early = _i >= ENDINGS * AT_EXITS;
    way_out = registers_early ? _i % AT_EXITS * ENDINGS : _i;
    script("strict exit; C_GenerateRandom by filler: last 5ms");
    proxy_with("x-pool-max-age: 1min");
    reap(child_that(live_and_end));
}

static void exit_while_the_filler_hangs(void)
{
    begin_again();
    DRAW_UNTIL(session, script_held() == 1);
    endings[way_out]();
}

/* Not for ever: a second is what a call of the filler's is waited for. The main thread's end alone ends nothing then. */
TEST_EACH(a_program_may_end_though_the_token_hangs, 0, 4)
{
    SKIP_IF_SANITIZED();
    way_out = _i;
    script("C_GenerateRandom by filler: hold");
    proxy_with("x-pool-max-age: 1min");
    reap(child_that(exit_while_the_filler_hangs));
    script_release();
}

/* The proxy's own handler has run, and the target is being torn down: no call of the filler's comes after that. */
static void count_no_calls(void)
{
    unsigned calls = CALLS(C_GenerateRandom, .by = FILLER) + CALLS(C_CloseSession, .by = FILLER);
    for (int i = 0; i < 100; i++)
        fn->C_GenerateRandom(session, bytes, sizeof bytes); /* it is wanted */
    let_filler_work();
    if (CALLS(C_GenerateRandom, .by = FILLER) + CALLS(C_CloseSession, .by = FILLER) != calls)
        _exit(9);
}

static void exit_with_a_late_handler(void)
{
    atexit(count_no_calls); /* before ours, so it runs after */
    begin("x-pool-max-age: 1min");
    draw_until_filled(session);
    exit(0);
}

TEST(after_the_end_has_begun_the_filler_makes_no_call)
{
    SKIP_IF_SANITIZED();
    reap(child_that(exit_with_a_late_handler));
}
