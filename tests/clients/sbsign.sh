#!/bin/bash
# sbsign.sh - a signature for secure boot with a key on the token.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs sbsign sbverify
new_key
efi=$(find /usr/lib/systemd/boot/efi -name 'systemd-boot*.efi' 2>/dev/null | head -n 1)
needs "${efi:-a program to sign}" /usr/lib/x86_64-linux-gnu/engines-3/pkcs11.so
recipe sbsign
cp "$efi" "$scratch/files/program.efi"

signs() {
    follow && sbverify --cert cert.pem signed.efi
}

same "it signs and verifies"            signs
gains sbsign
done_testing
