/* value.c - the arguments of one scripted call. */
#include "value.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 4096, SLOTS_KNOWN_MAX = 32, FILL = 0xa5, MANY = 8 };

struct named {
    char name[16];
    unsigned long handle;
    unsigned char *bytes;
    size_t len;
};

char *init_reserved;

static struct named names[NAMES_MAX];
static size_t name_count;
static CK_SLOT_ID slots[SLOTS_KNOWN_MAX];
static CK_ULONG slot_count;

static void *must(void *pointer, const char *what)
{
    if (pointer == NULL) {
        fprintf(stderr, "player: cannot make '%s'\n", what);
        exit(2);
    }
    return pointer;
}

void values_learn_slots(const CK_SLOT_ID *found, CK_ULONG count)
{
    slot_count = count < SLOTS_KNOWN_MAX ? count : SLOTS_KNOWN_MAX;
    memcpy(slots, found, slot_count * sizeof *slots);
}

static struct named *find_name(const char *name, bool create)
{
    for (size_t i = 0; i < name_count; i++)
        if (strcmp(names[i].name, name) == 0)
            return &names[i];
    if (!create || name_count == NAMES_MAX)
        return NULL;
    snprintf(names[name_count].name, sizeof names->name, "%s", name);
    return &names[name_count++];
}

static const char *name_of_handle(unsigned long handle)
{
    for (size_t i = name_count; i-- > 0;)
        if (names[i].bytes == NULL && names[i].handle == handle)
            return names[i].name;
    return "other";
}

/* A block of exactly len bytes, so that tools see a read or write behind it. All are kept to the end. */
static unsigned char *new_block(size_t len, int fill)
{
    static struct kept {
        struct kept *before;
        unsigned char *block;
    } * last;
    struct kept *kept = must(malloc(sizeof *kept), "a block");
    *kept = (struct kept){last, must(malloc(len > 0 ? len : 1), "a block")};
    last = kept;
    return memset(kept->block, fill, len);
}

static unsigned char *from_hex(const char *hex, size_t *len)
{
    *len = strlen(hex) / 2;
    unsigned char *bytes = new_block(*len, 0);
    for (size_t i = 0; i < *len; i++) {
        unsigned byte = 0;
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
            must(NULL, hex);
        bytes[i] = (unsigned char)byte;
    }
    return bytes;
}

static bool skip(const char **text, const char *prefix)
{
    size_t len = strlen(prefix);
    if (strncmp(*text, prefix, len) != 0)
        return false;
    *text += len;
    return true;
}

static unsigned long number(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 0);
    if (end == text)
        must(NULL, text);
    return n;
}

static void make_template(struct value *value)
{
    static char copy[sizeof value->text];
    CK_ATTRIBUTE rows[64] = {{0}};
    size_t count = 0;
    char *rest = strcpy(copy, value->text + 1);
    rest[strcspn(rest, "}")] = '\0';
    for (char *entry = strtok(rest, ";"); entry != NULL && count < 64; entry = strtok(NULL, ";")) {
        CK_ATTRIBUTE *row = &rows[count++];
        size_t len;
        const char *kind = must(strchr(entry, ':'), entry);
        kind++;
        row->type = number(entry);
        if (skip(&kind, "u:")) {
            CK_ULONG n = number(kind);
            row->pValue = memcpy(new_block(sizeof n, 0), &n, sizeof n);
            row->ulValueLen = sizeof n;
        } else if (skip(&kind, "b:")) {
            row->pValue = new_block(1, (int)number(kind));
            row->ulValueLen = 1;
        } else if (skip(&kind, "x:")) {
            row->pValue = from_hex(kind, &len);
            row->ulValueLen = len;
        } else if (skip(&kind, "out:")) {
            row->ulValueLen = number(kind);
            row->pValue = new_block(row->ulValueLen, FILL);
        } else if (skip(&kind, "null:"))
            row->ulValueLen = number(kind);
        else
            must(NULL, entry);
    }
    value->block_len = count * sizeof *rows;
    value->block = memcpy(new_block(value->block_len, 0), rows, value->block_len);
}

