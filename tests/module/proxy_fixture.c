/* proxy_fixture.c - the built proxy, loaded before a target and a configuration that a test chooses. */
#include "proxy_fixture.h"

#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

CK_FUNCTION_LIST_PTR fn;
void *proxy;
void *target;
char root[64];

CK_C_INITIALIZE_ARGS os_locking = {.flags = CKF_OS_LOCKING_OK};
CK_C_INITIALIZE_ARGS no_threads = {.flags = CKF_OS_LOCKING_OK | CKF_LIBRARY_CANT_CREATE_OS_THREADS};

static const struct timespec a_moment = {.tv_nsec = 50 * 1000 * 1000};

enum { QUIET_MOMENTS = 4, MOMENTS_IN_30S = 600 };

static const char *below(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

void fixture_setup(void)
{
    strcpy(root, "/tmp/p11-proxy-test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    setenv("COUNTING_LOG", below("calls"), 1);
    unsetenv("P11_PROXY_CONFIG");
    unsetenv("P11_PROXY_TARGET");
    unsetenv("P11_PROXY_LOG");
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void fixture_teardown(void)
{
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *target_path(const char *name)
{
    static char path[PATH_MAX];
    if (strchr(name, '/') != NULL)
        snprintf(path, sizeof path, "%s", name);
    else
        snprintf(path, sizeof path, "%s/%s.so", getenv("TEST_TARGETS"), name);
    return path;
}

static void put_config(const char *settings)
{
    FILE *file = fopen(below("config"), "we");
    ck_assert_ptr_nonnull(file);
    fputs(settings, file);
    fclose(file);
    setenv("P11_PROXY_CONFIG", below("config"), 1);
}

static void load_proxy(void)
{
    CK_C_GetFunctionList get_list;
    proxy = dlopen(getenv("TEST_MODULE"), RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(proxy != NULL, "%s", dlerror());
    get_list = (CK_C_GetFunctionList)dlsym(proxy, "C_GetFunctionList");
    ck_assert_ptr_nonnull(get_list);
    EXPECT(get_list(&fn), CKR_OK);
    ck_assert_ptr_nonnull(fn);
}

void proxy_before(const char *name, const char *settings)
{
    char whole[4096];
    snprintf(whole, sizeof whole, "x-log: %s info\n%s\n", below("log"), settings);
    put_config(whole);
    setenv("P11_PROXY_TARGET", target_path(name), 1);
    if (strchr(name, '/') == NULL) {
        target = dlopen(target_path(name), RTLD_NOW | RTLD_LOCAL);
        ck_assert_msg(target != NULL, "%s", dlerror());
    }
    load_proxy();
}

CK_SLOT_ID softhsm_slot(void)
{
    CK_SLOT_ID slots[16];
    CK_ULONG count = 16;
    EXPECT(fn->C_GetSlotList(CK_FALSE, slots, &count), CKR_OK);
    return slots[0];
}

void proxy_before_softhsm(const char *settings)
{
    CK_UTF8CHAR label[32];
    memset(label, ' ', sizeof label);
    FILE *conf = fopen(below("softhsm2.conf"), "we");
    ck_assert_ptr_nonnull(conf);
    fprintf(conf, "directories.tokendir = %s\nlog.level = ERROR\n", root);
    fclose(conf);
    setenv("SOFTHSM2_CONF", below("softhsm2.conf"), 1);
    proxy_before("/usr/lib/softhsm/libsofthsm2.so", settings);
    initialize();
    EXPECT(fn->C_InitToken(softhsm_slot(), (CK_UTF8CHAR_PTR) "12345678", 8, label), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    initialize();
}

void proxy_configured(const char *settings)
{
    put_config(settings);
    unsetenv("P11_PROXY_TARGET");
    load_proxy();
}

void *target_symbol(const char *name)
{
    void *symbol = dlsym(target, name);
    ck_assert_msg(symbol != NULL, "%s", name);
    return symbol;
}

void knob(const char *name, const char *value)
{
    char variable[64];
    if (target != NULL) {
        ((void (*)(const char *, const char *))target_symbol("counting_set"))(name, value);
        return;
    }
    snprintf(variable, sizeof variable, "COUNTING_%s", name);
    setenv(variable, value, 1);
}

void initialize(void)
{
    EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
}

CK_SESSION_HANDLE open_session(CK_SLOT_ID slot, CK_FLAGS more_flags)
{
    CK_SESSION_HANDLE session = CK_INVALID_HANDLE;
    EXPECT(fn->C_OpenSession(slot, CKF_SERIAL_SESSION | more_flags, NULL, NULL, &session), CKR_OK);
    return session;
}

/* Lines of a file that begin with function (NULL: any), contain what (NULL: anything) and not_what. */
static unsigned count_lines(const char *path, const char *function, const char *what,
                            const char *not_what)
{
    char line[1024];
    unsigned count = 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        size_t len = strcspn(line, " ");
        if (function != NULL && (strlen(function) != len || strncmp(line, function, len) != 0))
            continue;
        if ((what == NULL || strstr(line, what) != NULL) &&
            (not_what == NULL || strstr(line, not_what) == NULL))
            count++;
    }
    if (file != NULL)
        fclose(file);
    return count;
}

unsigned target_calls(const char *function)
{
    return count_lines(below("calls"), function, NULL, NULL);
}

unsigned target_calls_with(const char *function, const char *what)
{
    return count_lines(below("calls"), function, what, NULL);
}

unsigned target_calls_by_us(const char *function)
{
    char own[32];
    snprintf(own, sizeof own, " tid=%ld\n", syscall(SYS_gettid));
    return count_lines(below("calls"), function, own, NULL);
}

unsigned target_calls_by_others(const char *function)
{
    char own[32];
    snprintf(own, sizeof own, " tid=%ld\n", syscall(SYS_gettid));
    return count_lines(below("calls"), function, NULL, own);
}

/* Of random requests in the target's log: the longest, and the sum of those that were answered. */
static void measure_requests(unsigned long *longest, unsigned long *answered)
{
    char line[1024];
    FILE *file = fopen(below("calls"), "re");
    *longest = *answered = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *len = strstr(line, " len=");
        unsigned long bytes = len != NULL ? strtoul(len + strlen(" len="), NULL, 10) : 0;
        if (strncmp(line, "C_GenerateRandom ", strlen("C_GenerateRandom ")) != 0)
            continue;
        if (bytes > *longest)
            *longest = bytes;
        if (strstr(line, " rv=0x0 ") != NULL)
            *answered += bytes;
    }
    if (file != NULL)
        fclose(file);
}

unsigned long target_longest_request(void)
{
    unsigned long longest;
    unsigned long answered;
    measure_requests(&longest, &answered);
    return longest;
}

unsigned long target_bytes_made(void)
{
    unsigned long longest;
    unsigned long answered;
    measure_requests(&longest, &answered);
    return answered;
}

unsigned target_calls_in_all(void)
{
    return count_lines(below("calls"), NULL, NULL, NULL);
}

/* The first line of a file of one of our threads, "" if that has ended. */
static void read_of_thread(const char *thread, const char *file, char line[256])
{
    char path[300];
    line[0] = '\0';
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", thread, file);
    FILE *opened = fopen(path, "re");
    if (opened != NULL && fgets(line, 256, opened) == NULL)
        line[0] = '\0';
    if (opened != NULL)
        fclose(opened);
}

/* How many threads are ours and is_so. */
static unsigned count_threads(bool (*is_so)(const char *thread))
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.' && is_so(entry->d_name);
    if (tasks != NULL)
        closedir(tasks);
    return count;
}

static bool is_any(const char *thread)
{
    (void)thread;
    return true;
}

unsigned threads_now(void)
{
    return count_threads(is_any);
}

/* What the kernel calls its state, ' ' if it has ended. */
static char state_of_thread(const char *thread)
{
    char line[256];
    read_of_thread(thread, "stat", line);
    const char *name_ends = strrchr(line, ')');
    return name_ends != NULL && name_ends[1] == ' ' ? name_ends[2] : ' ';
}

/* It runs, or waits for a processor. */
static bool is_another_at_work(const char *thread)
{
    char thread_state = state_of_thread(thread);
    return atol(thread) != syscall(SYS_gettid) && thread_state != ' ' && thread_state != 'S';
}

bool thread_sleeps(long thread)
{
    char number[32];
    snprintf(number, sizeof number, "%ld", thread);
    return state_of_thread(number) == 'S';
}

void wait_until_quiet(void)
{
    unsigned before = target_calls_in_all();
    for (unsigned quiet = 0, moments = 0; quiet < QUIET_MOMENTS && moments < MOMENTS_IN_30S;
         moments++) {
        nanosleep(&a_moment, NULL);
        bool at_work = count_threads(is_another_at_work) != 0;
        unsigned now = target_calls_in_all();
        quiet = now == before && !at_work ? quiet + 1 : 0;
        before = now;
    }
}

static unsigned threads_wanted;

static bool threads_are_as_wanted(void)
{
    return threads_now() == threads_wanted;
}

bool threads_become(unsigned count)
{
    threads_wanted = count;
    return wait_for(threads_are_as_wanted);
}

static long prefetch_found;

static bool is_prefetch(const char *thread)
{
    char line[256];
    read_of_thread(thread, "comm", line);
    if (strcmp(line, "p11-proxy-fill\n") != 0)
        return false;
    prefetch_found = atol(thread);
    return true;
}

long prefetch_thread(void)
{
    prefetch_found = 0;
    count_threads(is_prefetch);
    return prefetch_found;
}

static long first_thread;

static void *say_which(void *unused)
{
    first_thread = syscall(SYS_gettid);
    return unused;
}

static bool first_thread_is_gone(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld", first_thread);
    return access(path, F_OK) != 0;
}

void begin_a_thread_and_end_it(void)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, say_which, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert(wait_for(first_thread_is_gone));
}

bool wait_for(bool (*is_so)(void))
{
    for (int moments = 0; moments < MOMENTS_IN_30S; moments++) {
        if (is_so())
            return true;
        nanosleep(&a_moment, NULL);
    }
    return false;
}

void capture_stderr(void)
{
    fflush(stderr);
    int fd = open(below("stderr"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    close(fd);
}

unsigned messages_with(const char *text)
{
    return count_lines(below("log"), NULL, text, NULL) +
           count_lines(below("stderr"), NULL, text, NULL);
}
