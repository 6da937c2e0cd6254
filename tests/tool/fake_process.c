/* fake_process.c - has counters like a process that uses the proxy, as its arguments say, until its input ends.
 *
 * Prints its PID once it is ready, and that of a child, 0 if there is none. Each line of input adds
 * 1000 draws from the pool, and one from the token.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "statistics.h"

#define RULES_FILE "/etc/pkcs11/modules/p11-proxy.module"
#define MODULE     "/usr/lib/pkcs11/p11-proxy.so"

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

#define SET_TEXT(to, text) snprintf(to, sizeof(to), "%s", text)

static void refuse(struct statistics_refusal *refusal, uint64_t mechanism, const char *rule,
                   uint64_t line, uint64_t times)
{
    statistic_set(&refusal->mechanism, mechanism);
    statistic_set(&refusal->times, times);
    statistic_set(&refusal->line, line);
    SET_TEXT(refusal->file, RULES_FILE);
    SET_TEXT(refusal->rule, rule);
}

static void use(struct statistics_mechanism *mechanism, uint64_t type, uint64_t calls)
{
    statistic_set(&mechanism->type_plus_1, type + 1);
    statistic_set(&mechanism->calls, calls);
}

static void time_fills(struct statistics_time *time, uint64_t least_ns, uint64_t times)
{
    statistic_set(&time->least_ns, least_ns);
    statistic_set(&time->times, times);
}

/* 2,000,000 draws of 32 bytes from the pool, 800 by the token, 6 failed: 32 bytes cost 1 ms. */
static void fill_slot(struct statistics_slot *slot)
{
    statistic_set(&slot->id, 7);
    SET_TEXT(slot->token, "first token");
    statistic_set(&slot->calls.token_draws, 800);
    statistic_set(&slot->calls.token_drawn_bytes, 25600);
    statistic_set(&slot->calls.failed_draws, 6);
    statistic_set(&slot->calls.calls, 14011);
    statistic_set(&slot->calls.called_bytes, 65536000);
    statistic_set(&slot->calls.failed_calls, 7);
    statistic_set(&slot->pool.chunk_bytes, 16384);
    time_fills(&slot->pool.fill_times[5], 1000000, 9); /* up to 32 bytes */
    time_fills(&slot->pool.fill_times[14], 1000000, 9);
    statistic_set(&slot->pool.pool_draws, 500000);
    statistic_set(&slot->pool.pool_drawn_bytes, 16000000);
    statistic_set(&slot->pool.lines[0].draws, 1000000);
    statistic_set(&slot->pool.lines[0].drawn_bytes, 32000000);
    statistic_set(&slot->pool.lines[63].draws, 500000);
    statistic_set(&slot->pool.lines[63].drawn_bytes, 16000000);
    statistic_set(&slot->pool.level_bytes, 16384);
    statistic_set(&slot->pool.capacity_bytes, 65536);
    statistic_set(&slot->pool.missed_draws, 12);
    statistic_set(&slot->pool.fills, 4000);
    statistic_set(&slot->pool.filled_bytes, 64000000 + 1234 + 5678 + 8192);
    statistic_set(&slot->pool.expired_bytes, 1234);
    statistic_set(&slot->pool.dropped_bytes, 5678);
    statistic_set(&slot->pool.alarms, 1);
    statistic_set(&slot->pool.drops[POOL_DROP_SEED], 3);
    statistic_set(&slot->pool.drops[POOL_DROP_LOGIN], 2);
    statistic_set(&slot->pool.locked, 1);
    statistic_set(&slot->pool.droppable, 1);
}

static void fill(struct statistics *all)
{
    all->layout = asked("layout") ? STATISTICS_LAYOUT + 1 : STATISTICS_LAYOUT;
    all->size_bytes = sizeof *all;
    statistic_set(&all->pid, (uint64_t)getpid());
    statistic_set(&all->started_seconds, (uint64_t)time(NULL) - 7500);
    SET_TEXT(all->version, "9.8.7");
    SET_TEXT(all->target, "/usr/lib/target.so");
    statistic_set(&all->flags, (asked("audit") ? STATISTICS_AUDIT : STATISTICS_POLICY) |
                                   STATISTICS_POOL | STATISTICS_THREAD | STATISTICS_MIX_KERNEL);
    fill_slot(&all->slots[0]);
    statistic_set(&all->slots[1].id, 8); /* nothing was asked of it */
    SET_TEXT(all->slots[1].token, "second token");
    statistic_set(&all->slot_count, 2);
    statistic_set(&all->unknown.failed_draws, 4);
    statistic_set(&all->refused, 1015);
    statistic_set(&all->refusal_count, 2);
    refuse(&all->refusals[0], CKM_MD5_RSA_PKCS, "MD5", 4, 12);
    refuse(&all->refusals[1], STATISTICS_NO_MECHANISM, "RSA keySize < 2048", 5, 1003);
    use(&all->mechanisms[17], CKM_AES_CBC, 20);
    use(&all->mechanisms[300], CKM_SHA256_RSA_PKCS, 34567);
    use(&all->mechanisms[511], 0x80001234, 20);
    statistic_set(&all->other_mechanism_calls, 9);
    if (asked("untimed"))
        time_fills(&all->slots[0].pool.fill_times[5], 2000000, 9);
    if (asked("suspect"))
        statistic_set(&all->slots[0].pool.trust, STATISTICS_SUSPECT);
    if (asked("latched"))
        statistic_set(&all->slots[0].pool.trust, STATISTICS_LATCHED);
    if (asked("bare")) {
        statistic_set(&all->flags, 0);
        statistic_set(&all->slots[0].pool.capacity_bytes, 0);
    }
}

