/* one_list.h - the scripted target's functions of one VERSION, and their list. */
#define P11_UPTO                        VERSION
#define OWN(name, ...)                  DEFINE(name, .part = NO_PART, __VA_ARGS__)
#define FORWARD(kind, needs, name, ...) DEFINE(name, NOTE_##kind needs, __VA_ARGS__)
#include "functions.def"

static const struct p11_functions LIST = {
#define P11_UPTO       VERSION
#define ROW(name, ...) .name = IN(name),
#include "functions.def"
};
#undef VERSION
#undef LIST
