/* mix.c - random bytes XORed with the kernel's. */
#include "random/mix.h"

#include <errno.h>
#include <sys/random.h>

#include "base/copy.h"

enum { BLOCK_BYTES = 256 }; /* the kernel never interrupts requests up to this size */

CK_RV mix_with_kernel(uint8_t *buf, CK_ULONG len_bytes)
{
    int saved_errno = errno;
    CK_RV rv = CKR_OK;
    uint8_t kernel[BLOCK_BYTES];
    for (CK_ULONG done = 0; rv == CKR_OK && done < len_bytes;) {
        size_t step = len_bytes - done < BLOCK_BYTES ? (size_t)(len_bytes - done) : BLOCK_BYTES;
        ssize_t got;
        do
            got = getrandom(kernel, step, 0);
        while (got < 0 && errno == EINTR);
        if (got != (ssize_t)step)
            rv = CKR_FUNCTION_FAILED;
        for (size_t i = 0; rv == CKR_OK && i < step; i++)
            buf[done + i] ^= kernel[i];
        done += step;
    }
    wipe_bytes(kernel, sizeof kernel);
    if (rv != CKR_OK)
        wipe_bytes(buf, len_bytes);
    errno = saved_errno;
    return rv;
}
