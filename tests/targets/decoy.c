/* decoy.c - exports every C_ function, and each ends the program: a module that looks for names in all that is loaded
 * finds these first. */
#include <stdio.h>
#include <stdlib.h>

#include "cryptoki.h"
#include "functions.h"

#define EXPORT __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define P11_UPTO 302
#define ROW(name, ...)                                                                             \
    EXPORT CK_RV name(PARAMS(__VA_ARGS__));                                                        \
    EXPORT CK_RV name(PARAMS(__VA_ARGS__))                                                         \
    {                                                                                              \
        fprintf(stderr, "the decoy's " #name " is called\n");                                      \
        abort();                                                                                   \
    }
#include "functions.def"
