/* ops_peers.c - other ways to random bytes, and the least that one of ours can cost. */
#include <dlfcn.h>
#include <string.h>
#include <sys/random.h>

#include "bench.h"

enum { STORE_BYTES = 4096, DRAW_MOST_BYTES = 256 };

static __thread uint8_t store[STORE_BYTES];
static uint8_t bytes[DRAW_MOST_BYTES];

/* The floor: copying a secret and wiping it, behind a pointer as in a function list. */
static size_t copy_and_wipe(uint8_t *to, size_t len_bytes, size_t at)
{
    at = at + len_bytes > sizeof store ? 0 : at;
    memcpy(to, store + at, len_bytes);
    explicit_bzero(store + at, len_bytes);
    return at + len_bytes;
}

static size_t (*volatile floor_function)(uint8_t *, size_t, size_t) = copy_and_wipe;

void draw_from_floor(uint8_t *to, size_t len_bytes, long times)
{
    size_t at = 0;
    for (long i = 0; i < times; i++)
        at = floor_function(to, len_bytes, at);
}

static void floor_of(struct subject *s, long times)
{
    draw_from_floor(bytes, (size_t)s->argument, times);
}

static void ask_kernel(struct subject *s, long times)
{
    for (long i = 0; i < times; i++)
        if (getrandom(bytes, (size_t)s->argument, 0) != (ssize_t)s->argument)
            fail("getrandom", "it gave less");
}

static int (*rand_bytes)(unsigned char *, int);

static void prepare_openssl(struct subject *s)
{
    (void)s;
    void *library = dlopen("libcrypto.so.3", RTLD_NOW);
    rand_bytes =
        library != NULL ? (int (*)(unsigned char *, int))dlsym(library, "RAND_bytes") : NULL;
    if (rand_bytes == NULL)
        fail("there is no RAND_bytes", "libcrypto.so.3 is not installed");
}

static void ask_openssl(struct subject *s, long times)
{
    for (long i = 0; i < times; i++)
        if (rand_bytes(bytes, (int)s->argument) != 1)
            fail("RAND_bytes", "it gave nothing");
}

static void prepare_nothing(struct subject *s)
{
    (void)s;
}

const struct op ops_peers[] = {
    {"floor", "an indirect call that copies and wipes N bytes", prepare_nothing, floor_of, NULL, 0,
     0, 0},
    {"getrandom", "N bytes from the kernel", prepare_nothing, ask_kernel, NULL, 0, 0, 0},
    {"rand-bytes", "N bytes from OpenSSL's RAND_bytes", prepare_openssl, ask_openssl, NULL, 0, 0,
     0},
    {0}};
