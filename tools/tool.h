/* tool.h - what the subcommands of p11-proxy share: exit codes, options, output. */
#ifndef P11_PROXY_TOOL_H
#define P11_PROXY_TOOL_H

#include <getopt.h>
#include <json.h>
#include <stdbool.h>
#include <stdint.h>
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
command_function setup_command;
command_function stats_command;

/* Says on stderr what is wrong with the command line of command, and where help is. EXIT_USAGE. */
int usage_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

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
 * Takes an option of the rows above, or getopt_long()'s answer to one that is wrong. A command asks
 * when the option is none of its own. GO_ON if it is noted in *common; else the exit code, after help
 * or version are printed or the mistake is reported.
 */
int common_option(int option, const char *command, const char *help, struct common_options *common);

/* Takes all options of a command that has no others. Likewise. */
int common_options(int argc, char **argv, const char *help, struct common_options *common);

/* A whole number from least to most, with nothing before it. *rest is what follows it. */
bool parse_number(const char *text, unsigned long least, unsigned long most, unsigned long *number,
                  const char **rest);

/* The module that is meant if none is named: the one beside the program in a build tree, else the
 * installed one. */
const char *default_module(void);

/* Whether the file at path is a link to one of another name. Its real path goes to real if it exists. */
bool is_link_to_other(const char *path, char real[PATH_MAX]);

/* The configuration of the module at path, as the module itself would find it. As config_load(). */
int load_config(struct config **config, const char *module_path, struct message *message);

/* EXIT_BAD, with a message on stderr, if what was written to stdout did not arrive; else code. A
 * reader that has closed its end is no error. */
int end_of_output(int code);

/* Whether out is a terminal that can move: not with TERM=dumb. */
bool is_screen(FILE *out);

/* Whether it wants colours besides: not with NO_COLOR. */
bool wants_colour(FILE *out);

/* Writes text with '?' in place of what a terminal would act upon, and of what is no UTF-8. */
void put_plain(FILE *out, const char *text);

/* The same in place. */
void make_plain(char *text);

/* A JSON string, with '?' in place of what is no UTF-8. NULL stands for null. */
struct json_object *json_text(const char *text);

/* A number with so many digits after the point. */
struct json_object *json_decimal(double value, int digits);

/* Adds a member to an object. */
#define json_add(object, key, value) json_object_object_add(object, key, value)

/* Writes a document to out and frees it: on one line, or for people to read too. */
enum json_layout { JSON_ONE_LINE, JSON_PRETTY };
void json_write(FILE *out, struct json_object *document, enum json_layout layout);

#endif
