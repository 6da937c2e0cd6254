/* test_registers.c - when a draw returns, the processor's registers hold nothing of the token's stream.
 *
 * A register is not memory, but what saves it puts it there: a signal, the loader when it binds a symbol.
 */
#include "run.h"

#include <stdio.h>
#include <string.h>

#include "words_seen.h"

enum { VECTORS = 32, VECTOR_BYTES = 64, NUMBERS = 8, LARGEST = 4096 };

/* As the call left them. What this processor does not have stays zero. */
static struct registers {
    _Alignas(VECTOR_BYTES) uint8_t vectors[VECTORS][VECTOR_BYTES];
    uint64_t numbers[NUMBERS];
} registers;

static CK_SESSION_HANDLE session;

#ifdef __x86_64__

#define SAVE(instruction, register, number)                                                        \
    __asm__ volatile(instruction " %%" register #number ", %0" : "=m"(registers.vectors[number]))
#define SAVE_16(instruction, register)                                                             \
    SAVE(instruction, register, 0);                                                                \
    SAVE(instruction, register, 1);                                                                \
    SAVE(instruction, register, 2);                                                                \
    SAVE(instruction, register, 3);                                                                \
    SAVE(instruction, register, 4);                                                                \
    SAVE(instruction, register, 5);                                                                \
    SAVE(instruction, register, 6);                                                                \
    SAVE(instruction, register, 7);                                                                \
    SAVE(instruction, register, 8);                                                                \
    SAVE(instruction, register, 9);                                                                \
    SAVE(instruction, register, 10);                                                               \
    SAVE(instruction, register, 11);                                                               \
    SAVE(instruction, register, 12);                                                               \
    SAVE(instruction, register, 13);                                                               \
    SAVE(instruction, register, 14);                                                               \
    SAVE(instruction, register, 15)
#define SAVE_16_MORE(instruction, register)                                                        \
    SAVE(instruction, register, 16);                                                               \
    SAVE(instruction, register, 17);                                                               \
    SAVE(instruction, register, 18);                                                               \
    SAVE(instruction, register, 19);                                                               \
    SAVE(instruction, register, 20);                                                               \
    SAVE(instruction, register, 21);                                                               \
    SAVE(instruction, register, 22);                                                               \
    SAVE(instruction, register, 23);                                                               \
    SAVE(instruction, register, 24);                                                               \
    SAVE(instruction, register, 25);                                                               \
    SAVE(instruction, register, 26);                                                               \
    SAVE(instruction, register, 27);                                                               \
    SAVE(instruction, register, 28);                                                               \
    SAVE(instruction, register, 29);                                                               \
    SAVE(instruction, register, 30);                                                               \
    SAVE(instruction, register, 31)

static int width; /* of vectors here, in bytes */

static void look_at_processor(void)
{
    width = __builtin_cpu_supports("avx512f") ? 64 : __builtin_cpu_supports("avx") ? 32 : 16;
}

__attribute__((noinline)) static CK_RV draw_and_save(uint8_t *buf, CK_ULONG len_bytes)
{
    uint64_t rdx, rcx, rsi, rdi;
    CK_RV rv = fn->C_GenerateRandom(session, buf, len_bytes);
    __asm__ volatile("" : "=d"(rdx), "=c"(rcx), "=S"(rsi), "=D"(rdi));
    __asm__ volatile("mov %%r8, %0" : "=m"(registers.numbers[4]));
    __asm__ volatile("mov %%r9, %0" : "=m"(registers.numbers[5]));
    __asm__ volatile("mov %%r10, %0" : "=m"(registers.numbers[6]));
    __asm__ volatile("mov %%r11, %0" : "=m"(registers.numbers[7]));
    if (width == 64) {
        SAVE_16("vmovdqu64", "zmm");
        SAVE_16_MORE("vmovdqu64", "zmm");
    } else if (width == 32) {
        SAVE_16("vmovdqu", "ymm");
    } else {
        SAVE_16("movdqu", "xmm");
    }
    registers.numbers[0] = rdx;
    registers.numbers[1] = rcx;
    registers.numbers[2] = rsi;
    registers.numbers[3] = rdi;
    return rv;
}

#endif

static void has_no_word(const uint8_t *bytes, size_t width_bytes, const char *what, int number)
{
    struct word word;
    for (size_t at = 0; at + WORD_BYTES <= width_bytes; at++)
        if (word_read(bytes + at, &word) && word.counter <= words_made())
            ck_abort_msg("%s %d has word %lu of %lu", what, number, (unsigned long)word.counter,
                         (unsigned long)words_made());
}

static void draw(CK_ULONG len_bytes)
{
    static uint8_t buf[LARGEST];
    EXPECT(draw_and_save(buf, len_bytes), CKR_OK);
    for (int i = 0; i < VECTORS; i++)
        has_no_word(registers.vectors[i], VECTOR_BYTES, "vector register", i);
    for (int i = 0; i < NUMBERS; i++)
        has_no_word((const uint8_t *)&registers.numbers[i], WORD_BYTES, "register", i);
    words_note(buf, len_bytes);
}

static const struct {
    const char *settings;
    CK_C_INITIALIZE_ARGS *args;
} ways[] = {
    {"x-pool-max-age: 1min", &no_threads},
    {"x-pool-max-age: 1min", &os_locking},
    {"x-pool: off", &no_threads},
    {"x-pool-size: 4KiB", &no_threads},
    {"x-pool-size: 1MiB", &no_threads},
    {"x-pool-mix: kernel", &no_threads}, /* then no word of the token is anyone's */
};

enum { WAYS = sizeof ways / sizeof *ways };

/* From a stripe, from the ring, by a fill, and from the token. Sizes are of whole words, so that each is known. */
START_TEST(no_register_has_a_word_that_was_served_or_is_held)
{
    static const CK_ULONG sizes[] = {16, 8, 32, 16, 24, 64, 16, 200, 512, 16, 1024, 2048, 8};
    words_begin();
    look_at_processor();
    proxy_before("counting", ways[_i].settings);
    EXPECT(fn->C_Initialize(ways[_i].args), CKR_OK);
    session = open_session(0, 0);
    for (int i = 0; i < 1000; i++)
        draw(sizes[i % 13]);
    for (int i = 0; i < 2000; i++)
        draw(16);
    words_check(strstr(ways[_i].settings, "kernel") != NULL ? 0 : 4000);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, no_register_has_a_word_that_was_served_or_is_held, 0, WAYS);
}

int main(void)
{
    return run_tests("registers", add_tests);
}
