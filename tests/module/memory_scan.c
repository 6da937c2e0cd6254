/* memory_scan.c - looks for words of the scripted target's stream in all that this process can read. */
#include "memory_scan.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "served.h"

enum { WINDOW_BYTES = 1024 * 1024, PIECE_BYTES = 2 * WORD_BYTES };

/* What is looked through is copied here, so here is not looked: a mapping of its own. */
static uint8_t *window;

static void scan_window(size_t len_bytes, struct scan *found)
{
    struct word one;
    struct word next;
    for (size_t at = 0; at + PIECE_BYTES <= len_bytes; at++) {
        if (window[at] == 0 && window[at + 1] == 0 && window[at + 2] == 0)
            continue;
        if (!word_read(window + at, &one) || !word_read(window + at + WORD_BYTES, &next) ||
            next.counter != one.counter + 1)
            continue;
        bool one_was = was_served(one.counter);
        bool next_was = was_served(next.counter);
        found->served += one_was && next_was;
        found->held += !one_was && !next_was;
    }
}

/* Windows overlap, so that no piece falls between two. */
static void scan_range(int fd, uint64_t from, uint64_t upto, struct scan *found)
{
    while (from < upto) {
        size_t wanted = upto - from < WINDOW_BYTES ? (size_t)(upto - from) : WINDOW_BYTES;
        ssize_t got = pread(fd, window, wanted, (off_t)from);
        if (got <= 0)
            return;
        scan_window((size_t)got, found);
        if (got < PIECE_BYTES || (uint64_t)got == upto - from)
            return;
        from += (uint64_t)got - PIECE_BYTES + 1;
    }
}

static void begin_scan(void)
{
    if (window == NULL)
        window =
            mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(window, MAP_FAILED);
}

struct scan scan_memory(void)
{
    struct scan found = {0};
    char line[512];
    unsigned long from;
    unsigned long upto;
    char readable;
    begin_scan();
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    FILE *maps = fopen("/proc/self/maps", "re");
    ck_assert(memory >= 0 && maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%lx-%lx %c", &from, &upto, &readable) != 3 || readable != 'r')
            continue;
        /* What the tests and their target share has no random bytes, and is large. */
        if (strstr(line, "/memfd:target") != NULL || strstr(line, "/dev/zero") != NULL)
            continue;
        /* The kernel joins neighbours into one line. */
        unsigned long ours = (unsigned long)window;
        if (ours >= from && ours < upto) {
            scan_range(memory, from, ours, &found);
            from = ours + WINDOW_BYTES;
        }
        scan_range(memory, from, upto, &found);
    }
    fclose(maps);
    close(memory);
    return found;
}

struct scan scan_part(const uint8_t *start, size_t len_bytes)
{
    struct scan found = {0};
    begin_scan();
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(memory, 0);
    scan_range(memory, (uint64_t)start, (uint64_t)start + len_bytes, &found);
    close(memory);
    return found;
}

void scan_bait(uint8_t bytes[16])
{
    /* volatile: worked out by the compiler, the words would lie in the program. */
    static volatile const uint64_t far = 250 * 1024 * 1024;
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t whole = word_make(&(struct word){.counter = far + i});
        for (int b = 0; b < WORD_BYTES; b++)
            bytes[i * WORD_BYTES + (uint64_t)b] = (uint8_t)(whole >> 8 * b);
        served_word(far + i);
    }
}

unsigned smaps_list(const char *flag, struct mapping *mappings, unsigned most)
{
    char line[512];
    unsigned count = 0;
    unsigned long from;
    unsigned long upto;
    struct mapping one = {0};
    FILE *file = fopen("/proc/self/smaps", "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%lx-%lx ", &from, &upto) == 2)
            one = (struct mapping){.start = (uint8_t *)from, .len_bytes = upto - from};
        else if (strncmp(line, "Rss:", 4) == 0)
            one.resident_kb = strtoul(line + 4, NULL, 10);
        else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, flag) != NULL) {
            if (count < most)
                mappings[count] = one;
            count++;
        }
    fclose(file);
    ck_assert_uint_le(count, most);
    return count;
}

unsigned long smaps_kb(const char *flag, bool resident)
{
    struct mapping mappings[MAPPINGS_MOST];
    unsigned long kb = 0;
    for (unsigned i = smaps_list(flag, mappings, MAPPINGS_MOST); i-- > 0;)
        kb += resident ? mappings[i].resident_kb : mappings[i].len_bytes / 1024;
    return kb;
}
