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

struct p11_functions target_lists[TARGET_LISTS] = {
    [0 ... TARGET_LISTS - 1] =
        {
#define P11_UPTO       302
#define ROW(name, ...) .name = too_early_##name,
#include "functions.def"
        },
};

const struct p11_functions target_has_none = {
#define P11_UPTO       302
#define ROW(name, ...) .name = missing_##name,
#include "functions.def"
};
