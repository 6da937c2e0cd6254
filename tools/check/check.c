/* check.c - p11-proxy check: what is in force, what is wrong, and what to do about it. */
#include "check/check.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STAGE_S = 30,
    FINDINGS_MOST = 256,      /* what comes after is not kept */
    FINDING_TEXT_BYTES = 4096 /* longer ones are cut */
};

/* In memory that child processes share. */
static struct report {
    size_t count, problems;
    char stage[64]; /* what a child is doing */
    struct finding {
        enum mark mark;
        char about[16];
        char text[FINDING_TEXT_BYTES];
        const char *advice; /* within text; NULL: there is nothing to do */
    } findings[FINDINGS_MOST];
} * report;

struct checked checked;

static int output = -1; /* what the child and its modules print */

static const char *const mark_words[] = {"ok", "note", "problem"};

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
    report->problems += mark == MARK_PROBLEM;
}

size_t report_problems(void)
{
    return report->problems;
}

void report_stage(const char *stage)
{
    snprintf(report->stage, sizeof report->stage, "%s", stage);
    alarm(STAGE_S);
}

/* The first line that the child or its modules printed, after "; it prints: "; "" if there is none. */
static const char *printed(void)
{
    static char text[MESSAGE_BYTES] = "; it prints: ";
    size_t used = strlen("; it prints: ");
    ssize_t len = pread(output, text + used, sizeof text - used - 1, 0);
    text[used + (size_t)(len > 0 ? len : 0)] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return len > 0 ? text : "";
}

/* In the child. */
static void use_module(void *context)
{
    const struct checked_module *module = context;
    CK_FUNCTION_LIST *list;
    struct message message;
    bool locks;
    setenv("P11_PROXY_LOG", "stderr error", /* overwrite= */ 1);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    report_stage("while it was loaded and started");
    if (token_start(&list, module->path, module->reserved, &locks, &message)) {
        module->use(list);
        list->C_Finalize(NULL);
    } else
        report_add(
            MARK_PROBLEM, module->name,
            "the %s %s%s\n"
            "correct what it says; ldd %s shows which libraries it does not find; a target's "
            "manual, what else it needs: a daemon, a file, a variable, x-target-init",
            module->name, message.text, printed(), module->path);
}

void report_module(struct checked_module module)
{
    output = memfd_create("output", MFD_CLOEXEC);
    int status = in_child(use_module, &module);
    char how[64] = "ended the process";
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(how, sizeof how, "did not answer within %d s", STAGE_S);
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "crashed (%s)", strsignal(WTERMSIG(status)));
    if (status != 0)
        report_add(MARK_PROBLEM, module.name,
                   "the module %s: %s%s\n"
                   "the same would happen in an application; ask the module's maker",
                   how, report->stage, printed());
    close(output);
}

static void print_text(void)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct finding *finding = &report->findings[i];
        printf("%-9s", mark_words[finding->mark]);
        put_plain(stdout, finding->text);
        if (finding->advice != NULL) {
            fputs("\n         -> ", stdout);
            put_plain(stdout, finding->advice);
        }
        putchar('\n');
    }
}

static void print_json(void)
{
    struct json_object *document = json_object_new_object();
    struct json_object *settings = json_object_new_array(), *findings = json_object_new_array();
    char origin[MESSAGE_BYTES];
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct config_setting *setting = &checked.config->settings[i];
        struct json_object *object = json_object_new_object();
        json_add(object, "key", json_text(setting->key));
        json_add(object, "value", json_text(setting->text));
        json_add(object, "from", json_text(config_origin(setting, origin, sizeof origin)));
        json_object_array_add(settings, object);
    }
    for (size_t i = 0; i < report->count; i++) {
        const struct finding *finding = &report->findings[i];
        struct json_object *object = json_object_new_object();
        json_add(object, "mark", json_text(mark_words[finding->mark]));
        json_add(object, "about", json_text(finding->about));
        json_add(object, "text", json_text(finding->text));
        json_add(object, "advice", json_text(finding->advice));
        json_object_array_add(findings, object);
    }
    json_add(document, "version", json_text(VERSION));
    json_add(document, "module", json_text(checked.module_path));
    json_add(document, "settings", settings);
    json_add(document, "problems", json_object_new_uint64(report_problems()));
    json_add(document, "findings", findings);
    json_write(document);
}

static int run(void)
{
    static void (*const subjects[])(void) = {
        check_settings, check_policy, check_target, check_proxy, check_machine, check_p11_kit,
    };
    char folder[PATH_MAX] = "";
    report = shared_memory(sizeof *report);
    /* Not realpath(): a link is to be seen. Not a plain name: dlopen() would look for it elsewhere. */
    bool is_absolute = request.module_path[0] == '/' || getcwd(folder, sizeof folder) == NULL;
    snprintf(checked.module_path, sizeof checked.module_path, "%s%s%s", folder,
             is_absolute ? "" : "/", request.module_path);
    config_places_default(&checked.places, checked.module_path);
    checked.config = config_read(&checked.places);
    if (checked.config == NULL)
        return say("out of memory");
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        subjects[i]();
    if (request.json)
        print_json();
    else
        print_text();
    return end_of_output(report_problems() > 0 ? EXIT_BAD : EXIT_FINE);
}

const struct command check_command = {
    .name = "check",
    .summary = "say what is in force, what is wrong, and what to do about it",
    .usage =
        "p11-proxy check [--module PATH] [--json]\n\n"
        "Reads the configuration, loads the token's module and the proxy, and says what is in\n"
        "force, what is wrong, and what to do about it. Never logs in, never writes.",
    .options = {OPTION_MODULE, OPTION_JSON},
    .exit_codes = "0 no problem (notes do not count), 1 a problem, 2 wrong usage.",
    .run = run,
};
