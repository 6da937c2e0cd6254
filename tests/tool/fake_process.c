/* fake_process.c - has counters like a process that uses the proxy, as its arguments say, until its input ends.
 *
 * Prints its PID once it is ready, and that of a child, 0 if there is none. Each line of input adds
 * 1000 draws from the pool, and one from the token.
 */
#include <err.h>
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

#include "policy/tables.h"
#include "statistics.h"

#define RULES_FILE "/etc/pkcs11/modules/p11-proxy.module"
#define MODULE     "/usr/lib/pkcs11/p11-proxy.so"

enum { CKM_MD5_RSA_PKCS = 0x5 };

static char **words;

static bool asked(const char *word)
{
    char **at = words;
    while (*at != NULL && strcmp(*at, word) != 0)
        at++;
    return *at != NULL;
}

/* 2,000,000 draws of 32 bytes from the pool, 800 by the token, 6 failed. */
static void fill(struct statistics *all)
{
    all->layout = asked("layout") ? STATISTICS_LAYOUT + 1 : STATISTICS_LAYOUT;
    all->size_bytes = sizeof *all;
    all->pid = (uint64_t)getpid();
    all->started_seconds = (uint64_t)time(NULL) - 7500;
    all->flags = asked("bare") ? 0
                               : (asked("audit") ? STATISTICS_AUDIT : STATISTICS_POLICY) |
                                     STATISTICS_POOL | STATISTICS_THREAD | STATISTICS_MIX_KERNEL;
    strcpy(all->version, "9.8.7");
    strcpy(all->target, "/usr/lib/target.so");
    all->slots[0] = (struct statistics_slot){
        .id = 7,
        .token = "first token",
        .token_draws = 800,
        .token_drawn_bytes = 25600,
        .failed_draws = 6,
        .calls = 14011,
        .called_bytes = 65536000,
        .failed_calls = 7,
        .pool_draws = 500000,
        .pool_drawn_bytes = 16000000,
        .pool.missed_draws = 12,
        .pool.fills = 4000,
        .pool.filled_bytes = 64000000 + 1234 + 5678 + 8192,
        .pool.expired_bytes = 1234,
        .pool.dropped_bytes = 5678,
        .pool.level_bytes = 16384,
        .pool.capacity_bytes = asked("bare") ? 0 : 65536,
        .chunk_bytes = 16384,
        .pool.locked = 1,
        .trust = asked("suspect")   ? HEALTH_SUSPECT
                 : asked("latched") ? HEALTH_FAILED
                                    : HEALTH_OK,
        .pool.drops = {[POOL_DROP_SEED] = 3, [POOL_DROP_LOGIN] = 2, [POOL_DROP_HEALTH] = 1},
        .pool.lines = {[0] = {.draws = 1000000, .drawn_bytes = 32000000},
                       [POOL_LINES - 1] = {.draws = 500000, .drawn_bytes = 16000000}}};
    /* Nothing was asked of it. */
    all->slots[1] = (struct statistics_slot){.id = 8, .token = "second token"};
    all->slot_count = 2;
    all->refused = 1015;
    all->refusal_count = 2;
    all->refusals[0] = (struct statistics_refusal){CKM_MD5_RSA_PKCS, 4, RULES_FILE, "MD5", 12};
    all->refusals[1] =
        (struct statistics_refusal){NO_MECHANISM, 5, RULES_FILE, "RSA keySize < 2048", 1003};
}

/* Texts that do not end, that a terminal acts upon, that break quotes; numbers beyond all reason; slots
 * and refusals that stand twice. */
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
    all->refusal_count = all->slot_count = all->started_seconds = UINT64_MAX;
    all->slots[0].trust = all->slots[0].pool.fills = UINT64_MAX;
    all->slots[0].pool.capacity_bytes = UINT64_MAX;
    memcpy(&all->slots[1], &all->slots[0], sizeof all->slots[0]);
}

static struct statistics *share(const char *module)
{
    int fd = memfd_create(STATISTICS_NAME, MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof(struct statistics)) != 0)
        err(EXIT_FAILURE, "memfd_create");
    struct statistics *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (all == MAP_FAILED)
        err(EXIT_FAILURE, "mmap");
    fill(all);
    strcpy(all->module, module);
    if (asked("hostile"))
        spoil(all);
    if (!asked("starting"))
        strcpy(all->magic, asked("magic") ? "p11-proxy slats" : STATISTICS_MAGIC);
    if (asked("short") && ftruncate(fd, STATISTICS_PAGE_BYTES) != 0)
        err(EXIT_FAILURE, "ftruncate");
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
    (void)argc;
    words = argv;
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
        statistic_add(&all->slots[0].token_draws, 1);
        printf("%s", line);
        fflush(stdout);
    }
    return EXIT_SUCCESS;
}
