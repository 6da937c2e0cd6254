/* real_tokens.c - SoftHSM and softoken behind the proxy, each with a token of the test's own. */
#include "fixture.h"

#include <stdio.h>

const char softhsm[] = "/usr/lib/softhsm/libsofthsm2.so";
const char softoken[] = "/usr/lib/x86_64-linux-gnu/libsoftokn3.so";

static CK_SLOT_ID first_slot(void)
{
    CK_SLOT_ID slots[16];
    CK_ULONG count = 16;
    EXPECT(fn->C_GetSlotList(CK_FALSE, slots, &count), CKR_OK);
    return slots[0];
}

static CK_UTF8CHAR user_pin[] = "1234";
static CK_UTF8CHAR so_pin[] = "12345678";

static void let_a_user_log_in(CK_SLOT_ID slot, CK_UTF8CHAR *pin, CK_ULONG pin_bytes)
{
    CK_SESSION_HANDLE session = open_session(slot, CKF_RW_SESSION);
    EXPECT(fn->C_Login(session, CKU_SO, pin, pin_bytes), CKR_OK);
    EXPECT(fn->C_InitPIN(session, user_pin, 4), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    initialize();
}

CK_SLOT_ID softhsm_begin(const char *settings)
{
    CK_UTF8CHAR label[] = "tests                           ";
    char path[128];
    snprintf(path, sizeof path, "%s/softhsm2.conf", root);
    FILE *conf = fopen(path, "we");
    ck_assert_ptr_nonnull(conf);
    fprintf(conf, "directories.tokendir = %s\nlog.level = ERROR\n", root);
    fclose(conf);
    setenv("SOFTHSM2_CONF", path, 1);
    proxy_before(softhsm, settings);
    initialize();
    EXPECT(fn->C_InitToken(first_slot(), so_pin, 8, label), CKR_OK);
    let_a_user_log_in(first_slot(), so_pin, 8);
    return first_slot();
}

CK_SLOT_ID softoken_begin(const char *settings)
{
    enum { SLOT_WITH_KEYS = 2 };
    char whole[1024];
    snprintf(whole, sizeof whole, "x-target-init: configdir='sql:%s' flags=forceOpen\n%s", root,
             settings);
    proxy_before(softoken, whole);
    initialize();
    let_a_user_log_in(SLOT_WITH_KEYS, NULL, 0);
    return SLOT_WITH_KEYS;
}
