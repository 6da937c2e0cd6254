/* pool.pml - a model of common/pool: draws, fetches, a drop and a fork, in every order.
 *
 * The token's bytes are numbered from 1; 0 is what wiped memory holds. A ring of two places feeds one slice; two
 * consumers draw, from the ring if the slice is locked, and fetch what they miss; a filler fetches as well. Checked:
 *   no byte is served twice, and none after it was wiped
 *   a draw that begins after a drop is over gets no byte from before it
 *   a child serves no byte that was made before the fork, wherever in a draw or a fetch its thread was
 * `run` builds it as it is and with each seeded bug, which must be found:
 *   NO_LOCK       slices are not locked
 *   NO_POST_COPY  the epoch is not looked at after the copy
 *   NO_EPOCH      a fetch is published whatever happened meanwhile
 *   NO_ZERO       an epoch of 0, which wiped memory has, is taken for the slice's
 *   NO_INDEX      a served byte's place in the slice is not moved past
 *   NO_WIPE       a fork does not wipe the pool
 *   NO_SLICES     a drop moves no epoch and wipes the ring only
 *   NO_TAKES      a fetch may open where bytes are still being taken
 */
#define STREAM 4 /* bytes that the token makes: the ring wraps twice */
#define PLACES 2
#define DRAWS  2 /* of all consumers together */

/* Memory that fork wipes. What a thread does with the ring's lock held is one d_step, unless it is two: then ring_lock
 * is set between them. */
byte ring[PLACES];
byte head; /* positions in the stream of the ring, as in ring.c */
byte tail;
bit  ring_open;
bit  ring_lock;
bit  taking;     /* a byte is on its way to the slice, */
byte take_start; /* and this was its position */
byte epoch = 1;   /* 0: stopped */
byte slice;       /* the one byte that it holds, 0 if none */
byte slice_epoch;
bit  slice_lock;

/* What only the model knows. */
byte made;               /* bytes that the token made */
byte seeds;              /* that the token took; each is followed by a drop */
byte drops_over;         /* drops that have returned */
byte before[STREAM + 1]; /* seeds that the token had taken when it made that byte */
bit  served[STREAM + 1];
byte drawn;              /* draws that were begun */
bit  forked;
byte parents;            /* bytes that were made before the fork */

/* In the child the first consumer goes on, whatever it was doing. All others are alike, and the parent's. */
#define DEAD (forked && _pid != 0)

#ifdef NO_TAKES
#define START head
#else
#define START (taking -> take_start : head)
#endif
#define ROOM (epoch != 0 && !ring_open && tail - START < PLACES)

/* A drop leaves what is being taken to the one who takes it. */
#define WIPE(place) ring[place] = ((taking && take_start % PLACES == place) -> ring[place] : 0)

/* The byte is the caller's. In one step with the last check of the epoch: a copy of the process that is made later is
 * made after the draw, and nothing can tell the two apart. */
inline serve(number) {
    assert(number != 0);
    assert(!served[number]);
    assert(before[number] >= begun);
    assert(!forked || number > parents);
    served[number] = 1;
    hit = 1
}

/* The check after the copy. */
inline check_and_serve() {
    if
#ifndef NO_POST_COPY
    :: epoch != seen -> skip
#endif
#ifndef NO_ZERO
    :: seen == 0 -> skip
#endif
    :: else -> serve(copy)
    fi;
    seen = 0;
    copy = 0
}

/* prepare_slice_locked(), and append_to_slice() without the ring's lock. */
inline prepare() {
    d_step {
        ring_lock == 0;
        if
        :: slice != 0 && slice_epoch != epoch -> slice = 0
        :: else -> skip
        fi;
        if
        :: slice == 0 && head < tail && epoch != 0 ->
            taking = 1;
            take_start = head;
            head++;
            slice_epoch = epoch
        :: else -> skip
        fi
    };
    d_step {
        if
        :: taking ->
            slice = ring[take_start % PLACES];
            ring[take_start % PLACES] = 0;
            taking = 0;
            take_start = 0
        :: else -> skip
        fi
    }
}

