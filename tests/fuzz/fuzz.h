/* fuzz.h - what every fuzzer has. */
#ifndef P11_PROXY_FUZZ_H
#define P11_PROXY_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The library of clang calls it with each input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(bool holds)
{
    if (!holds)
        abort();
}

/* Memory of exactly that size, so that a read beyond it is seen. Never NULL. */
static inline void *exactly(const void *bytes, size_t len_bytes)
{
    void *copy = malloc(len_bytes != 0 ? len_bytes : 1);
    must(copy != NULL);
    if (len_bytes != 0)
        memcpy(copy, bytes, len_bytes);
    return copy;
}

#endif
