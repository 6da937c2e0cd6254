/* pool_hook.c - where a test of the pool steps in, and nothing until it does. */
#include "pool_hook.h"

void (*pool_test_hook)(void);
