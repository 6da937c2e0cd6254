/* unload_fixture.h - loads a module and unloads it, and sees whether it is gone. */
#ifndef P11_PROXY_TEST_UNLOAD_FIXTURE_H
#define P11_PROXY_TEST_UNLOAD_FIXTURE_H

#include <check.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "statistics.h"
#include "words_seen.h"

/* The target is not ours to keep loaded: it has to go with the proxy. */
static inline void begin(const char *settings)
{
    char counting[PATH_MAX];
    snprintf(counting, sizeof counting, "%s", target_path("counting"));
    words_begin();
    proxy_before(counting, settings);
}

static inline void load(const char *path)
{
    proxy = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(proxy != NULL, "%s", dlerror());
    EXPECT(((CK_C_GetFunctionList)dlsym(proxy, "C_GetFunctionList"))(&fn), CKR_OK);
}

static inline void unload(void)
{
    ck_assert_int_eq(dlclose(proxy), 0);
    proxy = NULL;
    fn = NULL;
}

static inline unsigned lines_of_maps_with(const char *what)
{
    char line[PATH_MAX + 128];
    unsigned count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (fgets(line, sizeof line, maps) != NULL)
        count += strstr(line, what) != NULL;
    fclose(maps);
    return count;
}

/* One page of our code stays for who may be in it, and its data. */
static inline bool is_mapped(const char *path)
{
    return lines_of_maps_with(path) > 1;
}

static inline unsigned descriptors_of(const char *name)
{
    unsigned count = 0;
    for (int fd = 0; fd < 64; fd++) {
        char path[64];
        char link[PATH_MAX];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t len = readlink(path, link, sizeof link);
        count += len > 0 && memmem(link, (size_t)len, name, strlen(name)) != NULL;
    }
    return count;
}

static inline void expect_nothing_of_us(void)
{
    ck_assert_uint_eq(lines_of_maps_with(STATISTICS_NAME), 0);
    ck_assert_uint_eq(descriptors_of(STATISTICS_NAME), 0);
    ck_assert(!is_mapped(getenv("TEST_MODULE")));
    ck_assert_uint_eq(lines_of_maps_with(target_path("counting")), 0);
}

#endif
