/* registers.c - clears the vector registers, of whichever width this processor has, and what else may be cleared. */
#include "registers.h"

#ifdef __x86_64__

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

void registers_forget(void)
{
    forget_numbers();
    if (__builtin_cpu_supports("avx"))
        forget_16_wide();
    else
        forget_16();
    if (__builtin_cpu_supports("avx512vl"))
        forget_upper_16();
}

#else

void registers_forget(void)
{
}

#endif
