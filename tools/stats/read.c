/* read.c - copies the counters of another process, which may be hostile, and what follows from them. */
#include "stats/stats.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

static bool read_part(int fd, struct statistics *all, size_t from, size_t len_bytes)
{
    return pread(fd, (char *)all + from, len_bytes, (off_t)from) == (ssize_t)len_bytes;
}

/* Whether it is laid out as this program expects. Leaves the head in *all. */
static enum stats_read read_head(struct statistics *all, int fd, struct message *message)
{
    static const char zeros[sizeof all->magic];

    if (!read_part(fd, all, 0, offsetof(struct statistics, pid)))
        message_set(message, "its counters cannot be read");
    else if (memcmp(all->magic, zeros, sizeof zeros) == 0)
        return STATS_STARTING; /* the module sets magic last */
    else if (memcmp(all->magic, STATISTICS_MAGIC, sizeof STATISTICS_MAGIC) != 0)
        message_set(message, "its counters do not begin with '%s'", STATISTICS_MAGIC);
    else if (all->layout != STATISTICS_LAYOUT)
        message_set(message,
                    "its counters have layout %" PRIu32 ", but this p11-proxy, version " VERSION
                    ", reads layout %d: use the program that came with the module",
                    all->layout, STATISTICS_LAYOUT);
    else if (all->size_bytes != sizeof *all)
        message_set(message, "its counters have the wrong size");
    else
        return STATS_READ;
    return STATS_STRANGE;
}

/* What is in use of the rest. */
static bool read_rest(struct statistics *all, int fd)
{
    size_t slots_at = offsetof(struct statistics, slots);

    if (!read_part(fd, all, 0, slots_at))
        return false;
    if (all->slot_count > STATISTICS_SLOTS)
        all->slot_count = STATISTICS_SLOTS;
    if (all->refusal_count > STATISTICS_REFUSALS)
        all->refusal_count = STATISTICS_REFUSALS;
    return read_part(fd, all, slots_at, all->slot_count * sizeof all->slots[0]);
}

typedef bool same_function(const void *a, const void *b);

/* Moves the rows that differ from all before them to the front, and returns how many these are. */
static size_t keep_unique(void *rows, size_t count, size_t row_bytes, same_function *same)
{
    char *first = rows;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        size_t twin = 0;
        while (twin < kept && !same(first + twin * row_bytes, first + i * row_bytes))
            twin++;
        if (twin == kept)
            memmove(first + kept++ * row_bytes, first + i * row_bytes, row_bytes);
    }
    return kept;
}

static bool same_slot(const void *a, const void *b)
{
    return ((const struct statistics_slot *)a)->id == ((const struct statistics_slot *)b)->id;
}

static bool same_type(const void *a, const void *b)
{
    const struct statistics_mechanism *one = a, *other = b;
    return one->type_plus_1 == other->type_plus_1;
}

static bool same_refusal(const void *a, const void *b)
{
    const struct statistics_refusal *one = a, *other = b;
    return one->mechanism == other->mechanism && one->line == other->line &&
           strcmp(one->file, other->file) == 0 && strcmp(one->rule, other->rule) == 0;
}

/* Most used first, and free places last. */
static int by_use(const void *a, const void *b)
{
    const struct statistics_mechanism *one = a, *other = b;
    uint64_t type = one->type_plus_1 - 1, other_type = other->type_plus_1 - 1;
    uint64_t calls = type != UINT64_MAX ? statistic_read(&one->calls) : 0;
    uint64_t other_calls = other_type != UINT64_MAX ? statistic_read(&other->calls) : 0;

    if (calls != other_calls)
        return calls < other_calls ? 1 : -1;
    return type < other_type ? -1 : type > other_type;
}

static void clean_text(char *text, size_t text_bytes)
{
    text[text_bytes - 1] = '\0';
    make_plain(text);
}

static void clean(struct statistics *all)
{
    clean_text(all->version, sizeof all->version);
    clean_text(all->module, sizeof all->module);
    clean_text(all->target, sizeof all->target);
    for (uint64_t i = 0; i < all->slot_count; i++) {
        clean_text(all->slots[i].token, sizeof all->slots[i].token);
        statistics_add_up(&all->slots[i].pool);
    }
    for (uint64_t i = 0; i < all->refusal_count; i++) {
        clean_text(all->refusals[i].file, sizeof all->refusals[i].file);
        clean_text(all->refusals[i].rule, sizeof all->refusals[i].rule);
    }
    all->slot_count = keep_unique(all->slots, all->slot_count, sizeof all->slots[0], same_slot);
    all->refusal_count =
        keep_unique(all->refusals, all->refusal_count, sizeof all->refusals[0], same_refusal);
    size_t types =
        keep_unique(all->mechanisms, STATISTICS_MECHANISMS, sizeof all->mechanisms[0], same_type);
    memset(&all->mechanisms[types], 0, (STATISTICS_MECHANISMS - types) * sizeof all->mechanisms[0]);
    qsort(all->mechanisms, STATISTICS_MECHANISMS, sizeof all->mechanisms[0], by_use);
}

enum stats_read stats_read(struct statistics **counters, int fd, uint64_t own_pid,
                           struct message *message)
{
    struct statistics *all = aligned_alloc(_Alignof(struct statistics), sizeof(struct statistics));
    enum stats_read result = STATS_STRANGE;

    message_set(message, "its counters cannot be read");
    if (all != NULL) {
        memset(all, 0, offsetof(struct statistics, slots));
        result = read_head(all, fd, message);
    }
    if (result == STATS_READ && !read_rest(all, fd))
        result = STATS_STRANGE;
    else if (result == STATS_READ && all->pid != own_pid)
        result = STATS_INHERITED;
    if (result != STATS_READ) {
        free(all);
        return result;
    }
    clean(all);
    *counters = all;
    return result;
}

uint64_t stats_call_ns(const struct statistics_pool *pool)
{
    return pool->pool_draws > 0
               ? statistics_call_ns(pool, pool->pool_drawn_bytes / pool->pool_draws)
               : 0;
}

uint64_t stats_saved_ns(const struct statistics_pool *pool)
{
    uint64_t saved_ns;

    if (__builtin_mul_overflow(stats_call_ns(pool), statistic_read(&pool->pool_draws), &saved_ns))
        saved_ns = UINT64_MAX;
    return saved_ns;
}

bool stats_has(const struct statistics *counters, enum statistics_flag flag)
{
    return (counters->flags & flag) != 0;
}

const char *stats_policy_word(const struct statistics *counters)
{
    return stats_has(counters, STATISTICS_AUDIT)    ? "audit"
           : stats_has(counters, STATISTICS_POLICY) ? "enforce"
                                                    : "none";
}

const char *stats_trust_word(uint64_t trust)
{
    return trust == STATISTICS_TRUSTED   ? "trusted"
           : trust == STATISTICS_SUSPECT ? "suspect"
                                         : "latched";
}
