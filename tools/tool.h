/* tool.h - what the subcommands of p11-proxy share: exit codes, options, output, modules. */
#ifndef P11_PROXY_TOOL_H
#define P11_PROXY_TOOL_H

#include <getopt.h>
#include <json.h>
#include <limits.h>
#include <p11-kit/pkcs11.h>
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

/* Says on stderr what is wrong with the command line of command, and where help is, and ends the program. */
_Noreturn void usage_error(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

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

/*
 * Takes an option of the rows above, or getopt_long()'s answer to one that is wrong. A command asks
 * when the option is none of its own. Ends the program after help, version, or a mistake.
 */
void common_option(int option, const char *command, const char *help,
                   struct common_options *common);

/* Takes all options of a command that has no others. Likewise. */
struct common_options common_options(int argc, char **argv, const char *help);

/* A whole number from 1 to most, with nothing before or behind it. */
bool parse_number(const char *text, unsigned long most, unsigned long *number);

/* The module that is meant if none is named: the one beside the program in a build tree, else the
 * installed one. */
const char *default_module(void);

/* Whether the file at path is a link to one of another name. Its real path goes to real if it exists. */
bool is_link_to_other(const char *path, char real[PATH_MAX]);

/* EXIT_BAD, with a message on stderr, if what was written to stdout did not arrive; else code. A
 * reader that has closed its end is no error. */
int end_of_output(int code);

/* Writes text with '?' in place of what a terminal would act upon, and of what is no UTF-8. */
void put_plain(FILE *out, const char *text);

/* The same in place. */
void make_plain(char *text);

/* A JSON string of the same. NULL stands for null. */
struct json_object *json_text(const char *text);

/* A number with so many digits after the point. */
struct json_object *json_decimal(double value, int digits);

/* Adds a member to an object. */
#define json_add(object, key, value) json_object_object_add(object, key, value)

/* Writes a document to stdout, on one line, and frees it. */
void json_write(struct json_object *document);

/* Modules of PKCS#11, as a small application has them. */

/* Whether a module is in use in this process, by whatever has loaded and initialised it. */
bool token_is_started(const char *path);

/*
 * Loads the module at path, for good, and initialises it, for threads if it can, with reserved (may be NULL) in
 * pReserved. *locks is whether it can. 0, or -EINVAL with a message that says why not.
 */
int token_start(CK_FUNCTION_LIST **list, const char *path, const char *reserved, bool *locks,
                struct message *message);

/* The number and p11-kit's words for it. Valid until the next call. */
const char *token_code(CK_RV rv);

/* Copies one of PKCS#11's texts, padded with blanks, as a string of at most bytes + 1 bytes that can be shown. */
void token_text(char *out, const CK_UTF8CHAR *text, size_t bytes);

/*
 * Runs work in a child process, because that is where foreign modules are loaded; what they print goes to
 * stderr. Returns 0 if it returned, else its wait status, or -1 if it exited with 0 or there can be no child.
 */
int in_child(void (*work)(void));

/* Zeroed memory that child processes share, until the program ends, which it does if there is none. */
void *shared_memory(size_t bytes);

enum { DOUBLES_MOST = 16 };

struct registered {
    bool has_proxy;
    bool is_module; /* the target can be loaded */
    size_t double_count;
    char doubles[DOUBLES_MOST][NAME_MAX]; /* names of their files, without .module */
};

/*
 * Asks p11-kit, as a program would, for all modules, and which of them but the proxy at module_path are the
 * target or have an initialised token of it; target is NULL to compare with the tokens of the proxy. Loads
 * them all in a child, with half a minute for it. False if that failed; *registered is then empty.
 */
bool registered_find(struct registered *registered, const char *module_path, const char *target);

/* The folder that this user's registrations go to: the system's for root, otherwise the user's own. */
void registered_folder(char folder[PATH_MAX], const struct config_places *places);

#endif
