/* report.h - what p11-proxy check found: a mark, a sentence, and what to do about it. */
#ifndef P11_PROXY_REPORT_H
#define P11_PROXY_REPORT_H

#include <stddef.h>

enum mark { MARK_OK, MARK_NOTE, MARK_PROBLEM };

enum {
    FINDINGS_MOST = 256,      /* what comes after is not kept */
    FINDING_TEXT_BYTES = 2048 /* longer ones are cut */
};

struct finding {
    enum mark mark;
    char about[16]; /* for programs: "target", "token", ... */
    char text[FINDING_TEXT_BYTES];
    char hint[FINDING_TEXT_BYTES]; /* "": nothing to do */
};

/* Lies in memory that child processes share, see report_from_child(). */
struct report {
    size_t count;
    char stage[64]; /* what a child is doing */
    struct finding findings[FINDINGS_MOST];
};

/* An empty report in shared memory, or NULL. It lasts as long as the process. */
struct report *report_new(void);

/* Adds a finding. about is cut to what its field holds. */
void report_add(struct report *report, enum mark mark, const char *about, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Says what to do about the finding that was added last. */
void report_hint(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

size_t report_count(const struct report *report, enum mark mark);

/*
 * Runs work(report, context) in a child process. A module that crashes, ends the process or hangs becomes
 * a problem, with the stage that it was in. What it prints goes to stderr.
 */
typedef void report_work(struct report *report, const void *context);
void report_from_child(struct report *report, const char *about, report_work *work,
                       const void *context);

/* In such a child: what it does from now on. It has half a minute for that. */
void report_stage(struct report *report, const char *stage);

#endif
