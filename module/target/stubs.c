/* stubs.c - what answers where the target has no function, or where there is no target yet. */
#include "target/target.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define P11_UPTO 302
#define ROW(name, ...)                                                                             \
    static CK_RV too_early_##name(PARAMS(__VA_ARGS__))                                             \
    {                                                                                              \
        return CKR_CRYPTOKI_NOT_INITIALIZED;                                                       \
    }                                                                                              \
    static CK_RV missing_##name(PARAMS(__VA_ARGS__))                                               \
    {                                                                                              \
        return CKR_FUNCTION_NOT_SUPPORTED;                                                         \
    }
#include "functions.def"

struct p11_functions target = {
#define P11_UPTO       302
#define ROW(name, ...) .name = too_early_##name,
#include "functions.def"
};

const struct p11_functions not_in_target = {
#define P11_UPTO       302
#define ROW(name, ...) .name = missing_##name,
#include "functions.def"
};
