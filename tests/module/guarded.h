/* guarded.h - the proxy with a policy, before a target whose mechanisms and keys a test chooses. */
#ifndef P11_PROXY_TEST_GUARDED_H
#define P11_PROXY_TEST_GUARDED_H

#include <stdio.h>
#include <string.h>

#include "fixture.h"

#define UNUSED __attribute__((unused)) static

UNUSED struct keyring *keyring;
UNUSED CK_SESSION_HANDLE session;

UNUSED void start(const char *settings)
{
    script("keyring; interfaces 3.2");
    proxy_with(settings);
    keyring = &shared->keyring;
    initialize();
    session = open_session(0, 0);
}

#endif
