/* clones.c - what the system says when the machine under us was cloned from a snapshot. */
#include "random/clones.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    KERNEL_EVENTS = 1, /* the netlink group that the kernel itself speaks to */
    EVENT_BYTES = 4096,
    EVENTS_AT_ONCE = 64 /* no flood of events keeps us from the pools */
};

static const char device_path[] = "/dev/sysgenid";

static int listener = -1;
static ino_t listener_inode;

static const _Atomic uint32_t *_Atomic generation;

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

const _Atomic uint32_t *clones_generation(void)
{
    static atomic_bool looked;
    if (atomic_load(&looked))
        return atomic_load(&generation);
    int saved_errno = errno;
    int fd = open(device_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        void *page = mmap(NULL, page_bytes(), PROT_READ, MAP_SHARED, fd, 0);
        if (page != MAP_FAILED)
            atomic_store(&generation, (const _Atomic uint32_t *)page);
        close(fd);
    }
    atomic_store(&looked, true);
    errno = saved_errno;
    return atomic_load(&generation);
}

void clones_forget(void)
{
    const _Atomic uint32_t *page = atomic_load(&generation);
    if (page != NULL)
        munmap((void *)page, page_bytes());
}

/* An application that closes all descriptors closes ours, and the next file gets its number. */
static bool is_still_ours(void)
{
    struct stat file;
    return listener >= 0 && fstat(listener, &file) == 0 && S_ISSOCK(file.st_mode) &&
           file.st_ino == listener_inode;
}

void clones_listen(void)
{
    struct stat file;
    clones_unlisten(); /* a child has inherited one */
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_EVENTS};
    int first =
        socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
    if (first < 0)
        return;
    /* Never the number of a standard stream that the application has closed. */
    listener = fcntl(first, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(first);
    if (listener < 0)
        return;
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        fstat(listener, &file) != 0) {
        close(listener);
        listener = -1;
        return;
    }
    listener_inode = file.st_ino;
}

void clones_unlisten(void)
{
    if (is_still_ours())
        close(listener);
    listener = -1;
}

bool clones_is_new_generation(const char *event, unsigned long len_bytes)
{
    static const char wanted[] = "NEW_VMGENID=1";
    for (unsigned long at = 0; at < len_bytes;) {
        unsigned long length = strnlen(event + at, len_bytes - at);
        if (length == sizeof wanted - 1 && memcmp(event + at, wanted, length) == 0)
            return true;
        at += length + 1;
    }
    return false;
}

bool clones_heard(void)
{
    bool heard = false;
    for (int i = 0; i < EVENTS_AT_ONCE && is_still_ours(); i++) {
        char event[EVENT_BYTES];
        struct sockaddr_nl sender = {0};
        socklen_t sender_bytes = sizeof sender;
        ssize_t len_bytes = recvfrom(listener, event, sizeof event, MSG_DONTWAIT,
                                     (struct sockaddr *)&sender, &sender_bytes);
        if (len_bytes < 0)
            break;
        /* Only the kernel has no address of its own. */
        if (sender.nl_pid == 0 && clones_is_new_generation(event, (unsigned long)len_bytes))
            heard = true;
    }
    return heard;
}
