/* registers.c - clears the vector registers, of whichever width this processor has, and what else may be cleared. */
#include "base/registers.h"

#ifdef __x86_64__

#include <cpuid.h>
#include <stdatomic.h>

#define CLEAR(number)      "pxor %%xmm" #number ", %%xmm" #number "\n\t"
#define CLEAR_WIDE(number) "vpxord %%xmm" #number ", %%xmm" #number ", %%xmm" #number "\n\t"

static void forget_16(void)
{
    __asm__ volatile(CLEAR(0) CLEAR(1) CLEAR(2) CLEAR(3) CLEAR(4) CLEAR(5) CLEAR(6) CLEAR(7)
                         CLEAR(8) CLEAR(9) CLEAR(10) CLEAR(11) CLEAR(12) CLEAR(13) CLEAR(14)
                             CLEAR(15)
                     :
                     :
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                       "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

/* The same, over their whole width. */
static void forget_16_wide(void)
{
    __asm__ volatile("vzeroall"
                     :
                     :
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                       "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

/* Those that only AVX-512 has. */
static void forget_upper_16(void)
{
    __asm__ volatile(CLEAR_WIDE(16) CLEAR_WIDE(17) CLEAR_WIDE(18) CLEAR_WIDE(19) CLEAR_WIDE(20)
                         CLEAR_WIDE(21) CLEAR_WIDE(22) CLEAR_WIDE(23) CLEAR_WIDE(24) CLEAR_WIDE(25)
                             CLEAR_WIDE(26) CLEAR_WIDE(27) CLEAR_WIDE(28) CLEAR_WIDE(29)
                                 CLEAR_WIDE(30) CLEAR_WIDE(31)
                     :
                     :
#ifdef __AVX512F__ /* otherwise the compiler keeps nothing there */
                     : "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23",
                       "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31"
#endif
    );
}

/* Those that no caller expects anything in. */
static void forget_numbers(void)
{
    __asm__ volatile("xor %%eax, %%eax\n\t"
                     "xor %%ecx, %%ecx\n\t"
                     "xor %%edx, %%edx\n\t"
                     "xor %%esi, %%esi\n\t"
                     "xor %%edi, %%edi\n\t"
                     "xor %%r8d, %%r8d\n\t"
                     "xor %%r9d, %%r9d\n\t"
                     "xor %%r10d, %%r10d\n\t"
                     "xor %%r11d, %%r11d"
                     :
                     :
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc");
}

enum vectors { VECTORS_UNKNOWN, VECTORS_16, VECTORS_16_WIDE, VECTORS_32_WIDE };

/* What the system keeps for each thread; the processor may have more. */
static unsigned kept_states(void)
{
    enum { STATES = 0 };
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(STATES));
    return low;
}

static enum vectors ask_for_vectors(void)
{
    const unsigned wide_states = 0x06, upper_states = 0xe0;
    unsigned a, b, c, d;
    __cpuid(1, a, b, c, d);
    if ((c & bit_OSXSAVE) == 0 || (c & bit_AVX) == 0 ||
        (kept_states() & wide_states) != wide_states)
        return VECTORS_16;
    if ((kept_states() & upper_states) != upper_states)
        return VECTORS_16_WIDE;
    __cpuid_count(7, 0, a, b, c, d);
    return (b & bit_AVX512VL) != 0 ? VECTORS_32_WIDE : VECTORS_16_WIDE;
}

/* Asked once and when needed: in a virtual machine each answer comes from the host and takes microseconds, and the
 * compiler's own __builtin_cpu_supports() asks a dozen times whenever a program loads us. */
static enum vectors vectors(void)
{
    static atomic_uint known;
    enum vectors which = atomic_load_explicit(&known, memory_order_relaxed);
    if (__builtin_expect(which == VECTORS_UNKNOWN, 0)) {
        which = ask_for_vectors();
        atomic_store_explicit(&known, which, memory_order_relaxed);
    }
    return which;
}

void registers_forget(void)
{
    enum vectors which = vectors();
    if (which == VECTORS_16)
        forget_16();
    else
        forget_16_wide();
    if (which == VECTORS_32_WIDE)
        forget_upper_16();
    forget_numbers();
}

#else

void registers_forget(void)
{
}

#endif
