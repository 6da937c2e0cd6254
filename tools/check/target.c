/* target.c - the target's file: is it there, for this machine, and not the proxy itself? */
#include "check/check.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The bytes of a file, to be given back with munmap(); NULL if they cannot be had. */
static void *map_file(const char *path, size_t *len_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    void *bytes = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0) {
        *len_bytes = (size_t)st.st_size;
        bytes = mmap(NULL, *len_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (fd >= 0)
        close(fd);
    return bytes != MAP_FAILED ? bytes : NULL;
}

/* Whether two files are one, or one is a copy of the other. */
static bool are_alike(const char *path_a, const char *path_b)
{
    size_t bytes_a = 0, bytes_b = 0;
    void *a = map_file(path_a, &bytes_a), *b = map_file(path_b, &bytes_b);
    bool alike = a != NULL && b != NULL && bytes_a == bytes_b && memcmp(a, b, bytes_a) == 0;
    if (a != NULL)
        munmap(a, bytes_a);
    if (b != NULL)
        munmap(b, bytes_b);
    return alike;
}

/* Reads the head of a shared object, which is the same up to e_machine in 32 and 64 bits. */
static bool read_head(Elf32_Ehdr *head, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t len = fd >= 0 ? read(fd, head, sizeof *head) : -1;
    if (fd >= 0)
        close(fd);
    return len == sizeof *head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0;
}

/* The loader itself says "wrong ELF class", or of another processor that there is no such file. */
static bool is_for_this_machine(const char *path)
{
    Elf32_Ehdr own, head;
    if (!read_head(&own, "/proc/self/exe"))
        return true; /* then the loader decides */
    if (!read_head(&head, path)) {
        report_add(MARK_PROBLEM, "target",
                   "the target is no shared object: %s\n"
                   "set x-target to the token's PKCS#11 module, a file that ends in .so",
                   path);
        return false;
    }
    if (head.e_ident[EI_CLASS] == own.e_ident[EI_CLASS] &&
        head.e_ident[EI_DATA] == own.e_ident[EI_DATA] && head.e_machine == own.e_machine)
        return true;
    report_add(MARK_PROBLEM, "target",
               "the target is for another architecture, ELF machine %u with %d bits instead of %u "
               "with %d: %s\ninstall the token's module for this architecture",
               head.e_machine, head.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32, own.e_machine,
               own.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32, path);
    return false;
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
    return is_for_this_machine(target);
}
