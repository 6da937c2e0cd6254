/* tool.h - what the subcommands of p11-proxy share: exit codes, options, output. */
#ifndef P11_PROXY_TOOL_H
#define P11_PROXY_TOOL_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include "config/config.h"
#include "base/message.h"
#include "policy/policy.h"

enum {
    EXIT_FINE = 0,
    EXIT_BAD = 1,  /* a problem, refused, could not be measured */
    EXIT_USAGE = 2 /* the command line is wrong, or cannot be answered */
};

/* One subcommand. argv[0] is "p11-proxy NAME", for messages; returns an exit code. */
typedef int command_function(int argc, char **argv);

command_function bench_command;
command_function check_command;
command_function policy_command;
command_function stats_command;

/* Says on stderr what is wrong with the command line of command, and where help is. EXIT_USAGE. */
int usage_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same after getopt_long() has said what is wrong. */
int usage_hint(const char *command);

/* Prints name and version. EXIT_FINE. */
int print_version(void);

/* Rows for getopt_long(); the last of them end the table. */
/* clang-format off */
#define OPTION_MODULE  {"module", required_argument, NULL, 'm'}
#define OPTION_JSON    {"json", no_argument, NULL, 'j'}
#define OPTIONS_OF_ALL {"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'v'}, \
                       {NULL, 0, NULL, 0}
/* clang-format on */

/* What they are set to. */
struct common_options {
    const char *module_path;
    bool json;
};

enum { GO_ON = -1 }; /* is no exit code */

/*
 * Takes an option of the rows above, or getopt_long()'s answer to one that is wrong; a command asks
 * when it is none of its own. GO_ON if it is noted in *common; else the exit code, after help or
 * version are printed or the mistake is told.
 */
int common_option(int option, const char *command, const char *help, struct common_options *common);

/* EXIT_BAD, with a message on stderr, if what was written to stdout did not arrive; else code. That
 * nobody reads any more is no error. */
int end_of_output(int code);

/* Whether out is a terminal that wants colours: not with NO_COLOR, nor with TERM=dumb. */
bool wants_colour(FILE *out);

/* Writes text with whatever a terminal would act upon shown as '?'. */
void put_plain(FILE *out, const char *text);

/* The same in place. */
void make_plain(char *text);

/* Writes text as a JSON string; NULL as null. Bytes that are no UTF-8 appear as U+FFFD. */
void put_json(FILE *out, const char *text);

/*
 * The configuration of the module at path, or of the installed one for NULL, as the module itself
 * would find it. On 0 the caller ends *config with config_free(); otherwise as config_load().
 */
int load_config(struct config **config, const char *module_path, struct message *message);

/* What load_config() takes for NULL. */
extern const char installed_module[];

/*
 * Compiles the policy that config asks for. warn may be NULL. On 0 the caller ends *policy with
 * policy_free(), NULL if there is none; otherwise as policy_compile().
 */
int load_policy(struct policy **policy, const struct config *config, policy_warning *warn,
                void *warn_context, struct message *message);

#endif
