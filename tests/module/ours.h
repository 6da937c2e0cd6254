/* ours.h - how a test sees the prefetch's own session: by what the counting target logged. */
#ifndef P11_PROXY_TEST_OURS_H
#define P11_PROXY_TEST_OURS_H

#include <check.h>
#include <unistd.h>

#include "words_seen.h"

/* By the token's own account, the application having so many. */
static inline bool ours_is_open_beside(unsigned applications)
{
    unsigned opened = target_calls_with("C_OpenSession", " rv=0x0 ") +
                      target_calls_with("C_OpenSession(RW)", " rv=0x0 ");
    return opened - target_calls_with("C_CloseSession", " rv=0x0 ") > applications;
}

static inline void draw_until_ours_is_open_beside(unsigned applications, CK_SESSION_HANDLE session)
{
    while (!ours_is_open_beside(applications)) { /* in vain as long as a test may take */
        words_draw(session, 32, 32768);
        usleep(5000);
    }
}

/* A session of the application's, and one of ours beside it. */
static inline CK_SESSION_HANDLE open_with_ours(CK_FLAGS flags)
{
    CK_SESSION_HANDLE session = open_session(0, flags);
    draw_until_ours_is_open_beside(1, session);
    return session;
}

static inline CK_TOKEN_INFO token_info(CK_SLOT_ID slot)
{
    CK_TOKEN_INFO info;
    EXPECT(fn->C_GetTokenInfo(slot, &info), CKR_OK);
    return info;
}

#endif