inline take_from_slice() {
    if
    :: slice == 0 || slice_epoch != epoch -> prepare()
    :: else -> skip
    fi;
    if
    :: slice != 0 ->
        seen = slice_epoch;
        d_step {
            copy = slice;
#ifndef NO_INDEX
            slice = 0
#endif
        };
        d_step { check_and_serve() }
    :: else -> skip
    fi
}

inline take_from_ring() {
    if
    :: d_step {
            ring_lock == 0 && epoch != 0 && head < tail ->
            ring_lock = 1;
            seen = epoch;
            copy = ring[head % PLACES];
            ring[head % PLACES] = 0;
            head++
        };
        d_step { check_and_serve(); ring_lock = 0 }
    :: ring_lock == 0 && !(epoch != 0 && head < tail) -> skip
    fi
}

/* pool_fetch_end(), with the ring's lock held. */
inline publish() {
    ring_lock == 0;
    if
#ifndef NO_EPOCH
    :: epoch != opened -> skip
#endif
    :: else -> ring[tail % PLACES] = kept; tail++
    fi;
    ring_open = 0;
    opened = 0;
    kept = 0
}

/* A fetch of one byte for the caller and one to keep. The token writes while nothing is locked. The bytes lie in memory
 * that fork wipes. */
inline fetch_for_caller() {
    if
    :: d_step { ring_lock == 0 && ROOM && made + 2 <= STREAM -> ring_open = 1; opened = epoch };
        d_step {
            made = made + 2;
            before[made] = seeds;
            before[made - 1] = seeds;
            own = made - 1;
            kept = made
        };
        d_step {
            copy = ((forked && own <= parents) -> 0 : own);
            own = 0
        };
        d_step {
            publish();
            if
            :: epoch != 0 -> serve(copy)
            :: else -> skip /* forked since */
            fi;
            copy = 0
        }
    :: ring_lock == 0 && !(ROOM && made + 2 <= STREAM) -> skip
    fi
}

active [2] proctype consumer() {
    byte copy, seen, begun, opened, own, kept;
    bit hit;
    {
        do
        :: drawn == DRAWS -> break
        :: d_step { drawn < DRAWS -> drawn++; begun = drops_over };
#ifdef NO_LOCK
            take_from_slice();
#else
            if
            :: d_step { slice_lock == 0 -> slice_lock = 1 };
                take_from_slice();
                slice_lock = 0
            :: slice_lock == 1 -> skip
            fi;
#endif
            if
            :: hit -> skip
            :: else ->
                take_from_ring();
                if
                :: hit -> skip
                :: else -> fetch_for_caller()
                fi
            fi;
            d_step { begun = 0; hit = 0 }
        :: d_step { forked && epoch == 0 -> epoch = 1 } /* the child calls C_Initialize */
        od
    } unless { DEAD }
}

active proctype filler() {
    byte opened, kept;
    {
        do
        :: d_step { ring_lock == 0 && ROOM && made < STREAM -> ring_open = 1; opened = epoch };
            d_step { made++; before[made] = seeds; kept = made };
            d_step { publish() }
        od
    } unless { DEAD || timeout }
}

active proctype dropper() {
    {
        seeds++;
        d_step {
            ring_lock == 0;
#ifndef NO_SLICES
            epoch = 2;
#endif
            WIPE(0);
            WIPE(1);
            head = tail
        };
#ifndef NO_SLICES
        d_step { slice_lock == 0; slice = 0 };
#endif
        drops_over++
    } unless { DEAD }
}

active proctype forker() {
    d_step {
        forked = 1;
        parents = made;
#ifndef NO_WIPE
        ring[0] = 0;
        ring[1] = 0;
        head = 0;
        tail = 0;
        ring_open = 0;
        ring_lock = 0;
        taking = 0;
        take_start = 0;
        epoch = 0;
        slice = 0;
        slice_epoch = 0;
        slice_lock = 0
#endif
    }
}
