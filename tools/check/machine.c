/* check_machine.c - what protects the pool on this machine, and what does not. */
#include "check/check_parts.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/wiped.h"

enum { CPU_FLAGS_BYTES = 8192 };

static void find_fork_protection(struct findings *findings)
{
    if (wiped_is_supported()) {
        found(findings, MARK_OK, "machine", "the kernel wipes the pool in a forked child");
        return;
    }
    found(findings, MARK_PROBLEM, "machine",
          "the kernel does not prove that it wipes memory on fork, so there is no pool: every "
          "request goes to the token");
    advise(findings, "use Linux 4.14 or later, and no user-mode emulator");
}

static void find_droppable(struct findings *findings)
{
    _Atomic uint64_t *page = droppable_map();

    if (page != NULL) {
        found(findings, MARK_OK, "machine", "a restored checkpoint is noticed by a droppable page");
        droppable_unmap(page);
        return;
    }
    found(
        findings, MARK_NOTE, "machine",
        "the kernel has no droppable pages, so a restored checkpoint is noticed by its clock only");
    advise(findings,
           "Linux 6.11 has them; if processes are checkpointed here, set x-pool-mix: kernel");
}

static void find_locking(struct findings *findings, const struct config *config)
{
    size_t len_bytes = config->pool_size_bytes;
    struct rlimit limit = {0};
    void *memory;

    if (config->pool_lock_memory == CONFIG_LOCK_MEMORY_NEVER) {
        found(findings, MARK_NOTE, "machine",
              "x-pool-lock-memory is never: the pool may be swapped out");
        advise(findings, "encrypt the swap, or have none");
        return;
    }
    memory = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED && mlock(memory, len_bytes) == 0) {
        found(findings, MARK_OK, "machine", "the pool can be kept out of swap");
    } else {
        getrlimit(RLIMIT_MEMLOCK, &limit);
        found(findings, MARK_NOTE, "machine",
              "a pool of %zu KiB cannot be kept out of swap: the limit is %llu KiB",
              len_bytes / 1024, (unsigned long long)limit.rlim_cur / 1024);
        advise(findings,
               "raise the limit on locked memory (ulimit -l), make x-pool-size smaller, or "
               "encrypt the swap");
    }
    if (memory != MAP_FAILED)
        munmap(memory, len_bytes);
}

static void find_threads(struct findings *findings, const struct config *config)
{
    static const char *const texts[] = {
        [CONFIG_THREADS_AUTO] =
            "a background thread fills the pool in applications that permit one",
        [CONFIG_THREADS_NEVER] = "x-pool-threads is never: now and then a call waits for the token",
        [CONFIG_THREADS_REQUIRE] =
            "x-pool-threads is require: applications that permit no thread do not get started",
    };
    bool automatic = config->pool_threads == CONFIG_THREADS_AUTO;

    found(findings, automatic ? MARK_OK : MARK_NOTE, "machine", "%s", texts[config->pool_threads]);
    if (!automatic)
        advise(findings, "remove x-pool-threads if that is not meant");
}

/* Whether the processor says that it is a virtual one. */
static bool has_hypervisor(void)
{
    static const char flag[] = " hypervisor";
    char line[CPU_FLAGS_BYTES];
    bool has = false;
    FILE *file = fopen("/proc/cpuinfo", "re");

    while (file != NULL && !has && fgets(line, sizeof line, file) != NULL) {
        const char *at = strncmp(line, "flags", 5) == 0 ? strstr(line, flag) : NULL;
        has = at != NULL && strchr(" \n", at[sizeof flag - 1]) != NULL;
    }
    if (file != NULL)
        fclose(file);
    return has;
}

/* Writes where the machine's generation ID shows to out; false if it has none. */
static bool find_generation_id(char *out, size_t out_bytes)
{
    static const char *const patterns[] = {
        "/dev/sysgenid",
        "/sys/bus/acpi/devices/VMGENCTR:*",
        "/sys/bus/acpi/devices/QEMUVGID:*",
        "/sys/bus/acpi/drivers/vmgenid/*:*",
        "/sys/firmware/qemu_fw_cfg/by_name/etc/vmgenid_guid",
        "/sys/firmware/devicetree/base/vmgenid*",
    };
    bool has = false;

    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0] && !has; i++) {
        glob_t matches;
        has = glob(patterns[i], 0, NULL, &matches) == 0;
        if (has)
            snprintf(out, out_bytes, "%s", matches.gl_pathv[0]);
        globfree(&matches);
    }
    return has;
}

static void find_clones(struct findings *findings, const struct config *config)
{
    char where[FINDING_TEXT_BYTES / 2];
    bool generation = find_generation_id(where, sizeof where);
    char origin[MESSAGE_BYTES];
    const struct config_setting *mix = config_find(config, "x-pool-mix");

    if (!generation && !has_hypervisor()) {
        found(findings, MARK_OK, "machine", "nothing says that this machine can be cloned");
        return;
    }
    if (config->pool_mix == CONFIG_MIX_KERNEL) {
        found(findings, MARK_OK, "machine",
              "this machine can be cloned, and x-pool-mix: kernel makes its clones differ");
        return;
    }
    if (generation)
        found(
            findings, MARK_NOTE, "machine",
            "this machine can be cloned (%s), which is noticed only a while after: until then both "
            "serve the same bytes",
            where);
    else
        found(
            findings, MARK_NOTE, "machine",
            "this is a virtual machine (hypervisor in /proc/cpuinfo): clones of it serve the same "
            "bytes, for up to x-pool-max-age");
    advise(findings,
           "set x-pool-mix: kernel in %s, unless it is never cloned or snapshotted while it "
           "runs",
           mix->from != NULL ? config_origin(mix, origin, sizeof origin) : config->expected_file);
}

void check_machine(struct findings *findings, const struct config *config)
{
    if (!config->pool)
        return; /* there is nothing to protect */
    find_fork_protection(findings);
    find_droppable(findings);
    find_locking(findings, config);
    find_threads(findings, config);
    find_clones(findings, config);
}
