/* every_instruction.c - by single steps to find the instructions, and by breakpoints to stop there. */
#include "every_instruction.h"

#ifdef __x86_64__

#include <check.h>
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "proxy_fixture.h"

enum { INSTRUCTIONS_MOST = 16 * 1024, TEXT_MOST = 512 * 1024, HANGS_S = 20 };

static const uint8_t BREAKPOINT = 0xcc;
static const greg_t SINGLE_STEPS = 0x100;

static uint8_t *text;
static size_t text_bytes;
static unsigned long text_offset; /* in the module, as objdump counts */
static uint8_t *stops[INSTRUCTIONS_MOST];
static unsigned stop_count;
static bool passed[TEXT_MOST];
static volatile sig_atomic_t stepping;
static uint8_t *armed; /* where the breakpoint is */
static uint8_t *last_armed;
static uint8_t in_its_place;
static void (*disturbance)(void);

static int find_text(struct dl_phdr_info *info, size_t size, void *inside)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uint8_t *start = (uint8_t *)info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0 && (uint8_t *)inside >= start &&
            (uint8_t *)inside < start + part->p_memsz) {
            text = start;
            text_bytes = part->p_memsz;
            text_offset = part->p_vaddr;
        }
    }
    return 0;
}

static void note(uint8_t *at)
{
    if (at < text || at >= text + text_bytes || passed[at - text] ||
        stop_count == INSTRUCTIONS_MOST)
        return;
    passed[at - text] = true;
    stops[stop_count++] = at;
}

static void on_trap(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (armed != NULL && (uint8_t *)registers[REG_RIP] == armed + 1) {
        *armed = in_its_place;
        armed = NULL;
        registers[REG_RIP]--;
        disturbance();
        return;
    }
    if (stepping) {
        note((uint8_t *)registers[REG_RIP]);
        registers[REG_EFL] |= SINGLE_STEPS;
    } else
        registers[REG_EFL] &= ~SINGLE_STEPS;
}

/* Which instruction it was is not seen otherwise. */
static void on_crash(int signal_number)
{
    char line[128];
    int len = snprintf(line, sizeof line, "%s, disturbed at 0x%lx of the module\n",
                       signal_number == SIGALRM ? "no end" : "a crash",
                       (unsigned long)(last_armed - text) + text_offset);
    signal(signal_number, SIG_DFL);
    if (write(STDERR_FILENO, line, (size_t)len) != len)
        abort();
    raise(signal_number);
}

static void prepare(void)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    if (text != NULL)
        return;
    dl_iterate_phdr(find_text, (void *)fn->C_GenerateRandom);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_le(text_bytes, TEXT_MOST);
    ck_assert_int_eq(sigaction(SIGTRAP, &action, NULL), 0);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        signal(crashes[i], on_crash);
    uint8_t *page = text - (uintptr_t)text % (uintptr_t)getpagesize();
    ck_assert_int_eq(
        mprotect(page, (size_t)(text + text_bytes - page), PROT_READ | PROT_WRITE | PROT_EXEC), 0);
}

unsigned every_instruction_of(void (*call)(void))
{
    prepare();
    memset(passed, 0, sizeof passed);
    stop_count = 0;
    stepping = 1;
    raise(SIGTRAP);
    call();
    stepping = 0;
    ck_assert_uint_gt(stop_count, 0);
    ck_assert_uint_lt(stop_count, INSTRUCTIONS_MOST);
    return stop_count;
}

void at_instruction(unsigned i, void (*call)(void), void (*disturb)(void))
{
    disturbance = disturb;
    last_armed = stops[i];
    in_its_place = *last_armed;
    *last_armed = BREAKPOINT;
    armed = last_armed;
    alarm(HANGS_S);
    call();
    alarm(0);
    *last_armed = in_its_place;
    armed = NULL;
}

#endif
