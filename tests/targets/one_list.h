/* one_list.h - the scripted target's functions of one VERSION, and their list. */
#define P11_UPTO       VERSION
#define ROW(name, ...) DEFINE(name, (void)0, __VA_ARGS__)
#define MECH(purpose, keys, name, ...)                                                             \
    DEFINE(name, begins(&call, purpose, pMechanism, keys), __VA_ARGS__)
#define EDIT(object, template, count, name, ...) DEFINE(name, call.part = CHANGES, __VA_ARGS__)
#define DATA(purpose, data, data_bytes, output, name, ...)                                         \
    DEFINE(name, takes(&call, purpose, data, data_bytes, output), __VA_ARGS__)
#define STEP(output, name, ...)                                                                    \
    DEFINE(name, takes(&call, /* purpose= */ 0, NULL, 0, output), __VA_ARGS__)
#include "functions.def"

static const struct p11_functions LIST = {
#define P11_UPTO       VERSION
#define ROW(name, ...) .name = IN(name),
#include "functions.def"
};
#undef VERSION
#undef LIST
