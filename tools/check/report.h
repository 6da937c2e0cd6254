/* report.h - what p11-proxy check found: a mark, a sentence, and what to do about it. */
#ifndef P11_PROXY_REPORT_H
#define P11_PROXY_REPORT_H

#include <stdbool.h>
#include <stddef.h>

enum mark { MARK_OK, MARK_NOTE, MARK_PROBLEM };

enum {
    FINDINGS_MOST = 256,      /* what comes after is not kept */
    FINDING_TEXT_BYTES = 4096 /* longer ones are cut */
};

struct finding {
    enum mark mark;
    char about[16]; /* for programs: "target", "token", ... */
    char text[FINDING_TEXT_BYTES];
    const char *advice; /* within text: what to do about it; NULL: nothing */
};

/* Begins an empty report in memory that child processes share. False if there is none. */
bool report_begin(void);

/* Adds a finding. about is cut to what its field holds. A line end in the text is before what to do. */
void report_add(enum mark mark, const char *about, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The findings in their order; NULL behind the last one. */
const struct finding *report_finding(size_t index);

size_t report_count(enum mark mark);

/*
 * Runs work(context) in a child process. A module that crashes, ends the process or hangs becomes a
 * problem, with the stage that it was in. What it prints goes to stderr.
 */
typedef void report_work(const void *context);
void report_from_child(const char *about, report_work *work, const void *context);

/* In such a child: what it does from now on. It has half a minute for that. */
void report_stage(const char *stage);

#endif
