/* test_surroundings.c - programs that give the proxy little: descriptors and time. */
#include "served.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool draws(CK_SESSION_HANDLE session)
{
    CK_BYTE bytes[32];
    for (int i = 0; i < 200; i++)
        if (fn->C_GenerateRandom(session, bytes, sizeof bytes) != CKR_OK)
            return false;
    return true;
}

enum { OPENED = 16 };

static CK_SESSION_HANDLE begin_in_a_child(void)
{
    CK_SESSION_HANDLE session = CK_INVALID_HANDLE;
    CHILD_EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
    CHILD_EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_OK);
    return session;
}

/* Without Check's own macros, which write to a descriptor that is closed here. */
static void live_as_a_daemon(void)
{
    char path[128];
    int opened[OPENED];
    CK_SESSION_HANDLE session = begin_in_a_child();
    CHILD_EXPECT(draws(session), true);
    CHILD_EXPECT(syscall(SYS_close_range, 3U, ~0U, 0U), 0);
    for (int i = 0; i < OPENED; i++) {
        snprintf(path, sizeof path, "%s/own%d", root, i);
        opened[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    }
    for (int life = 0; life < 2; life++) {
        CHILD_EXPECT(draws(session), true);
        CHILD_EXPECT(fn->C_Finalize(NULL), CKR_OK);
        for (int i = 0; i < OPENED; i++)
            CHILD_EXPECT(lseek(opened[i], 0, SEEK_END), 0);
        session = begin_in_a_child();
    }
}

/* What the program opens next gets the numbers that were ours, and stays as it is. */
TEST(a_program_that_closes_all_descriptors_keeps_those_it_opens_later)
{
    proxy_with("x-pool-max-age: 1min");
    reap(child_that(live_as_a_daemon));
}

static void *draw_for_ever(void *session)
{
    CK_BYTE bytes[16];
    for (;;)
        fn->C_GenerateRandom(*(CK_SESSION_HANDLE *)session, bytes, sizeof bytes);
    return NULL;
}

/* The target sleeps, so the draw can be cancelled there. */
TEST_EACH(a_cancelled_draw_leaves_the_pool_and_the_end_whole, 0, 2)
{
    pthread_t thread;
    script("C_GenerateRandom: last 2ms");
    proxy_with(_i == 0 ? "" : "x-pool-threads: never");
    for (int life = 0; life < 5; life++) {
        initialize();
        CK_SESSION_HANDLE session = open_session(0, 0);
        ck_assert_int_eq(pthread_create(&thread, NULL, draw_for_ever, &session), 0);
        unsigned calls = CALLS(C_GenerateRandom);
        WAIT_UNTIL(CALLS(C_GenerateRandom) >= calls + 3);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        draw(session, 16, 16384);
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
    }
    served_once(1000);
}

TEST(no_standard_stream_is_taken)
{
    struct stat file;
    bool taken = false;
    proxy_with("x-pool-max-age: 1min");
    int kept = dup(STDERR_FILENO);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        close(fd);
    CK_RV rv = fn->C_Initialize(&os_locking);
    CK_SESSION_HANDLE session = open_session(0, 0);
    draw(session, 16, 65536);
    let_filler_work();
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        taken |= fstat(fd, &file) == 0;
    dup2(kept, STDERR_FILENO);
    dup2(kept, STDOUT_FILENO);
    ck_assert_uint_eq(rv, CKR_OK);
    ck_assert(!taken);
}

/* Whatever is opened while it lives, the log in a file included. */
TEST(no_other_program_inherits_a_descriptor)
{
    bool was_open[64];
    for (int fd = 0; fd < 64; fd++)
        was_open[fd] = fcntl(fd, F_GETFD) >= 0;
    draw(begin(""), 16, 4096);
    unsigned opened = 0;
    for (int fd = 0; fd < 64; fd++) {
        int flags = was_open[fd] ? -1 : fcntl(fd, F_GETFD);
        opened += flags >= 0;
        ck_assert(flags < 0 || (flags & FD_CLOEXEC) != 0);
    }
    ck_assert_uint_ge(opened, 1);
}

int main(void)
{
    return test_main("surroundings", set_up, tear_down);
}
