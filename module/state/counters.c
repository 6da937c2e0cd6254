/* counters.c - counts into a memfd, and makes and ends it. */
#include "state/counters.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "state/memory.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

_Static_assert((unsigned)STATISTICS_SLOTS == (unsigned)SLOTS_MAX, "each slot has a place");
_Static_assert((unsigned)STATISTICS_SUSPECT == (unsigned)SLOT_HEALTH_SUSPECT &&
                   (unsigned)STATISTICS_LATCHED == (unsigned)SLOT_HEALTH_FAILED,
               "the same numbers");
_Static_assert((unsigned)STATISTICS_DROPS == (unsigned)POOL_DROP_CAUSES &&
                   (unsigned)STATISTICS_DROP_HEALTH == (unsigned)POOL_DROP_HEALTH,
               "the causes in the same order");
_Static_assert((unsigned)STATISTICS_CPUS == (unsigned)POOL_LINES &&
                   sizeof(struct statistics_draws) == sizeof(struct pool_line),
               "a pool writes its lines there");
_Static_assert((STATISTICS_MECHANISMS & (STATISTICS_MECHANISMS - 1)) == 0,
               "a mask finds the place");

/* Room that stays where it is, because a thread may be about to count: the memfd of this initialisation, or private
 * memory that no program reads. NULL if there was none to have. */
static struct statistics *mapping;

/* In ordinary memory: a forked child has inherited the descriptor, and gives it back when it makes its own. */
static struct {
    int fd;
    dev_t device;
    ino_t inode;
} descriptor = {.fd = -1};

/* In memory that fork wipes: a child must not count for its parent. */
static atomic_bool *counting;

static struct statistics *counters(void)
{
    return atomic_load_explicit(counting, memory_order_acquire) ? mapping : NULL;
}

static struct statistics_slot *counters_of(const struct slot *slot)
{
    struct statistics *all = slot != NULL ? counters() : NULL;
    return all != NULL ? &all->slots[slot->number] : NULL;
}

/* Maps anew, at the place where they have been before. */
static bool map(int flags, int fd)
{
    void *at = mmap(mapping, sizeof *mapping, PROT_READ | PROT_WRITE,
                    flags | (mapping != NULL ? MAP_FIXED : 0), fd, 0);
    if (mapping == NULL && at != MAP_FAILED)
        mapping = at;
    return at != MAP_FAILED;
}

static bool map_private(void)
{
    return map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /* fd= */ -1);
}

void counters_prepare(void)
{
    counting = memory_part(sizeof *counting);
}

struct pool_line *counters_lines(const struct slot *slot)
{
    return mapping != NULL ? (struct pool_line *)mapping->slots[slot->number].pool.cpus : NULL;
}

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

static bool map_memfd(int fd)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    struct stat file;
    if (ftruncate(fd, sizeof(struct statistics)) != 0 || fstat(fd, &file) != 0)
        return refused("memory for them cannot be had");
    if (!map(MAP_SHARED, fd))
        return refused("memory for them cannot be mapped");
    madvise(mapping, sizeof *mapping, MADV_DONTDUMP);
    /* The memory cannot vanish under this module or a reader; nor can the descriptor be written through, where
     * the system knows how to forbid it (Linux 5.1). */
    if (fcntl(fd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE) != 0)
        fcntl(fd, F_ADD_SEALS, seals);
    descriptor.fd = fd;
    descriptor.device = file.st_dev;
    descriptor.inode = file.st_ino;
    return true;
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
    memcpy(&all->magic[1], &STATISTICS_MAGIC[1], sizeof STATISTICS_MAGIC - 1);
    atomic_store_explicit((_Atomic char *)all->magic, STATISTICS_MAGIC[0], memory_order_release);
}

void counters_begin(bool shown, uint64_t flags, const char *target)
{
    int saved_errno = errno;
    close_descriptor();
    if (shown && make_memfd()) {
        describe(mapping, flags, target);
        atomic_store(counting, true);
    } else if (mapping == NULL)
        map_private();
    errno = saved_errno;
}

