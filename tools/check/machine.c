/* machine.c - what protects the pool on this machine, and what does not. */
#include "check/check.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/wipeonfork.h"

enum { CPU_FLAGS_BYTES = 8192 };

static void report_fork_protection(void)
{
    if (wipeonfork_is_supported()) {
        report_add(MARK_OK, "machine", "the kernel wipes the pool in a forked child");
        return;
    }
    report_add(MARK_PROBLEM, "machine",
               "the kernel does not prove that it wipes memory on fork, so there is no pool: every "
               "request goes to the token\n"
               "use Linux 4.14 or later, and no user-mode emulator");
}

static void report_droppable(void)
{
    _Atomic uint64_t *page = droppable_map();
    if (page != NULL) {
        report_add(MARK_OK, "machine",
                   "a process that is restored from a checkpoint drops its pool");
        droppable_unmap(page);
        return;
    }
    report_add(
        MARK_NOTE, "machine",
        "a process that is restored from a checkpoint drops its pool only if its clock steps, "
        "because the kernel has no droppable pages\n"
        "Linux 6.11 has them; if processes are checkpointed here, set x-pool-mix: kernel");
}

static void report_locking(const struct config *config)
{
    size_t len_bytes = config->pool_size_bytes;
    struct rlimit limit = {0};
    void *memory;
    if (config->pool_lock_memory == CONFIG_LOCK_MEMORY_NEVER)
        return;
    memory = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED && mlock(memory, len_bytes) == 0) {
        report_add(MARK_OK, "machine", "the pool can be kept out of swap");
    } else {
        getrlimit(RLIMIT_MEMLOCK, &limit);
        report_add(MARK_NOTE, "machine",
                   "a pool of %zu KiB cannot be kept out of swap: the limit is %llu KiB\n"
                   "raise the limit on locked memory (ulimit -l), make x-pool-size "
                   "smaller, or encrypt the swap",
                   len_bytes / 1024, (unsigned long long)limit.rlim_cur / 1024);
    }
    if (memory != MAP_FAILED)
        munmap(memory, len_bytes);
}

/* Of a thread that is switched off nothing is said, because the setting is shown. */
static void report_threads(const struct config *config)
{
    if (config->pool_threads == CONFIG_THREADS_AUTO)
        report_add(MARK_OK, "machine",
                   "a background thread fills the pool in applications that permit one\n"
                   "for a program that sandboxes itself after its first random bytes "
                   "(unshare, setns, a system call filter), set x-pool-threads: never: "
                   "a second thread makes some of these calls fail");
}

/* Whether the processor says that it is a virtual one; on ARM and others the device tree does. */
static bool is_virtual(void)
{
    static const char flag[] = " hypervisor";
    char line[CPU_FLAGS_BYTES];
    bool is = access("/sys/hypervisor/type", F_OK) == 0 ||
              access("/proc/device-tree/hypervisor", F_OK) == 0;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && !is && fgets(line, sizeof line, file) != NULL) {
        const char *at = strncmp(line, "flags", 5) == 0 ? strstr(line, flag) : NULL;
        is = at != NULL && strchr(" \n", at[sizeof flag - 1]) != NULL;
    }
    if (file != NULL)
        fclose(file);
    return is;
}

static void report_clones(const struct config *config)
{
    const struct config_setting *mix = config_find(config, "x-pool-mix");
    char origin[MESSAGE_BYTES];
    if (config->pool_mix == CONFIG_MIX_KERNEL)
        report_add(MARK_OK, "machine",
                   "x-pool-mix: kernel makes the bytes of cloned machines differ");
    else if (!is_virtual())
        report_add(MARK_OK, "machine", "nothing says that this is a virtual machine");
    else {
        report_add(MARK_NOTE, "machine",
                   "this is a virtual machine: clones of it, and a snapshot that is resumed twice, "
                   "serve the same bytes, for up to x-pool-max-age\n"
                   "set x-pool-mix: kernel in %s, unless it is never cloned or "
                   "snapshotted while it runs",
                   mix->from != NULL ? config_origin(mix, origin, sizeof origin)
                                     : config->expected_file);
    }
}

void check_machine(const struct config *config)
{
    if (!config->pool)
        return; /* there is nothing to protect */
    report_fork_protection();
    report_droppable();
    report_locking(config);
    report_threads(config);
    report_clones(config);
}
