/* counters.c - counts into a memfd, and makes and ends it. */
#include "state/counters.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

_Static_assert((unsigned)STATISTICS_SLOTS == (unsigned)SLOTS_MAX, "each slot has a place");
_Static_assert((unsigned)STATISTICS_REFUSALS == (unsigned)REPORTS_MOST, "each report has one");
_Static_assert((unsigned)STATISTICS_SUSPECT == (unsigned)SUSPICION_ONE &&
                   (unsigned)STATISTICS_LATCHED == (unsigned)SUSPICION_SURE,
               "the same numbers");
_Static_assert((unsigned)STATISTICS_DROPS == (unsigned)POOL_DROP_CAUSES &&
                   (unsigned)STATISTICS_DROP_SEED == (unsigned)POOL_DROP_SEED &&
                   (unsigned)STATISTICS_DROP_HEALTH == (unsigned)POOL_DROP_HEALTH,
               "the causes in the same order");
_Static_assert((STATISTICS_MECHANISMS & (STATISTICS_MECHANISMS - 1)) == 0,
               "a mask finds the place");

/* In ordinary memory: a forked child has inherited both, and gives them back when it makes its own. */
static struct statistics *mapping; /* stays where it is: somebody may be about to count */
static struct {
    int fd;
    dev_t device;
    ino_t inode;
} descriptor = {.fd = -1};

/* An application that closes all descriptors closes ours, and the next file gets its number. */
static void close_descriptor(void)
{
    struct stat file;
    if (descriptor.fd >= 0 && fstat(descriptor.fd, &file) == 0 &&
        file.st_dev == descriptor.device && file.st_ino == descriptor.inode)
        close(descriptor.fd);
    descriptor.fd = -1;
}

/* Says what the system refused. */
static bool refused(const char *what)
{
    log_write(LOG_LEVEL_DEBUG, "no counters for p11-proxy stats: %s, errno %d", what, errno);
    return false;
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

/* Room for the counters, at the place where they have been before. */
static bool map_memfd(int fd)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    struct stat file;
    if (ftruncate(fd, sizeof(struct statistics)) != 0 || fstat(fd, &file) != 0)
        return refused("memory for them cannot be had");
    void *at = mmap(mapping, sizeof(struct statistics), PROT_READ | PROT_WRITE,
                    MAP_SHARED | (mapping != NULL ? MAP_FIXED : 0), fd, 0);
    if (at == MAP_FAILED)
        return refused("memory for them cannot be mapped");
    madvise(at, sizeof(struct statistics), MADV_DONTDUMP);
    mapping = at;
    /* Nobody can make our memory vanish under us, or a reader's under him; nor write through the descriptor, where
     * the system knows how to forbid it (Linux 5.1). */
    if (fcntl(fd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE) != 0)
        fcntl(fd, F_ADD_SEALS, seals);
    descriptor.fd = fd;
    descriptor.device = file.st_dev;
    descriptor.inode = file.st_ino;
    return true;
}

