/* memory_scan.c - looks for words of the scripted target's stream in all that this process can read. */
#include "memory_scan.h"

#include <check.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
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
        if (one_was || next_was)
            continue;
        found->held++;
        if (found->held == 1 || one.counter < found->oldest_held)
            found->oldest_held = one.counter;
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

static void end_scan(void)
{
    munmap(window, WINDOW_BYTES);
    window = NULL;
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
    end_scan();
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
    end_scan();
    return found;
}

struct scan scan_core(const char *path)
{
    struct scan found = {0};
    ElfW(Ehdr) header;
    ElfW(Phdr) segment;
    begin_scan();
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s", path);
    ck_assert_int_eq(pread(fd, &header, sizeof header, 0), sizeof header);
    for (unsigned i = 0; i < header.e_phnum; i++) {
        off_t at = (off_t)(header.e_phoff + i * sizeof segment);
        ck_assert_int_eq(pread(fd, &segment, sizeof segment, at), sizeof segment);
        if (segment.p_type == PT_LOAD)
            scan_range(fd, segment.p_offset, segment.p_offset + segment.p_filesz, &found);
    }
    close(fd);
    end_scan();
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

static unsigned long smaps(const char *flag, const char *field, void **first)
{
    char line[512];
    unsigned long sum = 0;
    unsigned long start = 0;
    unsigned long kb = 0;
    unsigned long upto;
    FILE *file = fopen("/proc/self/smaps", "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long from;
        if (sscanf(line, "%lx-%lx ", &from, &upto) == 2) {
            start = from;
            kb = field[0] == '\0';
        } else if (field[0] != '\0' && strncmp(line, field, strlen(field)) == 0)
            kb = strtoul(line + strlen(field) + 1, NULL, 10);
        else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, flag) != NULL) {
            sum += kb;
            if (*first == NULL)
                *first = (void *)start;
        }
    }
    fclose(file);
    return sum;
}

unsigned long smaps_sum(const char *flag, const char *field)
{
    void *first = NULL;
    return smaps(flag, field, &first);
}

void *smaps_first(const char *flag)
{
    void *first = NULL;
    smaps(flag, "", &first);
    return first;
}

unsigned smaps_list(const char *flag, struct mapping *mappings, unsigned most)
{
    char line[512];
    unsigned count = 0;
    unsigned long from;
    unsigned long upto;
    unsigned long start = 0;
    unsigned long end = 0;
    FILE *file = fopen("/proc/self/smaps", "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%lx-%lx ", &from, &upto) == 2) {
            start = from;
            end = upto;
        } else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, flag) != NULL) {
            if (count < most)
                mappings[count] = (struct mapping){(uint8_t *)start, end - start};
            count++;
        }
    }
    fclose(file);
    return count;
}

/* Of the mapping that nobody may touch and that ends or starts there. */
static size_t guard_bytes(const uint8_t *edge, bool at_its_end)
{
    char line[512];
    char rights[8];
    unsigned long from;
    unsigned long upto;
    size_t found = 0;
    FILE *file = fopen("/proc/self/maps", "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%lx-%lx %7s", &from, &upto, rights) == 3 && strcmp(rights, "---p") == 0 &&
            (at_its_end ? upto : from) == (unsigned long)edge)
            found = upto - from;
    fclose(file);
    return found;
}

size_t guard_bytes_before(const uint8_t *end)
{
    return guard_bytes(end, true);
}

size_t guard_bytes_behind(const uint8_t *start)
{
    return guard_bytes(start, false);
}
