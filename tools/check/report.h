/* findings.h - what p11-proxy check found: a mark, a sentence, and what to do about it. */
#ifndef P11_PROXY_FINDINGS_H
#define P11_PROXY_FINDINGS_H

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
    char advice[FINDING_TEXT_BYTES]; /* "": nothing to do */
};

/* Lies in memory that child processes share, see findings_in_child(). */
struct findings {
    size_t count;
    char stage[64]; /* what a child is at */
    struct finding finding[FINDINGS_MOST];
};

/* Empty findings in shared memory, or NULL; they last as long as the process. */
struct findings *findings_new(void);

/* Adds one. about is cut to what its field holds. */
void found(struct findings *findings, enum mark mark, const char *about, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Says what to do about the one that was added last. */
void advise(struct findings *findings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

size_t findings_count(const struct findings *findings, enum mark mark);

/*
 * Runs work(findings, context) in a child process, which is where other people's modules are loaded:
 * one that crashes, ends the process or hangs becomes a problem about it, with findings->stage.
 * Whatever the child prints goes to stderr.
 */
typedef void findings_work(struct findings *findings, const void *context);
void findings_in_child(struct findings *findings, const char *about, findings_work *work,
                       const void *context);

/* In such a child: what it is at from now on. Its patience, half a minute, begins anew. */
void findings_at(struct findings *findings, const char *stage);

#endif
