/* read.c - copies the counters of another process, which may be hostile. */
#include "counters/counters.h"

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
static enum counters_result read_head(struct statistics *all, int fd, struct message *message)
{
    static const char zeros[sizeof all->magic];
    if (!read_part(fd, all, 0, offsetof(struct statistics, pid)))
        message_set(message, "its counters cannot be read");
    else if (memcmp(all->magic, zeros, sizeof zeros) == 0)
        return COUNTERS_STARTING; /* the module sets magic last */
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
        return COUNTERS_READ;
    return COUNTERS_STRANGE;
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

/* Whether two rows begin with the same key. */
static bool has_twins(const void *rows, size_t count, size_t row_bytes, size_t key_bytes)
{
    const char *first = rows;
    bool found = false;
    for (size_t i = 1; i < count && !found; i++) {
        for (size_t j = 0; j < i && !found; j++)
            found = memcmp(first + i * row_bytes, first + j * row_bytes, key_bytes) == 0;
    }
    return found;
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

/* Ends a text, makes it printable, and wipes what is behind its end. */
static void clean_text(char *text, size_t text_bytes)
{
    text[text_bytes - 1] = '\0';
    make_plain(text);
    memset(text + strlen(text), 0, text_bytes - strlen(text));
}

/* False if a slot, mechanism or refusal stands twice, as no proxy writes it. */
static bool clean(struct statistics *all)
{
    size_t types = 0;
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
    qsort(all->mechanisms, STATISTICS_MECHANISMS, sizeof all->mechanisms[0], by_use);
    while (types < STATISTICS_MECHANISMS && all->mechanisms[types].type_plus_1 != 0)
        types++;
    return !has_twins(all->slots, all->slot_count, sizeof all->slots[0], sizeof(statistic)) &&
           !has_twins(all->mechanisms, types, sizeof all->mechanisms[0], sizeof(statistic)) &&
           !has_twins(all->refusals, all->refusal_count, sizeof all->refusals[0],
                      offsetof(struct statistics_refusal, times));
}

enum counters_result counters_read(struct statistics **counters, int fd, uint64_t own_pid,
                                   struct message *message)
{
    struct statistics *all = aligned_alloc(_Alignof(struct statistics), sizeof(struct statistics));
    enum counters_result result = COUNTERS_STRANGE;
    message_set(message, "its counters cannot be read");
    if (all != NULL) {
        memset(all, 0, offsetof(struct statistics, slots));
        result = read_head(all, fd, message);
    }
    if (result == COUNTERS_READ && !read_rest(all, fd))
        result = COUNTERS_STRANGE;
    else if (result == COUNTERS_READ && all->pid != own_pid)
        result = COUNTERS_INHERITED;
    else if (result == COUNTERS_READ && !clean(all)) {
        message_set(message, "its counters are not those of a proxy");
        result = COUNTERS_STRANGE;
    }
    if (result == COUNTERS_READ)
        *counters = all;
    else
        free(all);
    return result;
}
