/* p11_kit.c - whether p11-kit knows the proxy, and the target's tokens by another module. */
#include "check/check.h"

#include <stdio.h>
#include <unistd.h>

#include "registered.h"

static void report_doubles(const struct registered *registered, const char *folder)
{
    char path[2 * PATH_MAX];
    for (size_t i = 0; i < registered->double_count; i++) {
        const char *disabled_in = registered->doubles[i].disabled_in;
        snprintf(path, sizeof path, "%s/%s.module", folder, registered->doubles[i].name);
        report_add(
            MARK_NOTE, "p11-kit",
            "p11-kit has token '%s' by another module too (%s), so programs%s%s see it twice\n"
            "add the line enable-in: nothing to %s%s",
            registered->doubles[i].label, registered->doubles[i].name,
            disabled_in[0] != '\0' ? " other than " : "", disabled_in, path,
            access(path, F_OK) == 0 ? "" : ", a new file");
    }
    if (registered->token_count == 0)
        report_add(MARK_NOTE, "p11-kit",
                   "p11-kit's programs see no initialised token through the proxy");
    else if (registered->double_count == 0)
        report_add(MARK_OK, "p11-kit", "p11-kit has the target's tokens only through the proxy");
}

void check_p11_kit(const struct checked *checked, bool target_works)
{
    struct registered registered;
    struct config_places places;
    char folder[PATH_MAX];
    config_places_default(&places, checked->module_path);
    if (!registered_find(&registered, checked->module_path, checked->module_path)) {
        report_add(MARK_NOTE, "p11-kit",
                   "the modules that p11-kit has registered cannot be listed: one of them crashes "
                   "or hangs");
        return;
    }
    if (!registered.has_proxy) {
        report_add(
            MARK_OK, "p11-kit",
            "p11-kit does not load the proxy into this program; applications can be pointed "
            "at %s\n"
            "p11-proxy setup registers it for all; if it is registered, its enable-in: names "
            "other programs, or p11-kit reads other folders than %s and %s",
            checked->module_path, places.package_modules, places.system_modules);
        return;
    }
    if (registered.disabled_in[0] != '\0')
        report_add(MARK_OK, "p11-kit", "p11-kit shows the proxy to all programs but %s",
                   registered.disabled_in);
    registered_folder(folder, &places);
    if (target_works)
        report_doubles(&registered, folder);
}
