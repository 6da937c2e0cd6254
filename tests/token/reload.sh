#!/bin/bash
# reload.sh - a real token's module, closed and loaded again five times: through the proxy as alone.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

# Five lives, each with a pool that is being filled when it ends; with Af each ends with C_Finalize.
lives() {
    local life
    for life in 1 2 3 4; do
        echo As Ai Ao Al Ad "$@" Ar
    done
    echo As Ai Ao Al Ad "$@"
}

is_as_alone() {
    # shellcheck disable=SC2046
    "$USERS" "$TARGET" "$TARGET" $(lives "$@") >"$scratch/alone"
    # shellcheck disable=SC2046
    "$USERS" "$PROXY" "$PROXY" $(lives "$@") >"$scratch/proxied"
    grep -qx end "$scratch/alone" && diff "$scratch/alone" "$scratch/proxied"
}

# The module stays loaded once it had its thread. If it was not finalized, it says that it is initialised, and the
# login is still there; all else goes well.
goes_on() {
    # shellcheck disable=SC2046
    "$USERS" "$PROXY" "$PROXY" $(lives "$@") >"$scratch/proxied"
    sort "$scratch/proxied" | uniq -c
    grep -qx end "$scratch/proxied" && ! grep '^A[dor]' "$scratch/proxied" | grep -qv ' 0x0' &&
        ! grep '^Ai' "$scratch/proxied" | grep -qvE ' 0x(0|191)$' &&
        ! grep '^Al' "$scratch/proxied" | grep -qvE ' 0x(0|100)$'
}

without_thread() {
    echo 'x-pool-threads: never' >>"$P11_PROXY_CONFIG"
    local code=0
    "$@" || code=$?
    sed -i '$d' "$P11_PROXY_CONFIG"
    return "$code"
}

is_clean() {
    # shellcheck disable=SC2046
    valgrind --error-exitcode=9 --leak-check=full "$USERS" "$PROXY" "$PROXY" $(lives) >"$scratch/watched"
    grep -qx end "$scratch/watched"
}

check "no thread, without C_Finalize"       without_thread is_as_alone
check "without C_Finalize"                  goes_on
check "after C_Finalize"                    is_as_alone Af
if command -v valgrind >/dev/null; then
    check "nothing is lost or used afterwards" is_clean
else
    skip_check "nothing is lost or used afterwards" "no valgrind"
fi
done_testing
