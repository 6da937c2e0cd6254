/* findings.c - what p11-proxy check found, and the child processes that find it. */
#include "check/findings.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_S = 30 };

struct findings *findings_new(void)
{
    void *memory = mmap(NULL, sizeof(struct findings), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory != MAP_FAILED ? memory : NULL;
}

void found(struct findings *findings, enum mark mark, const char *about, const char *format, ...)
{
    struct finding *new;
    va_list arguments;

    if (findings->count == FINDINGS_MOST)
        return;
    new = &findings->finding[findings->count];
    new->mark = mark;
    snprintf(new->about, sizeof new->about, "%s", about);
    va_start(arguments, format);
    vsnprintf(new->text, sizeof new->text, format, arguments);
    va_end(arguments);
    new->advice[0] = '\0';
    findings->count++;
}

void advise(struct findings *findings, const char *format, ...)
{
    struct finding *last = &findings->finding[findings->count - 1];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(last->advice, sizeof last->advice, format, arguments);
    va_end(arguments);
}

size_t findings_count(const struct findings *findings, enum mark mark)
{
    size_t count = 0;

    for (size_t i = 0; i < findings->count; i++)
        count += findings->finding[i].mark == mark;
    return count;
}

void findings_at(struct findings *findings, const char *stage)
{
    snprintf(findings->stage, sizeof findings->stage, "%s", stage);
    alarm(PATIENCE_S);
}

static void report_end(struct findings *findings, const char *about, int status)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        found(findings, MARK_PROBLEM, about, "it did not answer within %d s: %s", PATIENCE_S,
              findings->stage);
    else if (WIFSIGNALED(status))
        found(findings, MARK_PROBLEM, about, "it crashed (%s): %s", strsignal(WTERMSIG(status)),
              findings->stage);
    else
        found(findings, MARK_PROBLEM, about, "it ended the process: %s", findings->stage);
    advise(findings, "an application would fare the same; ask the module's maker");
}

void findings_in_child(struct findings *findings, const char *about, findings_work *work,
                       const void *context)
{
    int status;
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        findings_at(findings, "at its start");
        dup2(STDERR_FILENO, STDOUT_FILENO);
        work(findings, context);
        findings_at(findings, "done");
        _exit(0); /* the module's exit handlers are no business of ours */
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        found(findings, MARK_PROBLEM, about, "no process can be made to load it in");
    else if (status != 0 || strcmp(findings->stage, "done") != 0)
        report_end(findings, about, status);
}
