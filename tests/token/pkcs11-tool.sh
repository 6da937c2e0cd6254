#!/bin/bash
# pkcs11-tool.sh - OpenSC's tool says through the proxy what it says of SoftHSM alone.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

# What differs from run to run, with or without a proxy: where the module lies, and numbers made anew.
normalise() {
    sed -E -e "s#$PROXY|$TARGET#MODULE#g" -e 's/0x[0-9a-f]{6,}/NUMBER/g' -e 's/(serial num *: ).*/\1NUMBER/' \
        -e 's/(EC_POINT:|Modulus:|serial=).*/\1 BYTES/' -e 's/[0-9a-f]{30,}/BYTES/g'
}

tool() {
    local module=$1
    shift
    { pkcs11-tool --module "$module" "$@" 2>&1 || echo "exit code $?"; } | normalise
}

# same ARGUMENT...: pkcs11-tool prints the same, and ends with the same code, with and without the proxy.
same() {
    tool "$TARGET" "$@" >"$scratch/bare"
    tool "$PROXY" "$@" >"$scratch/proxied"
    [[ -s $scratch/bare ]] || return 1
    diff -u "$scratch/bare" "$scratch/proxied"
}

# Whoever comes first initialises, the others hear that somebody did. No other answer is right. (The tool
# sometimes waits half a minute for a thread of its own that has ended, with SoftHSM alone as well.)
threads_get_along() {
    tool "$PROXY" --use-locking --test-threads IL --test-threads IL >"$scratch/threads"
    cat "$scratch/threads"
    grep -q 'C_Initialize  returned CKR_OK\|rv:CKR_OK' "$scratch/threads" &&
        ! grep -E 'CKR_' "$scratch/threads" | grep -vE 'CKR_OK|CKR_CRYPTOKI_ALREADY_INITIALIZED'
}

draws() {
    [[ $(pkcs11-tool --module "$PROXY" --generate-random "$1" 2>/dev/null | wc -c) == "$1" ]]
}

makes_key_pair() {
    pkcs11-tool --module "$PROXY" --login --pin 1234 --keypairgen --key-type "$1" --id "$2" --label "$3"
}

signs_and_verifies() {
    local mechanism=$1 id=$2
    head -c 32 /dev/zero >"$scratch/data"
    rm -f "$scratch/signature"
    pkcs11-tool --module "$PROXY" --login --pin 1234 --sign --mechanism "$mechanism" --id "$id" \
        --input-file "$scratch/data" --output-file "$scratch/signature" &&
        pkcs11-tool --module "$TARGET" --login --pin 1234 --verify --mechanism "$mechanism" --id "$id" \
            --input-file "$scratch/data" --signature-file "$scratch/signature" | grep 'Signature is valid' &&
        pkcs11-tool --module "$PROXY" --login --pin 1234 --verify --mechanism "$mechanism" --id "$id" \
            --input-file "$scratch/data" --signature-file "$scratch/signature" | grep 'Signature is valid'
}

# A SoftHSM that is told so is a strict token: its child is not initialised.
same_where_children_start_anew() {
    sed '$a library.reset_on_fork = true' "$SOFTHSM2_CONF" >"$scratch/strict.conf"
    (export SOFTHSM2_CONF=$scratch/strict.conf && same "$@")
}

initialises_a_token() {
    pkcs11-tool --module "$PROXY" --init-token --slot-index 1 --label second --so-pin 12345678 &&
        pkcs11-tool --module "$TARGET" --list-token-slots | grep 'label *: second'
}

check "the module's description"   same --show-info
check "the slots"                  same --list-slots
check "the mechanisms"             same --list-mechanisms
check "no objects yet"             same --list-objects
check "a login with a wrong PIN"   same --login --pin 4321 --list-objects
for bytes in 1 16 32 1024 1025 70000; do
    check "$bytes random bytes"    draws "$bytes"
done
check "an RSA key pair is made"    makes_key_pair rsa:2048 01 rsa
check "an EC key pair is made"     makes_key_pair EC:prime256v1 02 ec
check "what objects there are"     same --login --pin 1234 --list-objects
check "RSA signs, and both verify" signs_and_verifies SHA256-RSA-PKCS 01
check "EC signs, and both verify"  signs_and_verifies ECDSA 02
check "the tool's own tests"       same --login --pin 1234 --test
check "its tests of forking"       same --test-fork
check "the same, where children start anew"  same_where_children_start_anew --test-fork
check "its tests of threads"       threads_get_along
check "a token is initialised"     initialises_a_token
done_testing
