/* memory_scan.h - looks for words of the scripted target's stream in all that this process can read. */
#ifndef P11_PROXY_TEST_MEMORY_SCAN_H
#define P11_PROXY_TEST_MEMORY_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pieces of 16 bytes: two words of the stream, one behind the other. */
struct scan {
    unsigned long served; /* such pieces of which both words were noted with served() */
    unsigned long held;   /* of which neither was */
};

/* All readable memory of this process. Call served() before for what was served. */
struct scan scan_memory(void);

/* The same for a part of this process's memory. */
struct scan scan_part(const uint8_t *start, size_t len_bytes);

/* Two words that look like the stream's, of numbers that it will not reach, noted as served: to see that a
 * scan finds what is there. */
void scan_bait(uint8_t bytes[16]);

/* The mappings with that flag in /proc/self/smaps; and how large they are, or how much of them is in memory. */
enum { MAPPINGS_MOST = 64 };
struct mapping {
    uint8_t *start;
    size_t len_bytes;
    unsigned long resident_kb;
};
unsigned smaps_list(const char *flag, struct mapping *mappings, unsigned most);
unsigned long smaps_kb(const char *flag, bool resident);

#endif
