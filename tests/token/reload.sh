#!/bin/bash
# reload.sh - a real token's module, closed and loaded again five times: through the proxy as alone.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

# lives FINALIZE PAUSE: five lives, and a pool that is warm or being filled when each ends.
lives() {
    local life
    for life in 1 2 3 4 5; do
        printf '%s\n' 'C_GetInfo pInfo=out:88' 'C_Initialize pInitArgs=init:2' slots \
            "C_OpenSession slotID=slot0 flags=6 pApplication=0 Notify=0 phSession=&s$life" \
            "C_Login hSession=s$life userType=1 pPin=x:31323334 ulPinLen=4"
        for _ in {1..200}; do
            printf '%s\n' "C_GenerateRandom hSession=s$life pRandomData=rnd:32 ulRandomLen=32"
        done
        [[ $2 == 0 ]] || printf 'pause %s\n' "$2"
        [[ $1 == no ]] || printf 'C_Finalize pReserved=0\n'
        [[ $life == 5 ]] || printf 'reload\n'
    done
}

is_as_alone() {
    lives "$@" >"$scratch/lives"
    "$PLAYER" "$TARGET" "$scratch/lives" >"$scratch/alone"
    "$PLAYER" "$PROXY" "$scratch/lives" >"$scratch/proxied"
    grep -qx end "$scratch/alone" && diff "$scratch/alone" "$scratch/proxied"
}

# The module stays loaded once it had its thread. If it was not finalized, it says that it is initialised, and the
# login is still there; all else goes well.
goes_on() {
    lives "$@" >"$scratch/lives"
    "$PLAYER" "$PROXY" "$scratch/lives" >"$scratch/proxied"
    sed -n 's/ pInfo.*//; /^C_GenerateRandom 0x0/d; /^C_/p' "$scratch/proxied" | sort | uniq -c
    grep -qx end "$scratch/proxied" && ! grep '^C_GenerateRandom' "$scratch/proxied" | grep -qv ' 0x0' &&
        ! grep '^C_Initialize' "$scratch/proxied" | grep -qvE ' 0x(0|191)$' &&
        ! grep '^C_Login' "$scratch/proxied" | grep -qvE ' 0x(0|100)$'
}

without_thread() {
    echo 'x-pool-threads: never' >>"$P11_PROXY_CONFIG"
    local code=0
    "$@" || code=$?
    sed -i '$d' "$P11_PROXY_CONFIG"
    return "$code"
}

is_clean() {
    lives no 20 >"$scratch/lives"
    valgrind --error-exitcode=9 --leak-check=full "$PLAYER" "$PROXY" "$scratch/lives" >"$scratch/watched"
    grep -qx end "$scratch/watched"
}

check "no thread, without C_Finalize, at once"         without_thread is_as_alone no 0
check "no thread, without C_Finalize, after a while"   without_thread is_as_alone no 20
check "without C_Finalize, at once"         goes_on no 0
check "without C_Finalize, after a while"   goes_on no 20
check "after C_Finalize, at once"           is_as_alone yes 0
check "after C_Finalize, after a while"     is_as_alone yes 20
if command -v valgrind >/dev/null; then
    check "nothing is lost or used afterwards" is_clean
else
    skip_check "nothing is lost or used afterwards" "no valgrind"
fi
done_testing
