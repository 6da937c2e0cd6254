/* ops_calls.c - calls that have nothing to do with random bytes. */
#include "bench.h"

static void prepare(struct subject *s)
{
    s->fn = load_module(s->module);
    initialize(s->fn);
    s->session = open_session(s->fn, find_slot(s->fn, /* wanted= */ 0, 0));
}

static void get_session_info(struct subject *s, long times)
{
    CK_SESSION_INFO info;
    CK_RV rv = CKR_OK;
    for (long i = 0; i < times && rv == CKR_OK; i++)
        rv = s->fn->C_GetSessionInfo(s->session, &info);
    must("C_GetSessionInfo", rv);
}

/* Each begins anew: for a target that does not mind. */
static void sign_init(struct subject *s, long times)
{
    CK_MECHANISM mechanism = {CKM_SHA256_RSA_PKCS, NULL, 0};
    CK_RV rv = CKR_OK;
    for (long i = 0; i < times && rv == CKR_OK; i++)
        rv = s->fn->C_SignInit(s->session, &mechanism, /* hKey= */ 1);
    must("C_SignInit", rv);
}

const struct op ops_calls[] = {
    {"info", "C_GetSessionInfo", prepare, get_session_info, NULL, 0, 0, 0},
    {"sign-init", "C_SignInit with an RSA key, again and again", prepare, sign_init, NULL, 0, 0, 0},
    {0}};
