#!/bin/bash
# users.sh - beside others in one program: two users of one token, and modules whose names all other modules see.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

# as_alone [global] A B STEP...: as when both use the token's own module. Every step has to be there.
as_alone() {
    local mode=()
    if [[ $1 == global ]]; then
        mode=(global)
        shift
    fi
    local a=$1 b=$2
    shift 2
    "$USERS" "${mode[@]}" "$TARGET" "$TARGET" "$@" >"$scratch/alone"
    "$USERS" "${mode[@]}" "$a" "$b" "$@" >"$scratch/beside"
    grep -qx end "$scratch/alone" && diff "$scratch/alone" "$scratch/beside"
}

both_orders() {
    local a=$1 b=$2 order=$3
    check "$order, and ends first"      as_alone "$a" "$b" Ai Bi Ao Bo Ad Bd Al Bd Ac Bs Af Bs Bd Bo Bi Bo Bd Bf
    check "$order, and ends last"       as_alone "$a" "$b" Ai Bi Ao Bo Bd Ad Bl Ad Bf As Ad Ao Ai Ao Ad Af Bf
    check "$order, and the other is late" as_alone "$a" "$b" Ai Ao Ad Bs Bo Bd Bi Bd Bc As Ad Af Bf
    check "$order, and asks for slots after the end" \
        as_alone "$a" "$b" Ai Bi Ao Bo Ad Bd Af Bo Bd Ao Ad Bi Bd Bo Bd Bf
    check "$order, and both twice"      as_alone "$a" "$b" Ai Bi Af Bf Bi Ai Bo Ao Ad Bd Bf Af Ai Ao Ad Af
    check "$order, with all names global" as_alone global "$a" "$b" Ai Bi Ao Bo Ad Bd Al Bd Ac Bs Af Bf
}
both_orders "$TARGET" "$PROXY" "directly first"
# Who finalizes the token's module directly while our thread is in it has it crash, as any module does.
printf 'x-pool-threads: never\n' >>"$P11_PROXY_CONFIG"
both_orders "$PROXY" "$TARGET" "through us first"
sed -i '$d' "$P11_PROXY_CONFIG"

steps=(Ai Bi Ao Bo Ad Bd Al Bl Ac Bc Af Bf)
# goes VARIABLE=VALUE... -- COMMAND...: all that the two do there is as it is without.
goes() {
    local before=()
    while [[ $1 != -- ]]; do
        before+=("$1")
        shift
    done
    shift
    "$@" "${steps[@]}" >"$scratch/without"
    env "${before[@]}" "$@" "${steps[@]}" >"$scratch/with"
    grep -qx 'Bd 0x0' "$scratch/without" && grep -qx end "$scratch/without" && diff "$scratch/without" "$scratch/with"
}
check "preloaded, and loaded"           goes "LD_PRELOAD=$PROXY" -- "$USERS" "$PROXY" "$PROXY"
check "preloaded, beside the token's module" goes "LD_PRELOAD=$PROXY" -- "$USERS" "$TARGET" "$TARGET"
check "preloaded, beside itself"        goes "LD_PRELOAD=$PROXY" -- "$USERS" "$PROXY" "$TARGET"
check "preloaded before the token's"    goes "LD_PRELOAD=$PROXY $TARGET" -- "$USERS" "$PROXY" "$PROXY"
check "preloaded after the token's"     goes "LD_PRELOAD=$TARGET $PROXY" -- "$USERS" "$PROXY" "$PROXY"
check "all names global"                goes GLOBAL=yes -- "$USERS" global "$PROXY" "$PROXY"

# The scripted target does not look its own functions up by name, as SoftHSM does.
export P11_PROXY_TARGET=$SCRIPTED TARGET_SCRIPT=quiet
check "names that lead elsewhere come first" goes "LD_PRELOAD=$DECOY" -- "$USERS" "$PROXY" "$PROXY"
check "and all names global"            goes "LD_PRELOAD=$DECOY" -- "$USERS" global "$PROXY" "$PROXY"
check "and we before them"              goes "LD_PRELOAD=$PROXY $DECOY" -- "$USERS" "$PROXY" "$PROXY"
done_testing
