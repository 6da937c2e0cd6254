/* report.c - counts what the policy refuses. */
#include <pthread.h>

#include "base/log.h"
#include "base/probes.h"
#include "guard/internal.h"
#include "state/counters.h"
#include "state/memory.h"
#include "state/settings.h"

enum { NAME_BYTES = 48, REPORTS_MOST = 256 };

struct reports {
    pthread_mutex_t lock; /* guards what follows */
    unsigned count;
    struct report {
        uint64_t mechanism;
        const struct policy_rule *rule;
        unsigned long times;
    } reports[REPORTS_MOST];
};
static struct reports *reports;
IN_WIPED_MEMORY(reports, 1)

static const char *name_of(uint64_t mechanism, char text[NAME_BYTES])
{
    return mechanism == NO_MECHANISM ? "a key" : mechanism_name(mechanism, text, NAME_BYTES);
}

CK_RV guard_refuse(const struct policy *policy, const char *function, uint64_t mechanism,
                   const struct policy_rule *rule, CK_RV code)
{
    char name[NAME_BYTES];
    if (rule == NULL)
        return CKR_OK;
    bool audit = policy_is_audit(policy);
    PROBE(refusal, mechanism, rule->text, function, audit);
    pthread_mutex_lock(&reports->lock);
    unsigned i = 0;
    while (i < reports->count &&
           (reports->reports[i].mechanism != mechanism || reports->reports[i].rule != rule))
        i++;
    /* Beyond the last one, each counts as the first and is logged no more. */
    unsigned long times = 1;
    if (i == reports->count && i < REPORTS_MOST)
        reports->reports[reports->count++] = (struct report){.mechanism = mechanism, .rule = rule};
    if (i < REPORTS_MOST)
        times = ++reports->reports[i].times;
    count_refusal(i, mechanism, rule->file, rule->line, rule->text, times);
    pthread_mutex_unlock(&reports->lock);
    if (times == 1 && i < REPORTS_MOST)
        log_write(audit ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "%s:%u: '%s' %s %s in %s", rule->file,
                  rule->line, rule->text, audit ? "would refuse" : "refuses",
                  name_of(mechanism, name), function);
    return audit ? CKR_OK : code;
}

void guard_reports_end(void)
{
    pthread_mutex_lock(&reports->lock);
    unsigned count = reports->count;
    reports->count = 0;
    pthread_mutex_unlock(&reports->lock);
    /* Nothing is added any more, because C_Finalize is over. */
    for (unsigned i = 0; i < count; i++) {
        const struct report *report = &reports->reports[i];
        char name[NAME_BYTES];
        log_write(LOG_LEVEL_INFO, "%s:%u: '%s' %s %s, %lu time%s in all", report->rule->file,
                  report->rule->line, report->rule->text,
                  policy_is_audit(policy_in_force()) ? "would have refused" : "refused",
                  name_of(report->mechanism, name), report->times, report->times == 1 ? "" : "s");
    }
}
