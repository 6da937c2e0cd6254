/* sizing.c - what is learned about the sizes of calls. */
#include "random/sizing.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"
#include "state/memory.h"
#include "state/settings.h"

enum {
    SIZES = 25, /* powers of two, to 2^24 bytes: the largest pool */
    FIRST_CALL_BYTES = 1024,
    LARGEST_TRIED_BYTES = POOL_TAKE_MAX, /* by a search for a size that works */
    LEAST_CALL_BYTES = 8,                /* there are tokens that refuse less */
    SLOW_CALLS_TO_SHRINK = 2,            /* one may be due to a busy machine, */
    CALLS_TO_FORGET = 64                 /* and even two in a row happen now and then */
};

/* A longer call keeps the application's other calls to a serial token waiting. */
static const int64_t SHORT_CALL_NS = 5 * NS_PER_MS;
/* A shorter one is soon repeated, and its caller would wait for the whole pool. */
static const int64_t WHOLE_POOL_CALL_NS = NS_PER_MS / 5;
static const int64_t FIRST_PAUSE_NS = 10 * NS_PER_MS;
static const int64_t LONGEST_PAUSE_NS = 10 * NS_PER_S;
static const int64_t LOG_AGAIN_NS = 60 * NS_PER_S;

struct sizing {
    unsigned version;       /* the slot's sizes_version that this is about, */
    unsigned retry_version; /* and its retry_version */
    size_t call_bytes;      /* what to ask for in one call */
    int64_t
        least_ns[SIZES]; /* the shortest call of 2^i bytes up to twice that, 0 if there was none */
    size_t limit_bytes;  /* no call of so many bytes or more, 0: no limit known */
    size_t least_bytes;  /* known to work where a smaller one failed, 0: none did */
    size_t failed_bytes; /* a call of this size failed and none has worked since, 0: none */
    unsigned slow_calls; /* in a row */
    unsigned calls;      /* since a size that was too slow was forgotten */
    bool failing;
    bool told; /* the log says that it fails */
    int64_t retry_at_ns;
    int64_t pause_ns;
    int64_t logged_ns; /* when a failure was logged last */
};

static struct sizing_of_slot {
    pthread_mutex_t lock; /* guards what was learned */
    struct sizing learned;
} * sizings;
IN_WIPED_MEMORY(sizings, SLOTS_MAX)

static struct sizing *lock(struct slot *slot)
{
    struct sizing *s = &sizings[slot->number].learned;
    pthread_mutex_lock(&sizings[slot->number].lock);
    unsigned version = atomic_load(&slot->sizes_version);
    unsigned retry_version = atomic_load(&slot->retry_version);
    if (s->version != version || s->call_bytes == 0)
        *s = (struct sizing){.version = version, .call_bytes = FIRST_CALL_BYTES};
    if (s->retry_version != retry_version) {
        s->retry_version = retry_version;
        s->retry_at_ns = s->pause_ns = 0;
    }
    return s;
}

static void unlock(struct slot *slot)
{
    pthread_mutex_unlock(&sizings[slot->number].lock);
}

static unsigned power_of(size_t bytes)
{
    unsigned power = (unsigned)(63 - __builtin_clzll((unsigned long long)bytes | 1));
    return power < SIZES ? power : SIZES - 1;
}

/* The smallest size that was timed; SIZES if none was. */
static unsigned smallest_timed(const struct sizing *s)
{
    unsigned power = 0;
    while (power < SIZES && s->least_ns[power] == 0)
        power++;
    return power;
}

/* The shortest call of that size, 0 if none was timed. */
static int64_t least_of_smallest(const struct sizing *s)
{
    unsigned smallest = smallest_timed(s);
    return smallest < SIZES ? s->least_ns[smallest] : 0;
}

size_t sizing_call_bytes(struct slot *slot)
{
    struct sizing *s = lock(slot);
    size_t bytes = s->call_bytes;
    if (s->retry_at_ns != 0 && clock_exact_ns() < s->retry_at_ns)
        bytes = 0;
    unlock(slot);
    return bytes;
}

