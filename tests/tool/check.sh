#!/bin/bash
# check.sh - p11-proxy check: what it finds, what it advises, what p11-kit has, and that it leaves everything alone.
# shellcheck source=tests/tool/lib.sh
. "$CHECKOUT/tests/tool/lib.sh"

check_common_options check
check_module_option check
check "an argument" complains 2 "'surplus'" "$TOOL" check surplus

looks() {
    "$TOOL" check --module "$PROXY"
}
# finds TEXT [VARIABLE=VALUE...]: has the text, whatever its exit code is. Run by "${as[@]}".
as=()
finds() {
    "${as[@]}" env "${@:2}" "$TOOL" check --module "$PROXY" >"$scratch/out" 2>"$scratch/err" || true
    grep -F -- "$1" "$scratch/out" || { cat "$scratch/out" && false; }
}
hints() {
    grep -F -- "-> $1" "$scratch/out"
}

configure
contents >"$scratch/before"
check "a good configuration, and the module of the same build tree" exits 0 "$TOOL" check
for text in "ok       x-target: $TARGET ($P11_PROXY_CONFIG:2)" "other keys have the default" "of SoftHSM: $TARGET" \
    "slots with a token: 2" "token 'proxy-test' makes 32 random bytes in " \
    "has a token that is not initialised" "the proxy starts: $PROXY"; do
    check "it says: $text" grep -F "$text" "$scratch/out"
done
check "tokens and files are as before" diff "$scratch/before" <(contents)

# The configuration: all mistakes at once, and the rest is checked as if they were not there.
configure 'x-pool-size: 3 fish' 'nonsense' 'x-pol: audit'
check "a wrong value"            says 1 "$P11_PROXY_CONFIG:4: x-pool-size is not between 4KiB and 16MiB, in bytes, KiB or MiB: '3 fish'" looks
check "no key"                   grep -F "$P11_PROXY_CONFIG:5: a line that is not" "$scratch/out"
check "an unknown key"           grep -F "$P11_PROXY_CONFIG:6: unknown key 'x-pol'; the nearest is x-pool" "$scratch/out"
check "and the target all the same" grep -F "of SoftHSM: $TARGET" "$scratch/out"
printf 'x-log: off\nx-pool: maybe\nx-target: a/b\n' >"$P11_PROXY_CONFIG"
check "a target that is a mistake is not missing besides" says 1 ":3: x-target is not an absolute path or" looks
check "so it is said once"       test "$(grep -c '^problem' "$scratch/out")" == 2
printf 'x-log: off\n' >"$P11_PROXY_CONFIG"
check "no target"                says 1 "no token's module is configured" looks
check "and what writes it"       hints "p11-proxy setup PATH writes it"

# Files that others may write. The advice is followed, and then there is none.
configure
no_writers() {
    exits 0 looks && ! grep -F "may write" "$scratch/out"
}
# corrected CODE TEXT: it says so with CODE, and no more once its advice was followed.
corrected() {
    says "$@" looks && bash -eux -c "$(sed -n 's/^ *-> \(.*: \)\{0,1\}\(ch\(own\|mod\) .*\)/\2/p' "$scratch/out")" && no_writers
}
chmod 666 "$P11_PROXY_CONFIG"
check "everybody may write it"   corrected 1 "everybody may write the configuration: $P11_PROXY_CONFIG"
mkdir -m 777 "$scratch/open"
mkdir -m 755 "$scratch/open/inner"
cp "$P11_PROXY_CONFIG" "$scratch/open/inner/p11-proxy.module"
in_open() {
    P11_PROXY_CONFIG=$scratch/open/inner/p11-proxy.module "$@"
}
check "everybody may replace its folder" in_open corrected 1 "everybody may write a folder above the configuration: $scratch/open"
chmod 1777 "$scratch/open"
check "not where each user can remove only files of his own" in_open no_writers
if [[ $EUID == 0 ]]; then
    for owned in '644 12345 0 user 12345' '664 0 0 group 54321' '666 12345 1 everybody'; do
        read -r mode user code who <<<"$owned"
        chown "$user:54321" "$P11_PROXY_CONFIG"
        chmod "$mode" "$P11_PROXY_CONFIG"
        check "$who may write it"    corrected "$code" "$who may write the configuration: $P11_PROXY_CONFIG"
    done
