/* check.h - what p11-proxy check looks at, one function for each subject, and the report that they add to. */
#ifndef P11_PROXY_CHECK_H
#define P11_PROXY_CHECK_H

#include <stdbool.h>

#include "config/config.h"
#include "policy/policy.h"
#include "token.h"
#include "tool.h"

enum mark { MARK_OK, MARK_NOTE, MARK_PROBLEM };

/* Begins an empty report in memory that child processes share. False if there is none. */
bool report_begin(void);

/* Adds a finding. about is cut to what its field holds. A line end in the text is before what to do. */
void report_add(enum mark mark, const char *about, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

size_t report_problems(void);

/* All findings, in their order: as lines on stdout, and as a JSON array. */
void report_print(void);
struct json_object *report_json(void);

/*
 * Runs work(context) in a child process. A module that crashes, ends the process or hangs becomes a
 * problem, with the stage that it was in. What it prints goes to stderr.
 */
typedef void report_work(const void *context);
void report_from_child(const char *about, report_work *work, const void *context);

/* In such a child: what it does from now on. It has half a minute for that. */
void report_stage(const char *stage);

/* What the modules are loaded for. All is borrowed. */
struct checked {
    const struct config *config;
    const char *module_path; /* of the proxy, absolute; its last part may be a link */
};

/* What is configured and where, the log file, and files that others may write. */
void check_settings(const struct config *config);

/* A file that a user other than root and this one can write or replace, and the command that takes
 * that right away. what names it in the sentence. */
void check_writers(const char *about, const char *what, const char *path);

/* The policy, and what of it has no effect. */
void check_policy(const struct config *config);

/* The target's file. False: it need not be loaded, because something about it is wrong already. */
bool check_target(const struct checked *checked);

/* The target itself: interfaces, slots, tokens, random bytes. Loads it in a child. False: there is a problem. */
bool check_tokens(const struct checked *checked);

/* The proxy's file: whether it is there, and no link. */
bool check_proxy_file(const char *module_path);

/* The proxy before the target: whether it starts, and what it learns of the tokens. Likewise. */
void check_proxy(const char *module_path);

/* What protects the pool here, and what does not. */
void check_machine(const struct config *config);

/* Whether p11-kit knows the proxy and, if the target works, its tokens by another module. */
void check_p11_kit(const struct checked *checked, bool target_works);

#endif
