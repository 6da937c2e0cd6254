/* test_generations.c - what a system says that can tell when its machine was cloned is heard: nothing older is served.
 *
 * This program stands for such a system: the proxy calls its functions, not the C library's.
 */
#include "run.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "words_seen.h"

static int device = -1; /* what /dev/sysgenid is; -1: nothing */

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (device >= 0 && strcmp(path, "/dev/sysgenid") == 0)
        return dup(device);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* The kernel's events are ours to make, wherever this runs. */
int bind(int fd, const struct sockaddr *address, socklen_t len_bytes)
{
    if (address->sa_family == AF_NETLINK)
        return 0;
    return (int)syscall(SYS_bind, fd, address, len_bytes);
}

static const char *_Atomic event; /* NULL: none */

ssize_t recvfrom(int fd, void *buf, size_t len_bytes, int flags, struct sockaddr *from,
                 socklen_t *from_bytes)
{
    static const char head[] = "change@/devices/platform/QEMUVGID:00";
    const char *text = atomic_exchange(&event, NULL);
    if (text == NULL)
        return syscall(SYS_recvfrom, fd, buf, len_bytes, flags, from, from_bytes);
    memcpy(buf, head, sizeof head);
    memcpy((char *)buf + sizeof head, text, strlen(text) + 1);
    return (ssize_t)(sizeof head + strlen(text) + 1);
}

static CK_SESSION_HANDLE session;

static uint64_t begin(CK_C_INITIALIZE_ARGS *args)
{
    words_begin();
    proxy_before("counting", "x-pool-max-age: 60min");
    EXPECT(fn->C_Initialize(args), CKR_OK);
    session = open_session(0, 0);
    words_draw(session, 16, 8192);
    wait_until_quiet();
    uint64_t made = words_made();
    ck_assert_uint_le(words_draw(session, 16, 64), made);
    return words_made();
}

/* At once: the page is looked at by every draw. */
START_TEST(when_the_generation_device_changes_nothing_older_is_served)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    device = memfd_create("sysgenid", 0);
    ck_assert(device >= 0 && ftruncate(device, (off_t)page) == 0);
    _Atomic uint32_t *generation = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, device, 0);
    ck_assert_ptr_ne(generation, MAP_FAILED);
    atomic_store(generation, 7);
    uint64_t made = begin(_i == 0 ? &no_threads : &os_locking);
    for (int clones = 0; clones < 5; clones++) {
        atomic_fetch_add(generation, 1);
        ck_assert_uint_gt(words_draw(session, 16, 8192), made);
        wait_until_quiet();
        made = words_made();
        ck_assert_uint_le(words_draw(session, 16, 64), made);
        made = words_made();
    }
    words_check(4096);
}
END_TEST

static bool is_heard(void)
{
    return atomic_load(&event) == NULL;
}

/* The thread listens when it has something to do: another slot's pool to fill. */
START_TEST(an_event_of_a_new_generation_drops_what_is_held)
{
    knob("SLOTS", "2");
    uint64_t made = begin(&os_locking);
    atomic_store(&event, _i == 0 ? "NEW_VMGENID=1" : "SOMETHING_ELSE=1");
    words_draw(open_session(1, 0), 16, 64);
    ck_assert(wait_for(is_heard));
    wait_until_quiet();
    uint64_t lowest = words_draw(session, 16, 64);
    ck_assert_msg((lowest > made) == (_i == 0), "word %lu is served, of %lu made before",
                  (unsigned long)lowest, (unsigned long)made);
    words_check(1024);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, when_the_generation_device_changes_nothing_older_is_served, 0, 2);
    tcase_add_loop_test(tcase, an_event_of_a_new_generation_drops_what_is_held, 0, 2);
}

int main(void)
{
    return run_tests("generations", add_tests);
}
