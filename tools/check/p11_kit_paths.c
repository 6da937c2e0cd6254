/* p11_kit_paths.c - whether the p11-kit that is installed looks where this proxy was built to look. */
#include "check/check.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* p11-kit has its folders compiled in and no function that tells them: they are texts in its library. */
struct library {
    char path[PATH_MAX];
    const char *bytes;
    size_t len_bytes;
};

/* Loads it, in a child: only the loader knows which library programs get. */
static bool find_library(struct library *library)
{
    void *handle = dlopen("libp11-kit.so.0", RTLD_LAZY | RTLD_LOCAL);
    void *symbol = handle != NULL ? dlsym(handle, "p11_kit_modules_load") : NULL;
    Dl_info info;
    struct stat st;

    if (symbol == NULL || dladdr(symbol, &info) == 0 ||
        realpath(info.dli_fname, library->path) == NULL)
        return false;
    int fd = open(library->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return false;
    library->len_bytes = (size_t)st.st_size;
    library->bytes = mmap(NULL, library->len_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    return library->bytes != MAP_FAILED;
}

/* An absolute path in there that ends like this, or NULL. */
static const char *find_path(const struct library *library, const char *end)
{
    const char *from = library->bytes, *limit = library->bytes + library->len_bytes, *at;

    while ((at = memmem(from, (size_t)(limit - from), end, strlen(end) + 1)) != NULL) {
        const char *begin = at;
        while (begin > library->bytes && begin[-1] != '\0')
            begin--;
        if (begin[0] == '/' && begin < at)
            return begin;
        from = at + 1;
    }
    return NULL;
}

static void compare(struct report *report, const struct library *library, const char *what,
                    const char *path, const char *end)
{
    const char *read_path = find_path(library, end);

    if (memmem(library->bytes, library->len_bytes, path, strlen(path) + 1) != NULL)
        return;
    report_add(report, MARK_NOTE, "p11-kit", "p11-kit (%s) does not read %s %s%s%s", library->path,
               what, path, read_path != NULL ? ", but " : "", read_path != NULL ? read_path : "");
    report_hint(report,
                "build the proxy with p11-kit's own prefix, or put the files where p11-kit looks");
}

static void compare_all(struct report *report, const void *context)
{
    const struct config_places *places = context;
    struct library library;

    report_stage(report, "while p11-kit's library was loaded");
    if (!find_library(&library))
        return; /* then no program has it either */
    compare(report, &library, "registrations in", places->package_modules, "/p11-kit/modules");
    compare(report, &library, "registrations in", places->system_modules, "/pkcs11/modules");
    compare(report, &library, "modules in", places->target_directory, "/pkcs11");
}

void check_p11_kit_paths(struct report *report, const struct config_places *places)
{
    report_from_child(report, MARK_NOTE, "p11-kit", compare_all, places);
}
