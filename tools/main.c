/* main.c - p11-proxy, the program: finds the command, reads its options, and prints its help. */
#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct command *const commands[] = {
    &check_command, &setup_command, &bench_command, &policy_command, &stats_command,
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

struct request request = {.command = "p11-proxy"};

/* Of the program, to find the module of the same build. */
static const char from_tool[] = "/tools/p11-proxy", to_module[] = "/module/p11-proxy.so";

void end_with_hint(void)
{
    fprintf(stderr, "Try '%s --help'.\n", request.command);
    exit(EXIT_USAGE);
}

_Noreturn static void print_version(void)
{
    puts("p11-proxy " VERSION);
    exit(end_of_output(EXIT_FINE));
}

_Noreturn static void print_overview(void)
{
    fputs("usage: p11-proxy COMMAND [OPTION]...\n\nCommands:\n", stdout);
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-12s  %s\n", commands[i]->name, commands[i]->summary);
    puts("  help COMMAND  show what a command takes\n\nOptions:\n"
         "  --help        show this, or after a command what it takes\n"
         "  --version     show the version\n\n"
         "The manual is p11-proxy(1), that of the configuration p11-proxy.module(5).");
    exit(end_of_output(EXIT_FINE));
}

_Noreturn static void print_help(const struct command *command)
{
    enum { WIDTH = 15 };
    printf("usage: %s\n\n", command->usage);
    for (const struct command_option *option = command->options; option->name != NULL; option++)
        printf("  --%s%-*s  %s\n", option->name, WIDTH - (int)strlen(option->name), option->value,
               option->help);
    printf("  --%-*s  show this\n  --%-*s  show the version\n\nExit code: %s\n", WIDTH, "help",
           WIDTH, "version", command->exit_codes);
    exit(end_of_output(EXIT_FINE));
}

bool parse_number(const char *text, unsigned long most, unsigned long *number)
{
    char *end;
    errno = 0;
    *number = strtoul(text, &end, 10);
    return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0 && *number >= 1 &&
           *number <= most;
}

/* The one beside the program in a build tree, else the installed one. */
static const char *default_module(void)
{
    static char path[PATH_MAX + sizeof to_module];
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);
    ssize_t folder_len = len - (ssize_t)(sizeof from_tool - 1);
    path[len > 0 ? len : 0] = '\0';
    if (folder_len > 0 && strcmp(path + folder_len, from_tool) == 0) {
        strcpy(path + folder_len, to_module);
        if (access(path, F_OK) == 0)
            return path;
    }
    return MODULE_PATH;
}

bool is_link_to_other(const char *path, char real[PATH_MAX])
{
    struct stat st;
    return realpath(path, real) != NULL && lstat(path, &st) == 0 && S_ISLNK(st.st_mode) &&
           strcmp(basename(real), basename(path)) != 0;
}

/* value is NULL where there is none. */
static void take_option(const struct command_option *option, const char *value)
{
    if (option->is_given != NULL)
        *option->is_given = true;
    if (option->text != NULL)
        *option->text = value != NULL ? value : option->name;
    if (option->number != NULL && value != NULL &&
        !parse_number(value, option->most, option->number))
        usage_error("--%s is not a number from 1 to %lu: '%s'", option->name, option->most, value);
}

static void take_options(const struct command *command, int argc, char **argv)
{
    struct option options[OPTIONS_MOST + 3] = {{"help", no_argument, NULL, 'h'},
                                               {"version", no_argument, NULL, 'v'}};
    struct option *next = &options[2];
    int place;
    for (const struct command_option *option = command->options; option->name != NULL; option++)
        *next++ = (struct option){.name = option->name,
                                  .has_arg = option->value[0] == '\0'  ? no_argument
                                             : option->value[0] == '[' ? optional_argument
                                                                       : required_argument,
                                  .val = (int)(option - command->options)};
    while ((place = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (place == 'h')
            print_help(command);
        if (place == 'v')
            print_version();
        if (place == '?') /* getopt_long() has said what is wrong */
            end_with_hint();
        take_option(&command->options[place], optarg);
    }
    if (request.module_path[0] == '\0')
        usage_error("--module is no path: ''");
    if (!command->takes_arguments && optind < argc)
        usage_error("it takes no argument: '%s'", argv[optind]);
    request.arguments = argv + optind;
}

/* argv[0] is the command's name. */
static int run(int argc, char **argv)
{
    static char full_name[32] = "p11-proxy ";
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[0], commands[i]->name) == 0) {
            argv[0] = strcat(full_name, commands[i]->name); /* for getopt_long()'s messages */
            request.command = full_name;
            request.module_path = default_module();
            take_options(commands[i], argc, argv);
            return commands[i]->run();
        }
    }
    usage_error("there is no command '%s'", argv[0]);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    setlocale(LC_CTYPE, "C.UTF-8"); /* to know characters, whatever the user's language is */
    if (word == NULL)
        usage_error("a command is missing");
    if (strcmp(word, "--version") == 0)
        print_version();
    bool is_help = strcmp(word, "help") == 0;
    if (is_help && argc > 2)
        return run(2, (char *[]){argv[2], (char *)"--help", NULL});
    if (is_help || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        print_overview();
    return run(argc - 1, argv + 1);
}
