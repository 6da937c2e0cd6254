/* counters.c - counts into a memfd, and makes and ends it. */
#include "state/counters.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "base/lock.h"
#include "base/log.h"
#include "state/memory.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

_Static_assert((unsigned)STATISTICS_SLOTS == (unsigned)SLOTS_MAX, "each slot has a place");

/* Room that stays where it is, because a thread may be about to count: the memfd of this initialisation or the one
 * before, or private memory that no program reads. NULL if there was none to have. */
static struct statistics *mapping;

/* In ordinary memory: a forked child has inherited the descriptor, and gives it back when it makes its own. */
static int descriptor = -1;
static struct stat described;

/* A child must not count for its parent. */
static atomic_bool *counting;
IN_WIPED_MEMORY(counting, 1)

static struct refusals {
    pthread_mutex_t lock; /* guards what follows */
    unsigned count;
    struct refusal {
        uint64_t mechanism;
        const struct policy_rule *rule;
    } of[STATISTICS_REFUSALS];
} * refusals;
IN_WIPED_MEMORY(refusals, 1)

static struct statistics *counters(void)
{
    return atomic_load_explicit(counting, memory_order_acquire) ? mapping : NULL;
}

struct statistics_slot *counters_of(const struct slot *slot)
{
    static struct statistics_slot unread;
    struct statistics *all = slot != NULL ? counters() : NULL;
    if (all == NULL)
        return &unread;
    for (unsigned i = (unsigned)statistic_read(&all->slot_count); i <= slot->number; i++) {
        statistic_set(&all->slots[i].id, slot_at(i)->id);
        statistic_set(&all->slot_count, i + 1);
    }
    return &all->slots[slot->number];
}

/* Maps anew, at the place where they have been before; private memory if fd is negative. */
static bool map(int fd)
{
    int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *at = mmap(mapping, sizeof *mapping, PROT_READ | PROT_WRITE,
                    flags | (mapping != NULL ? MAP_FIXED : 0), fd, 0);
    if (at == MAP_FAILED)
        return false;
    mapping = at;
    return true;
}

/* An application that closes all descriptors closes ours, and the next file gets its number. */
static void close_descriptor(void)
{
    struct stat now;
    if (descriptor >= 0 && fstat(descriptor, &now) == 0 && now.st_dev == described.st_dev &&
        now.st_ino == described.st_ino)
        close(descriptor);
    descriptor = -1;
}

static int new_memfd(void)
{
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int first = memfd_create(STATISTICS_NAME, flags | MFD_NOEXEC_SEAL);
    if (first < 0)
        first = memfd_create(STATISTICS_NAME, flags); /* Linux before 6.3 knows no NOEXEC_SEAL */
    if (first < 0 || first > STDERR_FILENO)
        return first;
    /* Never the number of a standard stream that the application has closed. */
    int fd = fcntl(first, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(first);
    return fd;
}

/* False, with errno, if the system refuses anything. */
static bool map_memfd(void)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    struct rlimit file_size;
    errno = EFBIG;
    /* The signal for too large a file would end the application. */
    if (getrlimit(RLIMIT_FSIZE, &file_size) != 0 || file_size.rlim_cur < sizeof *mapping)
        return false;
    descriptor = new_memfd();
    if (descriptor < 0)
        return false;
    if (fstat(descriptor, &described) != 0 || ftruncate(descriptor, sizeof *mapping) != 0 ||
        !map(descriptor)) {
        close_descriptor();
        return false;
    }
    madvise(mapping, sizeof *mapping, MADV_DONTDUMP);
    /* The memory cannot vanish under this module or a reader; nor can the descriptor be written through, where
     * the system knows how to forbid it (Linux 5.1). */
    if (fcntl(descriptor, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE) != 0)
        fcntl(descriptor, F_ADD_SEALS, seals);
    return true;
}

static void describe(struct statistics *all, uint64_t flags, const char *target)
{
    Dl_info self = {0};
    dladdr(&mapping, &self);
    all->layout = STATISTICS_LAYOUT;
    all->size_bytes = sizeof *all;
    statistic_set(&all->pid, (uint64_t)getpid());
    statistic_set(&all->started_seconds, (uint64_t)time(NULL));
    statistic_set(&all->flags, flags);
    snprintf(all->version, sizeof all->version, "%s", P11_PROXY_VERSION);
    snprintf(all->module, sizeof all->module, "%s", self.dli_fname != NULL ? self.dli_fname : "");
    snprintf(all->target, sizeof all->target, "%s", target);
    memcpy(&all->magic[1], &STATISTICS_MAGIC[1], sizeof STATISTICS_MAGIC - 1);
    atomic_store_explicit((_Atomic char *)all->magic, STATISTICS_MAGIC[0], memory_order_release);
}

void counters_begin(bool shown, uint64_t flags, const char *target)
{
    KEEP_ERRNO();
    close_descriptor();
    pthread_mutex_lock(&refusals->lock);
    refusals->count = 0;
    pthread_mutex_unlock(&refusals->lock);
    bool mapped = shown && map_memfd();
    if (shown && !mapped)
        log_write(LOG_LEVEL_DEBUG, "no counters for p11-proxy stats, errno %d", errno);
    /* If nothing is shown, a pool still has to write, and never where a parent counts. */
    if (mapped)
        describe(mapping, flags, target);
    else
        mapped = map(/* fd= */ -1);
    atomic_store(counting, mapped);
}

void counters_end(void)
{
    KEEP_ERRNO();
    atomic_store(counting, false);
    close_descriptor();
}

void counters_free(void)
{
    if (mapping != NULL)
        munmap(mapping, sizeof *mapping);
    close_descriptor();
}

void count_token(const struct slot *slot, const CK_UTF8CHAR label[32])
{
    char *token = counters_of(slot)->token;
    size_t len_bytes = 32;
    while (len_bytes > 0 && label[len_bytes - 1] == ' ')
        len_bytes--;
    /* Several threads may do this, and a reader may look. */
    for (size_t i = 0; i < STATISTICS_LABEL_BYTES; i++)
        atomic_store_explicit((_Atomic char *)&token[i], i < len_bytes ? (char)label[i] : '\0',
                              memory_order_relaxed);
}

bool count_refusal(uint64_t mechanism, const struct policy_rule *rule)
{
    struct statistics *all = counters();
    unsigned i = 0;
    HOLD(&refusals->lock);
    while (i < refusals->count &&
           (refusals->of[i].mechanism != mechanism || refusals->of[i].rule != rule))
        i++;
    bool first = i == refusals->count && i < STATISTICS_REFUSALS;
    if (first)
        refusals->of[refusals->count++] = (struct refusal){mechanism, rule};
    if (all == NULL)
        return first;
    statistic_add(&all->refused, 1);
    if (i == STATISTICS_REFUSALS)
        return false;
    struct statistics_refusal *shown = &all->refusals[i];
    if (first) {
        statistic_set(&shown->mechanism, mechanism);
        statistic_set(&shown->line, rule->line);
        snprintf(shown->file, sizeof shown->file, "%s", rule->file);
        snprintf(shown->rule, sizeof shown->rule, "%s", rule->text);
        statistic_set(&all->refusal_count, i + 1);
    }
    statistic_add(&shown->times, 1);
    return first;
}
