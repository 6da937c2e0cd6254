/* sizing.c - what is learned about the sizes of calls. */
#include "random/sizing.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "state/counters.h"
#include "state/memory.h"
#include "state/settings.h"

enum {
    SIZES = 26, /* powers of two, to twice the 2^24 bytes of the largest pool */
    FIRST_CALL_BYTES = 1024,
    LARGEST_TRIED_BYTES = POOL_TAKE_MAX, /* by a search for a size that works */
    LEAST_CALL_BYTES = 8,                /* there are tokens that refuse less */
    CALLS_TO_FORGET = 16, /* a size that was slow may have been so because the machine was busy */
    FLAT_GROWTH = 8       /* each call on the way to the largest one costs as much as that */
};

/* A longer call keeps the application's other calls to a serial token waiting. */
static const int64_t SHORT_CALL_NS = 5 * NS_PER_MS;
/* Even four times as long it is shorter. */
static const int64_t FAST_CALL_NS = 5 * NS_PER_MS / 4;
/* A shorter one is soon repeated, and its caller would wait for the whole pool. */
static const int64_t WHOLE_POOL_CALL_NS = NS_PER_MS / 5;
static const int64_t FIRST_PAUSE_NS = 10 * NS_PER_MS;
static const int64_t LONGEST_PAUSE_NS = 10 * NS_PER_S;
static const int64_t LOG_AGAIN_NS = 60 * NS_PER_S;

static struct sizing {
    pthread_mutex_t lock;   /* guards what follows */
    unsigned version;       /* the slot's sizes_version that this is about, */
    unsigned retry_version; /* and its retry_version */
    struct learned {
        size_t call_bytes;
        size_t limit_bytes;
        size_t least_bytes;
        size_t failed_bytes;     /* a call of this size failed and none has worked since, 0: none */
        int64_t least_ns[SIZES]; /* the shortest call of 2^i bytes up to twice that, 0: none */
        unsigned calls;
        int64_t pause_ns; /* 0: it is not failing */
        int64_t retry_at_ns;
        int64_t logged_ns; /* when a failure was logged last, 0: never */
    } learned;
} * sizings;
IN_WIPED_MEMORY(sizings, SLOTS_MAX)

static struct learned *learned_locked(struct slot *slot)
{
    struct sizing *s = &sizings[slot->number];
    unsigned version = atomic_load(&slot->sizes_version);
    unsigned retry_version = atomic_load(&slot->retry_version);
    if (s->version != version || s->learned.call_bytes == 0)
        s->learned = (struct learned){
            .call_bytes = FIRST_CALL_BYTES, .limit_bytes = SIZE_MAX, .least_bytes = 1};
    if (s->retry_version != retry_version)
        s->learned.retry_at_ns = s->learned.pause_ns = 0;
    s->version = version;
    s->retry_version = retry_version;
    return &s->learned;
}

static unsigned power_of(size_t bytes)
{
    return (unsigned)(63 - __builtin_clzll((unsigned long long)bytes));
}

/* The smallest size that was timed; the largest of all if none was. */
static unsigned smallest_timed(const struct learned *l)
{
    unsigned power = 0;
    while (power < SIZES - 1 && l->least_ns[power] == 0)
        power++;
    return power;
}

static bool is_hardly_longer(int64_t ns, int64_t than_ns)
{
    return ns <= than_ns + than_ns / 4;
}

/* Whether such calls are long, and take hardly longer than the smallest. */
static bool is_flat(const struct learned *l, unsigned power)
{
    int64_t least_ns = l->least_ns[smallest_timed(l)];
    return power > smallest_timed(l) && least_ns >= WHOLE_POOL_CALL_NS &&
           is_hardly_longer(l->least_ns[power], least_ns);
}

struct sizes sizing_read(struct slot *slot)
{
    HOLD(&sizings[slot->number].lock);
    struct learned *l = learned_locked(slot);
    struct sizes sizes = {.call_bytes = l->call_bytes,
                          .limit_bytes = l->limit_bytes,
                          .least_bytes = l->least_bytes,
                          .is_failing = l->pause_ns != 0,
                          .is_paused = l->pause_ns != 0 && clock_exact_ns() < l->retry_at_ns};
    unsigned power = power_of(l->call_bytes);
    while (power > 0 && l->least_ns[power] == 0)
        power--;
    sizes.call_ns = l->least_ns[power];
    sizes.is_flat = is_flat(l, power);
    return sizes;
}

/* Whether calls of that size cost little, or hardly more than the smallest: then it is the call that costs and not
 * the bytes. A size that was not timed yet passes. */
static bool is_cheap(const struct learned *l, unsigned power)
{
    int64_t ns = l->least_ns[power];
    return ns <= SHORT_CALL_NS || is_hardly_longer(ns, l->least_ns[smallest_timed(l)]);
}

