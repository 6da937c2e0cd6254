/* fixture.c - the built proxy, loaded anew in each test, before a target that does as the test tells it. */
#include "fixture.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

CK_FUNCTION_LIST_PTR fn;
void *proxy;
CK_SESSION_HANDLE session;
CK_BYTE pin[] = "1234";
static const char *target;

CK_C_INITIALIZE_ARGS os_locking = {.flags = CKF_OS_LOCKING_OK};
CK_C_INITIALIZE_ARGS no_threads = {.flags = CKF_OS_LOCKING_OK | CKF_LIBRARY_CANT_CREATE_OS_THREADS};

void set_up(void)
{
    shared = target_share();
    ck_assert_ptr_nonnull(shared);
    served_begin();
    unsetenv("P11_PROXY_CONFIG");
    unsetenv("P11_PROXY_TARGET");
    unsetenv("P11_PROXY_LOG");
}

void tear_down(void)
{
    ck_assert_msg(atomic_load(&shared->complaints) == 0, "the target complains: %s",
                  shared->complaint);
    ck_assert_msg(served_wrong() == NULL, "%s", served_wrong());
}

const char *target_path(const char *name)
{
    return strchr(name, '/') != NULL ? name : text_of("%s/%s.so", getenv("TEST_TARGETS"), name);
}

static void put_config(const char *settings)
{
    write_in_root("config", settings);
    setenv("P11_PROXY_CONFIG", in_root("config"), 1);
}

CK_FUNCTION_LIST_PTR list_of(void *module)
{
    CK_FUNCTION_LIST_PTR list = NULL;
    ck_assert_msg(module != NULL, "%s", dlerror());
    CK_C_GetFunctionList get_list = (CK_C_GetFunctionList)dlsym(module, "C_GetFunctionList");
    ck_assert_ptr_nonnull(get_list);
    EXPECT(get_list(&list), CKR_OK);
    ck_assert_ptr_nonnull(list);
    return list;
}

void proxy_load(void)
{
    proxy = dlopen(getenv("TEST_MODULE"), RTLD_NOW | RTLD_LOCAL);
    fn = list_of(proxy);
}

void proxy_before(const char *name, const char *settings)
{
    put_config(text_of("x-log: %s info\n%s\n", in_root("log"), settings));
    target = target_path(name);
    setenv("P11_PROXY_TARGET", target, 1);
    proxy_load();
}

void proxy_with(const char *settings)
{
    proxy_before("scripted", settings);
}

void proxy_configured(const char *settings)
{
    put_config(settings);
    unsetenv("P11_PROXY_TARGET");
    proxy_load();
}

CK_FUNCTION_LIST_PTR bare_list(void)
{
    return list_of(dlopen(target, RTLD_NOW | RTLD_LOCAL));
}

const struct p11_functions *interface_list(CK_BYTE major, CK_BYTE minor)
{
    CK_VERSION version = {major, minor};
    CK_INTERFACE *interface = NULL;
    __typeof__(((struct p11_functions *)NULL)->C_GetInterface) get;
    get = (__typeof__(get))dlsym(proxy, "C_GetInterface");
    EXPECT(get((CK_UTF8CHAR_PTR) "PKCS 11", &version, &interface, 0), CKR_OK);
    return interface->pFunctionList;
}

void initialize(void)
{
    EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
}

CK_SESSION_HANDLE open_session(CK_SLOT_ID slot, CK_FLAGS more_flags)
{
    CK_SESSION_HANDLE opened = CK_INVALID_HANDLE;
    EXPECT(fn->C_OpenSession(slot, CKF_SERIAL_SESSION | more_flags, NULL, NULL, &opened), CKR_OK);
    return opened;
}

void begin_again(void)
{
    initialize();
    session = open_session(0, CKF_RW_SESSION);
}

void begin_with(CK_C_INITIALIZE_ARGS *args, const char *settings)
{
    proxy_with(settings);
    EXPECT(fn->C_Initialize(args), CKR_OK);
    session = open_session(0, CKF_RW_SESSION);
}

void begin(const char *settings)
{
    begin_with(&os_locking, settings);
}

CK_TOKEN_INFO token_info(void)
{
    CK_TOKEN_INFO info;
    EXPECT(fn->C_GetTokenInfo(0, &info), CKR_OK);
    return info;
}

/* By the system's own calls: a test may have put itself in the place of the C library's. */
static unsigned long now_ms(void)
{
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (unsigned long)now.tv_sec * 1000 + (unsigned long)now.tv_nsec / 1000000;
}

