#!/bin/bash
# osslsigncode.sh - an Authenticode signature with a key on the token.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs osslsigncode
new_key
efi=$(find /usr/lib/systemd/boot/efi -name 'systemd-boot*.efi' 2>/dev/null | head -n 1)
needs "${efi:-a program to sign}" /usr/lib/x86_64-linux-gnu/engines-3/pkcs11.so
recipe osslsigncode
cp "$efi" "$scratch/files/program.exe"

signs() {
    follow && osslsigncode verify -CAfile cert.pem signed.exe | grep -E 'Signature verification|verified signatures'
}

same "it signs and verifies"            signs
gains osslsigncode
done_testing
