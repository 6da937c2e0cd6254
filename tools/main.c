/* main.c - p11-proxy, the program: finds the command, and reads what all commands take. */
#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct command {
    const char *name, *summary;
    command_function *run;
} commands[] = {
    {"check", "say what is in force, what is wrong, and what to do about it", check_command},
    {"setup", "register the proxy with p11-kit for a token's module", setup_command},
    {"bench", "measure random bytes straight from the token and through the proxy", bench_command},
    {"policy", "show which algorithms are refused, and by which rule", policy_command},
    {"stats", "show live counters of the processes that use the proxy", stats_command},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

/* Of the program, to find the module of the same build. */
static const char from_tool[] = "/tools/p11-proxy", to_module[] = "/module/p11-proxy.so";

_Noreturn static void end_with_hint(const char *command)
{
    fprintf(stderr, "Try '%s --help'.\n", command);
    exit(EXIT_USAGE);
}

void usage_error(const char *command, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s: ", command);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    putc('\n', stderr);
    end_with_hint(command);
}

_Noreturn static void print(const char *text)
{
    fputs(text, stdout);
    exit(end_of_output(EXIT_FINE));
}

void common_option(int option, const char *command, const char *help, struct common_options *common)
{
    switch (option) {
    case 'm':
        if (optarg[0] == '\0')
            usage_error(command, "--module is no path: ''");
        common->module_path = optarg;
        break;
    case 'j':
        common->json = true;
        break;
    case 'h':
        print(help);
    case 'v':
        print("p11-proxy " VERSION "\n");
    default: /* getopt_long() has said what is wrong */
        end_with_hint(command);
    }
}

struct common_options common_options(int argc, char **argv, const char *help)
{
    static const struct option options[] = {OPTION_MODULE, OPTION_JSON, OPTIONS_OF_ALL};
    struct common_options common = {.module_path = default_module()};
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1)
        common_option(option, argv[0], help, &common);
    return common;
}

bool parse_number(const char *text, unsigned long most, unsigned long *number)
{
    char *end;
    errno = 0;
    *number = strtoul(text, &end, 10);
    return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0 && *number >= 1 &&
           *number <= most;
}

const char *default_module(void)
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

_Noreturn static void print_overview(void)
{
    fputs("usage: p11-proxy COMMAND [OPTION]...\n\nCommands:\n", stdout);
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-12s  %s\n", commands[i].name, commands[i].summary);
    print("  help COMMAND  show what a command takes\n\nOptions:\n"
          "  --help        show this, or after a command what it takes\n"
          "  --version     show the version\n\n"
          "The manual is p11-proxy(1), that of the configuration p11-proxy.module(5).\n");
}

/* argv[0] is the command's name. */
static int run(int argc, char **argv)
{
    static char full_name[32] = "p11-proxy ";
    for (const struct command *command = commands; command < commands + COMMANDS; command++) {
        if (strcmp(argv[0], command->name) == 0) {
            argv[0] = strcat(full_name, command->name);
            return command->run(argc, argv);
        }
    }
    usage_error("p11-proxy", "there is no command '%s'", argv[0]);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    setlocale(LC_CTYPE, "C.UTF-8"); /* to know characters, whatever the user's language is */
    if (word == NULL)
        usage_error("p11-proxy", "a command is missing");
    if (strcmp(word, "--version") == 0)
        print("p11-proxy " VERSION "\n");
    bool is_help = strcmp(word, "help") == 0;
    if (is_help && argc > 2)
        return run(2, (char *[]){argv[2], (char *)"--help", NULL});
    if (is_help || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        print_overview();
    return run(argc - 1, argv + 1);
}
