/* pretender.c - plays a process that uses the proxy, as its arguments say, until its input ends.
 *
 * Prints its PID once it is ready, and that of a child, 0 if there is none. Each line of input is
 * 1000 draws from the pool more, and one by the token; with "finalize" the first ends the counters,
 * with "renew" each begins new ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "statistics.h"

#define RULES_FILE "/etc/pkcs11/modules/p11-proxy.module"

enum { MANY = 200 };

enum { CKM_MD5_RSA_PKCS = 0x5, CKM_SHA256_RSA_PKCS = 0x40, CKM_AES_CBC = 0x1082 };

static int argument_count;
static char **argument_texts;

static bool asked(const char *word)
{
    for (int i = 1; i < argument_count; i++) {
        if (strcmp(argument_texts[i], word) == 0)
            return true;
    }
    return false;
}

static void set_text(char *to, size_t to_bytes, const char *text)
{
    snprintf(to, to_bytes, "%s", text);
}

static void refuse(struct statistics_refusal *refusal, uint64_t mechanism, const char *rule,
                   uint64_t line, uint64_t times)
{
    statistic_set(&refusal->mechanism, mechanism);
    statistic_set(&refusal->times, times);
    statistic_set(&refusal->line, line);
    set_text(refusal->file, sizeof refusal->file, RULES_FILE);
    set_text(refusal->rule, sizeof refusal->rule, rule);
}

static void use(struct statistics_mechanism *mechanism, uint64_t type, uint64_t calls)
{
    statistic_set(&mechanism->type_plus_1, type + 1);
    statistic_set(&mechanism->calls, calls);
}

/* 2,000,000 draws of 32 bytes from the pool, 10,000 by the token, 6 failed: 32 bytes cost 1 ms. */
static void fill_slot(struct statistics_slot *slot)
{
    statistic_set(&slot->id, 7);
    set_text(slot->token, sizeof slot->token, "first token");
    statistic_set(&slot->calls.token_draws, 10000);
    statistic_set(&slot->calls.token_bytes, 320000);
    statistic_set(&slot->calls.failed_draws, 6);
    statistic_set(&slot->calls.calls, 14011);
    statistic_set(&slot->calls.called_bytes, 65536000);
    statistic_set(&slot->calls.failed_calls, 7);
    statistic_set(&slot->chunk_bytes, 16384);
    statistic_set(&slot->least_ns[5], 1000000); /* up to 32 bytes */
    statistic_set(&slot->least_ns[6], 1000100);
    statistic_set(&slot->pool.draws, 500000);
    statistic_set(&slot->pool.drawn_bytes, 16000000);
    statistic_set(&slot->pool.stripes[0].draws, 1000000);
    statistic_set(&slot->pool.stripes[0].drawn_bytes, 32000000);
    statistic_set(&slot->pool.stripes[63].draws, 500000);
    statistic_set(&slot->pool.stripes[63].drawn_bytes, 16000000);
    statistic_set(&slot->pool.stripes[63].held_bytes, 192);
    statistic_set(&slot->pool.held_bytes, 8000);
    statistic_set(&slot->pool.level_bytes, 16384);
    statistic_set(&slot->pool.capacity_bytes, 65536);
    statistic_set(&slot->pool.missed, 12);
    statistic_set(&slot->pool.fills, 4000);
    statistic_set(&slot->pool.filled_bytes, 65536000);
    statistic_set(&slot->pool.expired_bytes, 1234);
    statistic_set(&slot->pool.dropped_bytes, 5678);
    statistic_set(&slot->pool.alarms, 1);
    statistic_set(&slot->pool.drops[0], 3); /* seed */
    statistic_set(&slot->pool.drops[1], 2); /* login */
    statistic_set(&slot->pool.locked, 1);
    statistic_set(&slot->pool.droppable, 1);
}

static void fill(struct statistics *all)
{
    all->layout = asked("layout") ? STATISTICS_LAYOUT + 1 : STATISTICS_LAYOUT;
    all->size_bytes = sizeof *all;
    statistic_set(&all->pid, (uint64_t)getpid());
    statistic_set(&all->started_s, (uint64_t)time(NULL) - 7500);
    set_text(all->version, sizeof all->version, "9.8.7");
    set_text(all->module, sizeof all->module, "/usr/lib/pkcs11/p11-proxy.so");
    set_text(all->target, sizeof all->target, "/usr/lib/target.so");
    statistic_set(&all->flags, (asked("audit") ? STATISTICS_AUDIT : STATISTICS_POLICY) |
                                   STATISTICS_POOL | STATISTICS_THREAD | STATISTICS_MIX_KERNEL);
    fill_slot(&all->slots[0]);
    statistic_set(&all->slots[1].id, 8); /* nothing was asked of it */
    statistic_set(&all->slot_count, 2);
    statistic_set(&all->elsewhere.failed_draws, 4);
    statistic_set(&all->refused, 1015);
    statistic_set(&all->refusal_count, 2);
    refuse(&all->refusals[0], CKM_MD5_RSA_PKCS, "MD5", 4, 12);
    refuse(&all->refusals[1], STATISTICS_NO_MECHANISM, "RSA keySize < 2048", 5, 1003);
    use(&all->mechanisms[17], CKM_AES_CBC, 20);
    use(&all->mechanisms[300], CKM_SHA256_RSA_PKCS, 34567);
    use(&all->mechanisms[511], 0x80001234, 20);
    statistic_set(&all->mechanisms_lost, 9);
    if (asked("suspect"))
        statistic_set(&all->slots[0].suspect, STATISTICS_SUSPECT);
    if (asked("latched"))
        statistic_set(&all->slots[0].suspect, STATISTICS_LATCHED);
    if (asked("bare")) {
        statistic_set(&all->flags, 0);
        statistic_set(&all->slots[0].pool.capacity_bytes, 0);
    }
}

