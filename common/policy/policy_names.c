/* policy_names.c - the names of all tables, their synonyms, and what they stand for. */
#include "policy/policy_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/mechanisms.h"
#include "policy/policy_fold.h"

struct slot {
    uint32_t hash; /* the upper half: the lower one is the place */
    name_id name;  /* NO_NAME: free */
};

#define FIRST_SLOTS 4096u
#define FIRST_NAMES 2048u

static const char *const synonyms[] = {
#define SYNONYMS(names) names,
#include "policy/synonyms.def"
#undef SYNONYMS
};

static const char *const words[] = {
#define WORD(pattern) pattern,
#include "policy/words.def"
#undef WORD
};

static bool same(const struct name *name, uint64_t start, const char *text, size_t len)
{
    if (name->start != start || name->len != len)
        return false;
    for (size_t at = FOLD_BYTES; at < len; at += FOLD_BYTES) {
        if (fold_start(name->text + at, len - at) != fold_start(text + at, len - at))
            return false;
    }
    return true;
}

/* The slot that holds the name, or the free one where it would go. */
static struct slot *slot_of(const struct names *names, uint64_t start, uint64_t hash,
                            const char *text, size_t len)
{
    uint32_t at = (uint32_t)hash & names->slot_mask;

    for (;; at = (at + 1) & names->slot_mask) {
        struct slot *slot = &names->slot[at];
        if (slot->name == NO_NAME || (slot->hash == (uint32_t)(hash >> 32) &&
                                      same(&names->entry[slot->name], start, text, len)))
            return slot;
    }
}

name_id names_find_from(const struct names *names, uint64_t start, const char *text, size_t len)
{
    uint64_t hash = fold_hash(start, text, len);

    if (len > FOLD_BYTES)
        return slot_of(names, start, hash, text, len)->name;
    /*
     * The same for names that are one word, which is most of them: nothing but comparisons of
     * numbers.
     */
    for (uint32_t at = (uint32_t)hash;; at++) {
        struct slot slot = names->slot[at & names->slot_mask];
        const struct name *name = &names->entry[slot.name];
        if (slot.name == NO_NAME || (name->start == start && name->len == len))
            return slot.name;
    }
}

name_id names_find(const struct names *names, const char *text, size_t len)
{
    return names_find_from(names, fold_start(text, len), text, len);
}

static bool grow_slots(struct names *names)
{
    uint32_t count = 2 * (names->slot_mask + 1);
    struct slot *old = names->slot;

    names->slot = calloc(count, sizeof *names->slot);
    if (!names->slot) {
        names->slot = old;
        return false;
    }
    names->slot_mask = count - 1;
    free(old);
    for (name_id i = 1; i < names->count; i++) {
        const struct name *name = &names->entry[i];
        uint64_t hash = fold_hash(name->start, name->text, name->len);
        *slot_of(names, name->start, hash, name->text, name->len) =
            (struct slot){(uint32_t)(hash >> 32), i};
    }
    return true;
}

name_id names_add(struct names *names, const char *text, size_t len)
{
    uint64_t start = fold_start(text, len);
    uint64_t hash = fold_hash(start, text, len);
    struct slot *slot = slot_of(names, start, hash, text, len);

    if (slot->name != NO_NAME)
        return slot->name;
    if (names->count == names->room) {
        struct name *more = reallocarray(names->entry, names->room, 2 * sizeof *more);
        if (!more)
            return NO_NAME;
        names->entry = more;
        names->room *= 2;
    }
    if (2 * names->count >= names->slot_mask) {
        if (!grow_slots(names))
            return NO_NAME;
        slot = slot_of(names, start, hash, text, len);
    }

    name_id id = names->count++;
    names->entry[id] =
        (struct name){.start = start, .text = text, .len = (uint32_t)len, .group = id};
    *slot = (struct slot){(uint32_t)(hash >> 32), id};
    return id;
}

/* Calls for each name of "one|two|three"; false as soon as a call says so. */
typedef bool each_name(struct names *names, name_id name, void *context);

static bool for_each(struct names *names, const char *list, each_name *call, void *context)
{
    while (*list) {
        size_t len = strcspn(list, "|");
        name_id name = names_add(names, list, len);
        if (name == NO_NAME || !call(names, name, context))
            return false;
        names->entry[name].known = true;
        list += len + (list[len] == '|');
    }
    return true;
}

static bool join(struct names *names, name_id name, void *context)
{
    name_id *group = context;
    if (*group == NO_NAME)
        *group = names->entry[name].group;
    names->entry[name].group = *group;
    return true;
}

static bool add_synonyms(struct names *names, const char *list, name_id *group)
{
    return for_each(names, list, join, group);
}

static bool point(struct names *names, name_id name, void *context)
{
    struct ref ref = *(const struct ref *)context;

    if (names->ref_count == names->ref_room) {
        struct ref *more = reallocarray(names->ref, names->ref_room, 2 * sizeof *more);
        if (!more)
            return false;
        names->ref = more;
        names->ref_room *= 2;
    }
    ref.group = names->entry[name].group;
    names->ref[names->ref_count++] = ref;
    return true;
}

static bool add_refs(struct names *names, const char *list, enum ref_kind kind, size_t row)
{
    struct ref ref = {NO_NAME, kind, (uint32_t)row};
    return for_each(names, list, point, &ref);
}

