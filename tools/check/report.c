/* report.c - what p11-proxy check found, and the child processes that find it. */
#include "check/report.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "token.h"

enum { STAGE_S = 30 };

struct report *report_new(void)
{
    void *memory = mmap(NULL, sizeof(struct report), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory != MAP_FAILED ? memory : NULL;
}

void report_add(struct report *report, enum mark mark, const char *about, const char *format, ...)
{
    struct finding *new = &report->findings[report->count];
    va_list arguments;

    if (report->count == FINDINGS_MOST)
        return;
    new->mark = mark;
    snprintf(new->about, sizeof new->about, "%s", about);
    va_start(arguments, format);
    vsnprintf(new->text, sizeof new->text, format, arguments);
    va_end(arguments);
    new->hint[0] = '\0';
    report->count++;
}

void report_hint(struct report *report, const char *format, ...)
{
    struct finding *last = &report->findings[report->count - 1];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(last->hint, sizeof last->hint, format, arguments);
    va_end(arguments);
}

size_t report_count(const struct report *report, enum mark mark)
{
    size_t count = 0;

    for (size_t i = 0; i < report->count; i++)
        count += report->findings[i].mark == mark;
    return count;
}

void report_stage(struct report *report, const char *stage)
{
    snprintf(report->stage, sizeof report->stage, "%s", stage);
    alarm(STAGE_S);
}

struct task {
    struct report *report;
    report_work *work;
    const void *context;
};

static void run_task(void *context)
{
    const struct task *task = context;

    report_stage(task->report, "at its start");
    dup2(STDERR_FILENO, STDOUT_FILENO); /* for what the module prints */
    task->work(task->report, task->context);
    report_stage(task->report, "done");
}

void report_from_child(struct report *report, const char *about, report_work *work,
                       const void *context)
{
    struct task task = {report, work, context};
    int status = in_child(run_task, &task);

    if (status == 0 && strcmp(report->stage, "done") == 0)
        return;
    if (status == -1)
        report_add(report, MARK_PROBLEM, about, "no process can be made to load the module in");
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        report_add(report, MARK_PROBLEM, about, "the module did not answer within %d s: %s",
                   STAGE_S, report->stage);
    else if (WIFSIGNALED(status))
        report_add(report, MARK_PROBLEM, about, "the module crashed (%s): %s",
                   strsignal(WTERMSIG(status)), report->stage);
    else
        report_add(report, MARK_PROBLEM, about, "the module ended the process: %s", report->stage);
    report_hint(report, "the same would happen in an application; ask the module's maker");
}
