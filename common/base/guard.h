/* guard.h - the pool's safeguards by name, so that a build can leave one out to see a test miss it.
 *
 * `meson setup -Dmutant=AGE` builds a library that is broken in that one way. tests/mutants does so for
 * each and demands that a test fails. A library that is used has none left out.
 */
#ifndef P11_PROXY_GUARD_H
#define P11_PROXY_GUARD_H

enum mutant {
    MUTANT_NONE,
    MUTANT_FORK,      /* memory is not wiped on fork */
    MUTANT_DROPPABLE, /* the droppable sentinel is not looked at */
    MUTANT_POST_COPY, /* nothing is looked at after the copy */
    MUTANT_WIPE,      /* served bytes stay in the pool's memory */
    MUTANT_AGE,       /* no byte is ever too old */
    MUTANT_SEED,      /* bytes from before C_SeedRandom are served after it */
    MUTANT_HEALTH,    /* what the token writes is not tested */
    MUTANT_LOCK       /* stripes are not locked */
};

#ifndef MUTANT
#define MUTANT NONE
#endif
#define MUTANT_NAMED_(name) MUTANT_##name
#define MUTANT_NAMED(name)  MUTANT_NAMED_(name)

/* False in the build that leaves that safeguard out; a constant, so it costs nothing. */
#define GUARD(name) (MUTANT_NAMED(MUTANT) != MUTANT_##name)

#endif
