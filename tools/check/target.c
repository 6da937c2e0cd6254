/* check_target.c - the target's file: is it there, for this machine, and not the proxy itself? */
#include "check/check_parts.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MACHINE_BYTES = 24, BLOCK_BYTES = 4096 };

/* Whether two files are one, or one is a copy of the other. */
static bool are_alike(const char *path_a, const char *path_b)
{
    char block_a[BLOCK_BYTES], block_b[BLOCK_BYTES];
    struct stat a, b;
    FILE *file_a, *file_b;
    bool alike;
    size_t len;

    if (stat(path_a, &a) != 0 || stat(path_b, &b) != 0 || a.st_size != b.st_size)
        return false;
    if (a.st_dev == b.st_dev && a.st_ino == b.st_ino)
        return true;
    file_a = fopen(path_a, "re");
    file_b = fopen(path_b, "re");
    alike = file_a != NULL && file_b != NULL;
    while (alike && (len = fread(block_a, 1, sizeof block_a, file_a)) > 0)
        alike = fread(block_b, 1, len, file_b) == len && memcmp(block_a, block_b, len) == 0;
    if (file_a != NULL)
        fclose(file_a);
    if (file_b != NULL)
        fclose(file_b);
    return alike;
}

struct architecture {
    unsigned char class, data;
    uint16_t machine;
};

/* Of the shared object at path; false if it is none. */
static bool read_architecture(struct architecture *out, const char *path)
{
    Elf32_Ehdr header; /* up to e_machine the same as in 64 bits */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t len = fd >= 0 ? read(fd, &header, sizeof header) : -1;

    if (fd >= 0)
        close(fd);
    if (len != sizeof header || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    *out =
        (struct architecture){header.e_ident[EI_CLASS], header.e_ident[EI_DATA], header.e_machine};
    return true;
}

static const char *machine_name(const struct architecture *of, char number[MACHINE_BYTES])
{
    static const struct {
        uint16_t machine;
        const char *name;
    } names[] = {{EM_X86_64, "x86-64"}, {EM_386, "i386"},     {EM_AARCH64, "AArch64"},
                 {EM_ARM, "ARM"},       {EM_RISCV, "RISC-V"}, {EM_PPC64, "POWER"},
                 {EM_S390, "IBM S/390"}};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].machine == of->machine)
            return names[i].name;
    }
    snprintf(number, MACHINE_BYTES, "ELF machine %u", of->machine);
    return number;
}

/* The loader says "wrong ELF class", or of another processor that there is no such file. */
static bool is_for_this_machine(struct findings *findings, const char *path)
{
    struct architecture wanted, is;
    char number[2][MACHINE_BYTES];

    if (!read_architecture(&wanted, "/proc/self/exe"))
        return true; /* then the loader has to tell */
    if (!read_architecture(&is, path)) {
        found(findings, MARK_PROBLEM, "target", "the target is no shared object: %s", path);
        advise(findings, "set x-target to the token's PKCS#11 module, a file that ends in .so");
        return false;
    }
    if (is.class == wanted.class && is.data == wanted.data && is.machine == wanted.machine)
        return true;
    found(findings, MARK_PROBLEM, "target",
          "the target is for another architecture, %s with %d bits, where %s with %d would be "
          "right: %s",
          machine_name(&is, number[0]), is.class == ELFCLASS64 ? 64 : 32,
          machine_name(&wanted, number[1]), wanted.class == ELFCLASS64 ? 64 : 32, path);
    advise(findings, "install the token's module for this one");
    return false;
}

bool check_target(struct findings *findings, const struct config *config, const char *module_path)
{
    struct message message;
    char real[PATH_MAX];

    if (config_check_target(config, &message) != 0) {
        found(findings, MARK_PROBLEM, "target", "%s", message.text);
        advise(findings,
               "write a line x-target: PATH, with the path of the token's own PKCS#11 "
               "module, into %s",
               config->expected_file);
        return false;
    }
    if (are_alike(config->target, module_path)) {
        found(findings, MARK_PROBLEM, "target", "the target is this proxy itself, or a copy: %s",
              config->target);
        advise(findings, "set x-target to the token's own PKCS#11 module");
        return false;
    }
    /* Of the file, not of a link to it. */
    check_writers(findings, "target", "the target",
                  realpath(config->target, real) != NULL ? real : config->target);
    return is_for_this_machine(findings, config->target);
}
