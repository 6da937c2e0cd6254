/* config_fixture.h - a folder of configuration files that lasts one test. */
#ifndef P11_PROXY_CONFIG_FIXTURE_H
#define P11_PROXY_CONFIG_FIXTURE_H

#include "config/config.h"

extern char root[64];               /* the folder */
extern struct config_places places; /* all inside root; the environment is empty */
extern struct message said;         /* of the last load */

void fixture_setup(void);

/* A path below root, in one of a few buffers that are used in turn. */
const char *below(const char *name);

/* Writes a file below root. */
void put(const char *name, const char *text);
void put_bytes(const char *name, const void *bytes, size_t len);

/* The file that most tests write: system/p11-proxy.module. */
void put_system(const char *text);

/* Loads; fails the test if that fails. The caller ends it with config_free(). */
struct config *load(void);

/* Loads what must fail with the message, in which "@" stands for root. */
void refused(const char *expected);

/* Loads with P11_PROXY_TARGET set so, and expects that message of config_check_target(). */
void target_refused(const char *target, const char *expected);

/* Loads one line, and expects "@/system/p11-proxy.module:1: " and the rest. */
void line_refused(const char *line, const char *expected_rest);

/* Fails unless text, in which "@" stands for root, is what came. */
void same_text(const char *came, const char *text);

#endif
