/* registered.h - the modules that p11-kit's files register, read key by key as p11-kit reads them. */
#ifndef P11_PROXY_REGISTERED_H
#define P11_PROXY_REGISTERED_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/message.h"
#include "config/config.h"

/* What all files of one name say together. */
struct registration {
    char name[NAME_MAX + 1];
    char module[PATH_MAX]; /* absolute; "": no file says */
    bool limited;          /* enable-in: only the programs that it names see the module */
    char disabled_in[256]; /* disable-in: all but the programs that it names; "": it is not there */
};

struct registrations {
    struct registration *entry;
    size_t count;
    char folder[PATH_MAX]; /* where a file overrides the others: the system's, or the user's own */
};

/*
 * Reads the folders that count for this user. On 0 the caller ends *all with registrations_free().
 * Otherwise a negative errno value with a message: -ENOMEM, or as config_user_mode().
 */
int registrations_read(struct registrations *all, const struct config_places *places,
                       struct message *message);

/* The registration of the file at path, whatever name it is registered by; NULL if there is none. */
const struct registration *registration_of(const struct registrations *all, const char *path);

void registrations_free(struct registrations *all);

#endif