static void make_mechanism(struct value *value)
{
    static char copy[sizeof value->text];
    unsigned char parameter[1024];
    size_t len = 0;
    size_t part_len;
    char *rest = strcpy(copy, value->text + 1);
    rest[strcspn(rest, ")")] = '\0';
    CK_MECHANISM mechanism = {.mechanism = number(rest)};
    char *words = strchr(rest, ':');
    for (char *word = words != NULL ? strtok(words + 1, ";") : NULL; word != NULL;
         word = strtok(NULL, ";")) {
        const char *kind = word;
        unsigned char *part;
        CK_ULONG n = 0;
        if (skip(&kind, "x:"))
            part = from_hex(kind, &part_len);
        else {
            if (skip(&kind, "p:"))
                n = (CK_ULONG)from_hex(kind, &part_len);
            else if (skip(&kind, "u:"))
                n = number(kind);
            else
                must(NULL, word);
            part_len = sizeof n;
            part = memcpy(new_block(sizeof n, 0), &n, sizeof n);
        }
        must(len + part_len <= sizeof parameter ? part : NULL, word);
        memcpy(parameter + len, part, part_len);
        len += part_len;
    }
    if (len > 0)
        mechanism.pParameter = memcpy(new_block(len, 0), parameter, len);
    mechanism.ulParameterLen = len;
    value->block_len = sizeof mechanism;
    value->block = memcpy(new_block(sizeof mechanism, 0), &mechanism, sizeof mechanism);
}

static void make_init(struct value *value, CK_FLAGS flags)
{
    CK_C_INITIALIZE_ARGS args = {.flags = flags, .pReserved = init_reserved};
    value->block_len = sizeof args;
    value->block = memcpy(new_block(sizeof args, 0), &args, sizeof args);
}

void value_make(struct value *value)
{
    const char *text = value->text;
    const struct named *known;
    if (*text == '{')
        make_template(value);
    else if (*text == '(')
        make_mechanism(value);
    else if (skip(&text, "x:"))
        value->block = from_hex(text, &value->block_len);
    else if (skip(&text, "out:") || skip(&text, "rnd:")) {
        value->block_len = number(text);
        value->block = new_block(value->block_len, FILL);
    } else if (skip(&text, "len:") || *text == '&') {
        CK_ULONG n = *text == '&' ? NO_HANDLE : number(text);
        value->block_len = sizeof n;
        value->block = memcpy(new_block(sizeof n, 0), &n, sizeof n);
    } else if (skip(&text, "find:") || skip(&text, "some:")) {
        value->block_len = number(text) * sizeof(CK_OBJECT_HANDLE);
        value->block = new_block(value->block_len, FILL);
    } else if (skip(&text, "init:"))
        make_init(value, number(text));
    else if (skip(&text, "slot")) {
        unsigned long n = number(text);
        value->word = n < slot_count ? slots[n] : NO_HANDLE;
    } else if (skip(&text, "<")) {
        known = find_name(text, false);
        value->block = known != NULL && known->bytes != NULL ? known->bytes : new_block(0, 0);
    } else if (skip(&text, "#")) {
        known = find_name(text, false);
        value->word = known != NULL && known->bytes != NULL ? known->len : 0;
    } else if (*text >= 'a' && *text <= 'z') {
        known = find_name(text, false);
        value->word = known != NULL ? known->handle : NO_HANDLE;
    } else
        value->word = number(text);
    if (value->block != NULL)
        value->word = (unsigned long)value->block;
}

static void show_bytes(const unsigned char *bytes, size_t len, FILE *out)
{
    for (size_t i = 0; i < len; i++)
        fprintf(out, "%02x", bytes[i]);
}