/* Texts that do not end, that a terminal acts upon, that break quotes; counts beyond all arrays;
 * twins. */
static void spoil(struct statistics *all)
{
    static const char evil[] = "\033[31m\"\\\n\r\t\xff\xc2\x9b{}= '";

    memcpy(all->module, evil, sizeof evil);
    memset(all->version, 'v', sizeof all->version);
    memset(all->target, '\xc3', sizeof all->target);
    memset(all->slots[0].token, '"', sizeof all->slots[0].token);
    memset(all->refusals[0].file, '\n', sizeof all->refusals[0].file);
    memcpy(all->refusals[1].rule, evil, sizeof evil);
    memset(all->refusals[2].rule, 'r', sizeof all->refusals[2].rule);
    memset(&all->refusals[3], 0xff, sizeof all->refusals[3]);
    all->refusals[4] = all->refusals[3];
    statistic_set(&all->refusal_count, UINT64_MAX);
    statistic_set(&all->slot_count, UINT64_MAX);
    statistic_set(&all->slots[1].id, UINT64_MAX);
    statistic_set(&all->slots[2].id, 7);
    statistic_set(&all->started_s, UINT64_MAX);
    statistic_set(&all->slots[0].least_ns[5], UINT64_MAX);
    statistic_set(&all->slots[0].suspect, UINT64_MAX);
    statistic_set(&all->slots[0].pool.fills, UINT64_MAX);
    statistic_set(&all->slots[0].pool.capacity_bytes, UINT64_MAX);
    for (unsigned i = 0; i < STATISTICS_MECHANISMS; i++)
        statistic_set(&all->mechanisms[i].type_plus_1, UINT64_MAX - i % 2);
}

static int failed(const char *what)
{
    fprintf(stderr, "pretender: %s: %s\n", what, strerror(errno));
    return EXIT_FAILURE;
}

static int shared_fd; /* of the memory that was shared last */

static struct statistics *share(const char *module)
{
    size_t bytes = asked("short") ? STATISTICS_PAGE_BYTES : sizeof(struct statistics);
    int fd = memfd_create(STATISTICS_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct statistics *all = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof *all) == 0)
        all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (all == MAP_FAILED)
        exit(failed("no memory"));
    fill(all);
    if (module != NULL)
        set_text(all->module, sizeof all->module, module);
    if (asked("hostile"))
        spoil(all);
    if (!asked("starting"))
        set_text(all->magic, sizeof all->magic,
                 asked("magic") ? "p11-proxy slats" : STATISTICS_MAGIC);
    if (ftruncate(fd, (off_t)bytes) != 0)
        exit(failed("ftruncate"));
    if (!asked("unsealed") &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        exit(failed("seals"));
    if (asked("split") && mprotect(all, STATISTICS_PAGE_BYTES, PROT_READ) != 0)
        exit(failed("mprotect"));
    if (asked("close") || asked("reuse"))
        close(fd);
    if (asked("reuse") && open("/dev/null", O_RDONLY | O_CLOEXEC) != fd)
        exit(failed("another number"));
    shared_fd = fd;
    return all;
}

/* As C_Finalize does, and in its order. */
static void end_sharing(struct statistics *all)
{
    munmap(all, sizeof *all);
    close(shared_fd);
}

static void wait_for_end(struct statistics *all)
{
    char line[64];

    while (fgets(line, sizeof line, stdin) != NULL) {
        if (asked("finalize") || asked("renew"))
            end_sharing(all);
        if (asked("renew"))
            all = share(NULL);
        if (asked("finalize")) {
            printf("%s", line);
            fflush(stdout);
            continue;
        }
        statistic_add(&all->slots[0].pool.stripes[1].draws, 1000);
        statistic_add(&all->slots[0].calls.token_draws, 1);
        printf("%s", line);
        fflush(stdout);
    }
}

/* As whoever reads /proc sees it, whatever namespace this is in. */
static long own_pid(void)
{
    char text[16] = "";

    return readlink("/proc/self", text, sizeof text - 1) > 0 ? strtol(text, NULL, 10) : 0;
}

/*
 * Has the mapping of its parent, and with "namespace" is number 1 of a PID namespace of its own.
 * Returns its PID as own_pid().
 */
static long make_child(void)
{
    int ends[2];
    long pid = 0;

    if (pipe(ends) != 0 || (asked("namespace") && unshare(CLONE_NEWPID) != 0))
        exit(failed("namespace"));
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pid = own_pid();
        if (write(ends[1], &pid, sizeof pid) != sizeof pid)
            exit(failed("pipe"));
        for (;;)
            pause();
    }
    if (read(ends[0], &pid, sizeof pid) != sizeof pid)
        exit(failed("pipe"));
    return pid;
}

int main(int argc, char **argv)
{
    struct statistics *all;
    long child = 0;

    argument_count = argc;
    argument_texts = argv;
    prctl(PR_SET_NAME, asked("hostile") ? "\033[1m\"\n}\\" : "pretender");
    all = share(NULL);
    if (asked("twice"))
        share("/usr/lib/pkcs11/p11-proxy-luna.so");
    if (asked("same twice"))
        share(NULL);
    for (int i = 0; asked("many") && i < MANY; i++)
        share(NULL);
    if (asked("fork") || asked("namespace"))
        child = make_child();
    printf("%ld %ld\n", own_pid(), child);
    fflush(stdout);
    wait_for_end(all);
    return EXIT_SUCCESS;
}
