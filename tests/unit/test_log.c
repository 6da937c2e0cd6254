/* test_log.c - where a line goes, what it looks like, and what it leaves alone. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check_main.h"
#include "base/log.h"

static const char *socket_path, *file_path;
static int daemon_fd;   /* stands for the syslog daemon */
static int stderr_pipe; /* what came out on stderr */

void set_up(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int ends[2];
    socket_path = in_root("log");
    file_path = in_root("file");
    daemon_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    strcpy(address.sun_path, socket_path);
    ck_assert_int_eq(bind(daemon_fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(pipe2(ends, O_NONBLOCK), 0);
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    stderr_pipe = ends[0];
}

/* In place of libc's. */
int connect(int fd, const struct sockaddr *address, socklen_t len_bytes)
{
    struct sockaddr_un ours = *(const struct sockaddr_un *)address;
    if (strcmp(ours.sun_path, "/dev/log") == 0)
        strcpy(ours.sun_path, socket_path);
    return (int)syscall(SYS_connect, fd, &ours, len_bytes);
}

static void configure(const char *text)
{
    struct log_settings settings;
    ck_assert(log_settings_parse(&settings, text));
    log_configure(&settings);
}

/* "<83>p11-proxy[123]: hello" of this process. */
static const char *line_of(const char *before, const char *text, const char *after)
{
    return text_of("%sp11-proxy[%d]: %s%s", before, (int)getpid(), text, after);
}

/* What is waiting, as a string; "" for nothing. */
static const char *got(int fd)
{
    static char text[8192];
    ssize_t n = read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* Nothing more than this has come, each as it looks there; "" for nothing. */
static void expect(const char *of_syslog, const char *of_stderr)
{
    if (of_syslog[0] != '\0')
        ck_assert_str_eq(got(daemon_fd), line_of(of_syslog, "x", ""));
    ck_assert_str_eq(got(daemon_fd), "");
    ck_assert_str_eq(got(stderr_pipe), of_stderr[0] != '\0' ? line_of("", "x", of_stderr) : "");
}

static void expect_file(const char *text, const char *after)
{
    int fd = open(file_path, O_RDONLY);
    ck_assert_str_eq(got(fd), line_of("", text, after));
    close(fd);
}

/* Until it is configured: also in a child, which has a pid of its own. */
TEST(warnings_go_to_syslog)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        log_write(LOG_LEVEL_ERROR, "x");
        _exit(strcmp(got(daemon_fd), line_of("<83>", "x", "")) == 0 ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    log_write(LOG_LEVEL_INFO, "no");
    log_write(LOG_LEVEL_WARNING, "%c", 'x');
    expect("<84>", "");
    configure("off debug");
    log_write(LOG_LEVEL_ERROR, "x");
    expect("", "");
}

TEST(each_level_has_its_syslog_priority_and_hides_the_lesser_ones)
{
    static const char *const words[] = {"error", "warning", "info", "debug"};
    static const char *const priorities[] = {"<83>", "<84>", "<86>", "<87>"};
    for (int in_force = LOG_LEVEL_ERROR; in_force <= LOG_LEVEL_DEBUG; in_force++)
        for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_DEBUG; level++)
            for (int to_stderr = 0; to_stderr < 2; to_stderr++) {
                bool written = level <= in_force;
                configure(text_of("%s %s", to_stderr ? "stderr" : "syslog", words[in_force]));
                log_write((enum log_level)level, "x");
                expect(written && !to_stderr ? priorities[level] : "",
                       written && to_stderr ? "\n" : "");
            }
}

TEST(an_error_without_a_syslog_goes_to_stderr_unless_a_file_got_its_number_later)
{
    close(daemon_fd);
    log_write(LOG_LEVEL_WARNING, "lost");
    log_write(LOG_LEVEL_ERROR, "x");
    expect("", "\n");
    int data = open(file_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(dup2(data, STDERR_FILENO), STDERR_FILENO);
    log_write(LOG_LEVEL_ERROR, "x");
    ck_assert_int_eq(lseek(data, 0, SEEK_END), 0);
    /* With x-log: stderr number 2 is stderr, whatever it is. */
    configure("stderr");
    log_write(LOG_LEVEL_ERROR, "x");
    expect_file("x", "\n");
}

TEST(an_error_goes_to_a_terminal_as_well)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    char name[64], line[64] = "";
    SKIP_IF(terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0 ||
                ptsname_r(terminal, name, sizeof name) != 0,
            "no pseudo-terminals here");
    ck_assert_int_eq(dup2(open(name, O_RDWR | O_NOCTTY), STDERR_FILENO), STDERR_FILENO);
    log_write(LOG_LEVEL_WARNING, "x");
    expect("<84>", "");
    log_write(LOG_LEVEL_ERROR, "x");
    expect("<83>", "");
    /* A terminal hands a line on piece by piece, when the kernel comes to it. */
    while (strchr(line, '\n') == NULL && read(terminal, line + strlen(line), 1) == 1)
        continue;
    ck_assert_str_eq(line, line_of("", "x", "\r\n"));
}

TEST(a_file_is_appended_to_and_follows_a_rotation)
{
    struct stat st;
    umask(0);
    configure(text_of("%s info", file_path));
    ck_assert_int_eq(stat(file_path, &st), 0); /* already there */
    ck_assert_uint_eq(st.st_mode & 07777, 0640);
    log_write(LOG_LEVEL_INFO, "one");
    log_write(LOG_LEVEL_ERROR, "two");
    expect_file("one", line_of("\n", "two", "\n"));
    ck_assert_int_eq(rename(file_path, in_root("file.1")), 0);
    log_write(LOG_LEVEL_INFO, "three");
    expect_file("three", "\n");
    expect("", "");
}

/* What is in the way of a file, and what is said of it. The caller neither waits nor is killed. */
enum { NO_FOLDER, A_LINK, A_FIFO, NO_ROOM, WAYS };
static const char *const reasons[WAYS] = {"No such file or directory",
                                          "Too many levels of symbolic links",
                                          "No such device or address", "File too large"};

TEST_EACH(a_file_that_cannot_be_written_is_told_once_and_syslog_takes_over, 0, WAYS)
{
    struct log_settings settings = {LOG_TO_FILE, LOG_LEVEL_WARNING, ""};
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    if (_i == NO_FOLDER)
        file_path = "/nowhere/log";
    else if (_i == A_LINK)
        ck_assert_int_eq(symlink("other", file_path), 0);
    else if (_i == A_FIFO)
        ck_assert_int_eq(mkfifo(file_path, 0600), 0);
    else
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, RLIM_INFINITY});
    strcpy(settings.path, file_path);
    log_configure(&settings);
    log_write(LOG_LEVEL_WARNING, "one");
    log_write(LOG_LEVEL_WARNING, "x");
    setrlimit(RLIMIT_FSIZE, &before); /* Check writes to a file as well */
    const char *why = text_of("the log file %s cannot be written (%s): syslog is used instead",
                              file_path, reasons[_i]);
    ck_assert_str_eq(got(daemon_fd), line_of("<83>", why, ""));
    ck_assert_str_eq(got(daemon_fd), line_of("<84>", "one", ""));
    expect("<84>", "");
}