/* Lets those who are still counting count into memory that nobody sees. */
static void unshare_mapping(void)
{
    if (mapping != NULL)
        mmap(mapping, sizeof(struct statistics), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static bool make_memfd(void)
{
    struct rlimit file_size;
    /* The signal for too large a file would end the application. */
    if (getrlimit(RLIMIT_FSIZE, &file_size) != 0 ||
        file_size.rlim_cur < sizeof(struct statistics)) {
        errno = EFBIG;
        return refused("RLIMIT_FSIZE forbids it");
    }
    int fd = new_memfd();
    if (fd < 0)
        return refused("memfd_create failed");
    if (map_memfd(fd))
        return true;
    close(fd);
    return false;
}

static void set_text(char *to, size_t to_bytes, const char *text)
{
    snprintf(to, to_bytes, "%s", text != NULL ? text : "");
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
    set_text(all->version, sizeof all->version, P11_PROXY_VERSION);
    set_text(all->module, sizeof all->module, self.dli_fname);
    set_text(all->target, sizeof all->target, target);
    for (unsigned i = 0; i < state->slot_count; i++)
        statistic_set(&all->slots[i].id, state->slots[i].id);
    statistic_set(&all->slot_count, state->slot_count);
    memcpy(all->magic + 1, STATISTICS_MAGIC + 1, sizeof STATISTICS_MAGIC - 1);
    atomic_store_explicit((_Atomic char *)all->magic, STATISTICS_MAGIC[0], memory_order_release);
}

void counters_begin(uint64_t flags, const char *target)
{
    int saved_errno = errno;
    /* In this order: who is mapped and has no descriptor seems to have closed it. */
    unshare_mapping();
    close_descriptor();
    if (make_memfd()) {
        lock_acquire(&state->lock);
        describe(mapping, flags, target);
        atomic_store(&state->counters, mapping);
        lock_release(&state->lock);
    }
    errno = saved_errno;
}

void counters_end(void)
{
    int saved_errno = errno;
    if (atomic_exchange(&state->counters, NULL) != NULL) {
        unshare_mapping();
        close_descriptor();
    }
    errno = saved_errno;
}

void counters_free(void)
{
    int saved_errno = errno;
    if (mapping != NULL)
        munmap(mapping, sizeof *mapping);
    mapping = NULL;
    close_descriptor();
    errno = saved_errno;
}

void count_slot_locked(const struct slot *slot)
{
    struct statistics *all = counters();
    if (all == NULL)
        return;
    statistic_set(&all->slots[slot - state->slots].id, slot->id);
    statistic_set(&all->slot_count, (uint64_t)(slot - state->slots) + 1);
}

void count_token(const struct slot *slot, const CK_UTF8CHAR label[32])
{
    struct statistics_slot *counted = counters_of(slot);
    size_t len_bytes = 32;
    if (counted == NULL)
        return;
    while (len_bytes > 0 && label[len_bytes - 1] == ' ')
        len_bytes--;
    memcpy(counted->token, label, len_bytes);
    memset(counted->token + len_bytes, 0, sizeof counted->token - len_bytes);
}

static struct statistics_calls *calls_of(const struct slot *slot)
{
    struct statistics_slot *counted = counters_of(slot);
    struct statistics *all = counters();
    return counted != NULL ? &counted->calls : all != NULL ? &all->unknown : NULL;
}

void count_call(const struct slot *slot, CK_ULONG len_bytes, CK_RV rv)
{
    struct statistics_calls *calls = calls_of(slot);
    if (calls == NULL)
        return;
    statistic_add(&calls->calls, 1);
    statistic_add(&calls->called_bytes, len_bytes);
    if (rv != CKR_OK)
        statistic_add(&calls->failed_calls, 1);
}

void count_draw(const struct slot *slot, CK_ULONG len_bytes, CK_RV rv)
{
    struct statistics_calls *calls = calls_of(slot);
    if (calls == NULL)
        return;
    if (rv != CKR_OK)
        statistic_add(&calls->failed_draws, 1);
    else {
        statistic_add(&calls->token_draws, 1);
        statistic_add(&calls->token_drawn_bytes, len_bytes);
    }
}

void count_suspicion(const struct slot *slot)
{
    struct statistics_slot *counted = counters_of(slot);
    if (counted != NULL)
        statistic_set(&counted->pool.trust, atomic_load(&slot->suspect));
}

void count_time_locked(const struct slot *slot, size_t asked_bytes, int64_t took_ns)
{
    struct statistics_slot *counted = counters_of(slot);
    if (counted == NULL)
        return;
    statistic_set(&counted->pool.chunk_bytes, slot->manners.call_bytes);
    if (took_ns <= 0)
        return;
    struct statistics_time *time = &counted->pool.fill_times[statistics_size(asked_bytes)];
    uint64_t least_ns = statistic_read(&time->least_ns);
    if (statistic_read(&time->times) == 0 || (uint64_t)took_ns < least_ns)
        statistic_set(&time->least_ns, (uint64_t)took_ns);
    statistic_set(&time->times, statistic_read(&time->times) + 1);
}

void count_mechanism_in(struct statistics *all, CK_MECHANISM_TYPE type)
{
    const unsigned mask = STATISTICS_MECHANISMS - 1;
    unsigned at = (unsigned)(((uint64_t)type * 0x9E3779B97F4A7C15ULL) >> 40);
    for (unsigned i = 0; i <= mask && type != CK_UNAVAILABLE_INFORMATION; i++, at++) {
        struct statistics_mechanism *place = &all->mechanisms[at & mask];
        uint64_t there = statistic_read(&place->type_plus_1);
        if (there == 0 && atomic_compare_exchange_strong(&place->type_plus_1, &there, type + 1))
            there = type + 1;
        if (there == type + 1) {
            statistic_add(&place->calls, 1);
            return;
        }
    }
    statistic_add(&all->other_mechanism_calls, 1);
}

void count_refusal_locked(unsigned place, const struct report *report)
{
    struct statistics *all = counters();
    if (all == NULL)
        return;
    statistic_add(&all->refused, 1);
    if (place >= REPORTS_MOST)
        return;
    struct statistics_refusal *refusal = &all->refusals[place];
    if (report->times == 1) {
        statistic_set(&refusal->mechanism, report->mechanism);
        statistic_set(&refusal->line, report->rule->line);
        set_text(refusal->file, sizeof refusal->file, report->rule->file);
        set_text(refusal->rule, sizeof refusal->rule, report->rule->text);
    }
    statistic_set(&refusal->times, report->times);
    if (report->times == 1)
        statistic_set(&all->refusal_count, place + 1);
}
