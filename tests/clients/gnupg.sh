#!/bin/bash
# gnupg.sh - gnupg-pkcs11-scd under GnuPG's agent: what is on the token, and a signature.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs gnupg-pkcs11-scd gpg-agent gpg-connect-agent
new_key
recipe GnuPG

# The agent asks for the PIN by a program, on its standard input.
cat >"$scratch/files/pinentry" <<'END'
#!/bin/sh
echo OK
while read -r command rest; do
    [ "$command" != GETPIN ] || echo D 1234
    echo OK
    [ "$command" != BYE ] || exit 0
done
END
chmod +x "$scratch/files/pinentry"
echo "pinentry-program $place/pinentry" >>"$scratch/files/gpg-agent.conf"

learns_and_signs() {
    local id hash
    export GNUPGHOME=$place
    chmod 700 "$place"
    hash=$(openssl dgst -sha256 -r cert.pem | cut -d ' ' -f 1)
    follow 2>&1 | sed '/^gpg-connect-agent/d' | tee learned
    id=$(sed -n 's/^S CERTINFO 101 //p' learned)
    gpg-connect-agent --hex "SCD SETDATA $hash" "SCD PKSIGN --hash=sha256 $id" /bye | tee signature
    gpgconf --kill gpg-agent
    grep -q '^D' signature
}

same "it learns and signs"      learns_and_signs
gains gnupg-pkcs11-scd
done_testing
