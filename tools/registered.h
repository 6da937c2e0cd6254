/* registered.h - the modules that p11-kit gives to programs, and which of them has tokens of another one. */
#ifndef P11_PROXY_REGISTERED_H
#define P11_PROXY_REGISTERED_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

enum { DOUBLES_MOST = 16 };

struct registered {
    bool has_proxy;
    bool is_module;     /* the target can be loaded */
    size_t token_count; /* of the target or the proxy: those that are initialised */
    size_t double_count;
    struct {
        char name[NAME_MAX]; /* of its file, without .module */
        char label[33];      /* of a token that it has too; "": it is the target */
    } doubles[DOUBLES_MOST];
};

/*
 * Asks p11-kit, as a program would, for all modules, and which of them but the proxy at module_path are the
 * target or have an initialised token of it; target is NULL to compare with the tokens of the proxy. Loads
 * them all in a child, with half a minute for it. False if that failed; *registered is then empty.
 */
bool registered_find(struct registered *registered, const char *module_path, const char *target);

/* The folder that this user's registrations go to: the system's for root, otherwise the user's own. */
void registered_folder(char folder[PATH_MAX], const struct config_places *places);

#endif
