/* stats_read.c - copies the counters of another process, which may be hostile. */
#include "stats/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

/* What every layout begins with. */
struct head {
    char magic[sizeof((struct statistics *)NULL)->magic];
    uint32_t layout;
    uint32_t size_bytes;
};

_Static_assert(offsetof(struct head, layout) == offsetof(struct statistics, layout) &&
                   offsetof(struct head, size_bytes) == offsetof(struct statistics, size_bytes),
               "the same places");

/* Whether it can be read without harm, and is laid out as we know it. */
static enum stats_read look_at_head(int fd, struct message *message)
{
    static const char zeros[sizeof((struct statistics *)NULL)->magic];
    struct head head = {.layout = 0};
    struct stat file;

    if (fstat(fd, &file) != 0 || pread(fd, &head, sizeof head, 0) < 0) {
        message_set(message, "its counters cannot be read: %m");
        return STATS_STRANGE;
    }
    /* The module sets magic last. */
    if (memcmp(head.magic, zeros, sizeof zeros) == 0)
        return STATS_STARTING;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
        message_set(message, "no proxy made its counters: they are not sealed");
        return STATS_STRANGE;
    }
    if (memcmp(head.magic, STATISTICS_MAGIC, sizeof STATISTICS_MAGIC) != 0) {
        message_set(message, "no proxy made its counters: they do not begin with '%s'",
                    STATISTICS_MAGIC);
        return STATS_STRANGE;
    }
    if (head.layout != STATISTICS_LAYOUT) {
        message_set(message,
                    "its counters have layout %" PRIu32 ", and this p11-proxy, version " VERSION
                    ", knows %d: use the one that came with the module",
                    head.layout, STATISTICS_LAYOUT);
        return STATS_STRANGE;
    }
    if (head.size_bytes != sizeof(struct statistics) || file.st_size != sizeof(struct statistics)) {
        message_set(message, "no proxy made its counters: they are of the wrong size");
        return STATS_STRANGE;
    }
    return STATS_READ;
}

/* Each number whole, as its owner keeps writing. */
static void copy_numbers(void *to, const void *from, size_t len_bytes)
{
    uint64_t *numbers = to;
    const statistic *shared = from;

    for (size_t i = 0; i < len_bytes / sizeof *shared; i++)
        numbers[i] = statistic_read(&shared[i]);
}

static void limit(statistic *count, uint64_t most)
{
    if (statistic_read(count) > most)
        statistic_set(count, most);
}

/* What is in use: a page that is only looked at would come into being in the process's memory. */
static void copy_used(struct statistics *copy, const struct statistics *shared)
{
    copy_numbers(copy, shared, offsetof(struct statistics, refusals));
    limit(&copy->refusal_count, STATISTICS_REFUSALS);
    limit(&copy->slot_count, STATISTICS_SLOTS);
    copy_numbers(copy->refusals, shared->refusals,
                 statistic_read(&copy->refusal_count) * sizeof copy->refusals[0]);
    copy_numbers(copy->slots, shared->slots,
                 statistic_read(&copy->slot_count) * sizeof copy->slots[0]);
}

static void clean(char *text, size_t text_bytes)
{
    text[text_bytes - 1] = '\0';
    make_plain(text);
}

static bool same_refusal(const struct statistics_refusal *a, const struct statistics_refusal *b)
{
    return statistic_read(&a->mechanism) == statistic_read(&b->mechanism) &&
           statistic_read(&a->line) == statistic_read(&b->line) && strcmp(a->file, b->file) == 0 &&
           strcmp(a->rule, b->rule) == 0;
}

static void clean_refusals(struct statistics *copy)
{
    uint64_t count = statistic_read(&copy->refusal_count);
    uint64_t kept = 0;

    for (uint64_t i = 0; i < count; i++) {
        struct statistics_refusal *refusal = &copy->refusals[i];
        uint64_t twin = 0;
        clean(refusal->file, sizeof refusal->file);
        clean(refusal->rule, sizeof refusal->rule);
        while (twin < kept && !same_refusal(&copy->refusals[twin], refusal))
            twin++;
        if (twin < kept)
            statistic_add(&copy->refusals[twin].times, statistic_read(&refusal->times));
        else
            memmove(&copy->refusals[kept++], refusal, sizeof *refusal);
    }
    statistic_set(&copy->refusal_count, kept);
}

