/* registers.h - what a copy leaves in the processor. */
#ifndef P11_PROXY_REGISTERS_H
#define P11_PROXY_REGISTERS_H

/*
 * Clears the registers that a function may leave anything in. libc copies through vectors, which hold what was
 * copied until somebody needs them; whatever saves them before that (a signal, the loader when it binds a
 * symbol) writes it to memory. For where libc or the token copied bytes, or tests read them; not for each draw.
 * Does nothing on processors other than x86-64.
 */
void registers_forget(void);

#endif
