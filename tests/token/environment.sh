#!/bin/bash
# environment.sh - installed, and run by a user without rights, with no home and no environment.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

unset P11_PROXY_CONFIG
tool=$(command -v pkcs11-tool)

installs() {
    meson setup --prefix="$scratch/usr" -Dtests=false "$scratch/build" "$CHECKOUT" &&
        ninja -C "$scratch/build" && meson install -C "$scratch/build" --no-rebuild
}

check "meson install" installs
for file in bin/p11-proxy share/man/man1/p11-proxy.1 share/man/man5/p11-proxy.module.5 share/bash-completion/completions/p11-proxy \
    share/zsh/site-functions/_p11-proxy share/fish/vendor_completions.d/p11-proxy.fish; do
    check "installed: $file" test -f "$scratch/usr/$file"
done
installed=$(find "$scratch/usr" -name p11-proxy.so)
shipped=$(find "$scratch/usr" -name p11-proxy.module)
pc=$(find "$scratch/usr" -name p11-proxy.pc)

is_stripped() {
    ! readelf -SW "$installed" | grep -E ' \.(symtab|debug_info)' &&
        [[ $(readelf -nW "$installed" | grep -c p11_proxy) == "$(readelf -nW "$PROXY" | grep -c p11_proxy)" ]]
}

# Fails with a code, not a crash, and names what is missing.
says_what_is_missing() {
    warns 1 CKR_GENERAL_ERROR "$@" P11_PROXY_LOG=stderr "$tool" --module "$installed" --list-slots &&
        grep 'set x-target in.*p11-proxy.module' "$scratch/err"
}

draws() {
    [[ $("$@" "$tool" --module "$installed" --generate-random 32 2>/dev/null | wc -c) == 32 ]]
}

check "a real file is installed, no link"   test -f "$installed" -a ! -L "$installed"
check "with a module file that names it"    grep -x '#module: p11-proxy.so' "$shipped"
check "without symbols, with its probes"    is_stripped
check "pkg-config says where"               test "$(PKG_CONFIG_PATH=${pc%/*} pkg-config --variable=module p11-proxy)" == "$installed"
check "no executable stack"                 sh -c "readelf -lW '$installed' | grep GNU_STACK | grep -vq RWE"
check "no target: nothing in the environment"   says_what_is_missing env -i
check "no target: a user without rights"        says_what_is_missing as_nobody env -i
check "no target: no such home"                 says_what_is_missing env -i HOME=/nonexistent

# p11-kit passes a file over that names no module, so its programs do not load a proxy that cannot start.
is_quiet_in_p11_kit() {
    cp "$shipped" "$modules/p11-proxy.module"
    ! as_someone p11-kit list-modules 2>&1 | grep .
}
is_registered_by_one_line() {
    sed "s|^#module: .*|module: $installed|" "$shipped" >"$modules/p11-proxy.module"
    printf 'x-target: %s\n' "$TARGET" >>"$modules/p11-proxy.module"
    as_someone p11-kit list-modules | grep "p11-proxy: $installed"
}
check "no target: p11-kit says nothing"     is_quiet_in_p11_kit
check "and with the lines uncommented it shows the module" is_registered_by_one_line

# The shipped file with one line uncommented, as an administrator would do it.
sed -i "s|^#x-target: .*|x-target: $TARGET|" "$shipped"
printf 'x-log: stderr\n' >>"$shipped"
check "configured for all: nothing else in the environment" draws env -i SOFTHSM2_CONF="$SOFTHSM2_CONF"
check "configured for all: no such home"    draws env -i SOFTHSM2_CONF="$SOFTHSM2_CONF" HOME=/nonexistent

[[ $EUID != 0 ]] || chown -R 65534 "$scratch/tokens"
check "configured for all: a user without rights" draws as_nobody env -i SOFTHSM2_CONF="$SOFTHSM2_CONF"
[[ $EUID != 0 ]] || chown -R 0 "$scratch/tokens"

# Root ignores a user's file; for that user it overrides.
rm "${modules%/*}/pkcs11.conf"
register p11-proxy 'x-target: /nonexistent.so'
if [[ $EUID == 0 ]]; then
    check "root does not read the user's file" draws env -i SOFTHSM2_CONF="$SOFTHSM2_CONF" HOME="$scratch/home"
else
    skip_check "root does not read the user's file" "not root"
fi
check "another user does" warns 1 /nonexistent.so as_someone env P11_PROXY_LOG=stderr "$tool" --module "$installed" --list-slots

check "ninja uninstall" ninja -C "$scratch/build" uninstall
check "leaves nothing" test ! -e "$scratch/usr"
done_testing
