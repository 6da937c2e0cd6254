/* policy_list.h - files of disabled algorithms, as java.util.Properties reads them. */
#ifndef P11_PROXY_POLICY_LIST_H
#define P11_PROXY_POLICY_LIST_H

#include <stdbool.h>
#include <stddef.h>

#define LIST_FILE_BYTES_MAX (1024u * 1024u)

/* One key of a file. */
struct property {
    char *key;
    char *value;     /* escapes resolved, lines joined */
    unsigned line;   /* of the key, from 1 */
    bool overridden; /* the same key comes later, and in Java the last one holds */
    struct line_start {
        size_t offset; /* in value */
        unsigned line;
    } * lines; /* where the value goes on in a later line, in order */
    size_t lines_count;
};

struct properties {
    struct property *property;
    size_t count, room;
};

/* What was wrong, and where; line 0: the file as a whole. */
struct list_problem {
    unsigned line;
    const char *should; /* what would have been right */
    int errnum;         /* 0, or the errno value to tell beside it */
};

/*
 * Reads a whole regular file (through links) of at most LIST_FILE_BYTES_MAX bytes. Never waits, not
 * for a FIFO either. On 0 the caller owns *text, which has a NUL behind its *len bytes, and frees
 * it with free(). On a negative errno value *problem says what was wrong: -ENOENT and so on if it
 * cannot be read, -EINVAL if it is no such file, was written to meanwhile or holds a NUL, -ENOMEM.
 */
int list_file_read(const char *path, char **text, size_t *len, struct list_problem *problem);

/*
 * Takes a text in the syntax of java.util.Properties apart, keys in order, a key that comes twice
 * twice. On 0 the caller owns what is in *properties and ends it with properties_free(). -EINVAL
 * (malformed \u escape, file ends in the midst of a line that goes on) or -ENOMEM.
 */
int properties_parse(struct properties *properties, const char *text, size_t len,
                     struct list_problem *problem);

/* Takes half-built ones. */
void properties_free(struct properties *properties);

/* The file's line in which value[offset] stands. */
unsigned property_line(const struct property *property, size_t offset);

#endif