bool sizing_is_flat(struct slot *slot)
{
    struct sizing *s = lock(slot);
    int64_t least_ns = least_of_smallest(s);
    unsigned smallest = smallest_timed(s);
    unsigned largest = SIZES - 1;
    while (largest > smallest && s->least_ns[largest] == 0)
        largest--;
    bool flat = largest > smallest && s->least_ns[largest] <= least_ns + least_ns / 4;
    unlock(slot);
    return flat && least_ns >= WHOLE_POOL_CALL_NS;
}

int64_t sizing_call_ns(struct slot *slot)
{
    struct sizing *s = lock(slot);
    int64_t ns = 0;
    for (int power = (int)power_of(s->call_bytes); power >= 0 && ns == 0; power--)
        ns = s->least_ns[power];
    unlock(slot);
    return ns;
}

void sizing_of_request(struct slot *slot, size_t len_bytes, size_t *most_bytes, size_t *least_bytes)
{
    struct sizing *s = lock(slot);
    bool too_large = s->limit_bytes != 0 && len_bytes >= s->limit_bytes;
    *most_bytes = too_large ? s->call_bytes : len_bytes;
    *least_bytes = s->least_bytes != 0 ? s->least_bytes : 1;
    unlock(slot);
}

/* Whether calls of that size cost little, or hardly more than the smallest: then it is the call that costs and not
 * the bytes. A size that was not timed yet passes. */
static bool is_cheap(const struct sizing *s, unsigned power)
{
    int64_t ns = power < SIZES ? s->least_ns[power] : 0;
    int64_t least_ns = least_of_smallest(s);
    return ns <= SHORT_CALL_NS || ns <= least_ns + least_ns / 4;
}

/* A long call of the smallest size that was timed: only a still smaller one tells whether size matters. */
static bool is_smaller_needed(const struct sizing *s, unsigned power)
{
    int64_t ns = s->least_ns[power];
    int64_t twice_ns = power < SIZES - 1 ? s->least_ns[power + 1] : 0;
    bool matters = twice_ns == 0 || twice_ns > ns + ns / 4;
    return ns > SHORT_CALL_NS && power == smallest_timed(s) && matters;
}

static void shrink(struct sizing *s)
{
    size_t least = s->least_bytes > LEAST_CALL_BYTES ? s->least_bytes : LEAST_CALL_BYTES;
    s->slow_calls = 0;
    if (s->call_bytes / 2 >= least)
        s->call_bytes /= 2;
}

static void grow(struct sizing *s, int64_t took_ns)
{
    size_t most = settings()->pool_size_bytes / (took_ns >= WHOLE_POOL_CALL_NS ? 1 : 2);
    unsigned steps = took_ns <= SHORT_CALL_NS / 4 ? 2 : 1;
    for (; steps > 0; steps--) {
        size_t twice = s->call_bytes * 2;
        bool refused = s->limit_bytes != 0 && twice >= s->limit_bytes;
        if (twice > most || refused || !is_cheap(s, power_of(twice)))
            break;
        s->call_bytes = twice;
    }
}

/* Whether a call that was not alone was slow because it waited for another one, which may be as long. */
static bool may_have_waited(const struct sizing *s, int64_t took_ns)
{
    int64_t least_ns = least_of_smallest(s);
    int64_t cheap_ns = least_ns + least_ns / 4;
    return took_ns > SHORT_CALL_NS && took_ns > cheap_ns && took_ns <= cheap_ns + least_ns;
}

