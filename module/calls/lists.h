/* lists.h - the function lists that applications get from us. */
#ifndef P11_PROXY_LISTS_H
#define P11_PROXY_LISTS_H

#include "functions.h"

/* Our list that claims major.minor; for a version that never was, the highest one below it of the
 * same major. A list is constant and lasts as long as the process: applications keep pointers. */
const struct p11_functions *list_of_version(unsigned major, unsigned minor);

#endif
