/* tool.h - what the subcommands of p11-proxy share: exit codes, options, output, modules. */
#ifndef P11_PROXY_TOOL_H
#define P11_PROXY_TOOL_H

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

/* An option of a command. What is written goes where the pointers point. */
struct command_option {
    const char *name;
    const char *value; /* how the help shows it: " PATH", "[=SECONDS]" if it may be left out */
    const char *help;
    bool *is_given;
    const char **text;     /* of an option without a value: its name */
    unsigned long *number; /* from 1 to most */
    unsigned long most;
};

enum { OPTIONS_MOST = 7 };

/* A command, which has --help and --version besides its options. run returns an exit code. */
struct command {
    const char *name, *summary;
    const char *usage, *exit_codes; /* what the help has before and after the options */
    bool takes_arguments;
    struct command_option options[OPTIONS_MOST + 1]; /* the last has no name */
    int (*run)(void);
};

extern const struct command bench_command, check_command, policy_command, setup_command,
    stats_command;

/* Of more than one command. */
/* clang-format off */
#define OPTION_MODULE {"module", " PATH", "the proxy: its file's name gives that of the configuration", .text = &request.module_path}
#define OPTION_JSON   {"json", "", "for programs", .is_given = &request.json}
/* clang-format on */

/* The command line, as far as the command itself does not keep it. */
extern struct request {
    const char *command; /* "p11-proxy NAME", for messages */
    const char *module_path;
    bool json;
    char **arguments; /* what follows the options; NULL ends it */
} request;

/* Ends the program, after a message that says where help is. */
_Noreturn void end_with_hint(void);

/* For a command line that is wrong: says why, and ends the program. */
#define usage_error(...) (say(__VA_ARGS__), end_with_hint())

/* A whole number from 1 to most, with nothing before or behind it. */
bool parse_number(const char *text, unsigned long most, unsigned long *number);

/* Whether the file at path is a link to one of another name. Its real path goes to real if it exists. */
bool is_link_to_other(const char *path, char real[PATH_MAX]);

/* EXIT_BAD, with a message on stderr, if what was written to stdout did not arrive; else code. A
 * reader that has closed its end is no error. */
int end_of_output(int code);

/* A message on stderr: the command's name, and the text as put_plain() writes it. Returns EXIT_BAD. */
int say(const char *format, ...) __attribute__((format(printf, 1, 2)));

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

enum { SLOTS_MOST = 64 };

/* Whether a module is in use in this process, by whatever has loaded and initialised it. */
bool token_is_started(const char *path);

/*
 * Loads the module at path, for good, and initialises it, for threads if it can, with reserved (may be NULL) in
 * pReserved. *locks is whether it can. False, with a message that says why, if it does not start.
 */
bool token_start(CK_FUNCTION_LIST **list, const char *path, const char *reserved, bool *locks,
                 struct message *message);

/* The slots with a token. *count is 0 if that fails. */
CK_RV token_slots(CK_FUNCTION_LIST *list, CK_SLOT_ID slots[SLOTS_MOST], CK_ULONG *count);

/* The number and p11-kit's words for it. Valid until the next call. */
const char *token_code(CK_RV rv);

/* Copies one of PKCS#11's texts, padded with blanks, as a string of at most bytes + 1 bytes that can be shown. */
void token_text(char *out, const CK_UTF8CHAR *text, size_t bytes);

/*
 * Runs work in a child process, because that is where foreign modules are loaded; what they print goes to
 * stderr. Returns 0 if it returned, else its wait status, or -1 if it exited with 0 or there can be no child.
 */
int in_child(void (*work)(void *), void *context);

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
