#!/bin/bash
# surroundings.sh - set-uid programs, a target that leads back to the proxy, and valgrind.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

# One whole life, with draws from the token and from the pool, and a short one.
life=(Ai Ao Ad Al Ad Ac Af Au Ai Af)

# Every step said CKR_OK.
all_went_well() {
    cat "$1"
    grep -qx end "$1" && ! grep '^A' "$1" | grep -qv ' 0x0'
}

# A program that gained rights does not let its caller choose what is loaded, or where is written.
hostile=(env -i "SOFTHSM2_CONF=$SOFTHSM2_CONF" "P11_PROXY_TARGET=$TARGET" "P11_PROXY_LOG=$scratch/open/log debug")
mkdir -m 777 "$scratch/open"
cp "$USERS" "$scratch/user"
cp "$PROXY" "$scratch/p11-proxy.so"
refuses_the_environment() {
    "${hostile[@]}" "$@" "$scratch/user" local "$scratch/p11-proxy.so" "$scratch/p11-proxy.so" "${life[@]}" >"$scratch/setuid" || true
    cat "$scratch/setuid"
    grep -qx 'Ai 0x5' "$scratch/setuid" && [[ ! -e $scratch/open/log ]]
}
believes_the_environment() {
    "${hostile[@]}" "$scratch/user" local "$scratch/p11-proxy.so" "$scratch/p11-proxy.so" "${life[@]}" >"$scratch/plain"
    all_went_well "$scratch/plain" && rm "$scratch/open/log"
}
check "an ordinary program believes its environment" believes_the_environment
if [[ $EUID != 0 ]]; then
    skip_check "a set-uid program does not" "not root"
elif findmnt -no OPTIONS -T "$scratch" | grep -qw nosuid; then
    skip_check "a set-uid program does not" "temporary files have no set-uid bit here"
else
    chown 65534 "$scratch/user"
    chmod 4755 "$scratch/user"
    check "a set-uid program does not" refuses_the_environment
    check "nor with a configuration file named" refuses_the_environment "P11_PROXY_CONFIG=$P11_PROXY_CONFIG"
fi

# p11-kit's module for all modules has ours among its own: we are our own target.
register p11-proxy "module: $PROXY" "x-target: $kit_proxy"
register other "module: $TARGET"
comes_back_to_us() {
    ends_in_the_circle "$USERS" local "$PROXY" "$PROXY" "${life[@]}" | tee "$scratch/circle" && grep -qx end "$scratch/circle"
}
# The same circle, entered by other programs and from p11-kit's side.
ends_in_the_circle() {
    (unset P11_PROXY_CONFIG && as_someone timeout -s KILL 60 "$@")
}
check_with "$kit_proxy" "a target that leads back to us ends in an answer" comes_back_to_us
check_with "$kit_proxy" "p11-kit ends there"      ends_in_the_circle p11-kit list-modules
check_with "$kit_proxy" "p11tool does"            ends_in_the_circle p11tool --list-tokens
check_with "$kit_proxy" "pkcs11-tool does, through p11-kit" ends_in_the_circle pkcs11-tool --module "$kit_proxy" --list-slots
check_with "$kit_proxy" "and through us"          ends_in_the_circle pkcs11-tool --module "$PROXY" --list-slots

is_clean_under() {
    valgrind --error-exitcode=9 "$@" "$USERS" local "$PROXY" "$PROXY" "${life[@]}" >"$scratch/watched" &&
        all_went_well "$scratch/watched"
}
check_with valgrind "memory is used and freed as it should be" is_clean_under --leak-check=full
check_with valgrind "locks are taken in one order" is_clean_under --tool=helgrind \
    --suppressions="$CHECKOUT/tests/helgrind.suppressions"
done_testing
