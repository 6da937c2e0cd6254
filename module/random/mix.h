/* mix.h - x-pool-mix: kernel. Random bytes XORed with the kernel's, on their way to the caller. */
#ifndef P11_PROXY_MIX_H
#define P11_PROXY_MIX_H

#include <stdint.h>

#include "state/settings.h"
#include "cryptoki.h"

/* XORs len_bytes of buf with getrandom()'s, drawn now: after the token's were fixed, so that a token
 * cannot cancel them. Wipes buf and returns CKR_FUNCTION_FAILED if the kernel gives none. Keeps errno. */
CK_RV mix_with_kernel(uint8_t *buf, CK_ULONG len_bytes);

/* The answer to a request that was answered with rv: mixed, if that is configured and rv is CKR_OK. */
static inline CK_RV mixed(CK_RV rv, uint8_t *buf, CK_ULONG len_bytes)
{
    if (__builtin_expect(settings()->pool_mix == CONFIG_MIX_NONE, 1) || rv != CKR_OK || buf == NULL)
        return rv;
    return mix_with_kernel(buf, len_bytes);
}

#endif
