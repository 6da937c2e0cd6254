/* main.c - p11-proxy, the program: finds the subcommand. */
#include "tool.h"

#include <string.h>

static const struct command {
    const char *name;
    const char *full_name;
    const char *summary;
    command_function *run;
} commands[] = {
    {"check", "p11-proxy check", "say what is in force, what is wrong, and what to do about it",
     check_command},
    {"bench", "p11-proxy bench",
     "measure random bytes straight from the token and through the proxy", bench_command},
    {"policy", "p11-proxy policy", "show which algorithms are refused, and by which rule",
     policy_command},
    {"stats", "p11-proxy stats", "show live counters of the processes that use the proxy",
     stats_command},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int print_help(void)
{
    puts("usage: p11-proxy COMMAND [OPTION]...\n\nCommands:");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-8s %s\n", commands[i].name, commands[i].summary);
    puts("\nOptions:\n"
         "  --help     show this, or after a command what it takes\n"
         "  --version  show the version\n\n"
         "The manual is p11-proxy(1), that of the configuration p11-proxy.module(5).");
    return end_of_output(EXIT_FINE);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    }
    return NULL;
}

/* argv[0] is the command's name. */
static int run(int argc, char **argv)
{
    const struct command *command = find_command(argv[0]);

    if (command == NULL)
        return usage_error("p11-proxy", "there is no command '%s'", argv[0]);
    argv[0] = (char *)command->full_name; /* getopt_long() only reads it */
    return command->run(argc, argv);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;

    if (word == NULL)
        return usage_error("p11-proxy", "which command?");
    if (strcmp(word, "help") == 0 && argc > 2)
        return run(2, (char *[]){argv[2], (char *)"--help", NULL});
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return print_help();
    if (strcmp(word, "--version") == 0)
        return print_version();
    return run(argc - 1, argv + 1);
}
