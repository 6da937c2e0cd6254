/* registered.h - the modules that p11-kit gives to programs, and which of them has tokens of another one. */
#ifndef P11_PROXY_REGISTERED_H
#define P11_PROXY_REGISTERED_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

enum { DOUBLES_MOST = 16, NAMES_BYTES = 256 };

struct registered {
    bool has_proxy;
    bool is_module; /* the reference can be loaded */
    char disabled_in
        [NAMES_BYTES];  /* disable-in of the proxy: programs that do not see it; "": all do */
    size_t token_count; /* of the reference */
    size_t double_count;
    struct {
        char name[NAME_MAX]; /* of its file, without .module */
        char label[33];      /* of a token that the reference has, too; "" if it is the reference */
        char disabled_in[NAMES_BYTES];
    } doubles[DOUBLES_MOST];
};

/*
 * Asks p11-kit, as a program would, for all modules, and which of them but the proxy at module_path are
 * the reference or have an initialised token of it; the reference is the proxy or a target. Loads them
 * all in a child, with half a minute for it. False if that failed; *registered is then empty.
 */
bool registered_find(struct registered *registered, const char *module_path, const char *reference);

/* The folder that this user's registrations go to: the system's for root, otherwise the user's own. */
void registered_folder(char folder[PATH_MAX], const struct config_places *places);

#endif
