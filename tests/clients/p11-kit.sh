#!/bin/bash
# p11-kit.sh - registered with p11-kit: the forms of the file, what hides a module, all modules in one above us and
# below us, and a token in another process.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs p11-kit p11tool pkcs11-tool "$kit_proxy"
new_key
# Found as p11-kit finds it.
export -n P11_PROXY_CONFIG

# The token as the last of several has another number.
normalise() {
    sed -E 's/(library-(description|manufacturer|version)|Slot [0-9]+ \().*/\1/'
}

# also LINE JOB...: one more line in our registration; then the job.
also() {
    printf '%s\n' "$1" >>"$P11_PROXY_CONFIG"
    "${@:2}"
}

tokens_listed() {
    as_someone p11-kit list-modules 2>/dev/null | grep -c 'token: proxy-test' || true
}

draws() {
    as_someone p11tool --generate-random=48 pkcs11:token=proxy-test 2>/dev/null | wc -c
}

signs() {
    head -c 32 /dev/zero >data
    as_someone pkcs11-tool --module "$1" --token-label proxy-test --login --pin 1234 --sign --mechanism SHA256-RSA-PKCS \
        --id 01 --input-file data --output-file signature 2>/dev/null &&
        verifies data
}

# draws_in SLOT: from p11-kit-proxy.so, which has the tokens of all modules.
draws_in() {
    as_someone pkcs11-tool --module "$kit_proxy" --slot-index "$1" --generate-random 32 2>/dev/null | wc -c
}

above() {
    as_someone p11-kit list-modules && draws && as_someone pkcs11-tool --module "$kit_proxy" --list-slots && signs "$kit_proxy" && draws_in 0
}

# It as our target would find us again among its modules: disable-in takes us out of it.
below() {
    register softhsm2 "module: $TARGET"
    export COUNTING_TARGET=$kit_proxy
    as_someone pkcs11-tool --module "$module" --list-slots && signs "$module"
}

# What p11-kit-proxy.so draws from the first of two registrations, and from the second.
beside_the_tokens_own() {
    register softhsm2 "module: $COUNTING" 'priority: 5'
    tokens_listed && draws && draws_in 0 && draws_in 2
}

# One of the two is hidden from all programs, or from one.
hides() {
    local line
    for line in 'enable-in: nothing' 'disable-in: p11-kit' 'disable-in: p11tool'; do
        register softhsm2 "module: $TARGET" "$line"
        tokens_listed
    done
}

# A module in a process of its own, which p11-kit starts.
in_another_process() {
    sed -i 's/^module:/remote: |p11-kit remote/' "$P11_PROXY_CONFIG"
    tokens_listed && draws && signs "$kit_proxy"
}

# A program that takes all modules again and again, and does not always give them back.
in_one_process() {
    as_someone /usr/bin/python3 -c '
import ctypes
kit = ctypes.CDLL("libp11-kit.so.0")
kit.p11_kit_modules_load_and_initialize.restype = ctypes.POINTER(ctypes.c_void_p)
for number in range(30):
    modules = kit.p11_kit_modules_load_and_initialize(0)
    print(number, bool(modules[0]), bool(modules[1]))
    if number < 15:
        kit.p11_kit_modules_finalize_and_release(modules)'
}

# form N TEXT: p11-kit loads N modules under our name from such a file, and each has its token.
form() {
    local text=${2//MODULE/$module}
    set_out proxied
    printf '%b' "${text//TARGET/$TARGET}" >"$P11_PROXY_CONFIG"
    [[ $(as_someone p11-kit list-modules 2>/dev/null | grep -c '^p11-proxy:') == "$1" ]]
}

same "alone, and in p11-kit-proxy.so"           above
recipe p11-kit-proxy.so
hidden=$(grep disable-in "$files/p11-proxy.module")
rm "$files/p11-proxy.module"
same "p11-kit-proxy.so as our target"           also "$hidden" below
same "the token's own module beside us, we first"  also 'priority: 9' beside_the_tokens_own
same "the token's own module beside us, it first"  also 'priority: 1' beside_the_tokens_own
same "what hides a registration"                hides
same "p11-kit logs the calls"                   also 'log-calls: yes' draws
same "in one process again and again"           in_one_process
same "in a process that p11-kit starts"         in_another_process

check "form: a comment line above"    form 1 '# ours\nmodule: MODULE\nx-target: TARGET\n'
check "form: CRLF"                    form 1 'module: MODULE\r\nx-target: TARGET\r\n'
check "form: blanks and tabs, no newline at the end" form 1 '  module \t:  MODULE \t\n\n\tx-target:TARGET  '
check "not a form: a comment behind"  form 0 'module: MODULE # ours\nx-target: TARGET\n'
check "not a form: quotes"            form 0 'module: "MODULE"\nx-target: TARGET\n'
check "not a form: a byte order mark" form 0 '\xef\xbb\xbfmodule: MODULE\nx-target: TARGET\n'
done_testing
