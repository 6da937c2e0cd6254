/* main.c - p11-proxy, the program: finds the subcommand. */
#include "tool.h"

#include <locale.h>
#include <string.h>

#include "base/words.h"

static const struct command {
    const char *name;
    const char *full_name;
    const char *summary;
    command_function *run;
} commands[] = {
    {"check", "p11-proxy check", "say what is in force, what is wrong, and what to do about it",
     check_command},
    {"setup", "p11-proxy setup", "register the proxy with p11-kit for a token's module",
     setup_command},
    {"bench", "p11-proxy bench",
     "measure random bytes straight from the token and through the proxy", bench_command},
    {"policy", "p11-proxy policy", "show which algorithms are refused, and by which rule",
     policy_command},
    {"stats", "p11-proxy stats", "show live counters of the processes that use the proxy",
     stats_command},
};

enum {
    COMMANDS = sizeof commands / sizeof commands[0],
    MISTYPED_MOST = 3 /* letters: a word that differs by more is another word */
};

static int print_overview(void)
{
    fputs("usage: p11-proxy COMMAND [OPTION]...\n\nCommands:\n", stdout);
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-12s  %s\n", commands[i].name, commands[i].summary);
    fputs("  help COMMAND  show what a command takes\n\nOptions:\n"
          "  --help        show this, or after a command what it takes\n"
          "  --version     show the version\n\n"
          "The manual is p11-proxy(1), that of the configuration p11-proxy.module(5).\n",
          stdout);
    return end_of_output(EXIT_FINE);
}

/* argv[0] is the command's name. */
static int run(int argc, char **argv)
{
    const struct command *nearest = &commands[0];
    if (strcmp(argv[0], "help") == 0)
        return print_overview();
    for (const struct command *command = commands; command < commands + COMMANDS; command++) {
        if (strcmp(argv[0], command->name) == 0) {
            argv[0] = (char *)command->full_name; /* getopt_long() only reads it */
            return command->run(argc, argv);
        }
        if (edit_distance(argv[0], command->name) < edit_distance(argv[0], nearest->name))
            nearest = command;
    }
    if (edit_distance(argv[0], nearest->name) > MISTYPED_MOST)
        return usage_error("p11-proxy", "there is no command '%s'", argv[0]);
    return usage_error("p11-proxy", "there is no command '%s'; the nearest is '%s'", argv[0],
                       nearest->name);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    setlocale(LC_CTYPE, "C.UTF-8"); /* to know characters, whatever the user's language is */
    if (word == NULL)
        return usage_error("p11-proxy", "a command is missing");
    if (strcmp(word, "help") == 0 && argc > 2)
        return run(2, (char *[]){argv[2], (char *)"--help", NULL});
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return print_overview();
    if (strcmp(word, "--version") == 0)
        return print_version();
    return run(argc - 1, argv + 1);
}
