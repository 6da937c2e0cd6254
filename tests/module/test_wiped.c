/* test_wiped.c - all that fork wipes may be wiped at any moment: all zero is a state that works. */
#include "run.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "every_instruction.h"
#include "memory_scan.h"
#include "words_seen.h"

enum { TIMES = 300, MAPPINGS_MOST = 4096, DRAW_BYTES = 64 };

static struct mapping mappings[MAPPINGS_MOST];
static unsigned mapping_count;
static volatile sig_atomic_t armed, wiped;

static void wipe_mappings(void)
{
    for (unsigned i = 0; i < mapping_count; i++)
        memset(mappings[i].start, 0, mappings[i].len_bytes);
}

static void wipe_all(int signal_number)
{
    (void)signal_number;
    if (!armed)
        return;
    wipe_mappings();
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

/* For a session that the target may have closed. */
static void draw_if_possible(void)
{
    uint8_t buf[DRAW_BYTES];
    if (fn->C_GenerateRandom(session, buf, sizeof buf) == CKR_OK)
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

#ifdef __x86_64__

static void seed(void)
{
    /* Nobody knows what the token says after a wipe, but it says something. */
    fn->C_SeedRandom(session, (CK_BYTE_PTR) "seed", 4);
}

static void begin_empty(void)
{
    live_again();
    seed();
}

static void look_at_session(void)
{
    CK_SESSION_INFO info;
    fn->C_GetSessionInfo(session, &info);
}

static void open_another(void)
{
    CK_SESSION_HANDLE another;
    fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &another);
}

static void close_it(void)
{
    fn->C_CloseSession(session);
}

static void close_all(void)
{
    fn->C_CloseAllSessions(0);
}

static void log_in_and_out(void)
{
    fn->C_Login(session, CKU_USER, (CK_UTF8CHAR_PTR) "1234", 4);
    fn->C_Logout(session);
}

static void sign(void)
{
    CK_MECHANISM mechanism = {CKM_SHA256_RSA_PKCS, NULL, 0};
    CK_BYTE signature[512];
    CK_ULONG len_bytes = sizeof signature;
    fn->C_SignInit(session, &mechanism, 1);
    fn->C_Sign(session, (CK_BYTE_PTR) "data", 4, signature, &len_bytes);
}

static void finalize(void)
{
    fn->C_Finalize(NULL);
}

static void list_slots(void)
{
    CK_SLOT_ID slots[16];
    CK_ULONG count = 16;
    CK_TOKEN_INFO info;
    fn->C_GetSlotList(CK_TRUE, slots, &count);
    fn->C_GetTokenInfo(0, &info);
}

static const struct {
    void (*begin)(void);
    void (*call)(void);
} calls[] = {
    {live_again, draw},           {begin_empty, draw},    {live_again, look_at_session},
    {live_again, open_another},   {live_again, close_it}, {live_again, close_all},
    {live_again, log_in_and_out}, {live_again, seed},     {live_again, sign},
    {live_again, list_slots},     {live_again, finalize},
};

/* So many lives for one process: each leaves wiped memory behind. */
enum { LIVES = 64 };

static void wipe_in_some(int which, unsigned first, unsigned upto)
{
    words_begin();
    for (unsigned i = first; i < upto; i++) {
        calls[which].begin();
        at_instruction(i, calls[which].call, wipe_mappings);
        for (int j = 0; j < 3; j++)
            draw_if_possible();
        /* Nobody is thought to be in a call for ever. */
        fn->C_Finalize(NULL);
    }
    words_check((upto - first) * DRAW_BYTES / WORD_BYTES);
}

/* A signal handler may fork anywhere. */
START_TEST(a_call_ends_wherever_in_it_all_is_wiped)
{
    unsetenv("COUNTING_LOG");
    words_begin();
    proxy_before("counting", "x-disabled-algorithms: MD5, RSA keySize < 1024");
    calls[_i].begin();
    unsigned count = every_instruction_of(calls[_i].call);
    for (unsigned first = 0; first < count; first += LIVES) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            wipe_in_some(_i, first, first + LIVES < count ? first + LIVES : count);
            _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

#endif

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_draw_is_answered_whenever_all_is_wiped);
#ifdef __x86_64__
    tcase_add_loop_test(tcase, a_call_ends_wherever_in_it_all_is_wiped, 0,
                        sizeof calls / sizeof *calls);
#endif
}

int main(void)
{
    return run_tests("wiped", add_tests);
}
