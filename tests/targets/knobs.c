/* knobs.c - reads the environment, one thread at a time. */
#include "knobs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t environment = PTHREAD_MUTEX_INITIALIZER;

static unsigned long number(const char *variable, unsigned long otherwise)
{
    const char *text = getenv(variable);
    return text != NULL && *text != '\0' ? strtoul(text, NULL, 0) : otherwise;
}

void knobs_read(struct knobs *knobs)
{
    pthread_mutex_lock(&environment);
#define KNOB(field, variable, otherwise) knobs->field = number("COUNTING_" variable, otherwise);
#include "knobs.def"
    pthread_mutex_unlock(&environment);
}

void knobs_path(const char *variable, char *path)
{
    pthread_mutex_lock(&environment);
    const char *text = getenv(variable);
    snprintf(path, PATH_MAX, "%s", text != NULL ? text : "");
    pthread_mutex_unlock(&environment);
}

void counting_set(const char *variable, const char *value)
{
    char name[64];
    snprintf(name, sizeof name, "COUNTING_%s", variable);
    pthread_mutex_lock(&environment);
    if (value != NULL)
        setenv(name, value, /* overwrite= */ 1);
    else
        unsetenv(name);
    pthread_mutex_unlock(&environment);
}

void knobs_after_fork(void)
{
    pthread_mutex_init(&environment, NULL);
}