static void learn_time(struct sizing *s, size_t asked_bytes, int64_t took_ns, bool was_alone)
{
    unsigned power = power_of(asked_bytes);
    int64_t *least_ns = &s->least_ns[power];
    if (!was_alone && may_have_waited(s, took_ns)) {
        if (asked_bytes > s->call_bytes / 2)
            grow(s, took_ns);
        return;
    }
    if (*least_ns == 0 || took_ns < *least_ns)
        *least_ns = took_ns;
    /* A size that was slow may have been so by chance. */
    if (++s->calls >= CALLS_TO_FORGET) {
        unsigned next = power_of(s->call_bytes) + 1;
        if (next < SIZES && !is_cheap(s, next))
            s->least_ns[next] = 0;
        s->calls = 0;
    }
    if (asked_bytes <= s->call_bytes / 2)
        return; /* the pool had room for less, so this tells nothing about calls of that size */
    if (was_alone && is_smaller_needed(s, power))
        shrink(s);
    else if (is_cheap(s, power)) {
        s->slow_calls = 0;
        grow(s, took_ns);
    } else if (++s->slow_calls >= SLOW_CALLS_TO_SHRINK)
        shrink(s);
}

static void set_limit(struct sizing *s, size_t limit_bytes)
{
    if (s->limit_bytes == 0 || limit_bytes < s->limit_bytes)
        s->limit_bytes = limit_bytes;
    while (s->call_bytes >= s->limit_bytes && s->call_bytes > LEAST_CALL_BYTES)
        s->call_bytes /= 2;
}

void sizing_accepted(struct slot *slot, size_t asked_bytes, int64_t took_ns, bool was_alone)
{
    struct sizing *s = lock(slot);
    bool tell = s->told;
    if (s->failed_bytes != 0 && asked_bytes < s->failed_bytes)
        set_limit(s, s->failed_bytes);
    s->failed_bytes = 0;
    s->failing = s->told = false;
    s->retry_at_ns = s->pause_ns = 0;
    if (took_ns != 0 && asked_bytes >= LEAST_CALL_BYTES)
        learn_time(s, asked_bytes, took_ns, was_alone);
    unlock(slot);
    if (tell)
        log_write(LOG_LEVEL_WARNING, "slot %lu: the token gives random bytes again", slot->id);
}

void sizing_failed(struct slot *slot, size_t asked_bytes)
{
    struct sizing *s = lock(slot);
    if (s->failed_bytes == 0 || asked_bytes < s->failed_bytes)
        s->failed_bytes = asked_bytes;
    while (s->call_bytes >= asked_bytes && s->call_bytes > LEAST_CALL_BYTES)
        s->call_bytes /= 2;
    unlock(slot);
}

void sizing_found(struct slot *slot, size_t works_bytes, size_t request_bytes)
{
    struct sizing *s = lock(slot);
    if (works_bytes < LARGEST_TRIED_BYTES)
        set_limit(s, works_bytes * 2);
    if (request_bytes > works_bytes)
        set_limit(s, request_bytes);
    else
        s->least_bytes = works_bytes;
    s->call_bytes = works_bytes;
    s->failed_bytes = 0;
    unlock(slot);
}

void sizing_pause(struct slot *slot, CK_RV rv)
{
    struct sizing *s = lock(slot);
    int64_t now_ns = clock_exact_ns();
    int64_t pause_ns = s->pause_ns == 0 ? FIRST_PAUSE_NS : s->pause_ns * 2;
    bool tell = !s->failing && (s->logged_ns == 0 || now_ns - s->logged_ns >= LOG_AGAIN_NS);
    s->pause_ns = pause_ns < LONGEST_PAUSE_NS ? pause_ns : LONGEST_PAUSE_NS;
    s->retry_at_ns = now_ns + s->pause_ns;
    s->failed_bytes = 0;
    s->failing = true;
    if (tell) {
        s->told = true;
        s->logged_ns = now_ns;
    }
    /* The sizes of failed calls were not to blame. */
    if (s->call_bytes < FIRST_CALL_BYTES && s->limit_bytes == 0)
        s->call_bytes = FIRST_CALL_BYTES;
    unlock(slot);
    if (tell)
        log_write(LOG_LEVEL_WARNING, "slot %lu: the token gives no random bytes, code 0x%lx",
                  slot->id, rv);
}

bool sizing_is_failing(struct slot *slot)
{
    struct sizing *s = lock(slot);
    bool failing = s->failing;
    unlock(slot);
    return failing;
}
