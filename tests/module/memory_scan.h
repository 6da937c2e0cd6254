/* memory_scan.h - looks for words of the scripted target's stream in all that this process can read. */
#ifndef P11_PROXY_TEST_MEMORY_SCAN_H
#define P11_PROXY_TEST_MEMORY_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* Pieces of 16 bytes: two words of the stream, one behind the other. */
struct scan {
    unsigned long served; /* such pieces of which both words were noted with served() */
    unsigned long held;   /* of which neither was */
    unsigned long oldest_held;
};

/* All readable memory of this process, or all memory that is in a core file. Call served() before for
 * what was served. */
struct scan scan_memory(void);
struct scan scan_core(const char *path);

/* The same for a part of this process's memory. */
struct scan scan_part(const uint8_t *start, size_t len_bytes);

/* Two words that look like the stream's, of numbers that it will not reach, noted as served: to see that a
 * scan finds what is there. */
void scan_bait(uint8_t bytes[16]);

/* Numbers of /proc/self/smaps: the sum over all mappings with that flag in VmFlags, in kB, of the line that
 * begins with field; for "" the number of such mappings. And their first address. */
unsigned long smaps_sum(const char *flag, const char *field);
void *smaps_first(const char *flag);

/* Where such mappings are, most of them at most. Returns how many there are. */
struct mapping {
    uint8_t *start;
    size_t len_bytes;
};
unsigned smaps_list(const char *flag, struct mapping *mappings, unsigned most);

/* How many bytes that nobody may touch end at end, and start at start, without a gap. */
size_t guard_bytes_before(const uint8_t *end);
size_t guard_bytes_behind(const uint8_t *start);

#endif
