/* header_mechanisms.c - the mechanisms of one foreign header (HEADER) as a table. */
#include HEADER

#include "header_mechanisms.h"

const struct header_mechanism TABLE[] = {
#define ROW(name) {#name, name},
#include ROWS
    {0, 0},
};
