/* target.c - the target's file: is it there, and not the proxy itself? */
#include "check/check.h"

#include <stdio.h>
#include <stdlib.h>

/* Whether two files are one, or one is a copy of the other. */
static bool are_alike(const char *path_a, const char *path_b)
{
    FILE *a = fopen(path_a, "re"), *b = fopen(path_b, "re");
    int byte = a != NULL && b != NULL ? 0 : EOF;
    bool alike = byte != EOF;
    while (alike && byte != EOF)
        alike = (byte = getc(a)) == getc(b);
    if (a != NULL)
        fclose(a);
    if (b != NULL)
        fclose(b);
    return alike;
}

bool check_target(const struct checked *checked)
{
    const char *target = checked->config->target;
    struct message message;
    char real[PATH_MAX];
    if (config_check_target(checked->config, &message) != 0) {
        if (target == NULL && secure_getenv("P11_PROXY_CONFIG") == NULL)
            report_add(MARK_PROBLEM, "target",
                       "%s\n"
                       "p11-proxy setup PATH writes it, with the path of the token's own PKCS#11 "
                       "module",
                       message.text);
        else
            report_add(MARK_PROBLEM, "target",
                       "%s\n"
                       "write x-target: PATH, with the path of the token's own PKCS#11 module, "
                       "into %s",
                       message.text, checked->config->expected_file);
        return false;
    }
    if (are_alike(target, checked->module_path)) {
        report_add(MARK_PROBLEM, "target",
                   "the target is this proxy itself, or a copy: %s\n"
                   "set x-target to the token's own PKCS#11 module",
                   target);
        return false;
    }
    /* Of the file, not of a link to it. */
    check_writers("target", "the target", realpath(target, real) != NULL ? real : target);
    return true;
}
