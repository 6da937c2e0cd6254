/* test_codes.c - random calls, right and wrong, are answered as by the module alone, whether the pool is empty or full.
 *
 * Each call is made in a life of its own: of the target, loaded by itself, and then of the proxy before it.
 */
#include "served.h"

enum { LARGEST = 5000, FILLING_DRAWS = 200 };

static CK_FUNCTION_LIST_PTR list; /* of the module that is called */
static CK_SESSION_HANDLE session, closed_session;
static CK_BYTE buf[LARGEST];
static CK_BYTE seed[] = "seed";

enum when { BEFORE_INITIALIZE, IN_LIFE, AFTER_CLOSE_ALL, AFTER_FINALIZE, WHENS };

enum whose { OURS, CLOSED, NOBODYS, ZERO, WHOSES };

static const struct call {
    const char *name;
    bool seeds;
    CK_BYTE_PTR bytes;
    CK_ULONG len_bytes;
} calls[] = {
    {"C_GenerateRandom(buf, 0)", false, buf, 0},
    {"C_GenerateRandom(buf, 1)", false, buf, 1},
    {"C_GenerateRandom(buf, 16)", false, buf, 16},
    {"C_GenerateRandom(buf, 1024)", false, buf, 1024},
    {"C_GenerateRandom(buf, 1025)", false, buf, 1025},
    {"C_GenerateRandom(buf, 5000)", false, buf, 5000},
    {"C_GenerateRandom(NULL, 0)", false, NULL, 0},
    {"C_GenerateRandom(NULL, 1)", false, NULL, 1},
    {"C_GenerateRandom(NULL, 16)", false, NULL, 16},
    {"C_GenerateRandom(NULL, 5000)", false, NULL, 5000},
    {"C_SeedRandom(seed, 4)", true, seed, 4},
    {"C_SeedRandom(seed, 0)", true, seed, 0},
    {"C_SeedRandom(NULL, 0)", true, NULL, 0},
    {"C_SeedRandom(NULL, 4)", true, NULL, 4},
};

enum { CALLS = sizeof calls / sizeof *calls };

typedef CK_RV answers[WHENS][WHOSES][CALLS];

static CK_SLOT_ID slot_of_list(void)
{
    CK_SLOT_ID slots[16] = {0};
    CK_ULONG count = 16;
    EXPECT(list->C_GetSlotList(CK_FALSE, slots, &count), CKR_OK);
    return slots[0];
}

static CK_SESSION_HANDLE open_one(void)
{
    CK_SESSION_HANDLE opened;
    EXPECT(list->C_OpenSession(slot_of_list(), CKF_SERIAL_SESSION, NULL, NULL, &opened), CKR_OK);
    return opened;
}

static CK_RV make(const struct call *call, enum whose whose)
{
    CK_SESSION_HANDLE handle = whose == OURS     ? session
                               : whose == CLOSED ? closed_session
                               : whose == ZERO   ? CK_INVALID_HANDLE
                                                 : session + 1000;
    return call->seeds ? list->C_SeedRandom(handle, call->bytes, call->len_bytes)
                       : list->C_GenerateRandom(handle, call->bytes, call->len_bytes);
}

/* A life up to the call. What the draws beforehand are answered is no matter here. */
static CK_RV answer(const struct call *call, enum when when, enum whose whose, bool fill)
{
    if (when == BEFORE_INITIALIZE)
        return make(call, whose);
    EXPECT(list->C_Initialize(&no_threads), CKR_OK);
    closed_session = open_one();
    session = open_one();
    for (int i = 0; fill && i < FILLING_DRAWS; i++)
        list->C_GenerateRandom(session, buf, 16);
    EXPECT(list->C_CloseSession(closed_session), CKR_OK);
    if (when == AFTER_CLOSE_ALL)
        EXPECT(list->C_CloseAllSessions(slot_of_list()), CKR_OK);
    if (when == AFTER_FINALIZE)
        EXPECT(list->C_Finalize(NULL), CKR_OK);
    CK_RV rv = make(call, whose);
    if (when != AFTER_FINALIZE)
        EXPECT(list->C_Finalize(NULL), CKR_OK);
    return rv;
}

static void ask_all(answers *into, bool fill)
{
    for (int when = 0; when < WHENS; when++)
        for (int whose = 0; whose < WHOSES; whose++)
            for (int i = 0; i < CALLS; i++)
                (*into)[when][whose][i] = answer(&calls[i], when, whose, fill);
}

static void are_the_same(const answers *bare, const answers *ours, const char *pool)
{
    for (int when = 0; when < WHENS; when++)
        for (int whose = 0; whose < WHOSES; whose++)
            for (int i = 0; i < CALLS; i++)
                ck_assert_msg((*ours)[when][whose][i] == (*bare)[when][whose][i],
                              "%s, pool %s, at time %d, session %d: 0x%lx, and not 0x%lx",
                              calls[i].name, pool, when, whose, (*ours)[when][whose][i],
                              (*bare)[when][whose][i]);
}

static answers bare;

static void compare(const char *target)
{
    static answers ours;
    proxy_before(target, "");
    list = bare_list();
    ask_all(&bare, false);
    list = fn;
    ask_all(&ours, false);
    are_the_same(&bare, &ours, "empty");
    ask_all(&ours, true);
    are_the_same(&bare, &ours, "full");
}

START_TEST(softhsm_is_answered_for_as_it_answers)
{
    softhsm_begin("");
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    compare(softhsm);
    EXPECT(bare[BEFORE_INITIALIZE][OURS][0], CKR_CRYPTOKI_NOT_INITIALIZED);
    EXPECT(bare[AFTER_FINALIZE][OURS][0], CKR_CRYPTOKI_NOT_INITIALIZED);
    EXPECT(bare[IN_LIFE][OURS][2], CKR_OK);
    EXPECT(bare[IN_LIFE][CLOSED][2], CKR_SESSION_HANDLE_INVALID);
    EXPECT(bare[AFTER_CLOSE_ALL][OURS][2], CKR_SESSION_HANDLE_INVALID);
}
END_TEST

static const char *const tokens[] = {
    "",
    "login for random",
    "no generator",
    "C_GenerateRandom: fail 0x30",
    "C_SeedRandom: fail 0x120", /* CKR_RANDOM_SEED_NOT_SUPPORTED */
    "C_SeedRandom: fail 0x121", /* CKR_RANDOM_NO_RNG */
    "C_SeedRandom: fail 0x54",  /* CKR_FUNCTION_NOT_SUPPORTED */
    "C_SeedRandom: fail 0x101", /* CKR_USER_NOT_LOGGED_IN */
};

START_TEST(any_token_is_answered_for_as_it_answers)
{
    script("quiet; %s", tokens[_i]);
    compare("scripted");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, softhsm_is_answered_for_as_it_answers);
    tcase_add_loop_test(tcase, any_token_is_answered_for_as_it_answers, 0,
                        sizeof tokens / sizeof *tokens);
}

int main(void)
{
    return run_tests("codes", add_tests);
}
