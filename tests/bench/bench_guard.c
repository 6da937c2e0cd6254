/* bench_guard.c - what C_SignInit costs more with a policy: none, a list of 56 names, one of 56,000.
 *
 * usage: bench_guard MODULE TARGET LIST, where LIST has the 56 names, one a line or with commas. The target should
 * be one that answers at once, and has sessions and keys: tests/targets/keyring.so. Each policy runs in a process of its own; rounds are interleaved, medians printed.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cryptoki.h"

enum { ROUNDS = 9, CALLS = 200000, POLICIES = 3, NAMES_MOST = 64 * 1024 };

static const char *const names[POLICIES] = {"no policy", "56 names", "56,000 items"};

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* A configuration with the list, and for the longest one vendor numbers on top of it. */
static void configure(const char *path, const char *target, const char *list, int policy)
{
    char line[NAMES_MOST];
    FILE *in = fopen(list, "re");
    FILE *out = fopen(path, "we");
    size_t got = in != NULL ? fread(line, 1, sizeof line - 1, in) : 0;
    if (out == NULL || got == 0) {
        fprintf(stderr, "bench_guard: %s or %s cannot be opened\n", list, path);
        exit(2);
    }
    line[got] = '\0';
    for (char *end = line; (end = strchr(end, '\n')) != NULL;)
        *end = ' ';
    fprintf(out, "x-target: %s\nx-pool: off\nx-log: off\n", target);
    if (policy > 0)
        fprintf(out, "x-disabled-algorithms: %s", line);
    for (unsigned i = 0; policy == 2 && i < 56000 - 56; i++)
        fprintf(out, ", 0x%x", 0x90000000u + i);
    fputc('\n', out);
    fclose(out);
    fclose(in);
}

static double one_round(const char *module, const char *configuration)
{
    double ns = -1;
    int ends[2];
    if (pipe(ends) != 0)
        return ns;
    pid_t child = fork();
    if (child == 0) {
        CK_FUNCTION_LIST *list = NULL;
        CK_MECHANISM mechanism = {CKM_SHA256_RSA_PKCS, NULL, 0};
        CK_SESSION_HANDLE session = 1;
        setenv("P11_PROXY_CONFIG", configuration, 1);
        void *handle = dlopen(module, RTLD_NOW);
        CK_C_GetFunctionList get =
            handle != NULL ? (CK_C_GetFunctionList)dlsym(handle, "C_GetFunctionList") : NULL;
        if (get == NULL || get(&list) != CKR_OK || list->C_Initialize(NULL) != CKR_OK ||
            list->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK)
            _exit(1);
        double begun_ns = now_ns();
        for (int i = 0; i < CALLS; i++)
            list->C_SignInit(session, &mechanism, 1);
        ns = (now_ns() - begun_ns) / CALLS;
        _exit(write(ends[1], &ns, sizeof ns) == sizeof ns ? 0 : 1);
    }
    close(ends[1]);
    if (read(ends[0], &ns, sizeof ns) != sizeof ns)
        ns = -1;
    close(ends[0]);
    waitpid(child, NULL, 0);
    return ns;
}

static int by_size(const void *one, const void *other)
{
    double difference = *(const double *)one - *(const double *)other;
    return difference < 0 ? -1 : difference > 0;
}

int main(int argc, char **argv)
{
    static double ns[POLICIES][ROUNDS];
    char path[POLICIES][64];
    if (argc != 4) {
        fprintf(stderr, "usage: bench_guard MODULE TARGET LIST\n");
        return 2;
    }
    for (int p = 0; p < POLICIES; p++) {
        snprintf(path[p], sizeof path[p], "/tmp/bench-guard-%d-XXXXXX", p);
        int fd = mkstemp(path[p]);
        if (fd < 0)
            return 2;
        close(fd);
        configure(path[p], argv[2], argv[3], p);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int p = 0; p < POLICIES; p++)
            ns[p][round] = one_round(argv[1], path[p]);
    for (int p = 0; p < POLICIES; p++) {
        qsort(ns[p], ROUNDS, sizeof ns[p][0], by_size);
        printf("C_SignInit, %-13s %7.1f ns  %+7.1f ns\n", names[p], ns[p][ROUNDS / 2],
               ns[p][ROUNDS / 2] - ns[0][ROUNDS / 2]);
        unlink(path[p]);
    }
    return ns[0][0] < 0 ? 1 : 0;
}
