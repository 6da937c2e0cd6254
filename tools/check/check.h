/* check.h - what p11-proxy check looks at, one function for each subject, and the report that they add to. */
#ifndef P11_PROXY_CHECK_H
#define P11_PROXY_CHECK_H

#include "tool.h"

enum mark { MARK_OK, MARK_NOTE, MARK_PROBLEM };

/* Adds a finding. about is for programs: "target", "token", ... A line end in the text is before what to do. */
void report_add(enum mark mark, const char *about, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

size_t report_problems(void);

/*
 * Starts a module in a child process, uses it there, and calls its C_Finalize. If it does not start, crashes,
 * ends the process or hangs, that is a problem, with the stage that it was in.
 */
struct checked_module {
    const char *name; /* "target" or "proxy" */
    const char *path;
    const char *reserved; /* for pReserved, or NULL */
    void (*use)(CK_FUNCTION_LIST *list);
};
void report_module(struct checked_module module);

/* In such a child: what it does from now on. It has half a minute for that. */
void report_stage(const char *stage);

/* What is looked at. */
extern struct checked {
    char module_path[2 * PATH_MAX]; /* of the proxy, absolute; its last part may be a link */
    struct config_places places;
    struct config *config;
} checked;

/* What is configured and where, all mistakes, and files that others may write. */
void check_settings(void);

/* The policy, what of it has no effect, and who may write its file. */
void check_policy(void);

/* The target's file, and the target itself, in a child: slots, tokens, random bytes. */
void check_target(void);

/* The proxy's file and, if there is no problem yet, the proxy before the target, in a child: whether it starts, is of
 * this version, and trusts the tokens' random bytes. */
void check_proxy(void);

/* What protects the pool here, and what does not. */
void check_machine(void);

/* Whether p11-kit knows the proxy and, if there is no problem, its tokens by another module. */
void check_p11_kit(void);

/* A file that a user other than root and this one can write or replace, and the command that takes
 * that right away. what names it in the sentence. */
void check_writers(const char *about, const char *what, const char *path);

#endif
