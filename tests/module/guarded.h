/* guarded.h - the proxy with a policy, before the target whose mechanisms and keys a test chooses. */
#ifndef P11_PROXY_TEST_GUARDED_H
#define P11_PROXY_TEST_GUARDED_H

#include "fixture.h"
#include "keyring.h"

static struct keyring *keyring;
static CK_SESSION_HANDLE session;

static void start(const char *settings)
{
    proxy_before("keyring", settings);
    keyring = target_symbol("keyring");
    initialize();
    session = open_session(0, 0);
}

#endif
