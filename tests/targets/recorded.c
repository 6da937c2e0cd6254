/* recorded.c - the recording target does nothing, and remembers how it was called. */
#include <string.h>

#include "recording.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT extern struct recording recording;
struct recording recording;

CK_RV recording_answer(const struct call *call)
{
    recording.function = call->function;
    recording.calls++;
    recording.count = call->count;
    memcpy(recording.arguments, call->arguments, call->count * sizeof *call->arguments);
    return recording.answer;
}
