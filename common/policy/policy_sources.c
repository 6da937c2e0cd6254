/* policy_sources.c - the lists of a policy: the inline one, the files, and what they include. */
#include "policy/policy_compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy_fold.h"

#define INCLUDE     "include "
#define WHITE_SPACE " \t\r\n\f"

static int add_list(struct compiler *c, const char *list, struct place *place,
                    const struct property *property);

static int include_curves(struct compiler *c, struct loaded *file)
{
    const struct property *property = file->named_curves;
    struct place place = {file->path, property->line, CURVES_KEY, file};

    if (file->curves_included)
        return 0; /* said already, or saying it right now */
    file->curves_included = true;
    return add_list(c, property->value, &place, property);
}

/* Follows the inclusion in the item's own file if it can, else in every other one. */
static int include(struct compiler *c, const struct place *place, const char *what,
                   const char *item)
{
    bool found = false;

    if (strlen(what) != strlen(CURVES_KEY) || !fold_same(what, CURVES_KEY, strlen(what)))
        return compile_fail_at(c, place, "includes something else than " CURVES_KEY, item);
    if (place->from && place->from->named_curves)
        return include_curves(c, place->from);
    for (size_t i = 0; i < c->sources->files_count; i++) {
        if (!c->loaded[i].named_curves)
            continue;
        found = true;
        int rc = include_curves(c, &c->loaded[i]);
        if (rc != 0)
            return rc;
    }
    if (found)
        return 0;
    if (!place->key)
        return compile_fail_at(c, place, "includes a property that no list file has", item);
    compile_warn(c, place, "includes a property that no list file has", item);
    return 0;
}

/* Adds each item of a list; property tells the lines, if the list is the value of one. */
static int add_list(struct compiler *c, const char *list, struct place *place,
                    const struct property *property)
{
    const char *from = list, *end = list + strlen(list);

    while (from < end && strchr(WHITE_SPACE, *from))
        from++;
    while (end > from && strchr(WHITE_SPACE, end[-1]))
        end--;
    if (end - from > 1 && *from == '"' && end[-1] == '"') {
        from++;
        end--;
    }
    while (from < end) {
        const char *comma = memchr(from, ',', (size_t)(end - from));
        const char *to = comma ? comma : end;
        while (from < to && strchr(WHITE_SPACE, *from))
            from++;
        char *text = policy_text(c->policy, from, (size_t)(to - from));
        if (!text)
            return compile_no_memory(c);
        if (property)
            place->line = property_line(property, (size_t)(from - list));
        int rc = 0;
        if (fold_same(text, INCLUDE, sizeof INCLUDE - 1)) {
            rc = include(c, place, text + sizeof INCLUDE - 1, text);
        } else if (*text) {
            rc = compile_item(c, place, text);
            if (place->from)
                place->from->items++;
        }
        if (rc != 0)
            return rc;
        from = comma ? comma + 1 : end;
    }
    return 0;
}

static bool is_list_key(const char *key)
{
    static const char *const prefixes[] = {TLS_PREFIX, "jdk.certpath.", "jdk.jar.", "jdk.security.",
                                           "jdk.crypto."};
    static const char suffix[] = "disabledAlgorithms";
    size_t len = strlen(key);

    if (len < sizeof suffix - 1 || strcmp(key + len - (sizeof suffix - 1), suffix) != 0)
        return false;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t prefix_len = strlen(prefixes[i]);
        if (len >= prefix_len + sizeof suffix - 1 && strncmp(key, prefixes[i], prefix_len) == 0)
            return true;
    }
    return false;
}

static int load(struct compiler *c, const struct policy_file *file, struct loaded *loaded)
{
    struct list_problem problem = {0};
    char quote[QUOTED_BYTES];
    size_t len;

    loaded->path = policy_text(c->policy, file->path, strlen(file->path));
    if (!loaded->path)
        return compile_no_memory(c);
    int rc = list_file_read(file->path, &loaded->text, &len, &problem);
    if (rc != 0) {
        return compile_fail(c, rc, "%s:%u: " FILE_KEY " %s%s%s%s: '%s'", file->named_in,
                            file->named_line, problem.should, problem.errnum ? " (" : "",
                            problem.errnum ? strerror(problem.errnum) : "",
                            problem.errnum ? ")" : "", compile_quoted(quote, file->path));
    }
    rc = properties_parse(&loaded->properties, loaded->text, len, &problem);
    if (rc != 0)
        return compile_fail(c, rc, "%s:%u: the list %s", file->path, problem.line, problem.should);
    if (len > 0 && !strchr("\r\n", loaded->text[len - 1])) {
        struct place end = {loaded->path, 1, FILE_KEY, loaded};
        compile_warn(c, &end, "does not end with a line end, it may have been cut off",
                     loaded->path);
    }
    for (size_t i = 0; i < loaded->properties.count; i++) {
        const struct property *property = &loaded->properties.property[i];
        if (!property->overridden && strcmp(property->key, CURVES_KEY) == 0)
            loaded->named_curves = property;
    }
    return 0;
}

static int add_file(struct compiler *c, const struct policy_file *file, struct loaded *loaded)
{
    char quote[QUOTED_BYTES];

    for (size_t i = 0; i < loaded->properties.count; i++) {
        const struct property *property = &loaded->properties.property[i];
        struct place place = {loaded->path, property->line, property->key, loaded};
        if (strcmp(property->key, "include") == 0)
            compile_warn(c, &place, "is not followed into another file", property->value);
        if (!is_list_key(property->key))
            continue;
        if (property->overridden) {
            compile_warn(c, &place, "comes again later, and only the last one holds",
                         property->key);
            continue;
        }
        place.key = policy_text(c->policy, property->key, strlen(property->key));
        int rc = place.key ? add_list(c, property->value, &place, property) : compile_no_memory(c);
        if (rc != 0)
            return rc;
    }
    /* A file cut short or the wrong file must not pass for a policy that disables nothing. */
    if (loaded->items == 0)
        return compile_fail(c, -EINVAL,
                            "%s:%u: " FILE_KEY
                            " lists no algorithm under a key jdk.*.disabledAlgorithms: '%s'",
                            file->named_in, file->named_line, compile_quoted(quote, file->path));
    return 0;
}

int compile_sources(struct compiler *c)
{
    const struct policy_sources *sources = c->sources;
    int rc = 0;

    /* All files first: any list may include what stands in one of them. */
    for (size_t i = 0; i < sources->files_count && rc == 0; i++)
        rc = load(c, &sources->files[i], &c->loaded[i]);
    if (rc == 0 && sources->list) {
        const char *file = sources->list_file ? sources->list_file : "?";
        struct place place = {policy_text(c->policy, file, strlen(file)), sources->list_line, NULL,
                              NULL};
        rc = place.file ? add_list(c, sources->list, &place, NULL) : compile_no_memory(c);
    }
    for (size_t i = 0; i < sources->files_count && rc == 0; i++)
        rc = add_file(c, &sources->files[i], &c->loaded[i]);
    return rc;
}

void compile_sources_free(struct compiler *c)
{
    for (size_t i = 0; c->loaded && i < c->sources->files_count; i++) {
        properties_free(&c->loaded[i].properties);
        free(c->loaded[i].text);
    }
    free(c->loaded);
}