/* A long call of the smallest size that was timed: only a still smaller one tells whether size matters. */
static bool is_smaller_needed(const struct learned *l, unsigned power)
{
    int64_t ns = l->least_ns[power];
    int64_t twice_ns = l->least_ns[power + 1];
    return ns > SHORT_CALL_NS && power == smallest_timed(l) &&
           (twice_ns == 0 || !is_hardly_longer(twice_ns, ns));
}

static void lower_below(struct learned *l, size_t below_bytes)
{
    while (l->call_bytes >= below_bytes && l->call_bytes > LEAST_CALL_BYTES)
        l->call_bytes /= 2;
}

static void limit(struct learned *l, size_t limit_bytes)
{
    if (limit_bytes < l->limit_bytes)
        l->limit_bytes = limit_bytes;
    lower_below(l, limit_bytes);
}

static void learn_time(struct learned *l, size_t asked_bytes, int64_t took_ns)
{
    unsigned power = power_of(asked_bytes);
    unsigned next = power_of(l->call_bytes) + 1;
    if (l->least_ns[power] == 0 || took_ns < l->least_ns[power])
        l->least_ns[power] = took_ns > 0 ? took_ns : 1;
    if (++l->calls % CALLS_TO_FORGET == 0 && !is_cheap(l, next))
        l->least_ns[next] = 0;
    if (asked_bytes <= l->call_bytes / 2)
        return; /* the pool had room for less, so this tells nothing about calls of that size */
    size_t half = l->call_bytes / 2;
    size_t larger = l->call_bytes * (is_flat(l, power)         ? FLAT_GROWTH
                                     : took_ns <= FAST_CALL_NS ? 4
                                                               : 2);
    size_t most = settings()->pool_size_bytes / (took_ns >= WHOLE_POOL_CALL_NS ? 1 : 4);
    if (is_smaller_needed(l, power) || !is_cheap(l, power)) {
        if (half >= LEAST_CALL_BYTES && half >= l->least_bytes)
            l->call_bytes = half;
        return;
    }
    while (larger > l->call_bytes &&
           (larger > most || larger >= l->limit_bytes || !is_cheap(l, power_of(larger))))
        larger /= 2;
    if (larger > l->call_bytes)
        l->call_bytes = larger;
}

void sizing_accepted(struct slot *slot, size_t asked_bytes, int64_t took_ns)
{
    HOLD(&sizings[slot->number].lock);
    struct learned *l = learned_locked(slot);
    if (l->failed_bytes > asked_bytes)
        limit(l, l->failed_bytes);
    l->failed_bytes = 0;
    l->retry_at_ns = l->pause_ns = 0;
    if (asked_bytes >= LEAST_CALL_BYTES)
        learn_time(l, asked_bytes, took_ns);
    statistic_set(&counters_of(slot)->chunk_bytes, l->call_bytes);
}

void sizing_failed(struct slot *slot, size_t asked_bytes)
{
    HOLD(&sizings[slot->number].lock);
    struct learned *l = learned_locked(slot);
    if (l->failed_bytes == 0 || asked_bytes < l->failed_bytes)
        l->failed_bytes = asked_bytes;
    lower_below(l, asked_bytes);
}

void sizing_found(struct slot *slot, size_t works_bytes, size_t request_bytes)
{
    HOLD(&sizings[slot->number].lock);
    struct learned *l = learned_locked(slot);
    if (works_bytes < LARGEST_TRIED_BYTES)
        limit(l, works_bytes * 2);
    if (request_bytes > works_bytes)
        limit(l, request_bytes);
    else
        l->least_bytes = works_bytes;
    l->call_bytes = works_bytes;
    l->failed_bytes = 0;
}

void sizing_pause(struct slot *slot, CK_RV rv)
{
    pthread_mutex_lock(&sizings[slot->number].lock);
    struct learned *l = learned_locked(slot);
    int64_t now_ns = clock_exact_ns();
    int64_t pause_ns = l->pause_ns == 0 ? FIRST_PAUSE_NS : l->pause_ns * 2;
    bool tell = l->pause_ns == 0 && (l->logged_ns == 0 || now_ns - l->logged_ns >= LOG_AGAIN_NS);
    l->pause_ns = pause_ns < LONGEST_PAUSE_NS ? pause_ns : LONGEST_PAUSE_NS;
    l->retry_at_ns = now_ns + l->pause_ns;
    l->failed_bytes = 0;
    if (tell)
        l->logged_ns = now_ns;
    /* The sizes of failed calls were not to blame. */
    if (l->call_bytes < FIRST_CALL_BYTES && l->limit_bytes == SIZE_MAX)
        l->call_bytes = FIRST_CALL_BYTES;
    pthread_mutex_unlock(&sizings[slot->number].lock);
    if (tell)
        log_write(LOG_LEVEL_WARNING, "slot %lu: the token gives no random bytes, code 0x%lx",
                  slot->id, rv);
}
