#!/bin/bash
# p11-kit.sh - registered with p11-kit: the forms of the file, and the token's own module beside ours.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

unset P11_PROXY_CONFIG
modules=$scratch/home/.config/pkcs11/modules
mkdir -p "$modules"
printf 'user-config: only\n' >"$modules/../pkcs11.conf"

# register [LINE...]: our module file in its plain form, with lines added.
register() {
    printf '%s\n' "module: $PROXY" "x-target: $TARGET" 'x-log: stderr warning' "$@" >"$modules/p11-proxy.module"
}

# How many modules p11-kit lists under our name for a file with what is on standard input.
loaded() {
    cat >"$modules/p11-proxy.module"
    as_someone p11-kit list-modules 2>/dev/null | grep -c '^p11-proxy:' || true
}

form() {
    local wanted=$1 text=$2
    text=${text//MODULE/$PROXY}
    [[ $(printf '%b' "${text//TARGET/$TARGET}" | loaded) == "$wanted" ]]
}

# p11tool shows a token once that two modules have; p11-kit shows what each has.
lists_token() {
    local times=$1
    as_someone p11-kit list-modules >"$scratch/list" 2>&1
    cat "$scratch/list"
    [[ $(grep -c 'token: proxy-test' "$scratch/list") == "$times" ]]
}

p11tool_lists_token() {
    as_someone p11tool --list-tokens 2>&1 | grep 'Label: proxy-test'
}

draws() {
    local bytes
    bytes=$(as_someone p11tool --generate-random=48 pkcs11:token=proxy-test 2>/dev/null | wc -c)
    [[ $bytes == 48 ]]
}

lists_module() {
    as_someone p11-kit list-modules | grep "^$1:"
}

proxy_of_p11_kit_draws() {
    local module
    module=$(pkg-config --variable=proxy_module p11-kit-1)
    [[ $(as_someone pkcs11-tool --module "$module" --slot-index "$1" --generate-random 32 2>/dev/null | wc -c) == 32 ]]
}

beside_the_tokens_own() {
    register "priority: $1"
    printf '%s\n' "module: $TARGET" 'priority: 5' >"$modules/softhsm2.module"
    check "$2: both are listed"               lists_module p11-proxy
    check "$2: the other one too"             lists_module softhsm2
    check "$2: the token appears twice"       lists_token 2
    check "$2: p11tool shows it"              p11tool_lists_token
    check "$2: random bytes"                  draws
    # Each has the token and an empty slot.
    check "$2: p11-kit-proxy.so draws from the first"  proxy_of_p11_kit_draws 0
    check "$2: p11-kit-proxy.so draws from the second" proxy_of_p11_kit_draws 2
    rm "$modules/softhsm2.module"
}

register
check "it is listed"           lists_module p11-proxy
check "its token appears once" lists_token 1
check "p11tool shows it"       p11tool_lists_token
check "random bytes"           draws
check "random bytes through p11-kit-proxy.so" proxy_of_p11_kit_draws 0

beside_the_tokens_own 9 "proxy first"
beside_the_tokens_own 1 "token's own module first"

# A program that takes all modules for each of its connections, and gives them back at first, but not later.
finds_as_many_each_time() {
    as_someone python3 - <<'END'
import ctypes
kit = ctypes.CDLL('libp11-kit.so.0')
kit.p11_kit_modules_load_and_initialize.restype = ctypes.POINTER(ctypes.c_void_p)
kit.p11_kit_modules_finalize_and_release.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
found = set()
for number in range(30):
    modules = kit.p11_kit_modules_load_and_initialize(0)
    count = 0
    while modules[count]:
        count += 1
    found.add(count)
    if number < 15:
        kit.p11_kit_modules_finalize_and_release(modules)
print(found)
raise SystemExit(found != {1})
END
}
check "it is found again and again in one process" finds_as_many_each_time

register
printf '%s\n' "module: $TARGET" 'enable-in: nothing' >"$modules/softhsm2.module"
check "enable-in hides the token's own registration" lists_token 1
rm "$modules/softhsm2.module"

check "form: plain"                   form 1 'module: MODULE\nx-target: TARGET\n'
check "form: a comment line above"    form 1 '# ours\nmodule: MODULE\nx-target: TARGET\n'
check "form: CRLF"                    form 1 'module: MODULE\r\nx-target: TARGET\r\n'
check "form: blanks and tabs"         form 1 '  module \t:  MODULE \t\n\n\tx-target:TARGET  \n'
check "form: no newline at the end"   form 1 'module: MODULE\nx-target: TARGET'
check "not a form: a comment behind"  form 0 'module: MODULE # ours\nx-target: TARGET\n'
check "not a form: quotes"            form 0 'module: "MODULE"\nx-target: TARGET\n'
check "not a form: a capital"         form 0 'Module: MODULE\nx-target: TARGET\n'
check "not a form: a byte order mark" form 0 '\xef\xbb\xbfmodule: MODULE\nx-target: TARGET\n'
check "not a form: a relative path"   form 0 'module: ./p11-proxy.so\n# TARGET\n'
done_testing
