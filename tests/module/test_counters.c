/* test_counters.c - what the proxy counts for p11-proxy stats adds up with what the target saw. */
#include "fixture.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "policy/tables.h"
#include "pool/pool.h"
#include "statistics.h"

/* The descriptor of the counters, -1 if there is none. */
static int counters_descriptor(void)
{
    char link[PATH_MAX];
    for (int fd = 0; fd < 1024; fd++) {
        ssize_t len = readlink(text_of("/proc/self/fd/%d", fd), link, sizeof link);
        if (len > 0 && memmem(link, (size_t)len, STATISTICS_NAME, strlen(STATISTICS_NAME)) != NULL)
            return fd;
    }
    return -1;
}

/* As a reader sees them. */
static const struct statistics *counters(void)
{
    int fd = counters_descriptor();
    ck_assert_int_ge(fd, 0);
    void *seen = mmap(NULL, sizeof(struct statistics), PROT_READ, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(seen, MAP_FAILED);
    return seen;
}

static const struct statistics_slot *begin_counted(const char *settings)
{
    begin(settings);
    return &counters()->slots[0];
}

/* As p11-proxy stats adds it up. */
static struct statistics_slot *summed(const struct statistics_slot *slot)
{
    static struct statistics_slot copy;
    memcpy(&copy, slot, sizeof copy);
    statistics_add_up(&copy);
    return &copy;
}

#define NUMBER(s) ((unsigned long)statistic_read(&(s)))

static unsigned long draws_of(const struct statistics_slot *slot)
{
    return summed(slot)->pool_draws + NUMBER(slot->token_draws);
}

TEST(calls_that_reach_the_target_add_up_with_its_own_count)
{
    CK_BYTE big[5000];
    const unsigned long draws = 3000;
    const struct statistics_slot *slot = begin_counted("");
    draw(session, 16, draws * 16);
    for (int i = 0; i < 5; i++)
        EXPECT(fn->C_GenerateRandom(session, big, sizeof big), CKR_OK);
    EXPECT(fn->C_GenerateRandom(session, NULL, 16), CKR_ARGUMENTS_BAD);
    EXPECT(fn->C_GenerateRandom(session + 77, big, 16), CKR_SESSION_HANDLE_INVALID);
    let_filler_work();

    /* What no slot is known for is counted nowhere. */
    ck_assert_uint_eq(NUMBER(slot->calls), CALLS(C_GenerateRandom) - 1);
    ck_assert_uint_eq(NUMBER(slot->failed_calls), 1);
    ck_assert_uint_eq(NUMBER(slot->failed_draws), 1);
    ck_assert_uint_eq(draws_of(slot), draws + 5);
    ck_assert_uint_eq(summed(slot)->pool_drawn_bytes + NUMBER(slot->token_drawn_bytes),
                      draws * 16 + 5 * sizeof big);
    /* What the target was asked for, less the call that failed, went to a caller or into the pool. */
    ck_assert_uint_eq(NUMBER(slot->called_bytes) - 16,
                      NUMBER(slot->token_drawn_bytes) + NUMBER(slot->pool.filled_bytes));
    ck_assert_uint_gt(summed(slot)->pool_draws, draws / 2);
}

static void *draw_so_many(void *count)
{
    CK_SESSION_HANDLE own = open_session(0, 0);
    CK_BYTE bytes[32];
    for (unsigned long i = 0; i < *(unsigned long *)count; i++)
        EXPECT(fn->C_GenerateRandom(own, bytes, sizeof bytes), CKR_OK);
    return NULL;
}

TEST(draws_of_many_threads_are_all_counted)
{
    unsigned long draws = 20000;
    const struct statistics_slot *slot = begin_counted("x-pool-size: 1MiB");
    start_threads(THREADS_MOST, draw_so_many, &draws);
    join_threads();
    let_filler_work();
    ck_assert_uint_eq(draws_of(slot), THREADS_MOST * draws);
    ck_assert_uint_eq(NUMBER(slot->calls), CALLS(C_GenerateRandom));
}

TEST(a_drop_is_counted_under_its_cause_with_its_bytes_and_an_alarm_as_well)
{
    CK_TOKEN_INFO info;
    CK_BYTE bytes[16];
    const struct statistics_slot *slot =
        begin_counted("x-pool-max-age: 1min\nx-pool-threads: never");
    draw(session, 16, 8192);
    uint64_t held = summed(slot)->held_bytes;
    ck_assert_uint_gt(held, 0);
    EXPECT(fn->C_SeedRandom(session, pin, 4), CKR_OK);
    ck_assert_uint_eq(NUMBER(slot->pool.drops[POOL_DROP_SEED]), 1);
    ck_assert_uint_eq(NUMBER(slot->pool.dropped_bytes), held);
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
    ck_assert_uint_eq(NUMBER(slot->pool.drops[POOL_DROP_LOGIN]), 1);
    EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
    session = open_session(0, CKF_RW_SESSION);
    ck_assert_uint_eq(NUMBER(slot->pool.drops[POOL_DROP_SESSIONS]), 1);
    script("C_GetTokenInfo: fail 0x30 once");
    EXPECT(fn->C_GetTokenInfo(0, &info), CKR_DEVICE_ERROR);
    ck_assert_uint_eq(NUMBER(slot->pool.drops[POOL_DROP_TOKEN]), 1);
    unsigned long all = 0;
    for (unsigned cause = 0; cause < POOL_DROP_CAUSES; cause++)
        all += NUMBER(slot->pool.drops[cause]);
    ck_assert_uint_eq(all, 4);
    ck_assert_uint_eq(NUMBER(slot->trust), HEALTH_OK);
    script("C_GenerateRandom: repeat");
    while (fn->C_GenerateRandom(session, bytes, sizeof bytes) == CKR_OK)
        continue;
    ck_assert_uint_eq(NUMBER(slot->trust), HEALTH_FAILED);
    ck_assert_uint_ge(summed(slot)->alarms, 1);
    ck_assert_uint_ge(NUMBER(slot->pool.drops[POOL_DROP_HEALTH]), 1);
    ck_assert_uint_eq(NUMBER(slot->failed_draws), 1);
}

TEST(it_says_what_is_in_force_and_counts_refusals_by_rule)
{
    CK_MECHANISM md5 = {CKM_MD5, NULL, 0};
    begin_counted("x-pool-mix: kernel\nx-disabled-algorithms: DES, MD5\nx-policy: audit");
    const struct statistics *all = counters();
    ck_assert_uint_eq(NUMBER(all->pid), getpid());
    ck_assert_str_eq(all->target, target_path("scripted"));
    ck_assert_ptr_nonnull(strstr(all->module, "p11-proxy.so"));
    ck_assert_uint_eq(NUMBER(all->flags), STATISTICS_POOL | STATISTICS_THREAD |
                                              STATISTICS_MIX_KERNEL | STATISTICS_AUDIT);
    for (int i = 0; i < 5; i++)
        EXPECT(fn->C_DigestInit(open_session(0, 0), &md5), CKR_OK);
    ck_assert_uint_eq(NUMBER(all->refused), 5);
    ck_assert_uint_eq(NUMBER(all->refusal_count), 1);
    ck_assert_uint_eq(NUMBER(all->refusals[0].mechanism), CKM_MD5);
    ck_assert_uint_eq(NUMBER(all->refusals[0].times), 5);
    ck_assert_str_eq(all->refusals[0].rule, "MD5");
}

TEST(numbers_of_different_instants_never_make_a_huge_slot)
{
    static struct statistics_slot slot;
    statistic_set(&slot.pool.filled_bytes, 1000);
    statistic_set(&slot.pool.expired_bytes, 200);
    for (uint64_t dropped = 300; dropped <= 1000; dropped += 700) {
        statistic_set(&slot.pool.dropped_bytes, dropped);
        statistics_add_up(&slot);
        ck_assert_uint_eq(slot.held_bytes, dropped == 300 ? 500 : 0);
    }
}

static void draw_in_a_child(void)
{
    CK_BYTE bytes[16];
    CK_MECHANISM md5 = {CKM_MD5, NULL, 0};
    fn->C_GenerateRandom(session, bytes, sizeof bytes); /* forwarded, and not counted */
    fn->C_DigestInit(session, &md5);
    fn->C_Initialize(&os_locking);
    session = open_session(0, 0);
    for (int i = 0; i < 100; i++)
        CHILD_EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
    CHILD_EXPECT(NUMBER(counters()->pid), (unsigned long)getpid());
    CHILD_EXPECT(draws_of(&counters()->slots[0]), 100);
    fn->C_DigestInit(session, &md5);
    CHILD_EXPECT(NUMBER(counters()->refusal_count), 1);
}

TEST(a_forked_child_counts_for_itself_and_not_before_it_initializes)
{
    SKIP_IF_SANITIZED();
    const struct statistics_slot *slot = begin_counted("x-disabled-algorithms: MD5");
    draw(session, 16, 4096);
    let_filler_work();
    unsigned long draws = draws_of(slot), calls = NUMBER(slot->calls);
    script("lax fork 1");
    reap(child_that(draw_in_a_child));
    ck_assert_uint_eq(draws_of(slot), draws);
    ck_assert_uint_eq(NUMBER(slot->calls), calls);
}

TEST(each_life_begins_at_zero_and_leaves_no_descriptor_and_nobody_can_write_by_it)
{
    proxy_with("");
    for (int life = 0; life < 3; life++) {
        initialize();
        draw(open_session(0, 0), 16, 16 * 100);
        ck_assert_uint_eq(draws_of(&counters()->slots[0]), 100);
        int fd = counters_descriptor();
        ck_assert_int_ne(ftruncate(fd, 0), 0);
        ck_assert_int_ne(write(fd, "x", 1), 1);
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
        ck_assert_int_lt(counters_descriptor(), 0);
    }
}

/* _i: 0 the owner; 1 the system, which ends a program that writes too large a file. */
TEST_EACH(none_are_kept_where_they_are_forbidden, 0, 2)
{
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    struct rlimit limit = {.rlim_cur = 1024 * 1024, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_FSIZE, _i == 0 ? &before : &limit);
    begin(_i == 0 ? "x-statistics: off" : "");
    setrlimit(RLIMIT_FSIZE, &before);
    ck_assert_int_lt(counters_descriptor(), 0);
    draw(session, 16, 4096);
}
