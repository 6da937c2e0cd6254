#!/bin/bash
# environment.sh - installed, and run by nobody, with no home and no environment.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

unset P11_PROXY_CONFIG
tool=$(command -v pkcs11-tool)

installs() {
    meson setup --prefix="$scratch/usr" -Dtests=false "$scratch/build" "$CHECKOUT" &&
        ninja -C "$scratch/build" && meson install -C "$scratch/build" --no-rebuild
}

check "meson install" installs
installed=$(find "$scratch/usr" -name p11-proxy.so)
shipped=$(find "$scratch/usr" -name p11-proxy.module)

as_nobody() {
    local as=()
    [[ $(id -u) != 0 ]] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    "${as[@]}" "$@"
}

# Fails with a code, not a crash, and names what is missing.
says_what_is_missing() {
    local out code=0
    out=$("$@" "P11_PROXY_LOG=stderr" "$tool" --module "$installed" --list-slots 2>&1) || code=$?
    printf '%s\nexit code %d\n' "$out" "$code"
    [[ $code == 1 && $out == *CKR_GENERAL_ERROR* && $out == *"set x-target in"*p11-proxy.module* ]]
}

draws() {
    [[ $("$@" "$tool" --module "$installed" --generate-random 32 2>/dev/null | wc -c) == 32 ]]
}

check "a real file is installed, no link"   test -f "$installed" -a ! -L "$installed"
check "with a module file that names it"    grep -x 'module: p11-proxy.so' "$shipped"
check "no executable stack"                 sh -c "readelf -lW '$installed' | grep GNU_STACK | grep -vq RWE"
check "no target: nothing in the environment"   says_what_is_missing env -i
check "no target: nobody"                       says_what_is_missing as_nobody env -i
check "no target: no such home"                 says_what_is_missing env -i HOME=/nonexistent

# The shipped file with one line uncommented, as an administrator would do it.
sed -i "s|^#x-target: .*|x-target: $TARGET|" "$shipped"
printf 'x-log: stderr\n' >>"$shipped"
check "configured for all: nothing else in the environment" draws env -i SOFTHSM2_CONF="$SOFTHSM2_CONF"
check "configured for all: no such home"    draws env -i SOFTHSM2_CONF="$SOFTHSM2_CONF" HOME=/nonexistent

[[ $(id -u) != 0 ]] || chown -R 65534 "$scratch/tokens"
check "configured for all: nobody"          draws as_nobody env -i SOFTHSM2_CONF="$SOFTHSM2_CONF"
[[ $(id -u) != 0 ]] || chown -R 0 "$scratch/tokens"

# A user's file is nothing to root, and overrides for everybody else.
mkdir -p "$scratch/home/.config/pkcs11/modules"
printf 'x-target: /nonexistent.so\n' >"$scratch/home/.config/pkcs11/modules/p11-proxy.module"
if [[ $(id -u) == 0 ]]; then
    check "root does not read the user's file" draws env -i SOFTHSM2_CONF="$SOFTHSM2_CONF" HOME="$scratch/home"
else
    skip_check "root does not read the user's file" "not root"
fi
names_users_target() {
    { as_someone "$tool" --module "$installed" --list-slots 2>&1 || true; } | grep -F /nonexistent.so
}
check "somebody else does" names_users_target
done_testing
