#!/bin/bash
# users.sh - beside others in one program: two users of one token, and modules whose names all other modules see.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

# as_alone A B STEP...: as when both use the token's own module. Every step has to be there.
mode=local
as_alone() {
    "$USERS" "$mode" "$TARGET" "$TARGET" "${@:3}" >"$scratch/alone"
    "$USERS" "$mode" "$@" >"$scratch/beside"
    grep -qx end "$scratch/alone" && diff "$scratch/alone" "$scratch/beside"
}

both_orders() {
    local a=$1 b=$2 order=$3
    check "$order, and ends first"      as_alone "$a" "$b" Ai Bi Ao Bo Ad Bd Al Bd Ac Bs Af Bs Bd Bo Bi Bo Bd Bf
    check "$order, and ends last"       as_alone "$a" "$b" Ai Bi Ao Bo Bd Ad Bl Ad Bf As Ad Ao Ai Ao Ad Af Bf
    check "$order, and the other is late" as_alone "$a" "$b" Ai Ao Ad Bs Bo Bd Bi Bd Bc As Ad Af Bf
    mode=global
    check "$order, with all names global, and both twice" as_alone "$a" "$b" Ai Bi Ao Bo Ad Bd Al Bd Af Bf Bi Ai Bo Ao Ad Bd Bf Af
    mode=local
}
both_orders "$TARGET" "$PROXY" "directly first"
# Who finalizes the token's module directly while our thread is in it has it crash, as any module does.
configure 'x-pool-threads: never'
both_orders "$PROXY" "$TARGET" "through us first"
configure

# goes PRELOADED COMMAND...: all that the two do there is as it is with nothing preloaded.
goes() {
    local steps=(Ai Bi Ao Bo Ad Bd Al Bl Ac Bc Af Bf)
    "${@:2}" "${steps[@]}" >"$scratch/without"
    LD_PRELOAD=$1 "${@:2}" "${steps[@]}" >"$scratch/with"
    grep -qx 'Bd 0x0' "$scratch/without" && grep -qx end "$scratch/without" && diff "$scratch/without" "$scratch/with"
}
check "preloaded, and loaded"           goes "$PROXY" "$USERS" local "$PROXY" "$PROXY"
check "preloaded, beside itself"        goes "$PROXY" "$USERS" local "$PROXY" "$TARGET"
check "preloaded before the token's"    goes "$PROXY $TARGET" "$USERS" local "$PROXY" "$PROXY"

# The scripted target does not look its own functions up by name, as SoftHSM does.
export P11_PROXY_TARGET=$SCRIPTED TARGET_SCRIPT=quiet
check "names that lead elsewhere come first" goes "$DECOY" "$USERS" local "$PROXY" "$PROXY"
check "and all names global"            goes "$DECOY" "$USERS" global "$PROXY" "$PROXY"
done_testing
