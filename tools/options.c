/* options.c - the options that commands share. */
#include "tool.h"

int common_option(int option, const char *command, const char *help, struct common_options *common)
{
    switch (option) {
    case 'm':
        if (optarg[0] == '\0')
            return usage_error(command, "--module is no path: ''");
        common->module_path = optarg;
        return GO_ON;
    case 'j':
        common->json = true;
        return GO_ON;
    case 'h':
        fputs(help, stdout);
        return end_of_output(EXIT_FINE);
    case 'v':
        return print_version();
    default: /* getopt_long() has said what is wrong */
        return usage_hint(command);
    }
}