/* Its reader is gone, or does not read. */
TEST_EACH(a_stderr_that_takes_nothing_neither_kills_nor_delays_the_application, 0, 2)
{
    static const char filler[4096];
    sigset_t pending;
    configure("stderr");
    signal(SIGPIPE, SIG_DFL);
    if (_i == 0)
        close(stderr_pipe);
    else
        while (write(STDERR_FILENO, filler, sizeof filler) > 0)
            ;
    fcntl(STDERR_FILENO, F_SETFL, 0); /* now a plain write() would wait */
    log_write(LOG_LEVEL_ERROR, "x");
    sigpending(&pending);
    ck_assert_int_eq(sigismember(&pending, SIGPIPE), 0);
}

TEST(errno_survives_every_function_and_may_be_written)
{
    static const char *const everywhere[] = {"off", "/nowhere/log", "syslog", "stderr"};
    struct log_settings s;
    for (int i = 0; i < 4; i++) {
        errno = ENOENT;
        log_settings_parse(&s, everywhere[i]);
        log_configure(&s);
        log_write(LOG_LEVEL_ERROR, "why: %m");
        ck_assert_int_eq(errno, ENOENT);
    }
    ck_assert_str_eq(got(stderr_pipe), line_of("", "why: No such file or directory", "\n"));
}

TEST(one_call_is_one_line_however_long_and_whatever_is_in_it)
{
    char text[3000] = "";
    configure("stderr");
    log_write(LOG_LEVEL_ERROR, "a\nb\x1b[1m\x7f%s", "");
    ck_assert_str_eq(got(stderr_pipe), line_of("", "a?b?[1m?", "\n"));
    memset(text, 'a', sizeof text - 1);
    log_write(LOG_LEVEL_ERROR, "%s", text);
    text[LOG_TEXT_BYTES - 1] = '\0';
    ck_assert_str_eq(got(stderr_pipe), line_of("", text, "\n"));
    configure("syslog");
    log_write(LOG_LEVEL_ERROR, "%sb", text);
    ck_assert_str_eq(got(daemon_fd), line_of("<83>", text, ""));
}
