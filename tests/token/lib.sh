# lib.sh - what every test with real programs needs: a token of its own, and checks that speak TAP.
# shellcheck shell=bash
#
# meson sets PROXY and SLOW (the built modules) and CHECKOUT. A test sources this, calls check, and ends
# with done_testing.
set -eu -o pipefail

# Others are to read what we make, and not to write it.
umask 022

# shellcheck source=tools/setup.sh
. "$CHECKOUT/tools/setup.sh"

TARGET=$(softhsm_module)
checks=0
failed=0

# Root runs some programs as user 65534, to whom the folder that TMPDIR names may be closed.
can_be_reached() {
    [[ $(id -u) != 0 ]] || setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$1"
}
scratch=$(mktemp -d)
chmod 755 "$scratch"
if ! can_be_reached "$scratch"; then
    rmdir "$scratch"
    scratch=$(mktemp -d -p /tmp)
    chmod 755 "$scratch"
fi
trap 'rm -rf "$scratch"' EXIT
new_softhsm_token "$scratch"
export SOFTHSM2_CONF=$scratch/softhsm2.conf

# The file that the proxy reads, whatever this machine has configured.
export P11_PROXY_CONFIG=$scratch/p11-proxy.module
printf '%s\n' "module: $PROXY" "x-target: $TARGET" 'x-log: stderr warning' >"$P11_PROXY_CONFIG"

# check WHAT COMMAND...: one check; what the command printed is shown if it failed.
check() {
    local what=$1
    shift
    checks=$((checks + 1))
    if "$@" >"$scratch/output" 2>&1; then
        printf 'ok %d - %s\n' "$checks" "$what"
    else
        failed=$((failed + 1))
        printf 'not ok %d - %s\n' "$checks" "$what"
        sed 's/^/# /' "$scratch/output"
    fi
}

skip_check() {
    checks=$((checks + 1))
    printf 'ok %d - %s # SKIP %s\n' "$checks" "$1" "$2"
}

# done_testing: the plan, and a code that says whether all went well.
done_testing() {
    printf '1..%d\n' "$checks"
    [[ $failed == 0 ]]
}

# skip_all WHY: for a component that this machine cannot have.
skip_all() {
    printf '%s\n' "$1"
    exit 77
}

# as_someone COMMAND...: with $scratch/home as home, for a p11-kit that reads a user's files.
as_someone() {
    as_p11_kit_user "$scratch/home" "$@"
}

# slot_of_token MODULE: the slot's number as the module gives it, in decimal.
slot_of_token() {
    local hex
    hex=$(pkcs11-tool --module "$1" --list-token-slots |
        sed -n '/^Slot.*(0x/{s/.*(\(0x[0-9a-f]*\)).*/\1/;h};/label *: proxy-test/{x;p;q}')
    printf '%d\n' "$hex"
}
