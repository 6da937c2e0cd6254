/* script.c - reads what a test tells the scripted target, and says what it means for a call. */
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

static const char *const function_names[] = {
#define P11_UPTO       302
#define ROW(name, ...) #name,
#include "functions.def"
};

enum { WORDS_MOST = 64 };

/* The words of one statement, "" behind the last one. */
struct words {
    const char *all;
    char text[512];
    const char *word[WORDS_MOST];
    unsigned at;
};

_Noreturn static void reject(const struct words *words)
{
    fprintf(stderr, "scripted target: \"%s\" is not understood at \"%s\"\n", words->all,
            words->word[words->at]);
    abort();
}

static void split(struct words *words, const char *statement, size_t len)
{
    unsigned count = 0;
    char *rest = NULL;
    char *out = words->text;
    words->at = 0;
    for (size_t i = 0; i < len && out < words->text + sizeof words->text - 4; i++) {
        bool is_apart = statement[i] == ':' || statement[i] == ',';
        if (is_apart)
            *out++ = ' ';
        *out++ = statement[i];
        if (is_apart)
            *out++ = ' ';
    }
    *out = '\0';
    words->all = statement;
    for (char *word = strtok_r(words->text, " \t", &rest); word != NULL && count < WORDS_MOST - 1;
         word = strtok_r(NULL, " \t", &rest))
        words->word[count++] = word;
    words->word[count] = "";
}

/* Goes on behind the words if they come next. */
static bool next_are(struct words *words, const char *wanted)
{
    unsigned at = words->at;
    for (; *wanted != '\0'; at++) {
        size_t len = strcspn(wanted, " ");
        if (strlen(words->word[at]) != len || strncmp(words->word[at], wanted, len) != 0)
            return false;
        wanted += len + (wanted[len] == ' ');
    }
    words->at = at;
    return true;
}

static bool is_at_end(const struct words *words)
{
    return words->word[words->at][0] == '\0';
}

static unsigned long number(struct words *words)
{
    char *end;
    unsigned long value = strtoul(words->word[words->at], &end, 0);
    if (end == words->word[words->at] || *end != '\0')
        reject(words);
    words->at++;
    return value;
}

static unsigned long duration_ns(struct words *words)
{
    static const struct {
        const char *unit;
        unsigned long ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    char *end;
    unsigned long value = strtoul(words->word[words->at], &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].unit) == 0) {
            words->at++;
            return value * units[i].ns;
        }
    reject(words);
}

static unsigned function_of(struct words *words)
{
    if (next_are(words, "any"))
        return ANY_FUNCTION;
    for (unsigned i = 0; i < FUNCTIONS; i++)
        if (next_are(words, function_names[i]))
            return i;
    reject(words);
}

static void read_conditions(struct words *words, struct statement *made)
{
    *made = (struct statement){.under = ULONG_MAX, .slot = NONE, .by_filler = -1};
    made->read_write = made->locking = -1;
    made->function = function_of(words);
    while (!next_are(words, ":"))
        if (next_are(words, "over"))
            made->over = number(words) + 1;
        else if (next_are(words, "under"))
            made->under = number(words);
        else if (next_are(words, "in slot"))
            made->slot = number(words);
        else if (next_are(words, "by filler"))
            made->by_filler = 1;
        else if (next_are(words, "by callers"))
            made->by_filler = 0;
        else if (next_are(words, "read-only"))
            made->read_write = 0;
        else if (next_are(words, "read-write"))
            made->read_write = 1;
        else if (next_are(words, "locking"))
            made->locking = 1;
        else if (next_are(words, "unlocked"))
            made->locking = 0;
        else
            reject(words);
}

static enum matter read_step(struct words *words, struct step *step)
{
    static const struct {
        const char *words;
        enum effect effect;
    } plain[] = {{"ok", DOES_ITS_WORK}, {"write half", WRITES_HALF}, {"stuck", IS_STUCK},
                 {"repeat", REPEATS},   {"call back", CALLS_BACK},   {"hold first", HOLDS_FIRST},
                 {"hold", HOLDS}};
    *step = (struct step){.upto = ULONG_MAX};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (next_are(words, plain[i].words)) {
            step->effect = plain[i].effect;
            return step->effect >= HOLDS ? MATTER_HOLD : MATTER_WORK;
        }
    if (next_are(words, "last")) {
        step->effect = LASTS;
        step->value = duration_ns(words);
        if (next_are(words, "and")) {
            step->for_a_byte = duration_ns(words);
            if (!next_are(words, "a byte"))
                reject(words);
        }
        return MATTER_TIME;
    }
    if (next_are(words, "fail"))
        step->effect = FAILS;
    else if (next_are(words, "write"))
        step->effect = WRITES_SOME;
    else
        reject(words);
    step->value = number(words);
    return MATTER_WORK;
}

