#!/bin/bash
# p11-kit.sh - registered with p11-kit: the forms of the file, what hides a module, all modules in one above us and
# below us, and a token in another process.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs p11-kit p11tool pkcs11-tool
kit=$(pkg-config --variable=proxy_module p11-kit-1)
client=$(pkg-config --variable=p11_module_path p11-kit-1)/p11-kit-client.so
needs "$kit" "$client"
modules=$config/modules
new_key

# The token as the last of several has another number.
normalise() {
    sed -E 's/(library-(description|manufacturer|version)|Slot [0-9]+ \().*/\1/'
}

# as_user reads what p11-kit reads: no other file.
registered() {
    (unset P11_PROXY_CONFIG && as_user "$@")
}

# also LINE...: more lines in our registration; then the job.
lines=()
also() {
    printf '%s\n' "${lines[@]}" >>"$P11_PROXY_CONFIG"
    "$@"
}

tokens_listed() {
    registered p11-kit list-modules 2>/dev/null | grep -c 'token: proxy-test' || true
}

draws() {
    registered p11tool --generate-random=48 pkcs11:token=proxy-test 2>/dev/null | wc -c
}

signs() {
    head -c 32 /dev/zero >data
    registered pkcs11-tool --module "$1" --token-label proxy-test --login --pin 1234 --sign --mechanism SHA256-RSA-PKCS \
        --id 01 --input-file data --output-file signature 2>/dev/null &&
        openssl dgst -verify <(openssl x509 -in cert.pem -noout -pubkey) -sha256 -signature signature data
}

# p11-kit-proxy.so has the tokens of all modules.
above() {
    registered pkcs11-tool --module "$kit" --list-slots && signs "$kit" &&
        registered pkcs11-tool --module "$kit" --token-label proxy-test --generate-random 32 2>/dev/null | wc -c
}

# It as our target would find us again among its modules: disable-in takes us out of it.
below() {
    printf '%s\n' "module: $TARGET" >"$modules/softhsm2.module"
    export P11_SLOW_TARGET=$kit
    registered pkcs11-tool --module "$place/p11-proxy.so" --list-slots && signs "$place/p11-proxy.so"
}

# The token's own registration beside ours: what p11-kit-proxy.so draws from the first, and from the second.
beside_the_tokens_own() {
    printf '%s\n' "module: $SLOW" 'priority: 5' >"$modules/softhsm2.module"
    tokens_listed && draws
    registered pkcs11-tool --module "$kit" --slot-index 0 --generate-random 32 2>/dev/null | wc -c
    registered pkcs11-tool --module "$kit" --slot-index 2 --generate-random 32 2>/dev/null | wc -c
}

# One of the two is hidden from all programs, or from one.
hides() {
    printf '%s\n' "module: $TARGET" 'enable-in: nothing' >"$modules/softhsm2.module"
    tokens_listed
    printf '%s\n' "module: $TARGET" 'disable-in: p11-kit' >"$modules/softhsm2.module"
    tokens_listed
    printf '%s\n' "module: $TARGET" 'disable-in: p11tool' >"$modules/softhsm2.module"
    tokens_listed
}

# A module in a process of its own, which p11-kit starts.
in_another_process() {
    sed -i 's/^module:/remote: |p11-kit remote/' "$modules/p11-proxy.module"
    tokens_listed && draws && signs "$kit"
}

in_one_process() {
    registered /usr/bin/python3 "$CHECKOUT/tests/clients/p11_kit.py" "$@"
}

# form N TEXT: p11-kit loads N modules under our name from such a file, and each has its token.
form() {
    local wanted=$1 text=$2
    set_out proxied
    text=${text//MODULE/$place/p11-proxy.so}
    printf '%b' "${text//TARGET/$TARGET}" >"$P11_PROXY_CONFIG"
    [[ $(registered p11-kit list-modules 2>/dev/null | grep -c '^p11-proxy:') == "$wanted" ]]
}

same "it is listed"                             registered p11-kit list-modules
same "random bytes"                             draws
same "random bytes and a signature through p11-kit-proxy.so" above
recipe p11-kit-proxy.so
mapfile -t lines < <(grep disable-in "$scratch/files/p11-proxy.module")
rm -r "$scratch/files/p11-proxy.module"
same "p11-kit-proxy.so as our target"           also below
lines=('priority: 9')
same "the token's own module beside us, we first"  also beside_the_tokens_own
lines=('priority: 1')
same "the token's own module beside us, it first"  also beside_the_tokens_own
same "what hides a registration"                hides
lines=('log-calls: yes')
same "p11-kit logs the calls"                   also draws
same "managed, in one process again and again"  in_one_process managed
same "unmanaged"                                in_one_process unmanaged
same "in a process that p11-kit starts"         in_another_process

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