static bool add_all_synonyms(struct names *names)
{
    bool ok = true;

    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms && ok; i++) {
        name_id group = NO_NAME;
        ok = add_synonyms(names, synonyms[i], &group);
    }
    for (size_t i = 0; i < curves_count && ok; i++) {
        name_id group = NO_NAME;
        ok = add_synonyms(names, text_at(curves[i].name), &group) &&
             add_synonyms(names, text_at(curves[i].aliases), &group);
    }
    for (size_t i = 0; i < mechanisms_count && ok; i++) {
        name_id group = NO_NAME;
        ok = add_synonyms(names, text_at(mechanisms[i].names), &group);
    }
    return ok;
}

static bool add_all_refs(struct names *names)
{
    bool ok = true;

    for (size_t i = 0; i < mechanisms_count && ok; i++) {
        ok = add_refs(names, text_at(mechanisms[i].names), REF_MECHANISM, i) &&
             add_refs(names, text_at(mechanisms[i].atoms), REF_MECHANISM, i) &&
             add_refs(names, text_at(mechanisms[i].full_names), REF_MECHANISM, i);
    }
    for (size_t i = 0; i < key_types_count && ok; i++)
        ok = add_refs(names, text_at(key_types[i].names), REF_KEY_TYPE, i);
    for (size_t i = 0; i < curves_count && ok; i++)
        ok = add_refs(names, text_at(curves[i].name), REF_CURVE, i);
    for (size_t i = 0; i < parameter_sets_count && ok; i++)
        ok = add_refs(names, text_at(parameter_sets[i].name), REF_PARAMETER_SET, i);
    return ok;
}

static bool add_all_words(struct names *names)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t len = strlen(words[i]);
        if (words[i][len - 1] == '*')
            continue;
        name_id name = names_add(names, words[i], len);
        if (name == NO_NAME)
            return false;
        names->entry[name].known = true;
    }
    return true;
}

static bool same_ref(const struct ref *left, const struct ref *right)
{
    return left->group == right->group && left->kind == right->kind && left->row == right->row;
}

/*
 * Sorts by group; within one, kinds and rows were added in order and stay so.
 * An atom and a full name may be one name, and so may an alias: each row once.
 */
static bool sort_refs(struct names *names)
{
    struct ref *sorted = calloc(names->ref_count, sizeof *sorted);
    uint32_t *first = calloc(names->count + 1, sizeof *first);

    if (!sorted || !first) {
        free(sorted);
        free(first);
        return false;
    }
    for (size_t i = 0; i < names->ref_count; i++)
        first[names->ref[i].group + 1]++;
    for (uint32_t i = 0; i < names->count; i++)
        first[i + 1] += first[i];
    for (size_t i = 0; i < names->ref_count; i++)
        sorted[first[names->ref[i].group]++] = names->ref[i];

    uint32_t kept = 0;
    memset(first, 0, (names->count + 1) * sizeof *first);
    for (size_t i = 0; i < names->ref_count; i++) {
        if (kept > 0 && same_ref(&sorted[kept - 1], &sorted[i]))
            continue;
        sorted[kept++] = sorted[i];
        first[sorted[i].group + 1]++;
    }
    for (uint32_t i = 0; i < names->count; i++)
        first[i + 1] += first[i];

    free(names->ref);
    names->ref = sorted;
    names->ref_count = kept;
    names->first_ref = first;
    names->first_ref_count = names->count;
    return true;
}

int names_create(struct names **names)
{
    struct names *made = calloc(1, sizeof *made);

    if (!made)
        return -ENOMEM;
    made->slot = calloc(FIRST_SLOTS, sizeof *made->slot);
    made->slot_mask = FIRST_SLOTS - 1;
    made->entry = calloc(FIRST_NAMES, sizeof *made->entry);
    made->room = FIRST_NAMES;
    made->count = NO_NAME + 1;
    made->ref = calloc(FIRST_NAMES, sizeof *made->ref);
    made->ref_room = FIRST_NAMES;
    /* Synonyms first: what a name stands for is filed under its group. */
    if (!made->slot || !made->entry || !made->ref || !add_all_synonyms(made) ||
        !add_all_refs(made) || !add_all_words(made) || !sort_refs(made)) {
        names_free(made);
        return -ENOMEM;
    }
    *names = made;
    return 0;
}

void names_free(struct names *names)
{
    if (!names)
        return;
    free(names->slot);
    free(names->entry);
    free(names->ref);
    free(names->first_ref);
    free(names);
}

const struct ref *names_refs(const struct names *names, name_id name, size_t *count)
{
    name_id group = names->entry[name].group;

    *count = 0;
    if (group >= names->first_ref_count) /* it came with a list */
        return NULL;
    *count = names->first_ref[group + 1] - names->first_ref[group];
    return *count ? &names->ref[names->first_ref[group]] : NULL;
}

bool names_is_word(const char *text, size_t len)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t word_len = strlen(words[i]);
        if (words[i][word_len - 1] == '*'
                ? len >= word_len - 1 && fold_same(text, words[i], word_len - 1)
                : len == word_len && fold_same(text, words[i], len))
            return true;
    }
    return false;
}
