#!/bin/bash
# setup.sh - p11-proxy setup: registers the proxy, hides the token's own module, and takes both back.
# shellcheck source=tests/tool/lib.sh
. "$CHECKOUT/tests/tool/lib.sh"

check_common_options setup
check_module_option setup
check "no target"                complains 2 "it takes one target" "$TOOL" setup
check "two"                      complains 2 "it takes one target" "$TOOL" setup a b
check "--undo with one"          complains 2 "--undo takes no target" "$TOOL" setup --undo a

# As a user with files of his own. What the system has registered stays visible, but is not written to.
unset P11_PROXY_CONFIG
rm -r "$scratch/home/.config"
[[ $EUID != 0 ]] || chown -R 65534 "$scratch/home" "$scratch/tokens"
setup() {
    as_someone "$TOOL" setup --module "$PROXY" "$@"
}
files() {
    find "$scratch/home" -name '*.module' | sort
}
check "--dry-run"                says 0 "would write $modules/p11-proxy.module:" setup --dry-run "$TARGET"
check "writes nothing"           test -z "$(files)"
check "it is set up"             says 0 "writes $modules/p11-proxy.module:" setup "$TARGET"
check "with the lines"           grep -Fx "x-target: $TARGET" "$modules/p11-proxy.module"
check "and what check says"      says 0 "the proxy starts: $PROXY" as_someone "$TOOL" check --module "$PROXY"
check "the token only through it" grep -F "no token of it through another module" "$scratch/out"
draws() {
    [[ $(as_someone p11tool --generate-random=32 pkcs11:token=proxy-test | wc -c) == 32 ]]
}
if grep -q __asan_init "$PROXY"; then
    skip_check "a program draws through p11-kit" "it is built without the sanitizers' library"
else
    check_with p11tool "a program draws through p11-kit" draws
fi
files >"$scratch/written"
check "once more"                says 0 "$modules/p11-proxy.module is as it should be" setup "$TARGET"
check "another target"           complains 1 "is of another target; first: p11-proxy setup --undo" setup "$SCRIPTED"
check "--undo --dry-run"         says 0 "would remove $modules/p11-proxy.module" setup --undo --dry-run
check "nothing was changed"      diff "$scratch/written" <(files)
check "--undo"                   says 0 "removes $modules/p11-proxy.module" setup --undo
check "removes all of it"        test -z "$(files)"
check "--undo once more"         says 0 "there is nothing to take back" setup --undo

# Files of others are left alone, and so are those that were changed.
register p11-proxy "x-target: $SCRIPTED"
check "a file that is there"     complains 1 "exists already; add these lines to it by hand: $modules/p11-proxy.module" \
    setup "$TARGET"
check "and the lines are shown"  grep -Fx "x-target: $TARGET" "$scratch/err"
check "--undo leaves it"         exits 0 setup --undo
check "as it was"                diff <(echo "x-target: $SCRIPTED") "$modules/p11-proxy.module"
rm "$modules/p11-proxy.module"
setup "$TARGET" >"$scratch/output" 2>&1
printf 'x-pool-mix: kernel\n' >>"$modules/p11-proxy.module"
check "a file that was changed"  warns 1 "was changed since; remove it by hand: $modules/p11-proxy.module" \
    setup --undo
check "and is there"             grep -Fx 'x-pool-mix: kernel' "$modules/p11-proxy.module"
rm "$modules/p11-proxy.module"

# Modules are hidden by the tokens that they have.
cp "$TARGET" "$scratch/copy.so"
register copied "module: $scratch/copy.so"
register other "module: $SCRIPTED"
check "the same token by another file" warns 1 "by hand: $modules/copied.module" setup "$TARGET"
check "other tokens are left visible" test "$(grep -c "$modules/other.module" "$scratch/out" "$scratch/err" | grep -c ':0$')" == 2
rm "$modules/copied.module" "$modules/other.module"
setup --undo >"$scratch/output" 2>&1

# A second proxy has files of its own.
cp "$PROXY" "$scratch/p11-proxy-luna.so"
luna() {
    as_someone "$TOOL" setup --module "$scratch/p11-proxy-luna.so" "$@"
}
private() {
    (umask 077 && setup "$TARGET") && [[ $(stat -c %a "$modules/p11-proxy.module") == 644 ]]
}
check "all users can read what is written" private
check "a second proxy"           says 0 "writes $modules/p11-proxy-luna.module" luna "$SCRIPTED"
check "--undo of it"             says 0 "removes $modules/p11-proxy-luna.module" luna --undo
check "leaves the first"         diff "$scratch/written" <(files)
setup --undo >"$scratch/output" 2>&1
ln -s "$PROXY" "$scratch/p11-proxy-link.so"
check "a link instead of a copy" complains 1 "has to be a copy, and this is a link: $scratch/p11-proxy-link.so" \
    as_someone "$TOOL" setup --module "$scratch/p11-proxy-link.so" "$TARGET"
check_with "$kit_proxy" "p11-kit's own module" says 0 "disable-in: p11-kit-proxy" setup --dry-run "$kit_proxy"
check_with "$kit_proxy" "hides none" test "$(grep -c '^would write' "$scratch/out")" == 1

check "a target that is missing" complains 1 "the target cannot be read: $scratch/none.so" setup "$scratch/none.so"
printf 'no module' >"$scratch/text.so"
check "a target that is no module" complains 1 "the target cannot be loaded as a PKCS#11 module: $scratch/text.so" \
    setup --dry-run "$scratch/text.so"
check "the proxy as target"      complains 1 "the target is the proxy itself: $PROXY" setup "$PROXY"
check "no proxy there"           complains 1 "the proxy is not there" "$TOOL" setup --module "$scratch/none.so" "$TARGET"
done_testing
