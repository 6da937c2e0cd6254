/* functions.h - a list of all PKCS#11 functions, in their order, made from functions.def.
 *
 * Include a PKCS#11 header first: cryptoki.h here, another one where rows are proof-read.
 */
#ifndef P11_PROXY_FUNCTIONS_H
#define P11_PROXY_FUNCTIONS_H

#include <stddef.h>

/* PARAMS((CK_SLOT_ID, slotID), (CK_FLAGS, flags)) is "CK_SLOT_ID slotID, CK_FLAGS flags";
 * ARGS of the same is "slotID, flags". At most ten pairs: C_UnwrapKeyAuthenticated has ten. */
#define PARAMS(...)      P11_EACH(P11_PARAM, __VA_ARGS__)
#define ARGS(...)        P11_EACH(P11_ARG, __VA_ARGS__)
#define P11_PARAM(pair)  P11_PARAM_ pair
#define P11_PARAM_(t, n) t n
#define P11_ARG(pair)    P11_ARG_ pair
#define P11_ARG_(t, n)   n

#define P11_EACH(f, ...)                                                                           \
    P11_PICK(__VA_ARGS__, P11_10, P11_9, P11_8, P11_7, P11_6, P11_5, P11_4, P11_3, P11_2, P11_1, ) \
    (f, __VA_ARGS__)
#define P11_PICK(a, b, c, d, e, f, g, h, i, j, each, ...) each
#define P11_1(f, a)                                       f(a)
#define P11_2(f, a, ...)                                  f(a), P11_1(f, __VA_ARGS__)
#define P11_3(f, a, ...)                                  f(a), P11_2(f, __VA_ARGS__)
#define P11_4(f, a, ...)                                  f(a), P11_3(f, __VA_ARGS__)
#define P11_5(f, a, ...)                                  f(a), P11_4(f, __VA_ARGS__)
#define P11_6(f, a, ...)                                  f(a), P11_5(f, __VA_ARGS__)
#define P11_7(f, a, ...)                                  f(a), P11_6(f, __VA_ARGS__)
#define P11_8(f, a, ...)                                  f(a), P11_7(f, __VA_ARGS__)
#define P11_9(f, a, ...)                                  f(a), P11_8(f, __VA_ARGS__)
#define P11_10(f, a, ...)                                 f(a), P11_9(f, __VA_ARGS__)

/* Laid out as CK_FUNCTION_LIST, CK_FUNCTION_LIST_3_0 and CK_FUNCTION_LIST_3_2 are: each is a prefix
 * of the next. */
struct p11_functions {
    CK_VERSION version;
#define ROW(name, ...) CK_RV (*name)(PARAMS(__VA_ARGS__));
#include "functions.def"
};

/* How many functions the lists have. Behind its version such a list is an array of functions. */
enum {
    FUNCTIONS_2_40 = offsetof(struct p11_functions, C_GetInterfaceList) / sizeof(void *) - 1,
    FUNCTIONS_3_0 = offsetof(struct p11_functions, C_EncapsulateKey) / sizeof(void *) - 1,
    FUNCTIONS_3_2 = sizeof(struct p11_functions) / sizeof(void *) - 1
};

#endif
