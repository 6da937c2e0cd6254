#!/bin/bash
# java.sh - session ids from SunPKCS11 pointed at the proxy, with SoftHSM and with a slow token behind it.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

# config NAME LINE: a SunPKCS11 configuration that loads the proxy.
config() {
    printf '%s\n' "name = $1" "library = $PROXY" "$2" >"$scratch/$1.cfg"
    printf '%s\n' "$scratch/$1.cfg"
}

ids() {
    timeout 120 java -cp "$scratch" Ids "$@"
}

# The two counters that the slow target keeps: how often it was asked, and for how much.
calls_of_target() {
    od -A n -t u8 -N 8 "$scratch/calls" | tr -d ' '
}

with_slow_target() {
    P11_SLOW_TARGET=$TARGET P11_SLOW_CALLS=$scratch/calls P11_PROXY_TARGET=$SLOW "$@"
}

# SunPKCS11 asks some 55,000 times for 32 bytes. The token must be asked far less often.
asks_token_seldom() {
    rm -f "$scratch/calls"
    with_slow_target ids "$by_index" ids 10000 || return 1
    echo "the token was asked $(calls_of_target) times"
    [[ $(calls_of_target) -lt 5500 ]]
}

javac -d "$scratch" "$CHECKOUT/tests/token/Ids.java"
by_index=$(config index 'slotListIndex = 0')
by_slot=$(config slot "slot = $(slot_of_token "$PROXY")")

check "10,000 ids, all different"                    ids "$by_index" ids 10000
check "the slot by its number"                       ids "$by_slot" ids 100
check "odd sizes"                                    ids "$by_index" sizes 100
check "eight threads on one generator"               ids "$by_index" threads 8000
check "the token is asked a tenth as often as we are" asks_token_seldom
check "a token of 1 ms"                              with_slow_target env P11_SLOW_RANDOM_US=1000 java -cp "$scratch" Ids "$by_index" ids 10000
check "a token of 20 ms, eight threads"              with_slow_target env P11_SLOW_RANDOM_US=20000 java -cp "$scratch" Ids "$by_index" threads 800
done_testing
