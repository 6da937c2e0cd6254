/* pool.pml - a model of common/pool.c: draws, a fill, a drop and a clone, in every order.
 *
 * The token's bytes are numbered from 1; 0 is what wiped memory holds. A ring of two places feeds one
 * stripe that three consumers share. Checked: no byte is served twice or after it was wiped; a draw that
 * begins after a drop is over gets no byte from before it; a child that was cloned in the middle of a draw
 * serves nothing. `run` builds it as it is and with each seeded bug, which must be found:
 *   NO_LOCK       the stripe is not locked
 *   NO_POST_COPY  the epoch is not looked at after the copy
 *   NO_EPOCH      a fill is published whatever happened meanwhile
 *   NO_WIPE_INDEX a served byte's place is not moved past
 */
#define STREAM 4  /* bytes that the token makes: the ring wraps twice */
#define PLACES 2
#define DRAWS 4   /* of all consumers together */
#define DROPS 1

byte ring[PLACES];
byte head;         /* positions in the stream of the ring, as in ring.c */
byte tail;
bit  ring_lock;
byte epoch = 1;

byte stripe;       /* the one byte that it holds, 0 if none */
byte stripe_epoch;
bit  stripe_lock;

byte made;               /* bytes that the token made */
byte seeds;              /* that the token took; each is followed by a drop */
byte drops_over;         /* drops that have returned */
byte before[STREAM + 1]; /* seeds that the token had taken when it made that byte */
bit  served[STREAM + 1];
byte drawn;              /* draws that were begun */

inline acquire(lock) { atomic { lock == 0; lock = 1 } }
inline release(lock) { lock = 0 }

/* A consumer has got a byte and hands it to its caller. */
inline serve(number, begun) {
    d_step {
        assert(number != 0);
        assert(!served[number]);
        assert(before[number] >= begun);
        served[number] = 1
    }
}

/* What a clone of the address space does that was made now, between copy and check: all that it reads of
 * the pool is 0, so what it does follows from what this consumer holds. */
inline clone(number, seen_epoch) {
    d_step {
        if
#ifndef NO_POST_COPY
        :: seen_epoch != 0 -> skip
#endif
        :: else -> assert(!served[number]); served[number] = 1
        fi
    }
}

/* What all do under the ring's lock is one step: nobody looks at the ring without it. */
inline restock() {
    acquire(ring_lock);
    d_step {
        if
        :: stripe != 0 && stripe_epoch != epoch -> stripe = 0
        :: else -> skip
        fi;
        if
        :: stripe == 0 && head < tail ->
            stripe = ring[head % PLACES];
            ring[head % PLACES] = 0;
            head++;
            stripe_epoch = epoch
        :: else -> skip
        fi
    };
    release(ring_lock)
}

active [3] proctype consumer() {
    byte copy, seen, begun;
    do
    :: drawn >= DRAWS -> break
    :: else ->
        d_step { drawn++; begun = drops_over };
#ifndef NO_LOCK
        acquire(stripe_lock); /* who finds it held goes elsewhere: nothing to model */
#endif
        if
        :: stripe == 0 || stripe_epoch != epoch -> restock()
        :: else -> skip
        fi;
        if
        :: stripe != 0 ->
            seen = stripe_epoch;
            copy = stripe;
#ifndef NO_WIPE_INDEX
            stripe = 0;
#endif
            clone(copy, seen);
#ifndef NO_POST_COPY
            if
            :: epoch == seen -> serve(copy, begun)
            :: else -> skip
            fi
#else
            serve(copy, begun)
#endif
        :: else -> skip
        fi;
#ifndef NO_LOCK
        release(stripe_lock);
#endif
        d_step { copy = 0; seen = 0; begun = 0 }
    od
}

/* One fill at a time; the token writes while nothing is locked. */
active proctype refiller() {
    byte opened, place, written;
    do
    :: made == STREAM -> break
    :: else ->
        acquire(ring_lock);
        if
        :: tail - head < PLACES ->
            d_step { opened = epoch; place = tail % PLACES };
            release(ring_lock);
            d_step {
                made++;
                written = made;
                before[made] = seeds;
                ring[place] = written
            };
            acquire(ring_lock);
            d_step {
                if
#ifndef NO_EPOCH
                :: epoch != opened -> ring[place] = 0
#endif
                :: else -> tail++
                fi;
                opened = 0; place = 0; written = 0
            };
            release(ring_lock)
        :: else ->
            release(ring_lock);
            if
            :: tail - head < PLACES
            :: timeout -> break
            fi
        fi
    od
}

active proctype dropper() {
    byte dropped;
    do
    :: dropped == DROPS -> break
    :: dropped < DROPS ->
        d_step { dropped++; seeds++ };
        acquire(ring_lock);
        epoch++;
        d_step {
            do
            :: head < tail ->
                ring[head % PLACES] = 0;
                head++
            :: else -> break
            od
        };
        release(ring_lock);
        acquire(stripe_lock);
        stripe = 0;
        release(stripe_lock);
        drops_over++
    od
}
