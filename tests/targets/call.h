/* call.h - a call of the scripted target, on its way through it. */
#ifndef P11_PROXY_TEST_CALL_H
#define P11_PROXY_TEST_CALL_H

#include "script.h"

#define EXPORT __attribute__((visibility("default")))

struct call {
    enum function function;
    unsigned list; /* 240, 300 or 302 */
    const char *name;
    unsigned count;
    const uintptr_t *arguments;
    const char *const *names;

    /* Found out on the way. */
    const struct script *script;
    bool by_filler;
    CK_SESSION_HANDLE session;
    CK_SLOT_ID slot_id;
    unsigned token;
    struct step work;
};

/* What each function of the three lists does. */
CK_RV target_call(struct call *call);

/* What a function's own work is: false if it is none of that file's. What none of them
 * knows is answered with CKR_OK. */
bool life_knows(struct call *call, CK_RV *rv);
bool slots_know(struct call *call, CK_RV *rv);
bool sessions_know(struct call *call, CK_RV *rv);
bool random_knows(struct call *call, CK_RV *rv);
bool operations_know(struct call *call, CK_RV *rv);

/* Something that no module in front of this target may do. Noted once, for the test to find. */
void complain(const char *what, const struct call *call);

/* Life. Each call begins and ends; no other function needs to be called in a child of a fork. */
void life_call_begins(const struct call *call);
void life_call_ends(const struct call *call);
bool life_is_initialized(void);
void life_after_fork(void);
void life_is_unloaded(void);

/* Slots: which token is in it now, false if there is no such slot or nothing in it. */
bool slot_find(CK_SLOT_ID id, const struct script *script, unsigned *token);
CK_SLOT_ID slot_of_token(const struct script *script, unsigned token); /* NONE if it is in none */

/* Sessions and logins, of the tokens. Any thread. */
enum { TOKENS_MOST = 16, LOGIN_NONE = 0, LOGIN_USER = 1, LOGIN_SO = 2 };
struct session {
    bool read_write;
    bool by_filler;
    unsigned token;
    enum function operation; /* that it began with, 0 for none */
};
bool session_find(CK_SESSION_HANDLE handle, struct session *found);
bool session_change_operation(CK_SESSION_HANDLE handle, enum function from, enum function to);
unsigned session_count(unsigned token, bool read_write_only);
unsigned token_login(unsigned token);
void sessions_meet(const struct script *script); /* tokens may have been pulled out */
void sessions_forget(void);
void sessions_forget_locks(void);

/* The lists, exchanged entries in them. In lists.c. */
void lists_change(void);

#endif