/* For programs that end before p11-proxy stats can read their counters. */
static void log_draws(void)
{
    uint64_t from_pool = 0, from_token = statistic_read(&mapping->unknown.token_draws);
    for (uint64_t i = 0; i < statistic_read(&mapping->slot_count); i++) {
        from_token += statistic_read(&mapping->slots[i].calls.token_draws);
        for (unsigned line = 0; line < STATISTICS_CPUS; line++)
            from_pool += statistic_read(&mapping->slots[i].pool.cpus[line].draws);
    }
    if (from_pool + from_token != 0)
        log_write(LOG_LEVEL_INFO,
                  "random: %" PRIu64 " draws from the pool, %" PRIu64 " from the token", from_pool,
                  from_token);
}

void counters_end(void)
{
    int saved_errno = errno;
    if (atomic_exchange(counting, false)) {
        log_draws();
        map_private();
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

/* The slot's counters; the first time they are asked for, the slot is shown. */
static struct statistics_slot *shown_slot(const struct slot *slot)
{
    struct statistics_slot *counted = counters_of(slot);
    if (counted != NULL && statistic_read(&mapping->slot_count) <= slot->number) {
        statistic_set(&counted->id, slot->id);
        for (unsigned i = (unsigned)statistic_read(&mapping->slot_count); i < slot->number; i++)
            statistic_set(&mapping->slots[i].id, slot_at(i)->id);
        statistic_set(&mapping->slot_count, slot->number + 1);
    }
    return counted;
}

void count_token(const struct slot *slot, const CK_UTF8CHAR label[32])
{
    struct statistics_slot *counted = shown_slot(slot);
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
    struct statistics_slot *counted = shown_slot(slot);
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

void count_fetch(const struct slot *slot, size_t asked_bytes, int64_t took_ns, size_t call_bytes)
{
    struct statistics_slot *counted = shown_slot(slot);
    if (counted == NULL)
        return;
    struct statistics_time *time = &counted->pool.fill_times[statistics_size(asked_bytes)];
    uint64_t least_ns = statistic_read(&time->least_ns);
    if (statistic_read(&time->times) == 0 || (uint64_t)took_ns < least_ns)
        statistic_set(&time->least_ns, (uint64_t)took_ns);
    statistic_add(&time->times, 1);
    statistic_set(&counted->pool.chunk_bytes, call_bytes);
}

void count_pool(struct slot *slot)
{
    struct statistics_slot *counted = shown_slot(slot);
    struct pool *pool = atomic_load(&slot->pool);
    struct pool_counts counts;
    if (counted == NULL || pool == NULL)
        return;
    pool_count(pool, &counts);
    struct statistics_pool *to = &counted->pool;
    statistic_set(&to->missed_draws, counts.missed);
    statistic_set(&to->fills, counts.fetches);
    statistic_set(&to->filled_bytes, counts.fetched_bytes);
    statistic_set(&to->expired_bytes, counts.expired_bytes);
    statistic_set(&to->dropped_bytes, counts.dropped_bytes);
    statistic_set(&to->alarms, counts.drops[POOL_DROP_HEALTH]);
    statistic_set(&to->trust, atomic_load(&slot->health));
    statistic_set(&to->level_bytes, counts.target_bytes);
    statistic_set(&to->capacity_bytes, counts.most_bytes);
    statistic_set(&to->locked, counts.locked);
    statistic_set(&to->droppable, counts.droppable);
    for (int i = 0; i < POOL_DROP_CAUSES; i++)
        statistic_set(&to->drops[i], counts.drops[i]);
}

void count_mechanism(CK_MECHANISM_TYPE type)
{
    const unsigned mask = STATISTICS_MECHANISMS - 1;
    struct statistics *all = counters();
    unsigned at = (unsigned)(((uint64_t)type * 0x9E3779B97F4A7C15ULL) >> 40);
    if (all == NULL)
        return;
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

void count_refusal(unsigned number, uint64_t mechanism, const char *file, unsigned line,
                   const char *rule, uint64_t times)
{
    struct statistics *all = counters();
    if (all == NULL)
        return;
    statistic_add(&all->refused, 1);
    if (number >= STATISTICS_REFUSALS)
        return;
    struct statistics_refusal *refusal = &all->refusals[number];
    if (times == 1) {
        statistic_set(&refusal->mechanism, mechanism);
        statistic_set(&refusal->line, line);
        set_text(refusal->file, sizeof refusal->file, file);
        set_text(refusal->rule, sizeof refusal->rule, rule);
    }
    statistic_set(&refusal->times, times);
    if (times == 1)
        statistic_set(&all->refusal_count, number + 1);
}
