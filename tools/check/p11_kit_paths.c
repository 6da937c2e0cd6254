/* check_p11_kit_paths.c - whether the p11-kit that is installed looks where this proxy was built to look. */
#include "check/check_parts.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* p11-kit has its folders compiled in, and tells nobody: they are texts in its library. */
struct library {
    char path[PATH_MAX];
    const char *bytes;
    size_t len_bytes;
};

/* Loads it, in a child: only the loader knows which one programs get. */
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
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size <= 0)
        return false;
    library->len_bytes = (size_t)st.st_size;
    void *bytes = mmap(NULL, library->len_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    library->bytes = bytes;
    return bytes != MAP_FAILED;
}

/* Whether text is in there, up to its end; before it may stand more. */
static bool has_text(const struct library *library, const char *text)
{
    return memmem(library->bytes, library->len_bytes, text, strlen(text) + 1) != NULL;
}

/* An absolute path that ends like this, or NULL. */
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

static void compare(struct findings *findings, const struct library *library, const char *what,
                    const char *path, const char *end)
{
    const char *theirs;

    if (has_text(library, path))
        return;
    theirs = find_path(library, end);
    found(findings, MARK_NOTE, "p11-kit", "p11-kit (%s) does not read %s %s%s%s", library->path,
          what, path, theirs != NULL ? ", but " : "", theirs != NULL ? theirs : "");
    advise(findings,
           "build the proxy with p11-kit's own prefix, or put the files where p11-kit looks");
}

static void compare_all(struct findings *findings, const void *context)
{
    const struct config_places *places = context;
    struct library library;

    findings_at(findings, "while p11-kit's library was loaded");
    if (!find_library(&library))
        return; /* then no program has it either */
    compare(findings, &library, "registrations in", places->package_modules, "/p11-kit/modules");
    compare(findings, &library, "registrations in", places->system_modules, "/pkcs11/modules");
    compare(findings, &library, "modules in", places->target_directory, "/pkcs11");
}

void check_p11_kit_paths(struct findings *findings, const struct config_places *places)
{
    findings_in_child(findings, "p11-kit", compare_all, places);
}
