/* every_instruction.h - does something to a call at each instruction of the proxy that it passes, for x86-64.
 *
 * Not for several threads. One handler of SIGTRAP belongs to it.
 */
#ifndef P11_PROXY_TEST_EVERY_INSTRUCTION_H
#define P11_PROXY_TEST_EVERY_INSTRUCTION_H

#ifdef __x86_64__

/* Runs call() once and notes the instructions of the module that it passes. Returns how many, each counted once. */
unsigned every_instruction_of(void (*call)(void));

/* Runs call() and interrupts it by disturb(), in a signal handler, where it first comes to instruction number i.
 * It may not come there. */
void at_instruction(unsigned i, void (*call)(void), void (*disturb)(void));

#endif
#endif