static void show_template(const struct value *value, FILE *out)
{
    const CK_ATTRIBUTE *rows = (const CK_ATTRIBUTE *)value->block;
    const char *rest = value->text + 1;
    for (size_t i = 0; i < value->block_len / sizeof *rows; i++) {
        fprintf(out, " 0x%lx:%ld", rows[i].type, (long)rows[i].ulValueLen);
        rest = must(strchr(rest, ':'), value->text);
        rest++;
        if (skip(&rest, "out:")) {
            fputc('=', out);
            show_bytes(rows[i].pValue, number(rest), out);
        }
        rest = strchr(rest, ';') != NULL ? strchr(rest, ';') + 1 : rest;
    }
}

/* The number that the call left in the parameter behind a buffer. */
static CK_ULONG length_in(const struct value *following)
{
    return following != NULL && following->block != NULL ? *(CK_ULONG *)following->block : 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void show_found(const struct value *value, const struct value *following, FILE *out)
{
    const CK_OBJECT_HANDLE *handles = (const CK_OBJECT_HANDLE *)value->block;
    const char *found[256];
    CK_ULONG count = length_in(following);
    if (count > value->block_len / sizeof *handles || count > 256)
        return;
    for (CK_ULONG i = 0; i < count; i++)
        found[i] = name_of_handle(handles[i]);
    qsort(found, count, sizeof *found, by_text);
    fprintf(out, " %s=", value->name);
    for (CK_ULONG i = 0; i < count; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", found[i]);
}

static void remember_handle(const char *name, CK_ULONG handle, CK_RV rv, FILE *out)
{
    fprintf(out, " %s=%s", name, handle == NO_HANDLE ? "untouched" : handle == 0 ? "0" : "set");
    struct named *known = rv == CKR_OK && handle != NO_HANDLE ? find_name(name, true) : NULL;
    if (known != NULL)
        known->handle = handle;
}

/* Random bytes are the fill by chance, too: once in 256, but not half of many. Few are not judged. */
static const char *how_full(const struct value *value, CK_RV rv)
{
    size_t changed = 0;
    size_t zeros = 0;
    if (value->block_len < MANY)
        return "few";
    for (size_t i = 0; i < value->block_len; i++) {
        changed += value->block[i] != FILL;
        zeros += value->block[i] == 0;
    }
    /* A call that fails may leave nothing in the place of bytes that it had. */
    if (rv != CKR_OK && zeros == value->block_len)
        return "untouched";
    return changed == 0 ? "untouched" : changed * 2 >= value->block_len ? "written" : "partly";
}

static void keep(const struct value *value, const char *name, const struct value *following,
                 CK_RV rv)
{
    struct named *known = rv == CKR_OK ? find_name(name, true) : NULL;
    CK_ULONG len = length_in(following);
    if (known == NULL)
        return;
    known->bytes = value->block;
    known->len = len < value->block_len ? len : value->block_len;
}

void value_show(const struct value *value, const struct value *following, CK_RV rv, FILE *out)
{
    const char *text = value->text;
    CK_ULONG n = 0;
    if (value->block != NULL && value->block_len >= sizeof n)
        memcpy(&n, value->block, sizeof n);
    if (*text == '{')
        show_template(value, out);
    else if (*text == '&')
        remember_handle(text + 1, n, rv, out);
    else if (strncmp(text, "len:", 4) == 0)
        fprintf(out, " %s=%ld", value->name, (long)n);
    else if (strncmp(text, "find:", 5) == 0)
        show_found(value, following, out);
    else if (strncmp(text, "rnd:", 4) == 0)
        fprintf(out, " %s=%zu,%s", value->name, value->block_len, how_full(value, rv));
    else if (strncmp(text, "out:", 4) == 0) {
        fprintf(out, " %s=", value->name);
        show_bytes(value->block, value->block_len, out);
    }
    if (strchr(text, '>') != NULL)
        keep(value, strchr(text, '>') + 1, following, rv);
}
