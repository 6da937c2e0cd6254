/* check_start.c - would an application get the proxy started? The proxy itself is asked. */
#include "check/check_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "token.h"

/* What the proxy has said on stderr, its first line. */
static void read_line(int fd, char *line, size_t line_bytes)
{
    ssize_t len = pread(fd, line, line_bytes - 1, 0);

    line[len > 0 ? len : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
}

static void start(struct findings *findings, const void *context)
{
    const char *module_path = context;
    struct token_module module;
    struct message message;
    char said[MESSAGE_BYTES] = "";
    int log = memfd_create("log", MFD_CLOEXEC);
    bool locks;
    CK_RV rv;

    setenv("P11_PROXY_LOG", "stderr error", /* overwrite= */ 1);
    findings_at(findings, "while the proxy was loaded");
    if (token_load(&module, module_path, &message) != 0) {
        found(findings, MARK_PROBLEM, "proxy", "the proxy %s", message.text);
        advise(findings, "install it, or say where it is: --module PATH");
        return;
    }
    findings_at(findings, "in the proxy's C_Initialize");
    dup2(log, STDERR_FILENO);
    rv = token_start(&module, NULL, &locks);
    read_line(log, said, sizeof said);
    if (rv != CKR_OK) {
        found(findings, MARK_PROBLEM, "proxy",
              "the proxy does not start: C_Initialize answers %s%s%s", token_code(rv),
              said[0] != '\0' ? ", and it says " : "", said);
        advise(findings, "see what it says");
        return;
    }
    found(findings, MARK_OK, "proxy", "the proxy starts: %s", module_path);
    check_learned(findings, module.list);
    findings_at(findings, "in the proxy's C_Finalize");
    module.list->C_Finalize(NULL);
}

void check_start(struct findings *findings, const char *module_path)
{
    char path[PATH_MAX];

    /* dlopen() would look for a plain name elsewhere. */
    if (realpath(module_path, path) == NULL) {
        found(findings, MARK_PROBLEM, "proxy", "the proxy is not there (%m): %s", module_path);
        advise(findings, "install it, or say where it is: --module PATH");
        return;
    }
    findings_in_child(findings, "proxy", start, path);
}