else
    skip_check "files of other users" "it takes root"
fi
cp "$TARGET" "$scratch/softhsm.so"
chmod 666 "$scratch/softhsm.so"
check "everybody may write the target" with_target "$scratch/softhsm.so" \
    corrected 1 "everybody may write the target: $scratch/softhsm.so"

# The target's file.
cp "$PROXY" "$scratch/copy.so"
printf 'no module' >"$scratch/text.so"
check "a target that is missing" with_target "$scratch/none.so" says 1 \
    "x-target cannot be read (No such file or directory): '$scratch/none.so'" looks
check "a copy of the proxy"      with_target "$scratch/copy.so" says 1 \
    "the target is this proxy itself, where a token's module would be right" looks
check "the loader's reason"      with_target "$scratch/text.so" says 1 "cannot be loaded: $scratch/text.so: " looks
check "and where to look"        grep -F "ldd $scratch/text.so shows which libraries it does not find" "$scratch/out"
check "no PKCS#11 module"        with_target "$MACHINE_LIBRARY" says 1 "it has no C_GetFunctionList" looks
TARGET=$MISFIT_MODULE configure
check "one that crashes"         finds "the module crashed (Aborted): while it was loaded" MISFIT=crash
check "one that ends the process" finds "the module ended the process: while it was loaded" MISFIT=exit
check "one that hangs"           finds "the module did not answer within 30 s: while it was loaded" \
    MISFIT=hang MACHINE=impatient "${on_machine[@]:1}"
check "one with no list"         finds "is not usable: C_GetFunctionList answers 0x0"
check "the rest is checked all the same" grep -F "the kernel wipes the pool" "$scratch/out"

# The target at work.
TARGET=$SCRIPTED configure
# scripted WHAT TEXT SCRIPT
scripted() {
    check "$1" finds "$2" TARGET_SCRIPT="$3"
}
scripted "a login is needed"        "makes random bytes only after a login" 'login for random'
scripted "no random number generator" "has no random number generator" 'no generator'
scripted "no token"                 "with a token: 0" 'slots 0'
scripted "random bytes fail"        "C_OpenSession or C_GenerateRandom answers 0x30 (" 'C_GenerateRandom: fail 0x30; C_GenerateRandom: ok once'
scripted "a token that does not answer" "C_GetTokenInfo answers 0x32 (" 'C_GetTokenInfo: fail 0x32'
scripted "a generator that is stuck" "fails the health test, so C_GenerateRandom fails" 'C_GenerateRandom: stuck'
scripted "it does not start"        "C_Initialize answers 0x5 (" 'C_Initialize: fail 5'
mkdir "$scratch/empty"
sed "s#^directories.tokendir.*#directories.tokendir = $scratch/empty#" "$SOFTHSM2_CONF" >"$scratch/empty.conf"
configure
check "no token is initialised"  finds "note     no token can be used yet" SOFTHSM2_CONF="$scratch/empty.conf"
check "and the next step"        hints "initialise one with its maker's tool, or with pkcs11-tool --module $TARGET"

# The proxy.
check "no proxy there"           says 1 "the proxy is not there" "$TOOL" check --module "$scratch/p11-proxy.so"
check "no proxy but a text"      says 1 "the proxy cannot be loaded" "$TOOL" check --module "$scratch/text.so"
cp "$PROXY" "$scratch/p11-proxy.so"
ln -s p11-proxy.so "$scratch/p11-proxy-luna.so"
check "a link instead of a copy" says 1 "$scratch/p11-proxy-luna.so is a link to $scratch/p11-proxy.so" \
    "$TOOL" check --module "$scratch/p11-proxy-luna.so"
follows_advice() {
    bash -eux -c "$(sed -n 's/^ *-> replace the link by a copy: //p' "$scratch/out")" &&
        exits 0 "$TOOL" check --module "$scratch/p11-proxy-luna.so"
}
check "the advice makes it one"  follows_advice
check "a plain name is a file here" says 0 "the proxy starts: $scratch/p11-proxy.so" \
    env -C "$scratch" "$TOOL" check --module p11-proxy.so
