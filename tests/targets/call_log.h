/* call_log.h - the counting target's log: one line a call, in the file that COUNTING_LOG names. */
#ifndef P11_PROXY_TEST_CALL_LOG_H
#define P11_PROXY_TEST_CALL_LOG_H

#include "cryptoki.h"

enum { NO_NUMBER = -1 };

/* Appends "C_X session=1 slot=0 len=32 rv=0x0 pid=1 tid=1", without what is NO_NUMBER. Any thread, and
 * forked children too: a line is one write(). Returns rv. */
CK_RV call_log(const char *function, long session, long slot, long len_bytes, CK_RV rv);

#endif