/* Texts that do not end, that a terminal acts upon, that break quotes; numbers beyond all reason; slots,
 * mechanisms and refusals that stand twice. */
static void spoil(struct statistics *all)
{
    static const char evil[] = "\033[31m\"\\\n\r\t\xff\xc2\x9b{}= '";
    memcpy(all->module, evil, sizeof evil);
    memset(all->version, 'v', sizeof all->version);
    memset(all->target, '\xc3', sizeof all->target);
    memset(all->slots[0].token, '"', sizeof all->slots[0].token);
    memset(all->refusals[0].file, '\n', sizeof all->refusals[0].file);
    memcpy(all->refusals[1].rule, evil, sizeof evil);
    memset(&all->refusals[2], 0xff, sizeof all->refusals[2]);
    statistic_set(&all->refusal_count, UINT64_MAX);
    statistic_set(&all->slot_count, UINT64_MAX);
    statistic_set(&all->started_seconds, UINT64_MAX);
    time_fills(&all->slots[0].pool.fill_times[5], UINT64_MAX, UINT64_MAX);
    statistic_set(&all->slots[0].pool.trust, UINT64_MAX);
    statistic_set(&all->slots[0].pool.fills, UINT64_MAX);
    statistic_set(&all->slots[0].pool.capacity_bytes, UINT64_MAX);
    memcpy(&all->slots[1], &all->slots[0], sizeof all->slots[0]);
    for (unsigned i = 0; i < STATISTICS_MECHANISMS; i++)
        use(&all->mechanisms[i], UINT64_MAX - 1 - i / 2, i);
}

static void must(const char *what, bool good)
{
    if (good)
        return;
    fprintf(stderr, "fake_process: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static struct statistics *share(const char *module)
{
    int fd = memfd_create(STATISTICS_NAME, MFD_CLOEXEC);
    must("ftruncate", fd >= 0 && ftruncate(fd, sizeof(struct statistics)) == 0);
    struct statistics *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must("mmap", all != MAP_FAILED);
    fill(all);
    SET_TEXT(all->module, module);
    if (asked("hostile"))
        spoil(all);
    if (!asked("starting"))
        SET_TEXT(all->magic, asked("magic") ? "p11-proxy slats" : STATISTICS_MAGIC);
    must("ftruncate", !asked("short") || ftruncate(fd, STATISTICS_PAGE_BYTES) == 0);
    return all;
}

/* Has the descriptor of its parent, until that ends. */
static pid_t make_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return child;
}

/* Its PID, as a reader of /proc sees it: in a namespace of its own getpid() gives another one. */
static long visible_pid(void)
{
    char text[16] = "";
    return readlink("/proc/self", text, sizeof text - 1) > 0 ? strtol(text, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
    char line[64];
    argument_count = argc;
    argument_texts = argv;
    if (asked("hostile"))
        prctl(PR_SET_NAME, "\033[1m\"\n}\\");
    else if (asked("twice"))
        prctl(PR_SET_NAME, "fourteen bytes\xc3\xa9"); /* the kernel keeps 15 bytes */
    struct statistics *all = share(MODULE);
    if (asked("twice")) {
        share("/usr/lib/pkcs11/p11-proxy-luna.so");
        share(MODULE);
    }
    printf("%ld %ld\n", visible_pid(), asked("fork") ? (long)make_child() : 0);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        statistic_add(&all->slots[0].pool.lines[1].draws, 1000);
        statistic_add(&all->slots[0].calls.token_draws, 1);
        printf("%s", line);
        fflush(stdout);
    }
    return EXIT_SUCCESS;
}
