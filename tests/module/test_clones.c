/* test_clones.c - two lives of one memory image do not share random bytes.
 *
 * A fork stands for a cloned machine: no droppable page tells of it. In a library that is built with memory
 * that fork does not wipe (mutant FORK), the two have one pool: there the test fails that draws without the
 * kernel's bytes, and the one that mixes them in must not.
 */
#include "run.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "words_seen.h"

enum { DRAWS = 64, DRAW_BYTES = 16 };

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08
#endif

/* The proxy calls this one, not the C library's. */
void *mmap(void *address, size_t len, int protection, int flags, int fd, off_t offset)
{
    if ((flags & MAP_TYPE) == MAP_DROPPABLE)
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, address, len, protection, flags, fd, offset);
}

typedef uint8_t drawn[DRAWS][DRAW_BYTES];

static bool draw(CK_SESSION_HANDLE session, drawn *into)
{
    for (int i = 0; i < DRAWS; i++)
        if (fn->C_GenerateRandom(session, (*into)[i], DRAW_BYTES) != CKR_OK)
            return false;
    return true;
}

/* On two processors, each would draw from another part of the pool. */
static void stay_on_this_processor(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
}

START_TEST(two_lives_of_one_image_share_no_bytes)
{
    int status = 0;
    stay_on_this_processor();
    drawn *both =
        mmap(NULL, 2 * sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(both, MAP_FAILED);
    knob("LAX_FORK", "1");
    words_begin();
    proxy_before("counting",
                 _i == 0 ? "x-pool-max-age: 1min" : "x-pool-max-age: 1min\nx-pool-mix: kernel");
    EXPECT(fn->C_Initialize(&no_threads), CKR_OK);
    CK_SESSION_HANDLE session = open_session(0, 0);
    for (int i = 0; i < 6; i++)
        ck_assert(draw(session, &both[0]));
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_HANGS_S);
        _exit(draw(session, &both[1]) ? 0 : 1);
    }
    ck_assert(draw(session, &both[0]));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    unsigned same = 0;
    for (int i = 0; i < DRAWS; i++)
        for (int j = 0; j < DRAWS; j++)
            same += memcmp(both[0][i], both[1][j], DRAW_BYTES) == 0;
    ck_assert_uint_eq(same, 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, two_lives_of_one_image_share_no_bytes, 0, 2);
}

int main(void)
{
    return run_tests("clones", add_tests);
}
