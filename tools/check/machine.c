/* machine.c - what protects the pool on this machine, and what does not. */
#include "check/check.h"

#include <string.h>
#include <unistd.h>

#include "base/wipeonfork.h"

enum { CPU_FLAGS_BYTES = 8192 };

/* Whether the processor says that it is a virtual one; on ARM and others the device tree does. */
static bool is_virtual(void)
{
    char line[CPU_FLAGS_BYTES];
    bool is = access("/sys/hypervisor/type", F_OK) == 0 ||
              access("/proc/device-tree/hypervisor", F_OK) == 0;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && !is && fgets(line, sizeof line, file) != NULL)
        is = strncmp(line, "flags", 5) == 0 && strstr(line, " hypervisor") != NULL;
    if (file != NULL)
        fclose(file);
    return is;
}

void check_machine(void)
{
    const struct config *config = checked.config;
    void *page = NULL;
    if (!config->pool)
        return; /* there is nothing to protect */
    if (wipeonfork_map(&page, 1) == 0)
        report_add(MARK_OK, "machine", "the kernel wipes the pool in a forked child");
    else
        report_add(MARK_PROBLEM, "machine",
                   "the kernel does not prove that it wipes memory on fork, so there is no pool: "
                   "every request goes to the token\n"
                   "use Linux 4.14 or later, and no user-mode emulator");
    wipeonfork_unmap(page, 1);
    if (config->pool_mix == CONFIG_MIX_KERNEL)
        report_add(MARK_OK, "machine",
                   "x-pool-mix: kernel makes the bytes of cloned machines differ");
    else if (is_virtual())
        report_add(MARK_NOTE, "machine",
                   "this is a virtual machine: clones of it, and a snapshot that is resumed twice, "
                   "serve the same bytes, for up to x-pool-max-age\n"
                   "set x-pool-mix: kernel, unless it is never cloned or snapshotted while it "
                   "runs");
}
