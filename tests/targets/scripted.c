/* scripted.c - a target that does as a test's script says, with the rules of sessions and logins of a real token.
 *
 * Its calls run side by side: what they share is counted, not locked, so that no race of the module in front of it is
 * hidden. Only what a real token orders (opening, closing, logins) is ordered here.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "call.h"

#define NS_PER_S 1000000000UL

struct target_shared *shared;

static void say_all(struct target_shared *to, const char *text)
{
    size_t len = strlen(text);
    if (len >= SCRIPT_BYTES)
        abort();
    memcpy(to->script, text, len);
    atomic_store(&to->script_end, (unsigned)len);
}

__attribute__((constructor)) static void map_shared(void)
{
    const char *path = getenv("TARGET_SHARED");
    const char *script = getenv("TARGET_SCRIPT");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    int flags = fd >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (memory == MAP_FAILED || (path != NULL && fd < 0)) {
        perror("scripted target");
        abort();
    }
    if (fd >= 0)
        close(fd);
    shared = memory;
    if (path == NULL && script != NULL)
        say_all(shared, script);
}

__attribute__((destructor)) static void unmap_shared(void)
{
    life_is_unloaded();
    munmap(shared, sizeof *shared);
}

/* The module names its thread. */
static bool is_filler(void)
{
    static __thread int known;
    char name[17] = "";
    if (known == 0) {
        prctl(PR_GET_NAME, name);
        known = strncmp(name, "p11-proxy", strlen("p11-proxy")) == 0 ? 2 : 1;
    }
    return known == 2;
}

void complain(const char *what, const struct call *call)
{
    if (atomic_fetch_add(&shared->complaints, 1) == 0)
        snprintf(shared->complaint, sizeof shared->complaint, "%s: %s on session %lu, by %s", what,
                 call->name, call->session, call->by_filler ? "the filler" : "a caller");
}

/* A sleep lasts longer than it was asked for, so what is short is waited for on the processor. */
static void last_for(unsigned long duration_ns)
{
    static const unsigned long longest_busy_ns = 200 * 1000;
    struct timespec from;
    struct timespec now;
    if (duration_ns >= longest_busy_ns)
        nanosleep(
            &(struct timespec){(time_t)(duration_ns / NS_PER_S), (long)(duration_ns % NS_PER_S)},
            NULL);
    else if (duration_ns != 0) {
        clock_gettime(CLOCK_MONOTONIC, &from);
        do
            clock_gettime(CLOCK_MONOTONIC, &now);
        while ((unsigned long)(now.tv_sec - from.tv_sec) * NS_PER_S +
                   (unsigned long)(now.tv_nsec - from.tv_nsec) <
               duration_ns);
    }
}

/* In any process that shares the memory. */
static void hold(unsigned number)
{
    unsigned released;
    atomic_fetch_add(&shared->held, 1);
    while ((released = atomic_load(&shared->released)) <= number)
        syscall(SYS_futex, &shared->released, FUTEX_WAIT, released, NULL, NULL, 0);
    atomic_fetch_sub(&shared->held, 1);
}

static void log_call(const struct call *call, CK_RV rv)
{
    struct target_counts *counts = &shared->counts[call->function][call->by_filler];
    atomic_fetch_add_explicit(rv == CKR_OK ? &counts->good : &counts->failed, 1,
                              memory_order_relaxed);
    if (call->script->quiet)
        return;
    unsigned place = atomic_fetch_add_explicit(&shared->log_count, 1, memory_order_relaxed);
    if (place >= LOG_MOST)
        return;
    struct target_call *line = &shared->log[place];
    line->function = call->function;
    line->list = call->list;
    line->session = call->session;
    line->slot = call->token;
    line->bytes =
        call->function == FUNCTION_C_GenerateRandom || call->function == FUNCTION_C_SeedRandom
            ? call->arguments[2]
            : 0;
    line->rv = rv;
    line->pid = getpid();
    line->tid = syscall(SYS_gettid);
    line->by_filler = call->by_filler;
    memcpy(line->arguments, call->arguments, call->count * sizeof *call->arguments);
    atomic_store_explicit(&line->is_written, true, memory_order_release);
}

/* Whose session or slot it is about, as far as that is known before the call. */
static void find_subject(struct call *call)
{
    struct session session;
    call->token = NO_SLOT;
    call->slot_id = NONE;
    if (strcmp(call->names[0], "slotID") == 0) {
        call->slot_id = call->arguments[0];
        slot_find(call->slot_id, call->script, &call->token);
    }
    if (strcmp(call->names[0], "hSession") != 0)
        return;
    call->session = call->arguments[0];
    if (!session_find(call->session, &session))
        return;
    call->token = session.token;
    call->slot_id = slot_of_token(call->script, session.token);
    if (call->by_filler != session.by_filler && call->function != FUNCTION_C_CloseSession)
        complain("a session is used by another thread", call);
}

static CK_RV do_work(struct call *call)
{
    CK_RV rv;
    if (call->work.effect == FAILS)
        return call->work.value;
    if (call->work.effect == CALLS_BACK)
        atomic_load (&shared->calls_back)();
    if (life_knows(call, &rv))
        return rv;
    if (!life_is_initialized())
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    if (slots_know(call, &rv) || sessions_know(call, &rv) || random_knows(call, &rv))
        return rv;
    return operations_know(call, &rv) ? rv : CKR_OK;
}

CK_RV target_call(struct call *call)
{
    life_after_fork();
    call->script = script_now();
    sessions_meet(call->script);
    call->by_filler = is_filler();
    find_subject(call);
    struct course course = script_course(call->script, call);
    const struct step *lasts = &course.steps[MATTER_TIME];
    life_call_begins(call);
    if (course.steps[MATTER_HOLD].effect == HOLDS_FIRST)
        hold(course.hold_number);
    last_for(lasts->value +
             lasts->for_a_byte *
                 (call->function == FUNCTION_C_GenerateRandom ? call->arguments[2] : 0));
    call->work = course.steps[MATTER_WORK];
    CK_RV rv = do_work(call);
    log_call(call, rv);
    if (course.steps[MATTER_HOLD].effect == HOLDS)
        hold(course.hold_number);
    life_call_ends(call);
    return rv;
}
