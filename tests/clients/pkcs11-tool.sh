#!/bin/bash
# pkcs11-tool.sh - OpenSC's tool: what it says of a token, its own tests, and keys of its making.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs pkcs11-tool
recipe pkcs11-tool

# What is made anew each time.
normalise() {
    sed -E -e 's/0x[0-9a-f]{6,}/NUMBER/g' -e 's/(serial num *: ).*/\1NUMBER/' \
        -e 's/(EC_POINT:|Modulus:|serial=).*/\1 BYTES/' -e 's/[0-9a-f]{30,}/BYTES/g'
}

tool() {
    pkcs11-tool --module "$place/p11-proxy.so" "$@"
}

user() {
    tool --login --pin 1234 "$@"
}

draws() {
    local bytes
    for bytes in 0 1 16 32 1024 1025 70000; do
        tool --generate-random "$bytes" 2>/dev/null | wc -c
    done
}

# What the proxy's key signs, the token's own module verifies.
signs() {
    local mechanism=$1 id=$2
    head -c 32 /dev/zero >data
    user --sign --mechanism "$mechanism" --id "$id" --input-file data --output-file signature &&
        user --verify --mechanism "$mechanism" --id "$id" --input-file data --signature-file signature &&
        pkcs11-tool --module "$TARGET" --login --pin 1234 --verify --mechanism "$mechanism" --id "$id" \
            --input-file data --signature-file signature
}

# The order of objects is that of a folder.
makes_keys() {
    user --keypairgen --key-type rsa:2048 --id 01 --label rsa && signs SHA256-RSA-PKCS 01 &&
        user --keypairgen --key-type EC:prime256v1 --id 02 --label ec && signs ECDSA 02 &&
        user --list-objects | sort && user --delete-object --type privkey --id 02 && user --list-objects | sort
}

# SoftHSM says no to the label that the tool gives with OAEP, and the tool ends there.
tests_with_a_key() {
    user --keypairgen --key-type rsa:2048 --id 01 --label rsa && user --test
}

# A SoftHSM that is told so is a strict token: its child is not initialised.
where_children_start_anew() {
    # shellcheck disable=SC2031
    echo 'library.reset_on_fork = true' >>"$SOFTHSM2_CONF"
    "$@"
}

initialises() {
    tool --init-token --slot-index 1 --label second --so-pin 12345678 && tool --list-token-slots | grep label | sort &&
        tool --token-label second --login --login-type so --so-pin 12345678 --init-pin --new-pin 5678 &&
        tool --token-label second --login --pin 5678 --list-objects
}

# The one that comes first initialises, the others hear that it is done. No other answer is right. The tool sometimes
# waits half a minute for a thread of its own that has ended, with SoftHSM alone as well: so only with --long.
threads_get_along() {
    leg proxied tool --use-locking --test-threads IL --test-threads IL
    cat "$scratch/proxied.raw"
    grep -q 'C_Initialize  returned CKR_OK\|rv:CKR_OK' "$scratch/proxied.raw" &&
        ! grep -E 'CKR_' "$scratch/proxied.raw" | grep -vE 'CKR_OK|CKR_CRYPTOKI_ALREADY_INITIALIZED'
}

same "the module's description"         tool --show-info
same "the slots"                        tool --list-slots
same "the mechanisms"                   tool --list-mechanisms
same "no objects yet"                   tool --list-objects
check "a login with a wrong PIN"        ends_alike 1 tool --login --pin 4321 --list-objects
same "random bytes of seven sizes"      draws
same "the tool's own tests"             follow
gains pkcs11-tool
same "keys are made, and sign"          makes_keys
check "the tool's own tests with a key" ends_alike 1 tests_with_a_key
check "its tests of forking"            ends_alike 1 tool --test-fork
same "the same, where children start anew" where_children_start_anew tool --test-fork
! $long || check "its tests of threads"     threads_get_along
same "a token is initialised"           initialises
done_testing
