/* pool_life.c - makes, starts, stops and ends a pool. */
#include "pool/pool_internal.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/keep_errno.h"
#include "base/wipeonfork.h"

int pool_create(struct pool **pool, size_t capacity_bytes, struct pool_counts *counts)
{
    if (capacity_bytes < POOL_CAPACITY_MIN || capacity_bytes > POOL_CAPACITY_MAX)
        return -EINVAL;
    KEEP_ERRNO();
    struct pool *p = malloc(sizeof *p);
    if (p == NULL)
        return -ENOMEM;
    size_t mapped_bytes = sizeof(struct pool_memory) + capacity_bytes;
    void *mapped;
    int rc = wipeonfork_map(&mapped, mapped_bytes);
    if (rc != 0) {
        free(p);
        return rc;
    }
    struct pool_memory *m = mapped;
    *p = (struct pool){.memory = m,
                       .ring = {&m->ring, (uint8_t *)(m + 1), capacity_bytes},
                       .counts = counts,
                       .mapped_bytes = mapped_bytes};
    *pool = p;
    return 0;
}

void pool_free(struct pool *p)
{
    if (p != NULL)
        wipeonfork_unmap(p->memory, p->mapped_bytes);
    free(p);
}

size_t pool_capacity(const struct pool *p)
{
    return p->ring.capacity_bytes;
}

struct health *pool_health(struct pool *p)
{
    return &p->memory->health;
}

void pool_start(struct pool *p, int64_t max_age_ns, bool lock_memory)
{
    struct pool_memory *m = p->memory;
    p->counts->locked = lock_memory && wipeonfork_lock(m, p->mapped_bytes);
    health_start(&m->health);
    HOLD(&m->lock);
    p->counts->capacity_bytes = m->most_bytes = p->ring.capacity_bytes;
    p->counts->level_bytes = m->target_bytes = POOL_TARGET_MIN;
    m->served_lately = 0;
    m->max_age_ns = max_age_ns - clock_tick_ns();
    m->clock_offset_ns = clock_offset_ns();
    m->halved_ns = m->seen_ns = clock_ticks_ns();
    atomic_store(&m->epoch, ++m->last_epoch);
}

void pool_stop(struct pool *p)
{
    struct pool_memory *m = p->memory;
    pool_drop(p, POOL_DROP_FINALIZE);
    HOLD(&m->lock);
    atomic_store(&m->epoch, 0);
    if (atomic_exchange(&p->counts->locked, 0) != 0)
        wipeonfork_unlock(m, p->mapped_bytes);
}
