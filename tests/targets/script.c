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

static void skip_spaces(const char **at)
{
    *at += strspn(*at, " \t");
}

/* Goes on behind the words if they come next. */
static bool says(const char **at, const char *words)
{
    size_t len = strlen(words);
    if (strncmp(*at, words, len) != 0 ||
        (isalnum((unsigned char)words[len - 1]) && isalnum((unsigned char)(*at)[len])))
        return false;
    *at += len;
    skip_spaces(at);
    return true;
}

static unsigned long number(const char **at)
{
    char *end;
    unsigned long value = strtoul(*at, &end, 0);
    if (end == *at)
        reject(*at);
    *at = end;
    return value;
}

static unsigned long plain_number(const char **at)
{
    unsigned long value = number(at);
    skip_spaces(at);
    return value;
}

static unsigned long duration_ns(const char **at)
{
    unsigned long value = number(at);
    return says(at, "ns")   ? value
           : says(at, "us") ? value * 1000
           : says(at, "ms") ? value * 1000000
           : says(at, "s")  ? value * 1000000000
                            : (reject(*at), 0);
}

static unsigned function_of(const char **at)
{
    for (unsigned i = 0; i < FUNCTIONS; i++)
        if (says(at, function_names[i]))
            return i;
    if (!says(at, "any"))
        reject(*at);
    return ANY_FUNCTION;
}

static void read_conditions(const char **at, struct statement *made)
{
    while (!says(at, ":"))
        if (says(at, "over"))
            made->over = plain_number(at) + 1;
        else if (says(at, "under"))
            made->under = plain_number(at);
        else if (says(at, "in slot"))
            made->slot = plain_number(at);
        else if (says(at, "by filler"))
            made->by_filler = true;
        else if (says(at, "by callers"))
            made->by_callers = true;
        else if (says(at, "read-only"))
            made->read_only = true;
        else if (says(at, "locking"))
            made->locking = true;
        else
            reject(*at);
}

static void read_effect(const char **at, struct statement *made)
{
    static const struct {
        const char *words;
        enum effect effect;
    } effects[] = {{"ok", DOES_ITS_WORK},     {"fail", FAILS},      {"write half", WRITES_HALF},
                   {"write", WRITES_SOME},    {"stuck", IS_STUCK},  {"repeat", REPEATS},
                   {"call back", CALLS_BACK}, {"last", LASTS},      {"hold first", HOLDS_FIRST},
                   {"hold", HOLDS},           {NULL, DOES_ITS_WORK}};
    unsigned i = 0;
    while (effects[i].words != NULL && !says(at, effects[i].words))
        i++;
    if (effects[i].words == NULL)
        reject(*at);
    made->effect = effects[i].effect;
    made->matter = made->effect < LASTS   ? MATTER_WORK
                   : made->effect < HOLDS ? MATTER_TIME
                                          : MATTER_HOLD;
    if (made->effect == FAILS || made->effect == WRITES_SOME)
        made->value = plain_number(at);
    if (made->effect == LASTS)
        made->value = duration_ns(at);
    if (made->effect == LASTS && says(at, "and")) {
        made->for_a_byte = duration_ns(at);
        if (!says(at, "a byte"))
            reject(*at);
    }
}

static void read_statement(const char **at, struct statement *made)
{
    *made = (struct statement){.function = function_of(at), .under = NONE, .slot = NONE};
    read_conditions(at, made);
    read_effect(at, made);
    made->times = NONE;
    if (says(at, "once"))
        made->times = 1;
    else if (says(at, "twice"))
        made->times = 2;
    else if (**at != '\0') {
        made->times = plain_number(at);
        if (!says(at, "times"))
            reject(*at);
    }
}

static void read_one(const char *at, struct script *script)
{
    const char **text = NULL;
    skip_spaces(&at);
    if (*at == '\0')
        return;
#define SETTING(field, words, value)                                                               \
    if (says(&at, words)) {                                                                        \
        script->field = *at == '\0' ? 1 : says(&at, "none") ? NONE : plain_number(&at);            \
        if (*at != '\0')                                                                           \
            reject(at);                                                                            \
        return;                                                                                    \
    }
#include "settings.def"
    if (says(&at, "interfaces"))
        text = &script->interfaces;
    else if (says(&at, "plain"))
        text = &script->plain;
    else if (says(&at, "without"))
        text = &script->without;
    if (text != NULL)
        *text = at;
    else {
        if (script->statement_count == STATEMENTS_MOST)
            reject(at);
        read_statement(&at, &script->statements[script->statement_count++]);
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

static bool asks_for_locking(const struct call *call)
{
    const CK_C_INITIALIZE_ARGS *args = (const void *)call->seen.arguments[0];
    return args != NULL && (args->flags & CKF_OS_LOCKING_OK) != 0;
}

static bool fits(const struct statement *said, const struct call *call)
{
    if (said->function != ANY_FUNCTION && said->function != call->seen.function)
        return false;
    if (call->seen.bytes < said->over || call->seen.bytes >= said->under)
        return false;
    if (said->slot != NONE && said->slot != call->slot_id)
        return false;
    if (call->seen.by_filler ? said->by_callers : said->by_filler)
        return false;
    if (said->read_only && (call->seen.arguments[1] & CKF_RW_SESSION) != 0)
        return false;
    return !said->locking || asks_for_locking(call);
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
