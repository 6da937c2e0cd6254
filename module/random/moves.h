/* moves.h - slots that get other numbers, and tokens that get into other slots, without a word.
 *
 * What we hold for a slot is a token's: its pool, our session, what we know of its keys. An application that
 * goes on with the sessions that it has goes on with the tokens that they are on, and so do we. When it
 * opens a session on the slot, an older one is asked whether it is still on that slot.
 */
#ifndef P11_PROXY_MOVES_H
#define P11_PROXY_MOVES_H

#include "state/state.h"

/* Notes a session that the token has just opened, with flags and closings as session_opened() has them; drops all that is
 * held for slots if they are not what they were. Any thread, no lock held. */
void moves_note_opened(CK_SESSION_HANDLE handle, CK_SLOT_ID slot_id, unsigned flags,
                       unsigned closings);

/* The token answered for a session that is taken for one of the slot; generation was the slot's before. If that
 * was in doubt, asks on which slot it is, and notes it there. Any thread, no lock held. */
void moves_note_answered(CK_SESSION_HANDLE handle, struct slot *slot, unsigned generation);

/* Whether the slot is what it was for the application's sessions: for the prefetch's thread, after it opened a
 * session of its own. */
bool moves_none_for_thread(struct slot *slot);

/* There is another token in the slot, or there may be: nothing that is held for it is used any more. But for
 * our session. */
void moves_slot_is_another(struct slot *slot);

#endif
