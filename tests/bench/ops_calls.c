/* ops_calls.c - calls that have nothing to do with random bytes. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "bench.h"

enum {
    SIGNATURES = 200,
    EARLIER_SIGNATURES = 40, /* not timed: demand has to be known */
    MEANWHILE_DRAW_BYTES = 32
};

static const int64_t BETWEEN_SIGNATURES_NS = 5 * 1000 * 1000;

static void prepare(struct subject *s)
{
    s->fn = load_module(s->module);
    initialize(s->fn);
    s->session = open_session(s->fn, find_slot(s->fn, /* wanted= */ 0, 0));
}

static void prepare_sessions(struct subject *s)
{
    prepare(s);
    open_sessions(s, find_slot(s->fn, /* wanted= */ 0, 0), s->argument);
}

static void get_session_info(struct subject *s, long times)
{
    CK_SESSION_INFO info;
    CK_RV rv = CKR_OK;
    for (long i = 0; i < times && rv == CKR_OK; i++)
        rv = s->fn->C_GetSessionInfo(s->session, &info);
    must("C_GetSessionInfo", rv);
}

static void open_and_close(struct subject *s, long times)
{
    CK_SLOT_ID slot = find_slot(s->fn, /* wanted= */ 0, 0);
    for (long i = 0; i < times; i++)
        must("C_CloseSession", s->fn->C_CloseSession(open_session(s->fn, slot)));
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

static void prepare_key(struct subject *s)
{
    CK_BBOOL yes = CK_TRUE;
    CK_BBOOL no = CK_FALSE;
    CK_ULONG len_bytes = 32;
    CK_MECHANISM mechanism = {CKM_GENERIC_SECRET_KEY_GEN, NULL, 0};
    CK_ATTRIBUTE template[] = {{CKA_SIGN, &yes, sizeof yes},
                               {CKA_PRIVATE, &no, sizeof no},
                               {CKA_TOKEN, &no, sizeof no},
                               {CKA_VALUE_LEN, &len_bytes, sizeof len_bytes}};
    CK_OBJECT_HANDLE key;
    prepare(s);
    must("C_GenerateKey", s->fn->C_GenerateKey(s->session, &mechanism, template,
                                               sizeof template / sizeof *template, &key));
    s->count = (long)key;
}

static atomic_bool signing;

static void *draw_meanwhile(void *context)
{
    const struct subject *s = context;
    CK_BYTE bytes[MEANWHILE_DRAW_BYTES];
    CK_SESSION_HANDLE session = open_session(s->fn, find_slot(s->fn, CKF_RNG, 0));
    while (atomic_load(&signing)) {
        must("C_GenerateRandom", s->fn->C_GenerateRandom(session, bytes, sizeof bytes));
        rest_ns(1000000000LL * (int64_t)sizeof bytes / s->argument);
    }
    must("C_CloseSession", s->fn->C_CloseSession(session));
    return NULL;
}

/* One signature's time that one in a hundred exceeds; another thread draws so many bytes a second meanwhile. */
static double sign(struct subject *s, long times)
{
    double ns[SIGNATURES];
    CK_MECHANISM mechanism = {CKM_SHA256_HMAC, NULL, 0};
    CK_BYTE data[32] = {0};
    CK_BYTE signature[64];
    pthread_t drawer;
    (void)times;
    atomic_store(&signing, true);
    if (s->argument != 0 && pthread_create(&drawer, NULL, draw_meanwhile, s) != 0)
        fail("cannot start a thread", "there are too many");
    for (int i = -EARLIER_SIGNATURES; i < SIGNATURES; i++) {
        CK_ULONG len_bytes = sizeof signature;
        int64_t begin_ns = now_ns();
        must("C_SignInit", s->fn->C_SignInit(s->session, &mechanism, (CK_OBJECT_HANDLE)s->count));
        must("C_Sign", s->fn->C_Sign(s->session, data, sizeof data, signature, &len_bytes));
        if (i >= 0)
            ns[i] = (double)(now_ns() - begin_ns);
        rest_ns(BETWEEN_SIGNATURES_NS);
    }
    atomic_store(&signing, false);
    if (s->argument != 0)
        pthread_join(drawer, NULL);
    median_of(ns, SIGNATURES);
    return ns[SIGNATURES * 99 / 100];
}

const struct op ops_calls[] = {
    {"info", "C_GetSessionInfo", prepare, get_session_info, NULL, 0, 0, 0},
    {"info-among", "C_GetSessionInfo, with N sessions open", prepare_sessions, get_session_info,
     NULL, 0, 0, 0},
    {"open-close", "C_OpenSession and C_CloseSession, with N others open", prepare_sessions,
     open_and_close, NULL, 0, 0, 0},
    {"sign-init", "C_SignInit with an RSA key, again and again", prepare, sign_init, NULL, 0, 0, 0},
    {"sign", "200 signatures: 99 % take no longer. A thread draws N bytes a second meanwhile",
     prepare_key, NULL, sign, 1, 0, 1},
    {0}};
