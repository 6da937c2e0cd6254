/* report.c - what p11-proxy check found, and the child processes that find it. */
#include "check/check.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STAGE_S = 30,
    FINDINGS_MOST = 256,      /* what comes after is not kept */
    FINDING_TEXT_BYTES = 4096 /* longer ones are cut */
};

static struct report {
    size_t count;
    char stage[64]; /* what a child is doing */
    struct finding {
        enum mark mark;
        char about[16]; /* for programs: "target", "token", ... */
        char text[FINDING_TEXT_BYTES];
        const char *advice; /* within text: what to do about it; NULL: nothing */
    } findings[FINDINGS_MOST];
} * report;

static const char *const mark_words[] = {"ok", "note", "problem"};

bool report_begin(void)
{
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return report != MAP_FAILED;
}

void report_add(enum mark mark, const char *about, const char *format, ...)
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
    char *end = strchrnul(new->text, '\n');
    new->advice = *end != '\0' ? end + 1 : NULL;
    *end = '\0';
    report->count++;
}

size_t report_problems(void)
{
    size_t count = 0;
    for (size_t i = 0; i < report->count; i++)
        count += report->findings[i].mark == MARK_PROBLEM;
    return count;
}

void report_print(void)
{
    static const char *const colours[] = {"\033[32m", "\033[33m", "\033[31m"};
    bool coloured = wants_colour(stdout);
    for (const struct finding *finding = report->findings;
         finding < report->findings + report->count; finding++) {
        const char *word = mark_words[finding->mark];
        printf("%s%s%s%*s", coloured ? colours[finding->mark] : "", word, coloured ? "\033[0m" : "",
               (int)(9 - strlen(word)), "");
        put_plain(stdout, finding->text);
        if (finding->advice != NULL) {
            fputs("\n         -> ", stdout);
            put_plain(stdout, finding->advice);
        }
        putchar('\n');
    }
}

struct json_object *report_json(void)
{
    struct json_object *array = json_object_new_array();
    for (const struct finding *finding = report->findings;
         finding < report->findings + report->count; finding++) {
        struct json_object *object = json_object_new_object();
        json_add(object, "mark", json_text(mark_words[finding->mark]));
        json_add(object, "about", json_text(finding->about));
        json_add(object, "text", json_text(finding->text));
        json_add(object, "advice", json_text(finding->advice));
        json_object_array_add(array, object);
    }
    return array;
}

void report_stage(const char *stage)
{
    snprintf(report->stage, sizeof report->stage, "%s", stage);
    alarm(STAGE_S);
}

struct task {
    report_work *work;
    const void *context;
};

static void run_task(void *context)
{
    const struct task *task = context;
    report_stage("at its start");
    dup2(STDERR_FILENO, STDOUT_FILENO); /* for what the module prints */
    task->work(task->context);
    report_stage("done");
}

void report_from_child(const char *about, report_work *work, const void *context)
{
    struct task task = {work, context};
    int status = in_child(run_task, &task);
    char how[64] = "ended the process";
    if (status == 0 && strcmp(report->stage, "done") == 0)
        return;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(how, sizeof how, "did not answer within %d s", STAGE_S);
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "crashed (%s)", strsignal(WTERMSIG(status)));
    report_add(MARK_PROBLEM, about,
               "the module %s: %s\nthe same would happen in an application; ask the module's maker",
               how, report->stage);
}
