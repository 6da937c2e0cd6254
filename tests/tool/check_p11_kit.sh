#!/bin/bash
# check_p11_kit.sh - p11-proxy check: what p11-kit has registered, and a target that loads the proxy in turn.
# shellcheck source=tests/tool/lib.sh
. "$CHECKOUT/tests/tool/lib.sh"

kit_proxy=$(find /lib /usr/lib -name p11-kit-proxy.so 2>/dev/null | head -n 1)
[[ -n $kit_proxy ]] || skip_all "no p11-kit"

# What is registered. The system's own registrations are left out.
unset P11_PROXY_CONFIG
modules=$scratch/home/.config/pkcs11/modules
mkdir -p "$modules"
printf 'user-config: only\n' >"$modules/../pkcs11.conf"
[[ $(id -u) != 0 ]] || chown -R 65534 "$scratch/tokens"
register() {
    printf '%s\n' "${@:2}" >"$modules/$1.module"
}
finds() {
    as_someone env "${@:2}" "$TOOL" check --module "$PROXY" >"$scratch/out" 2>"$scratch/err" || true
    grep -F -- "$1" "$scratch/out" || { cat "$scratch/out" && false; }
}
hints() {
    grep -F -- "-> $1" "$scratch/out"
}
register p11-proxy "x-target: $TARGET" 'x-log: off'
check "p11-kit does not know the proxy" finds "p11-kit does not load the proxy into this program"
check "and what registers it"    hints "p11-proxy setup registers it"
register p11-proxy "module: $PROXY" "x-target: $TARGET" 'x-log: off'
check "the token only through it" finds "ok       p11-kit has the target's tokens only through the proxy"
cp "$TARGET" "$scratch/copy.so"
register own "module: $scratch/copy.so"
check "the token by another file too" finds "p11-kit has token 'proxy-test' by another module too (own), so programs see it twice"
check "and the line to write"    hints "add the line enable-in: nothing to $modules/own.module"
register own "module: $TARGET" 'enable-in: nothing'
check "hidden"                   finds "only through the proxy"
register own "module: $SCRIPTED"
check "a module with other tokens is no double" finds "only through the proxy"
register own "module: $scratch/none.so"
check "a module that cannot be loaded is no double" finds "only through the proxy"
register own "module: $MISFIT_MODULE"
check "a module that crashes is a note" finds "note     the modules that p11-kit has registered cannot be listed" MISFIT=crash

# p11-kit's own module as target.
register own "module: $TARGET"
register p11-proxy "module: $PROXY" "x-target: $kit_proxy" 'x-log: off'
check "a loop"                   finds "problem  the target loads this proxy in turn"
check "and how to end it"        hints "add the line disable-in: p11-kit-proxy to "
register p11-proxy "module: $PROXY" "x-target: $kit_proxy" 'x-log: off' 'disable-in: p11-kit-proxy'
check "no loop"                  finds "the proxy starts: $PROXY"
check "but within p11-kit it has no tokens" grep -F "p11-kit's programs see no initialised token through the proxy" "$scratch/out"
done_testing
