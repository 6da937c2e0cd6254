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

/* DigestInfo of an MD5 digest (PKCS #1 v1.5), and of a SHA-256 digest. */
UNUSED CK_BYTE md5_info[34] =
    "\x30\x20\x30\x0c\x06\x08\x2a\x86\x48\x86\xf7\x0d\x02\x05\x05\x00\x04\x10"
    "0123456789abcdef";
UNUSED CK_BYTE sha256_info[51] =
    "\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"
    "0123456789abcdef0123456789abcdef";

/* What an application that pads by itself signs under CKM_RSA_X_509. */
UNUSED void pad(CK_BYTE *block, size_t block_bytes, const CK_BYTE *info, size_t info_bytes)
{
    memset(block, 0xff, block_bytes);
    block[0] = 0x00;
    block[1] = 0x01;
    block[block_bytes - info_bytes - 1] = 0x00;
    memcpy(block + block_bytes - info_bytes, info, info_bytes);
}

#endif