# A copy that an upgrade left as it was: the same code with another version's number. A compiler may store that number
# in pieces, of which the first has four bytes at least.
version=$("$TOOL" --version)
version=${version##* }
first=${version:0:4}
LC_ALL=C sed "s/${first//./\\.}/${first//[0-9]/9}/g" "$PROXY" >"$scratch/p11-proxy-copy.so"
looks >"$scratch/out"
check "the module of this version" test -z "$(grep "is of another version" "$scratch/out")"
check "of another one"           says 0 "note     the proxy is of another version than this program, which is $version: $scratch/p11-proxy-copy.so" \
    "$TOOL" check --module "$scratch/p11-proxy-copy.so"

# The policy.
check "a policy, and an item with no effect" with 'x-disabled-algorithms: MD5, anon' \
    finds "note     items in the policy: 2, without effect here: 1"
check "and what shows it"        hints "p11-proxy policy shows what each denies, or why it denies nothing"
check "a policy in force"        with 'x-disabled-algorithms: MD5' finds "ok       items in the policy: 1, without effect here: 0"
check "an audit"                 with $'x-disabled-algorithms: MD5\nx-policy: audit' \
    finds "note     items in the policy: 1, without effect here: 0; x-policy is audit, so nothing is refused"
check "an unknown item"          with 'x-disabled-algorithms: MD55' says 1 "$P11_PROXY_CONFIG:4" looks
printf 'jdk.tls.disabledAlgorithms=DES, NoSuchThing\n' >"$scratch/list"
check "an unknown item in a file" with "x-disabled-algorithms-file: $scratch/list" finds "NoSuchThing"

# Machines that this one is not.
sees() {
    finds "$1" "${on_machine[@]:1}" MACHINE="$2" CPUINFO="$scratch/$3"
}
configure
printf 'processor\t: 0\nflags\t\t: fpu hypervisor vme\n' >"$scratch/virtual"
printf 'processor\t: 0\nmodel name\t: a hypervisor\nflags\t\t: fpu vme\n' >"$scratch/real"
check "memory is not wiped on fork" sees "problem  the kernel does not prove that it wipes memory on fork" wipe real
check "no virtual machine"       test -z "$(grep "virtual machine" "$scratch/out")"
check "a virtual machine"        sees "note     this is a virtual machine" none virtual
check "and what to do"           hints "set x-pool-mix: kernel"
check "with the mix"             with 'x-pool-mix: kernel' sees "ok       x-pool-mix: kernel makes the bytes of cloned machines differ" none virtual

# Registered modules, and p11-kit's own module as target. The system's own registrations are left out.
if ! has "$kit_proxy"; then
    skip_check "registered modules" "no p11-kit"
    done_testing
    exit
fi
as=(as_someone)
unset P11_PROXY_CONFIG
[[ $EUID != 0 ]] || chown -R 65534 "$scratch/tokens"
register p11-proxy "x-target: $TARGET" 'x-log: off'
check "p11-kit does not know the proxy" finds "p11-kit does not load the proxy into this program"
check "and what registers it"    hints "p11-proxy setup registers it"
register p11-proxy "module: $PROXY" "x-target: $TARGET" 'x-log: off'
check "the token only through it" finds "ok       p11-kit gives programs the proxy, and no token of it through another module"
cp "$TARGET" "$scratch/copy.so"
register own "module: $scratch/copy.so"
check "the token by another file too" finds "p11-kit has a token of the target by another module too (own), so programs see it twice"
check "and the line to write"    hints "add the line enable-in: nothing to $modules/own.module"
register own "module: $TARGET" 'enable-in: nothing'
check "hidden"                   finds "no token of it through another module"
register own "module: $SCRIPTED"
check "a module with other tokens is no double" finds "no token of it through another module"
register own "module: $scratch/none.so"
check "a module that cannot be loaded is no double" finds "no token of it through another module"
register own "module: $MISFIT_MODULE"
check "a module that crashes is a note" finds "note     the modules that p11-kit has registered cannot be listed" MISFIT=crash

# p11-kit's own module as target.
register own "module: $TARGET"
register p11-proxy "module: $PROXY" "x-target: $kit_proxy" 'x-log: off'
check "a loop"                   finds "problem  the target loads this proxy in turn"
check "and how to end it"        hints "add the line disable-in: p11-kit-proxy to "
register p11-proxy "module: $PROXY" "x-target: $kit_proxy" 'x-log: off' 'disable-in: p11-kit-proxy'
check "no loop"                  finds "the proxy starts: $PROXY"
done_testing
