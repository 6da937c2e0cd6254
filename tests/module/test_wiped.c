/* test_wiped.c - all that fork wipes may be wiped at any moment: all zero is a state that works. */
#include "run.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "memory_scan.h"
#include "words_seen.h"

enum { TIMES = 300, MAPPINGS_MOST = 4096, DRAW_BYTES = 64 };

static struct mapping mappings[MAPPINGS_MOST];
static unsigned mapping_count;
static volatile sig_atomic_t armed, wiped;

static void wipe_all(int signal_number)
{
    (void)signal_number;
    if (!armed)
        return;
    for (unsigned i = 0; i < mapping_count; i++)
        memset(mappings[i].start, 0, mappings[i].len_bytes);
    armed = 0;
    wiped = 1;
}

static CK_SESSION_HANDLE session;

static void draw(void)
{
    uint8_t buf[DRAW_BYTES];
    EXPECT(fn->C_GenerateRandom(session, buf, sizeof buf), CKR_OK);
    words_note(buf, sizeof buf);
}

/* A new life beside what the target goes on with. */
static void live_again(void)
{
    CK_RV rv = fn->C_Initialize(&no_threads);
    ck_assert(rv == CKR_OK || rv == CKR_CRYPTOKI_ALREADY_INITIALIZED);
    session = open_session(0, 0);
    for (int i = 0; i < 100; i++)
        draw();
    mapping_count = smaps_list(" wf", mappings, MAPPINGS_MOST);
    ck_assert_uint_ge(mapping_count, 2);
    ck_assert_uint_le(mapping_count, MAPPINGS_MOST);
}

/* The draw in which it happens is answered, and so are those that follow; none with what another one got. */
START_TEST(a_draw_is_answered_whenever_all_is_wiped)
{
    struct sigaction action = {.sa_handler = wipe_all, .sa_flags = SA_RESTART};
    unsetenv("COUNTING_LOG");
    words_begin();
    proxy_before("counting", "x-pool-max-age: 1min");
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < TIMES; i++) {
        live_again();
        wiped = 0;
        armed = 1;
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 100 + i * 7 % 500}}, NULL);
        while (!wiped)
            draw();
        for (int j = 0; j < 5; j++)
            draw();
    }
    words_check(TIMES * 100 * DRAW_BYTES / WORD_BYTES);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_draw_is_answered_whenever_all_is_wiped);
}

int main(void)
{
    return run_tests("wiped", add_tests);
}
