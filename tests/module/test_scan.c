/* test_scan.c - what was served, dropped or thrown away is nowhere in this process's memory. */
#include "served.h"

#include <string.h>

#include "memory_scan.h"

enum { LARGEST = 4096 };

static CK_SESSION_HANDLE session;

static void begin_with(CK_C_INITIALIZE_ARGS *args, const char *settings)
{
    proxy_with(settings);
    EXPECT(fn->C_Initialize(args), CKR_OK);
    session = open_session(0, 0);
}

/* The caller's own copy goes at once. */
static void draw_and_wipe(unsigned times, CK_ULONG len_bytes)
{
    static uint8_t buf[LARGEST];
    for (unsigned i = 0; i < times; i++) {
        EXPECT(fn->C_GenerateRandom(session, buf, len_bytes), CKR_OK);
        served(buf, len_bytes);
        explicit_bzero(buf, sizeof buf);
    }
}

static void nothing_is_found(const char *when)
{
    struct scan found = scan_memory();
    ck_assert_msg(found.served + found.held == 0,
                  "%s: %lu pieces that were served are there, and %lu others", when, found.served,
                  found.held);
}

TEST(a_scan_finds_what_is_there)
{
    begin_with(&no_threads, "x-pool-max-age: 1min");
    draw_and_wipe(70, 16);
    uint8_t *heap = malloc(64);
    scan_bait(heap + 3);
    struct scan found = scan_memory();
    ck_assert_uint_eq(found.served, 1);
    ck_assert_uint_gt(found.held, 0);
    memset(heap, 0, 64);
    free(heap);
}

/* By stripe, by ring, by the caller's own part of a fill, and around the pool. */
TEST_EACH(what_was_served_is_found_nowhere, 0, 7)
{
    static const struct {
        const char *settings;
        CK_ULONG len_bytes;
    } ways[] = {{"x-pool-max-age: 1min", 16},      {"x-pool-max-age: 1min", 24},
                {"x-pool-max-age: 1min", 512},     {"x-pool-max-age: 1min", 1024},
                {"x-pool-max-age: 1min", LARGEST}, {"x-pool: off", 64},
                {"x-pool-mix: kernel", 64}};
    begin_with(&os_locking, ways[_i].settings);
    draw_and_wipe(200, ways[_i].len_bytes);
    ck_assert_uint_eq(scan_memory().served, 0);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    nothing_is_found("after C_Finalize");
}

TEST(what_is_dropped_is_found_nowhere)
{
    begin_with(&no_threads, "x-pool-max-age: 1min");
    draw_and_wipe(300, 16);
    ck_assert_uint_gt(scan_memory().held, 0);
    EXPECT(fn->C_SeedRandom(session, (CK_BYTE_PTR) "seed", 4), CKR_OK);
    nothing_is_found("after a seed");
    draw_and_wipe(300, 16);
    EXPECT(fn->C_Login(session, CKU_USER, (CK_BYTE_PTR) "1234", 4), CKR_OK);
    nothing_is_found("after a login");
    draw_and_wipe(300, 16);
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    nothing_is_found("after the last close");
}

/* Half of the chunk was written before the token lied. */
TEST(what_failed_the_health_test_is_found_nowhere)
{
    static uint8_t buf[64];
    begin_with(&no_threads, "");
    draw_and_wipe(40, 64);
    script("C_GenerateRandom: write half");
    for (int i = 0; i < 1000 && fn->C_GenerateRandom(session, buf, sizeof buf) == CKR_OK; i++)
        served(buf, sizeof buf);
    explicit_bzero(buf, sizeof buf);
    EXPECT(fn->C_GenerateRandom(session, buf, sizeof buf), CKR_DEVICE_ERROR);
    nothing_is_found("after two alarms");
}

int main(void)
{
    return test_main("scan", set_up, tear_down);
}
