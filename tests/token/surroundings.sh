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
hostile=(env -i "SOFTHSM2_CONF=$SOFTHSM2_CONF" "P11_PROXY_TARGET=$TARGET" "P11_PROXY_LOG=$scratch/home/log debug")
mkdir -m 777 "$scratch/home"
cp "$USERS" "$scratch/user"
cp "$PROXY" "$scratch/p11-proxy.so"
refuses_the_environment() {
    "${hostile[@]}" "$@" "$scratch/user" local "$scratch/p11-proxy.so" "$scratch/p11-proxy.so" "${life[@]}" >"$scratch/setuid" || true
    cat "$scratch/setuid"
    grep -qx 'Ai 0x5' "$scratch/setuid" && [[ ! -e $scratch/home/log ]]
}
believes_the_environment() {
    "${hostile[@]}" "$scratch/user" local "$scratch/p11-proxy.so" "$scratch/p11-proxy.so" "${life[@]}" >"$scratch/plain"
    all_went_well "$scratch/plain" && rm "$scratch/home/log"
}
check "an ordinary program believes its environment" believes_the_environment
if [[ $(id -u) != 0 ]]; then
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
comes_back_to_us() {
    local kit=$1 code=0
    printf '%s\n' "module: $PROXY" "x-target: $kit" >"$scratch/home/.config/pkcs11/modules/p11-proxy.module"
    (unset P11_PROXY_CONFIG && as_someone timeout 60 "$USERS" local "$PROXY" "$PROXY" "${life[@]}" >"$scratch/circle" 2>&1) ||
        code=$?
    cat "$scratch/circle"
    [[ $code == 0 ]] && grep -qx end "$scratch/circle"
}
# The same circle, entered by other programs and from p11-kit's side.
ends_in_the_circle() {
    (unset P11_PROXY_CONFIG && as_someone timeout -s KILL 60 "$@")
}
mkdir -p "$scratch/home/.config/pkcs11/modules"
p11_kit_proxy=$(pkg-config --variable=proxy_module p11-kit-1 2>/dev/null || true)
if [[ -e $p11_kit_proxy ]]; then
    check "a target that leads back to us ends in an answer" comes_back_to_us "$p11_kit_proxy"
    check "p11-kit ends there"                    ends_in_the_circle p11-kit list-modules
    check "p11tool does"                          ends_in_the_circle p11tool --list-tokens
    check "pkcs11-tool does, through p11-kit"     ends_in_the_circle pkcs11-tool --module "$p11_kit_proxy" --list-slots
    check "and through us"                        ends_in_the_circle pkcs11-tool --module "$PROXY" --list-slots
else
    skip_check "a target that leads back to us ends in an answer" "no p11-kit-proxy.so"
fi

is_clean_under() {
    valgrind --error-exitcode=9 "$@" "$USERS" local "$PROXY" "$PROXY" "${life[@]}" >"$scratch/watched" &&
        all_went_well "$scratch/watched"
}
if command -v valgrind >/dev/null; then
    check "memory is used and freed as it should be" is_clean_under --leak-check=full
    check "locks are taken in one order" is_clean_under --tool=helgrind \
        --suppressions="$CHECKOUT/tests/helgrind.suppressions"
else
    skip_check "memory is used and freed as it should be" "no valgrind"
    skip_check "locks are taken in one order" "no valgrind"
fi
done_testing
