/* inits.h - what the inits target's C_Initialize was given, and what it shall answer. */
#ifndef P11_PROXY_TEST_INITS_H
#define P11_PROXY_TEST_INITS_H

#include "cryptoki.h"

enum { INITS_MOST = 4 };

/* NSS's struct: the standard's, whose last member has moved one place down. */
struct init_args_of_nss {
    CK_C_INITIALIZE_ARGS standard; /* pReserved is NSS's LibraryParameters */
    void *behind;                  /* NSS's pReserved */
};

/* Exported as "inits". One thread at a time. */
struct inits {
    unsigned calls;
    struct {
        void *pointer; /* NULL: the next two were not read */
        CK_C_INITIALIZE_ARGS args;
    } got[INITS_MOST];
    CK_RV answers[INITS_MOST]; /* to the first call, the second, ... */
    void (*during)(void);      /* called by C_Initialize, if not NULL */
};

#endif
