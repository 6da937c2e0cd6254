/* script.c - reads what a test tells the scripted target, and says what it means for a call. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

static const char *const function_names[] = {
#define P11_UPTO       302
#define ROW(name, ...) #name,
#include "functions.def"
};

const char *function_name(enum function function)
{
    return function_names[function];
}

_Noreturn static void reject(const char *at)
{
    fprintf(stderr, "scripted target: \"%s\" is not understood\n", at);
    abort();
}

/* Goes on behind the words if they come next. */
static bool says(const char **at, const char *words)
{
    size_t len = strlen(words);
    if (strncmp(*at, words, len) != 0 ||
        (isalnum((unsigned char)words[len - 1]) && isalnum((unsigned char)(*at)[len])))
        return false;
    *at += len + strspn(*at + len, " \t");
    return true;
}

static void must_say(const char **at, const char *words)
{
    if (!says(at, words))
        reject(*at);
}

static unsigned long number(const char **at)
{
    char *end;
    unsigned long value = strtoul(*at, &end, 0);
    if (end == *at)
        reject(*at);
    *at = end + strspn(end, " \t");
    return value;
}

static unsigned long duration_ns(const char **at)
{
    unsigned long value = number(at);
    if (says(at, "us"))
        value *= 1000;
    else if (says(at, "ms"))
        value *= 1000 * 1000;
    else if (says(at, "s"))
        value *= 1000 * 1000 * 1000;
    else
        must_say(at, "ns");
    return value;
}

/* Words, and where the number behind them is kept; 1 if there is none. */
struct field {
    const char *words;
    size_t place;
};

static const struct field settings[] = {
#define SETTING(field, words, value) {words, offsetof(struct script, field)},
#include "settings.def"
    {NULL, 0}};

static const struct field conditions[] = {{"over", offsetof(struct statement, over)},
                                          {"under", offsetof(struct statement, under)},
                                          {"in slot", offsetof(struct statement, slot)},
                                          {"by filler", offsetof(struct statement, by_filler)},
                                          {"by callers", offsetof(struct statement, by_callers)},
                                          {"read-only", offsetof(struct statement, read_only)},
                                          {"locking", offsetof(struct statement, locking)},
                                          {NULL, 0}};

/* False if none of the fields is said. */
static bool read_field(const char **at, const struct field *field, void *into)
{
    while (field->words != NULL && !says(at, field->words))
        field++;
    if (field->words == NULL)
        return false;
    unsigned long value = isdigit((unsigned char)**at) ? number(at) : says(at, "none") ? NONE : 1;
    memcpy((char *)into + field->place, &value, sizeof value);
    return true;
}

static unsigned function_of(const char **at)
{
    for (unsigned i = 0; i < FUNCTIONS; i++)
        if (says(at, function_names[i]))
            return i;
    must_say(at, "any");
    return ANY_FUNCTION;
}

static void read_effect(const char **at, struct statement *made)
{
    static const struct {
        const char *words;
        enum effect effect;
    } effects[] = {{"ok", DOES_ITS_WORK},       {"fail", FAILS},
                   {"write half", WRITES_HALF}, {"write", WRITES_SOME},
                   {"stuck", IS_STUCK},         {"repeat", REPEATS},
                   {"call back", CALLS_BACK},   {"last", LASTS},
                   {"hold first", HOLDS_FIRST}, {"hold", HOLDS}};
    size_t i = 0;
    while (i < sizeof effects / sizeof *effects && !says(at, effects[i].words))
        i++;
    if (i == sizeof effects / sizeof *effects)
        reject(*at);
    made->effect = effects[i].effect;
    made->matter = made->effect < LASTS   ? MATTER_WORK
                   : made->effect < HOLDS ? MATTER_TIME
                                          : MATTER_HOLD;
    if (made->effect == FAILS || made->effect == WRITES_SOME)
        made->value = number(at);
    if (made->effect == LASTS)
        made->value = duration_ns(at);
    if (made->effect == LASTS && says(at, "and")) {
        made->for_a_byte = duration_ns(at);
        must_say(at, "a byte");
    }
}

static void read_statement(const char **at, struct statement *made)
{
    *made = (struct statement){
        .function = function_of(at), .over = NONE, .under = NONE, .slot = NONE, .times = NONE};
    while (read_field(at, conditions, made))
        continue;
    must_say(at, ":");
    read_effect(at, made);
    if (says(at, "once"))
        made->times = 1;
    else if (says(at, "twice"))
        made->times = 2;
    else if (**at != '\0') {
        made->times = number(at);
        must_say(at, "times");
    }
}

static void read_one(const char *at, struct script *script)
{
    at += strspn(at, " \t");
    if (says(&at, "interfaces"))
        script->interfaces = at;
    else if (says(&at, "plain"))
        script->plain = at;
    else if (says(&at, "without"))
        script->without = at;
    else if (*at != '\0') {
        if (!read_field(&at, settings, script)) {
            if (script->statement_count == STATEMENTS_MOST)
                reject(at);
            read_statement(&at, &script->statements[script->statement_count++]);
        }
        if (*at != '\0')
            reject(at);
    }
}

static struct script *script_read(void)
{
    char *rest = NULL;
    struct script *made = calloc(1, sizeof *made);
    if (made == NULL)
        abort();
#define SETTING(field, words, value) made->field = value;
#include "settings.def"
    made->end = atomic_load_explicit(&shared->script_end, memory_order_acquire);
    memcpy(made->text, shared->script, made->end % SCRIPT_BYTES);
    for (char *one = strtok_r(made->text, ";\n", &rest); one != NULL;
         one = strtok_r(NULL, ";\n", &rest))
        read_one(one, made);
    return made;
}

/* The first caller makes it. The one before is never freed, because another thread may still read it. */
const struct script *script_now(void)
{
    static _Atomic(struct script *) current;
    struct script *now = atomic_load_explicit(&current, memory_order_acquire);
    if (now != NULL && now->end == atomic_load_explicit(&shared->script_end, memory_order_acquire))
        return now;
    struct script *made = script_read();
    if (!atomic_compare_exchange_strong(&current, &now, made)) {
        free(made);
        return script_now();
    }
    return made;
}

static bool fits(const struct statement *said, const struct call *call)
{
    const uintptr_t *with = call->seen.arguments;
    if (said->function != ANY_FUNCTION && said->function != call->seen.function)
        return false;
    if ((said->over != NONE && call->seen.bytes <= said->over) || call->seen.bytes >= said->under)
        return false;
    if (said->slot != NONE && said->slot != call->slot_id)
        return false;
    if (call->seen.by_filler ? said->by_callers : said->by_filler)
        return false;
    if (said->read_only && (with[1] & CKF_RW_SESSION) != 0)
        return false;
    return !said->locking ||
           (with[0] != 0 && (((CK_C_INITIALIZE_ARGS *)with[0])->flags & CKF_OS_LOCKING_OK) != 0);
}

void script_settle(struct call *call)
{
    for (unsigned i = call->script->statement_count; i-- > 0;) {
        const struct statement *said = &call->script->statements[i];
        if (call->course[said->matter] == NULL && fits(said, call) &&
            atomic_fetch_add_explicit(&shared->hits[i], 1, memory_order_relaxed) < said->times)
            call->course[said->matter] = said;
    }
}
