/* rows.h - calls made from functions.def: each argument is what value_of() of the includer says of its name. */
#ifndef P11_PROXY_TEST_ROWS_H
#define P11_PROXY_TEST_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/* All numbers of PKCS#11 are one of two types, all else is an address. */
#define IS_POINTER(type)                                                                           \
    _Generic((type)0, unsigned long : false, unsigned char : false, default : true)
#define MADE(pair)     MADE_ pair
#define MADE_(type, n) (type) value_of(#n, IS_POINTER(type))

/* call_C_Sign() and so on, through the includer's list. */
#define CALLER(name, ...)                                                                          \
    static CK_RV call_##name(void)                                                                 \
    {                                                                                              \
        return list->name(P11_EACH(MADE, __VA_ARGS__));                                            \
    }

#endif
