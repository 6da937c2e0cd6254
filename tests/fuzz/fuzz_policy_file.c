/* fuzz_policy_file.c - any bytes as a list file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = memfd_create("list", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct policy_sources sources = {
        .file = path, .file_from = "fuzz", .file_line = 1, .now_s = 1800000000};
    fuzz_policy(&sources, data, size);
    close(fd);
    return 0;
}
