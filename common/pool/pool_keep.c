/* pool_keep.c - a pool's life: made, measured out of a budget, laid aside, counted, ended. */
#include "pool/pool_inside.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wiped.h"

static const int64_t WAIT_FOR_STRIPE_NS = 20000;

static unsigned stripes_for(size_t capacity_bytes)
{
    long processors = sysconf(_SC_NPROCESSORS_CONF);
    size_t most = capacity_bytes / 4 / STRIPE_BYTES;
    size_t wanted = processors > 0 ? (size_t)processors : 1;
    return (unsigned)min_size(min_size(wanted, most), STRIPES_MAX);
}

int pool_create(struct pool **pool, const struct pool_settings *settings)
{
    size_t capacity = settings->capacity_bytes;
    if (capacity < POOL_CAPACITY_MIN || capacity > POOL_CAPACITY_MAX)
        return -EINVAL;
    unsigned stripes = stripes_for(capacity);
    size_t mapped = sizeof(struct pool) + stripes * sizeof(struct stripe) + capacity;

    void *memory;
    int rc = wiped_map(&memory, mapped);
    if (rc != 0)
        return rc;
    struct pool *p = memory;
    p->stripe_count = stripes;
    p->mapped_bytes = mapped;
    p->capacity_bytes = capacity;
    p->max_age_ns = settings->max_age_ns;
    p->budget = settings->budget;
    p->locked = settings->lock_memory && wiped_lock(p, mapped, /* lock_memory= */ true);
    p->told = settings->told;
    p->ring.capacity_bytes = capacity;
    p->ring_bytes = (uint8_t *)&p->stripes[stripes];
    p->clock_offset_ns = clock_offset_ns();
    p->sentinel = droppable_map();
    if (p->sentinel == NULL)
        p->sentinel = &p->own_sentinel;
    atomic_store(p->sentinel, 1);
    p->generation = settings->generation != NULL ? settings->generation : &p->own_generation;
    atomic_store(&p->generation_seen, atomic_load(p->generation));
    health_remember(&p->health);
    for (unsigned i = 0; i < stripes; i++)
        p->stripes[i].told = p->told != NULL ? &p->told->cpus[i] : NULL;
    pool_tell_locked(p);
    atomic_store(&p->epoch, 1);
    *pool = p;
    return 0;
}

/* Takes up to more_bytes out of the shared budget. */
static size_t budget_take(struct pool *p, size_t more_bytes)
{
    atomic_size_t *budget = p->budget; /* NULL also once wiped */
    if (budget == NULL)
        return more_bytes;
    size_t left = atomic_load(budget);
    size_t got;
    do
        got = min_size(left, more_bytes);
    while (!atomic_compare_exchange_weak(budget, &left, left - got));
    return got;
}

void pool_set_level_locked(struct pool *p, size_t level_bytes)
{
    level_bytes = min_size(level_bytes, p->capacity_bytes);
    atomic_size_t *budget = p->budget;
    size_t before = p->level_bytes;
    if (level_bytes > before)
        p->level_bytes = before + budget_take(p, level_bytes - before);
    else {
        if (budget != NULL)
            atomic_fetch_add(budget, before - level_bytes);
        p->level_bytes = level_bytes;
    }
}

void pool_free(struct pool *p)
{
    if (p == NULL)
        return;
    if (atomic_load(&p->epoch) != 0)
        pool_set_level_locked(p, 0);
    if (p->sentinel != &p->own_sentinel)
        droppable_unmap(p->sentinel);
    wiped_unmap(p, p->mapped_bytes);
}

void pool_lock_stripe(struct stripe *s)
{
    while (!try_lock_acquire(&s->lock))
        wait_on_word(&s->lock.held, 1, WAIT_FOR_STRIPE_NS);
}

/* Where to tell from now on. What was counted for another reader is no business of this one. */
static void tell_elsewhere(struct pool *p, struct statistics_pool *told)
{
    for (unsigned i = 0; i < p->stripe_count; i++) {
        struct stripe *s = &p->stripes[i];
        pool_lock_stripe(s);
        s->served = s->served_bytes = 0;
        s->told = told != NULL ? &told->cpus[i] : NULL;
        try_lock_release(&s->lock);
    }
    lock_acquire(&p->lock);
    p->counts = (struct pool_counts){0};
    p->told = told;
    pool_tell_locked(p);
    lock_release(&p->lock);
}

void pool_rest(struct pool *p)
{
    pool_drop(p, POOL_DROP_FINALIZE);
    tell_elsewhere(p, NULL);
    lock_acquire(&p->lock);
    pool_set_level_locked(p, 0);
    lock_release(&p->lock);
    if (p->locked)
        wiped_lock(p, p->mapped_bytes, /* lock_memory= */ false);
    p->locked = false;
}

bool pool_reuse(struct pool *p, const struct pool_settings *settings)
{
    if (p->capacity_bytes != settings->capacity_bytes)
        return false;
    bool locked = settings->lock_memory && wiped_lock(p, p->mapped_bytes, /* lock_memory= */ true);
    lock_acquire(&p->lock);
    p->max_age_ns = settings->max_age_ns;
    p->budget = settings->budget;
    p->clock_offset_ns = clock_offset_ns();
    p->locked = locked;
    lock_release(&p->lock);
    tell_elsewhere(p, settings->told);
    return true;
}

void pool_tell_locked(const struct pool *p)
{
    struct statistics_pool *told = p->told;
    const struct pool_counts *counts = &p->counts;
    if (told == NULL)
        return;
    statistic_set(&told->pool_draws, counts->served);
    statistic_set(&told->pool_drawn_bytes, counts->served_bytes);
    statistic_set(&told->missed_draws, counts->missed);
    statistic_set(&told->fills, counts->fills);
    statistic_set(&told->filled_bytes, counts->filled_bytes);
    statistic_set(&told->expired_bytes, counts->expired_bytes);
    statistic_set(&told->dropped_bytes, counts->dropped_bytes);
    statistic_set(&told->alarms, counts->alarms);
    for (int i = 0; i < POOL_DROP_CAUSES; i++)
        statistic_set(&told->drops[i], counts->drops[i]);
    statistic_set(&told->level_bytes, p->level_bytes);
    statistic_set(&told->capacity_bytes, p->capacity_bytes);
    statistic_set(&told->locked, p->locked);
    statistic_set(&told->droppable, p->sentinel != &p->own_sentinel);
}

void pool_count(struct pool *p, struct pool_counts *counts)
{
    lock_acquire(&p->lock);
    *counts = p->counts;
    counts->held_bytes = p->ring.held_bytes;
    counts->level_bytes = p->level_bytes;
    lock_release(&p->lock);
    for (unsigned i = 0; i < p->stripe_count; i++) {
        struct stripe *s = &p->stripes[i];
        pool_lock_stripe(s);
        counts->served += s->served;
        counts->served_bytes += s->served_bytes;
        counts->held_bytes += s->end - s->next;
        try_lock_release(&s->lock);
    }
}
