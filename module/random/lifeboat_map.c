/* lifeboat_map.c - the second mapping of what lies in lifeboat_aboard.c, or what takes its place. */
#include "random/lifeboat_map.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/log.h"

/* Where lifeboat_aboard.c lies in us; the linker's names. */
extern const char __start_lifeboat[] __attribute__((visibility("hidden")));
extern const char __stop_lifeboat[] __attribute__((visibility("hidden")));

/* Where all of its addresses are known to be relative. */
#if defined(__x86_64__) || defined(__aarch64__)
enum { MAY_RUN_ELSEWHERE = 1 };
#else
enum { MAY_RUN_ELSEWHERE = 0 };
#endif

enum { BEGIN_OF_LINE = 128 }; /* of /proc/self/maps; the file's name comes behind it */

/* Our file, and the whole pages of it that hold the code. */
struct source {
    int fd;
    struct stat file;
    off_t offset;
    uintptr_t first; /* where they are mapped as a part of us */
    size_t len_bytes;
};

static bool find_ourselves(Dl_info *self)
{
    return dladdr(__start_lifeboat, self) != 0 && self->dli_fname != NULL;
}

/* Where an address of ours lies in our file; -1 if it does not. */
static off_t offset_in_file(uintptr_t address, const Dl_info *self)
{
    const ElfW(Ehdr) *header = self->dli_fbase;
    const ElfW(Phdr) *segments = (const void *)((const char *)header + header->e_phoff);
    uintptr_t base = (uintptr_t)header;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        uintptr_t begin = base + segments[i].p_vaddr;
        if (segments[i].p_type == PT_LOAD && address >= begin &&
            address < begin + segments[i].p_filesz)
            return (off_t)(segments[i].p_offset + (address - begin));
    }
    return -1;
}

/* On true the caller closes source->fd. */
static bool open_source(struct source *source)
{
    Dl_info self;
    if (!MAY_RUN_ELSEWHERE || !find_ourselves(&self))
        return false;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    source->first = (uintptr_t)__start_lifeboat & ~(page - 1);
    source->len_bytes = ((uintptr_t)__stop_lifeboat - source->first + page - 1) & ~(page - 1);
    source->offset = offset_in_file(source->first, &self);
    if (source->offset < 0 || source->len_bytes > LIFEBOAT_BEHIND_BYTES - LIFEBOAT_ALIGNMENT)
        return false;
    source->fd = open(self.dli_fname, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (source->fd < 0)
        return false;
    if (fstat(source->fd, &source->file) == 0 &&
        source->file.st_size >= source->offset + (off_t)(__stop_lifeboat - (char *)source->first))
        return true;
    close(source->fd);
    return false;
}

static struct lifeboat *boat_behind(const struct source *source, uintptr_t second)
{
    uintptr_t code = second + ((uintptr_t)__start_lifeboat - source->first);
    return (struct lifeboat *)((code + LIFEBOAT_BEHIND_BYTES) &
                               ~((uintptr_t)LIFEBOAT_ALIGNMENT - 1));
}

static bool take(struct lifeboat *boat)
{
    unsigned no = 0;
    return atomic_compare_exchange_strong(&boat->taken, &no, 1);
}

static int look_for_unloads(struct dl_phdr_info *info, size_t info_bytes, void *unloads)
{
    (void)info_bytes;
    *(unsigned long long *)unloads = info->dlpi_subs;
    return 1; /* every object says the same */
}

/* Then nobody was here before us, and the list of all mappings need not be read, which takes a tenth of a
 * millisecond. */
static bool nothing_was_ever_unloaded(void)
{
    unsigned long long unloads = 1;
    dl_iterate_phdr(look_for_unloads, &unloads);
    return unloads == 0;
}

/* An earlier one of us had one, perhaps: that part of our file, executable, and the boat's page behind it. */
static uintptr_t find_second(const struct source *source)
{
    char line[BEGIN_OF_LINE]; /* no more: the caller's stack may be the smallest that there is */
    uintptr_t second = 0;
    bool taken = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (!taken && maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long begin, end, offset, inode;
        unsigned major_number, minor_number;
        char may[5];
        for (int c = line[strlen(line) - 1]; c != '\n' && c != EOF;)
            c = getc(maps);
        if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu", &begin, &end, may, &offset, &major_number,
                   &minor_number, &inode) != 7)
            continue;
        if (strcmp(may, "r-xp") == 0 && begin != source->first &&
            offset == (unsigned long)source->offset && end - begin == source->len_bytes &&
            inode == source->file.st_ino &&
            makedev(major_number, minor_number) == source->file.st_dev)
            second = begin;
        else if (second != 0 && strcmp(may, "rw-p") == 0 &&
                 begin == (uintptr_t)boat_behind(source, second))
            taken = take(boat_behind(source, second));
    }
    if (maps != NULL)
        fclose(maps);
    return taken ? second : 0;
}

static uintptr_t make_second(const struct source *source)
{
    enum { ALL_BYTES = LIFEBOAT_BEHIND_BYTES + LIFEBOAT_ALIGNMENT };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *all = mmap(NULL, ALL_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return 0;
    struct lifeboat *boat = boat_behind(source, (uintptr_t)all);
    if (mmap(boat, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
            MAP_FAILED ||
        mmap(all, source->len_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, source->fd,
             source->offset) == MAP_FAILED) {
        munmap(all, ALL_BYTES);
        return 0;
    }
    take(boat);
    return (uintptr_t)all;
}

struct lifeboat *lifeboat_map(intptr_t *distance)
{
    struct source source;
    if (!open_source(&source))
        return NULL;
    uintptr_t second = nothing_was_ever_unloaded() ? 0 : find_second(&source);
    if (second == 0)
        second = make_second(&source);
    close(source.fd);
    if (second == 0)
        return NULL;
    struct lifeboat *boat = boat_behind(&source, second);
    /* The file may be another one by now. */
    size_t before = (uintptr_t)__start_lifeboat - source.first;
    if (memcmp((char *)second + before, __start_lifeboat,
               (size_t)(__stop_lifeboat - __start_lifeboat)) != 0) {
        atomic_store(&boat->taken, 0);
        return NULL;
    }
    *distance = (intptr_t)(second - source.first);
    return boat;
}

bool lifeboat_keep_us_loaded(void)
{
    Dl_info self;
    if (!find_ourselves(&self) ||
        dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) == NULL)
        return false;
    log_write(LOG_LEVEL_INFO, "%s cannot be mapped once more: it stays loaded after dlclose()",
              self.dli_fname);
    return true;
}
