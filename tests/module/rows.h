/* rows.h - a call of each row of functions.def, through list. The includer sets list, and says in value_of() what each
 * argument is, by its name. */
#ifndef P11_PROXY_TEST_ROWS_H
#define P11_PROXY_TEST_ROWS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const struct p11_functions *list;
static uintptr_t value_of(const char *name, bool is_pointer);

struct row {
    const char *name;
    const char *kind;
    const char *needs[3]; /* the first of what the kind needs, "" for none */
    const char *parameters;
    CK_RV (*call)(void);
};

/* What the last call passed. */
static uintptr_t passed[ARGUMENTS_MOST];
static unsigned passed_count;

/* All numbers of PKCS#11 are one of two types, all else is an address. */
#define IS_POINTER(type)                                                                           \
    _Generic((type)0, unsigned long : false, unsigned char : false, default : true)
#define MADE(pair)          MADE_ pair
#define MADE_(type, n)      (type) value_of(#n, IS_POINTER(type))
#define MADE_WORD(pair)     MADE_WORD_ pair
#define MADE_WORD_(type, n) (uintptr_t) MADE_(type, n)

#define ROW(name, ...)                                                                             \
    static CK_RV call_##name(void)                                                                 \
    {                                                                                              \
        const uintptr_t words[] = {P11_EACH(MADE_WORD, __VA_ARGS__)};                              \
        memcpy(passed, words, sizeof words);                                                       \
        passed_count = sizeof words / sizeof *words;                                               \
        return list->name(P11_EACH(MADE, __VA_ARGS__));                                            \
    }
#include "functions.def"

#define NEEDS(...) NEEDS_(__VA_ARGS__, , , )
#define NEEDS_(one, two, three, ...)                                                               \
    {                                                                                              \
#one, #two, #three                                                                         \
    }
static const struct row rows[FUNCTIONS_3_2] = {
#define OWN(name, ...)                  {#name, "OWN", {"", "", ""}, #__VA_ARGS__, call_##name},
#define FORWARD(kind, needs, name, ...) {#name, #kind, NEEDS needs, #__VA_ARGS__, call_##name},
#include "functions.def"
};

__attribute__((unused)) static bool is_kind(const struct row *row, const char *kind)
{
    return strcmp(row->kind, kind) == 0;
}

__attribute__((unused)) static const struct row *row_named(const char *name)
{
    const struct row *row = rows;
    while (strcmp(row->name, name) != 0)
        row++;
    return row;
}

/* Each row of that kind. */
#define FOR_EACH_ROW(row, of_kind)                                                                 \
    for (const struct row *row = rows; row < rows + FUNCTIONS_3_2; row++)                          \
        if (is_kind(row, of_kind))

#endif
