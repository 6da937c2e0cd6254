/* pool_hook.h - lets a test step in between the pool's copy and the check after it; see POOL_TEST_HOOK in pool.c. */
#ifndef P11_PROXY_TEST_POOL_HOOK_H
#define P11_PROXY_TEST_POOL_HOOK_H

/* Called if not NULL. In the library that is built for tests only. */
extern void (*pool_test_hook)(void);

#define POOL_TEST_HOOK(p)                                                                          \
    do {                                                                                           \
        if (pool_test_hook != 0)                                                                   \
            pool_test_hook();                                                                      \
    } while (0)

#endif
