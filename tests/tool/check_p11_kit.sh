#!/bin/bash
# check_p11_kit.sh - p11-proxy check: what p11-kit has registered, and a target that loads the proxy in turn.
# shellcheck source=tests/tool/lib.sh
. "$CHECKOUT/tests/tool/lib.sh"

kit=$(find /lib /usr/lib -name libp11-kit.so.0 2>/dev/null | head -n 1)
kit_proxy=$(find /lib /usr/lib -name p11-kit-proxy.so 2>/dev/null | head -n 1)
[[ -n $kit && -n $kit_proxy ]] || skip_all "no p11-kit"

# Where p11-kit looks.
configure
built_elsewhere() {
    sed "$1" "$kit" >"$scratch/kit/libp11-kit.so.0" &&
        says 0 "$2" env LD_LIBRARY_PATH="$scratch/kit" "$TOOL" check --module "$PROXY"
}
if grep -q /usr/share/p11-kit/modules "$kit"; then
    mkdir "$scratch/kit"
    check "p11-kit looks where the proxy does" exits 0 "$TOOL" check --module "$PROXY"
    check "so there is no note"  test "$(grep -c "does not read" "$scratch/out")" == 0
    check "registrations elsewhere" built_elsewhere 's#/usr/share/p11-kit/modules#/opt/share/p11-kit/modules#' \
        "($scratch/kit/libp11-kit.so.0) does not read registrations in /usr/share/p11-kit/modules, but /opt/share/p11-kit/modules"
    check "another system folder" built_elsewhere 's#/etc/pkcs11/modules#/opt/pkcs11/modules#' \
        "does not read registrations in /etc/pkcs11/modules, but /opt/pkcs11/modules"
    check "modules elsewhere"    built_elsewhere 's#/usr\(/lib[a-z0-9_/-]*/pkcs11\)#/opt\1#' "does not read modules in /usr/lib"
else
    skip_check "a p11-kit that looks elsewhere" "none that was built for this prefix"
fi

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
    as_someone "$TOOL" check --module "$PROXY" >"$scratch/out" 2>"$scratch/err" || true
    grep -F -- "$1" "$scratch/out" || { cat "$scratch/out" && false; }
}
hints() {
    grep -F -- "-> $1" "$scratch/out"
}
register p11-proxy "x-target: $TARGET" 'x-log: off'
check "p11-kit does not know the proxy" finds "p11-kit does not know the proxy"
register p11-proxy "module: $PROXY" "x-target: $TARGET" 'x-log: off'
check "the token only through it" finds "ok       p11-kit has the target's tokens only through the proxy"
register own "module: $TARGET"
check "the token's own module too" finds "p11-kit has token 'proxy-test' by another module too (own.module), so programs see it twice"
check "and the line to write"    hints "add the line enable-in: nothing to $modules/own.module"
cp "$TARGET" "$scratch/copy.so"
register own "module: $scratch/copy.so" 'disable-in: firefox'
check "the token by another file" finds "(own.module), so programs other than firefox see it twice"
register own "module: $TARGET" 'enable-in: nothing'
check "hidden"                   finds "only through the proxy"
register own "module: $SCRIPTED"
check "a module with other tokens is no double" finds "only through the proxy"
register own "module: $MISFIT_MODULE"
check "a module that cannot be used is no double" finds "only through the proxy"
register p11-proxy "module: $PROXY" "x-target: $TARGET" 'x-log: off' 'disable-in: thunderbird'
check "programs that do not see the proxy" finds "shows the proxy to all programs but thunderbird"

# p11-kit's own module as target.
register own "module: $TARGET"
register p11-proxy "module: $PROXY" "x-target: $kit_proxy" 'x-log: off'
check "a loop"                   finds "problem  the target loads this proxy in turn"
check "and how to end it"        hints "add the line disable-in: p11-kit-proxy to "
register p11-proxy "module: $PROXY" "x-target: $kit_proxy" 'x-log: off' 'disable-in: p11-kit-proxy'
check "no loop"                  finds "the proxy starts: $PROXY"
check "the target's own modules are seen twice" hints "set x-target to the token's own module instead of p11-kit-proxy.so"
done_testing