static void clean_slots(struct statistics *copy)
{
    uint64_t count = statistic_read(&copy->slot_count);
    uint64_t kept = 0;

    for (uint64_t i = 0; i < count; i++) {
        struct statistics_slot *slot = &copy->slots[i];
        uint64_t twin = 0;
        clean(slot->token, sizeof slot->token);
        while (twin < kept && statistic_read(&copy->slots[twin].id) != statistic_read(&slot->id))
            twin++;
        if (twin == kept)
            memmove(&copy->slots[kept++], slot, sizeof *slot);
    }
    statistic_set(&copy->slot_count, kept);
}

static int by_use(const void *a, const void *b)
{
    const struct statistics_mechanism *one = a, *other = b;
    uint64_t calls = statistic_read(&one->calls), other_calls = statistic_read(&other->calls);
    uint64_t type = statistic_read(&one->type_plus_1);
    uint64_t other_type = statistic_read(&other->type_plus_1);

    if (calls != other_calls)
        return calls < other_calls ? 1 : -1;
    return type < other_type ? -1 : type > other_type;
}

static void clean_mechanisms(struct statistics *copy)
{
    size_t kept = 0;

    for (size_t i = 0; i < STATISTICS_MECHANISMS; i++) {
        struct statistics_mechanism *mechanism = &copy->mechanisms[i];
        uint64_t type = statistic_read(&mechanism->type_plus_1);
        size_t twin = 0;
        if (type == 0)
            continue;
        while (twin < kept && statistic_read(&copy->mechanisms[twin].type_plus_1) != type)
            twin++;
        if (twin < kept)
            statistic_add(&copy->mechanisms[twin].calls, statistic_read(&mechanism->calls));
        else
            memmove(&copy->mechanisms[kept++], mechanism, sizeof *mechanism);
    }
    memset(&copy->mechanisms[kept], 0, (STATISTICS_MECHANISMS - kept) * sizeof copy->mechanisms[0]);
    qsort(copy->mechanisms, kept, sizeof copy->mechanisms[0], by_use);
}

static struct statistics *copy_of(int fd)
{
    const size_t bytes = sizeof(struct statistics);
    const struct statistics *shared = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    struct statistics *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (shared != MAP_FAILED && copy != MAP_FAILED) {
        /* It was written last, so whoever has seen it sees all that came before. */
        atomic_load_explicit((const _Atomic char *)shared->magic, memory_order_acquire);
        copy_used(copy, shared);
    } else
        stats_free(copy);
    if (shared != MAP_FAILED)
        munmap((void *)shared, bytes);
    return shared != MAP_FAILED && copy != MAP_FAILED ? copy : NULL;
}

enum stats_read stats_read(struct statistics **counters, int fd, uint64_t own_pid,
                           struct message *message)
{
    enum stats_read result = look_at_head(fd, message);

    if (result != STATS_READ)
        return result;
    struct statistics *copy = copy_of(fd);
    if (copy == NULL) {
        message_set(message, "its counters cannot be mapped: %m");
        return STATS_STRANGE;
    }
    if (statistic_read(&copy->pid) != own_pid) {
        stats_free(copy);
        return STATS_INHERITED;
    }
    clean(copy->version, sizeof copy->version);
    clean(copy->module, sizeof copy->module);
    clean(copy->target, sizeof copy->target);
    clean_slots(copy);
    clean_refusals(copy);
    clean_mechanisms(copy);
    *counters = copy;
    return STATS_READ;
}

void stats_free(struct statistics *counters)
{
    if (counters != NULL && counters != MAP_FAILED)
        munmap(counters, sizeof *counters);
}
