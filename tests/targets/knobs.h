/* knobs.h - how the counting target behaves, as its environment says. */
#ifndef P11_PROXY_TEST_KNOBS_H
#define P11_PROXY_TEST_KNOBS_H

#include <limits.h>

#include "cryptoki.h"

struct knobs {
#define KNOB(field, variable, otherwise) unsigned long field;
#include "knobs.def"
};

/* Reads all of them. Any thread. */
void knobs_read(struct knobs *knobs);

/* The value of a COUNTING_ variable that is a path, copied to path (PATH_MAX bytes); "" if not set. */
void knobs_path(const char *variable, char *path);

/* Exported, for tests in the same process: sets COUNTING_<variable>, or unsets it if value is NULL.
 * Unlike setenv() it is safe beside a thread that is in the target. */
__attribute__((visibility("default"))) void counting_set(const char *variable, const char *value);

/* A forked child's locks are free again, whatever its parent's threads were at. */
void knobs_after_fork(void);

#endif
