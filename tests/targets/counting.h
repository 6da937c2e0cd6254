/* counting.h - the counting target's own state, and what its files have in common. */
#ifndef P11_PROXY_TEST_COUNTING_H
#define P11_PROXY_TEST_COUNTING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "call_log.h"
#include "cryptoki.h"
#include "functions.h"
#include "knobs.h"

#define EXPORT __attribute__((visibility("default")))

enum {
    SLOTS_MOST = 16,
    SESSIONS_MOST = 1024 * 1024,
    NOBODY = 0, /* who is logged in, as in struct word */
    USER = 1,
    SO = 2
};

struct one_session {
    uint8_t open;
    uint8_t token;
    uint8_t rw;
    uint8_t operating;
    uint32_t next_free; /* the handle that was closed before this one */
};

struct one_slot {
    unsigned sessions;
    unsigned rw_sessions;
    unsigned login;
    unsigned seeds;
};

struct counting {
    pthread_mutex_t lock; /* guards all of this */
    bool initialized;
    unsigned long random_calls;
    struct one_slot tokens[SLOTS_MOST];
    unsigned long highest; /* handle given so far */
    unsigned long last_closed;
    struct one_session sessions[SESSIONS_MOST];
};

extern struct counting counting;

/* Locks; false, and not locked, if C_Initialize was not called in this process. */
bool counting_enter(void);
void counting_leave(void);

/* The open session of that handle, or NULL. Expects the lock held. */
struct one_session *session_of_locked(CK_SESSION_HANDLE handle);

/* What any call that names the slot is answered first. */
CK_RV slot_answer(CK_SLOT_ID id, const struct knobs *knobs, unsigned *token);

/* Which token is in the slot; false if there is no such slot now. */
bool token_in_slot(CK_SLOT_ID id, unsigned *token);

/* The slot that the token is in; false if it is in none. */
bool slot_of_token(unsigned token, CK_SLOT_ID *id);

/* Puts its own functions into the list. */
void counting_add_sessions(struct p11_functions *list);
void counting_add_slots(struct p11_functions *list);
void counting_add_random(struct p11_functions *list);

/* The next count words of the stream: returns the first one's number. Processes may share a stream. */
uint64_t stream_take(uint64_t count);

/* Where random calls wait while a test has closed it; see counting_gate(). */
void gate_pass(void);
void gate_after_fork(void);
void random_after_fork(void);

/* Life and random bytes tell each other what they are at. Any thread. */
void random_life_changes(bool finalizing);

/* Exported, for tests in the same process. How often C_Finalize and C_GenerateRandom met. */
EXPORT extern atomic_uint counting_overlaps;

/* Called in the middle of each C_GenerateRandom, if not NULL. */
EXPORT extern void (*counting_during_random)(void);

/* Exported, for tests in the same process. While closed, a random call by any other thread than the one
 * that closed it has its bytes, but does not return. */
EXPORT void counting_gate(bool closed);

/* Waits until a call is at the closed gate. */
EXPORT void counting_wait_at_gate(void);

/* Whether one is. */
EXPORT bool counting_is_at_gate(void);

/* In counting_wait.c. */
CK_RV counting_C_WaitForSlotEvent(CK_FLAGS flags, CK_SLOT_ID_PTR pSlot, CK_VOID_PTR pReserved);

#endif