static void sleep_ms(long duration_ms)
{
    syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = duration_ms * 1000000}, NULL);
}

void wait_a_moment(unsigned long *since_ms, const char *condition)
{
    if (*since_ms == 0)
        *since_ms = now_ms();
    ck_assert_msg(now_ms() - *since_ms < HANG_S * 1000UL / 2, "it never comes to be: %s",
                  condition);
    sleep_ms(1);
}

void *before_a_fault(size_t len_bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(memory != MAP_FAILED && mprotect(memory + page, page, PROT_NONE) == 0);
    return memory + page - len_bytes;
}

/* What the kernel says of one of our threads in that file; "" if it has ended. */
static void read_of_thread(const char *thread, const char *file, char text[256])
{
    char path[300];
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", thread, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, 255) : -1;
    text[len > 0 ? len : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

const char *copy_of(const char *path, const char *name)
{
    ck_assert_int_eq(system(text_of("cp %s %s", path, in_root(name))), 0);
    return in_root(name);
}

unsigned entries_of(const char *folder)
{
    unsigned count = 0;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        count += entry->d_name[0] != '.';
    if (entries != NULL)
        closedir(entries);
    return count;
}

unsigned threads_now(void)
{
    return entries_of("/proc/self/task");
}

long filler_thread(void)
{
    long found = 0;
    char name[256];
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        read_of_thread(entry->d_name, "comm", name);
        if (strncmp(name, "p11-proxy", strlen("p11-proxy")) == 0)
            found = atol(entry->d_name);
    }
    if (tasks != NULL)
        closedir(tasks);
    return found;
}

static pthread_t threads[THREADS_MOST];
static unsigned thread_count;

void start_threads(unsigned count, void *(*run)(void *), void *argument)
{
    ck_assert_uint_le(thread_count + count, THREADS_MOST);
    for (; count > 0; count--)
        ck_assert_int_eq(pthread_create(&threads[thread_count++], NULL, run, argument), 0);
}

void join_threads(void)
{
    while (thread_count > 0)
        pthread_join(threads[--thread_count], NULL);
}

static void *end_at_once(void *unused)
{
    return unused;
}

void begin_a_thread_and_end_it(void)
{
    unsigned before = threads_now();
    start_threads(1, end_at_once, NULL);
    join_threads();
    WAIT_UNTIL(threads_now() <= before + IS_SANITIZED);
}

/* It has gone to sleep, and has not been awake for some looks. */
void let_filler_work(void)
{
    enum { LOOKS = 3, LOOKS_MOST = 500 };
    char thread[32];
    char text[256];
    unsigned calls = 0;
    for (int look = 0, same = 0; look < LOOKS_MOST && same < LOOKS; look++) {
        snprintf(thread, sizeof thread, "%ld", filler_thread());
        read_of_thread(thread, "stat", text);
        const char *behind_name = strrchr(text, ')');
        bool asleep = behind_name == NULL || behind_name[2] == 'S';
        same = asleep && target_calls_in_all() == calls ? same + 1 : 0;
        calls = target_calls_in_all();
        sleep_ms(10);
    }
}

static unsigned lines_with(const char *path, const char *text)
{
    char line[1024];
    unsigned count = 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        count += strstr(line, text) != NULL;
    if (file != NULL)
        fclose(file);
    return count;
}

void capture_stderr(void)
{
    fflush(stderr);
    int fd = open(in_root("stderr"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    close(fd);
}

unsigned messages_with(const char *text)
{
    return lines_with(in_root("log"), text) + lines_with(in_root("stderr"), text);
}

/* Check's own handler would end the whole test. */
void child_begins(void)
{
    signal(SIGALRM, SIG_DFL);
    alarm(CHILD_HANGS_S);
}

pid_t child_by(pid_t (*way)(void), void (*lives)(void))
{
    pid_t child = way();
    if (child == 0) {
        child_begins();
        if (lives != NULL)
            lives();
        _exit(0);
    }
    return child;
}

pid_t child_that(void (*lives)(void))
{
    return child_by(fork, lives);
}

CK_SESSION_HANDLE child_session(CK_C_INITIALIZE_ARGS *args, CK_RV rv)
{
    CK_SESSION_HANDLE own;
    CHILD_EXPECT(fn->C_Initialize(args), rv);
    CHILD_EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &own),
                 CKR_OK);
    return own;
}

void reap(pid_t child)
{
    int status = 0;
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(!WIFSIGNALED(status), "the child ended by signal %d", WTERMSIG(status));
    ck_assert_msg(status == 0, "the child ended with %d", WEXITSTATUS(status));
}
