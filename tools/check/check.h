/* check.h - what p11-proxy check looks at, one function for each subject, and the report that they add to. */
#ifndef P11_PROXY_CHECK_H
#define P11_PROXY_CHECK_H

#include "token.h"
#include "tool.h"

enum mark { MARK_OK, MARK_NOTE, MARK_PROBLEM };

/* Adds a finding. about is for programs: "target", "token", ... A line end in the text is before what to do. */
void report_add(enum mark mark, const char *about, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

size_t report_problems(void);

/*
 * Runs work(context) in a child process. A module that crashes, ends the process or hangs becomes a
 * problem, with the stage that it was in. True if there was no problem.
 */
bool report_from_child(const char *about, child_work *work, void *context);

/* In such a child: what it does from now on. It has half a minute for that. */
void report_stage(const char *stage);

/* What is looked at. */
struct checked {
    char module_path[2 * PATH_MAX]; /* of the proxy, absolute; its last part may be a link */
    struct config *config;          /* NULL: it cannot be read */
    struct policy *policy;
};

/* What is configured and where, the log file, and files that others may write. */
void check_settings(const struct config *config);

/* The policy, and what of it has no effect. Keeps it for check_tokens(). */
void check_policy(struct checked *checked);

/* The target's file. False: it need not be loaded, because something about it is wrong already. */
bool check_target(const struct checked *checked);

/* The target itself: interfaces, slots, tokens, random bytes. Loads it in a child. False: there is a problem. */
bool check_tokens(struct checked *checked);

/* The proxy's file: whether it is there, and no link. */
bool check_proxy_file(const char *module_path);

/* The proxy before the target: whether it starts, and what it learns of the tokens. Likewise. */
void check_proxy(struct checked *checked);

/* What protects the pool here, and what does not. */
void check_machine(const struct config *config);

/* Whether p11-kit knows the proxy and, if the target works, its tokens by another module. */
void check_p11_kit(const struct checked *checked, bool target_works);

#endif