static unsigned long times(struct words *words)
{
    if (next_are(words, "once"))
        return 1;
    if (next_are(words, "twice"))
        return 2;
    if (is_at_end(words) || strcmp(words->word[words->at], ",") == 0)
        return ULONG_MAX;
    unsigned long count = number(words);
    if (!next_are(words, "times"))
        reject(words);
    return count;
}

static void read_statement(struct words *words, struct statement *made)
{
    unsigned long upto = 0;
    read_conditions(words, made);
    do {
        if (made->step_count == STEPS_MOST || (made->step_count != 0 && !next_are(words, "then")))
            reject(words);
        struct step *step = &made->steps[made->step_count];
        made->matter = read_step(words, step);
        unsigned long count = times(words);
        upto = count > ULONG_MAX - upto ? ULONG_MAX : upto + count;
        step->upto = upto;
        made->step_count++;
    } while (next_are(words, ","));
}

static bool read_setting(struct words *words, struct script *script)
{
#define SETTING(field, said, value)                                                                \
    if (next_are(words, said)) {                                                                   \
        script->field = is_at_end(words) ? 1 : next_are(words, "none") ? NONE : number(words);     \
        return true;                                                                               \
    }
#include "settings.def"
    return false;
}

/* The rest of a statement, which has a line of the text to itself. */
static bool read_text(struct words *words, const char *name, const char *statement,
                      const char **text)
{
    if (!next_are(words, name))
        return false;
    *text = statement + strspn(statement, " ") + strlen(name);
    while (!is_at_end(words))
        words->at++;
    return true;
}

static void read_all(struct script *script)
{
    char *rest = NULL;
    struct words words;
    for (char *one = strtok_r(script->text, ";\n", &rest); one != NULL;
         one = strtok_r(NULL, ";\n", &rest)) {
        split(&words, one, strlen(one));
        if (is_at_end(&words) || read_setting(&words, script) ||
            read_text(&words, "interfaces", one, &script->interfaces) ||
            read_text(&words, "plain", one, &script->plain) ||
            read_text(&words, "without", one, &script->without)) {
            if (!is_at_end(&words))
                reject(&words);
            continue;
        }
        if (script->statement_count == STATEMENTS_MOST)
            reject(&words);
        struct statement *made = &script->statements[script->statement_count];
        read_statement(&words, made);
        made->number = script->statement_count++;
        if (!is_at_end(&words))
            reject(&words);
    }
}

/* The first caller makes it. The one before is never freed, because another thread may still read it. */
static struct script *script_read(void)
{
    struct script *made = calloc(1, sizeof *made);
    if (made == NULL)
        abort();
#define SETTING(field, words, value) made->field = value;
#include "settings.def"
    made->end = atomic_load_explicit(&shared->script_end, memory_order_acquire);
    memcpy(made->text, shared->script, made->end % SCRIPT_BYTES);
    read_all(made);
    return made;
}

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

static CK_ULONG bytes_of(const struct call *call)
{
    bool has_bytes =
        call->function == FUNCTION_C_GenerateRandom || call->function == FUNCTION_C_SeedRandom;
    return has_bytes ? call->arguments[2] : 0;
}

static bool asks_for_locking(const struct call *call)
{
    const CK_C_INITIALIZE_ARGS *args = (const void *)call->arguments[0];
    return args != NULL && (args->flags & CKF_OS_LOCKING_OK) != 0;
}

static bool fits(const struct statement *said, const struct call *call)
{
    if (said->function != ANY_FUNCTION && said->function != call->function)
        return false;
    if (bytes_of(call) < said->over || bytes_of(call) >= said->under)
        return false;
    if (said->slot != NONE && said->slot != call->slot_id)
        return false;
    if (said->by_filler >= 0 && said->by_filler != call->by_filler)
        return false;
    if (said->read_write >= 0 && said->function == FUNCTION_C_OpenSession &&
        said->read_write != ((call->arguments[1] & CKF_RW_SESSION) != 0))
        return false;
    return said->locking < 0 || said->function != FUNCTION_C_Initialize ||
           said->locking == asks_for_locking(call);
}

struct course script_course(const struct script *script, const struct call *call)
{
    struct course course = {.hold_number = STATEMENTS_MOST};
    bool settled[MATTERS] = {false};
    for (unsigned i = script->statement_count; i-- > 0;) {
        const struct statement *said = &script->statements[i];
        if (settled[said->matter] || !fits(said, call))
            continue;
        unsigned long hit = atomic_fetch_add_explicit(&shared->hits[i], 1, memory_order_relaxed);
        unsigned step = 0;
        while (step < said->step_count && hit >= said->steps[step].upto)
            step++;
        if (step == said->step_count)
            continue;
        settled[said->matter] = true;
        course.steps[said->matter] = said->steps[step];
        if (said->matter == MATTER_HOLD)
            course.hold_number = i;
    }
    return course;
}
