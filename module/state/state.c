/* state.c - makes the one mapping that all mutable state lies in. */
#include "state/state.h"

#include "state/counters.h"
#include "base/wiped.h"

_Static_assert(BUSY_PLACES == 64, "busy_place() takes the upper six bits of a hash");

/* Until there is a better one, and where no protection against fork is to be had. */
static struct state ordinary_state;

struct state *state = &ordinary_state;

static atomic_int prepare_result = 1;

/* Without a lock: it would lie in ordinary memory, where a child finds it as a fork left it. */
int state_prepare(void)
{
    struct state *none = &ordinary_state;
    void *memory;
    int unknown = 1;
    if (atomic_load(&prepare_result) <= 0)
        return atomic_load(&prepare_result);
    int rc = wiped_map(&memory, sizeof(struct state));
    if (rc == 0 &&
        !__atomic_compare_exchange_n(&state, &none, (struct state *)memory,
                                     /* weak= */ false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        wiped_unmap(memory, sizeof(struct state)); /* another thread was faster */
    atomic_compare_exchange_strong(&prepare_result, &unknown, rc);
    return atomic_load(&prepare_result);
}

void state_free(void)
{
    struct state *mapped = state;
    if (!state_is_wiped_on_fork())
        return;
    state = &ordinary_state;
    wiped_unmap(mapped, sizeof *mapped);
}

bool state_is_wiped_on_fork(void)
{
    return state != &ordinary_state;
}

struct slot *slot_of_locked(CK_SLOT_ID id)
{
    for (unsigned i = 0; i < state->slot_count; i++)
        if (state->slots[i].id == id)
            return &state->slots[i];
    if (state->slot_count == SLOTS_MAX)
        return NULL;
    struct slot *slot = &state->slots[state->slot_count];
    slot->id = id;
    atomic_store(&slot->generation, 1);
    state->slot_count++;
    count_slot_locked(slot);
    return slot;
}

struct slot *slot_find(CK_SLOT_ID id)
{
    struct slot *found = NULL;
    lock_acquire(&state->lock);
    for (unsigned i = 0; i < state->slot_count && found == NULL; i++)
        if (state->slots[i].id == id)
            found = &state->slots[i];
    lock_release(&state->lock);
    return found;
}

void slot_drop_pool(struct slot *slot, enum pool_drop cause)
{
    struct pool *pool = atomic_load(&slot->pool);
    if (pool != NULL)
        pool_drop(pool, cause);
}

void state_drop_pools(enum pool_drop cause)
{
    lock_acquire(&state->lock);
    unsigned count = state->slot_count;
    lock_release(&state->lock);
    for (unsigned i = 0; i < count; i++)
        slot_drop_pool(&state->slots[i], cause);
}
