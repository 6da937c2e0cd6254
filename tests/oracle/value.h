/* value.h - the arguments of one scripted call: what a script writes, what the module gets, what came back.
 *
 * A value is one word:
 *   12, 0x1f     a number; 0 is also NULL
 *   s3, o2       the handle that a script gave that name; a handle of nothing if it has none
 *   slot1        the second slot of the last "slots"
 *   &s3          room for a handle, to be known as s3
 *   x:00ff       bytes to read, in a block of exactly that size
 *   out:16       16 bytes to write to; out:16>name keeps what comes, for <name (bytes) and #name (their number)
 *   rnd:16       the same for bytes that cannot be foretold: shown as written to or not (nor by zeros after a failure)
 *   len:16       a number to read and write
 *   find:9       room for nine handles, shown sorted by name; some:9 is not shown, where any may come
 *   init:2       C_Initialize's structure, with these flags
 *   {0:u:3;17:x:00ff;3:out:8;3:null:0}      a template; u is a CK_ULONG, b a CK_BBOOL, null asks for a length
 *   (0x1087:u:1;p:00ff;x:00)                a mechanism; its parameter is these words one after the other,
 *                                           p a pointer to bytes
 */
#ifndef P11_PROXY_ORACLE_VALUE_H
#define P11_PROXY_ORACLE_VALUE_H

#include <stddef.h>
#include <stdio.h>

#include "cryptoki.h"

enum { ARGUMENTS_MAX = 12 };

/* What stands where a script has no handle of that name: nothing that a module gives out. */
#define NO_HANDLE 0x7ffffff1UL

struct value {
    char name[40];        /* of the parameter */
    char text[8192];      /* as it is in the script */
    unsigned long word;   /* what the function is called with */
    unsigned char *block; /* what word points to, if it is a pointer to something of ours */
    size_t block_len;
};

/* The string that stands in pReserved of every structure for C_Initialize, or NULL. Borrowed. */
extern char *init_reserved;

/* Slots are named by their place in the list. */
void values_learn_slots(const CK_SLOT_ID *slots, CK_ULONG count);

/* Makes what text says. Ends the program if that is nothing. What it allocates lasts to the program's end,
 * since modules keep pointers. */
void value_make(struct value *value);

/* Writes what the call left in a value that it could write to, and remembers names. following is the
 * parameter after it, NULL at the end: the length of a buffer. */
void value_show(const struct value *value, const struct value *following, CK_RV rv, FILE *out);

#endif
