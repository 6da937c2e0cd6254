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

enum { MACHINE_BYTES = 24 };

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

static const char *machine_name(const Elf32_Ehdr *head, char number[MACHINE_BYTES])
{
    static const struct {
        uint16_t machine;
        const char *name;
    } names[] = {{EM_X86_64, "x86-64"}, {EM_386, "i386"},     {EM_AARCH64, "AArch64"},
                 {EM_ARM, "ARM"},       {EM_RISCV, "RISC-V"}, {EM_PPC64, "POWER"},
                 {EM_S390, "IBM S/390"}};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].machine == head->e_machine)
            return names[i].name;
    }
    snprintf(number, MACHINE_BYTES, "ELF machine %u", head->e_machine);
    return number;
}

/* The loader itself says "wrong ELF class", or of another processor that there is no such file. */
static bool is_for_this_machine(struct report *report, const char *path)
{
    Elf32_Ehdr own, head;
    char number[2][MACHINE_BYTES];

    if (!read_head(&own, "/proc/self/exe"))
        return true; /* then the loader has to tell */
    if (!read_head(&head, path)) {
        report_add(report, MARK_PROBLEM, "target", "the target is no shared object: %s", path);
        report_hint(report, "set x-target to the token's PKCS#11 module, a file that ends in .so");
        return false;
    }
    if (head.e_ident[EI_CLASS] == own.e_ident[EI_CLASS] &&
        head.e_ident[EI_DATA] == own.e_ident[EI_DATA] && head.e_machine == own.e_machine)
        return true;
    report_add(report, MARK_PROBLEM, "target",
               "the target is for another architecture, %s with %d bits instead of %s with %d: %s",
               machine_name(&head, number[0]), head.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32,
               machine_name(&own, number[1]), own.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32, path);
    report_hint(report, "install the token's module for this architecture");
    return false;
}

bool check_target(struct report *report, const struct checked *checked)
{
    const char *target = checked->config->target;
    struct message message;
    char real[PATH_MAX];

    if (config_check_target(checked->config, &message) != 0) {
        report_add(report, MARK_PROBLEM, "target", "%s", message.text);
        report_hint(report,
                    "add a line x-target: PATH, with the path of the token's own PKCS#11 "
                    "module, to %s",
                    checked->config->expected_file);
        return false;
    }
    if (are_alike(target, checked->module_path)) {
        report_add(report, MARK_PROBLEM, "target", "the target is this proxy itself, or a copy: %s",
                   target);
        report_hint(report, "set x-target to the token's own PKCS#11 module");
        return false;
    }
    /* Of the file, not of a link to it. */
    check_writers(report, "target", "the target", realpath(target, real) != NULL ? real : target);
    return is_for_this_machine(report, target);
}
