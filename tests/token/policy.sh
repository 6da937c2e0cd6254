#!/bin/bash
# policy.sh - real programs under a policy: what is disabled is gone from their lists, and refused when they try.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

# under LIST COMMAND...: with that list of disabled algorithms.
under() {
    configure "x-disabled-algorithms: $1"
    "${@:2}"
}

tool() {
    pkcs11-tool --module "$PROXY" "$@"
}

# gone LIST NAME...: just these mechanisms vanish from pkcs11-tool's list, which has the first one at least.
gone() {
    pkcs11-tool --module "$TARGET" --list-mechanisms >"$scratch/all"
    sed "$(printf '/^  %s\\(,\\|$\\)/d;' "${@:2}")" "$scratch/all" >"$scratch/wanted"
    grep "^  ${2-}" "$scratch/all" && diff -u "$scratch/wanted" <(under "$1" tool --list-mechanisms)
}

head -c 32 /dev/zero >"$scratch/data"
md5() {
    tool --hash --mechanism MD5 --input-file "$scratch/data" --output-file "$scratch/digest"
}

sign() {
    tool --login --pin 1234 --sign --mechanism "$1" --id "$2" --input-file "$scratch/data" --output-file "$scratch/signature"
}

makes_key() {
    tool --login --pin 1234 --keypairgen --key-type "$1" --id 09 --label new
}

java_with() {
    timeout 120 java -cp "$scratch" Work "$scratch/java.cfg" "$@"
}

# services_gone LIST: it takes services, the digests among them, and adds none.
services_gone() {
    under '' java_with services >"$scratch/all" && under "$1" java_with services >"$scratch/left" || return 1
    diff "$scratch/all" "$scratch/left" | tee "$scratch/gone"
    ! grep '^>' "$scratch/gone" && grep -x '< MessageDigest MD5' "$scratch/gone" && grep -x '< MessageDigest SHA-1' "$scratch/gone" &&
        ! grep -E 'SHA256|SHA-256|AES|^< Signature (SHA512|NONE)' "$scratch/gone"
}

for key in rsa:2048:01 rsa:1024:02 EC:prime256v1:03 EC:secp384r1:04; do
    pkcs11-tool --module "$TARGET" --login --pin 1234 --keypairgen --key-type "${key%:*}" --id "${key##*:}" \
        --label "key${key##*:}" >/dev/null 2>&1
done
printf '%s\n' "name = policy" "library = $PROXY" 'slotListIndex = 0' >"$scratch/java.cfg"
javac -d "$scratch" "$CHECKOUT/tests/clients/Work.java"

check "pkcs11-tool: an empty list hides nothing"     gone ''
check "pkcs11-tool: nor does a list that is audited" gone $'MD5, SHA1\nx-policy: audit'
check "pkcs11-tool: MD5"                             gone 'MD5' MD5 MD5-RSA-PKCS
check "pkcs11-tool: SHA-1 leaves SHA-256"            gone 'Sha-1' SHA-1 SHA1-RSA-PKCS SHA1-RSA-PKCS-PSS DSA-SHA1 ECDSA-SHA1
check "pkcs11-tool: DES is not DESede"               gone 'DES' DES-KEY-GEN DES-ECB DES-CBC DES-CBC-PAD DES-ECB-ENCRYPT-DATA DES-CBC-ENCRYPT-DATA mechtype-0x1100 mechtype-0x1101
check "pkcs11-tool: a mechanism by its number"       gone '0x250' SHA256
check "pkcs11-tool: sizes are no reason to hide"     under 'RSA keySize < 2048' says 0 '  RSA-PKCS, keySize={2048,' tool --list-mechanisms
check "pkcs11-tool: MD5 is refused"                  under 'MD5' warns 1 CKR_MECHANISM_INVALID md5
check "pkcs11-tool: MD5 is fine without"             under '' md5
check "pkcs11-tool: 1024 bits are refused"           under 'RSA keySize < 2048' warns 1 CKR_KEY_SIZE_RANGE sign SHA256-RSA-PKCS 02
check "pkcs11-tool: 2048 bits are fine"              under 'RSA keySize < 2048' sign SHA256-RSA-PKCS 01
check "pkcs11-tool: no new key of 1024 bits"         under 'RSA keySize < 2048' warns 1 CKR_KEY_SIZE_RANGE makes_key rsa:1024
check "pkcs11-tool: one curve is refused"            under 'secp256r1' warns 1 'rv = ' sign ECDSA 03
check "pkcs11-tool: another is fine"                 under 'secp256r1' sign ECDSA 04
check "pkcs11-tool: no new key on it"                under 'secp256r1' warns 1 'rv = ' makes_key EC:prime256v1
check "a wrong list is told with its place"          under 'MD5, SHA9' warns 1 "$P11_PROXY_CONFIG:4:" tool --list-slots
check "Java: services are gone"                      services_gone 'SHA-1, MD5, DES, RC4'
check "Java: SHA256withRSA, with a new key of 2048 bits" under 'SHA-1, MD5, RSA keySize < 2048' java_with sign SHA256withRSA 2048
check "Java: no new key of 1024 bits"                under 'RSA keySize < 2048' warns 1 2048 java_with sign SHA256withRSA 1024
check "Java: MD5withRSA, if nothing is disabled"     under '' java_with sign MD5withRSA 2048
check "Java: MD5withRSA through a raw signature"     under 'CKM_MD5_RSA_PKCS' warns 1 CKR_DATA_INVALID java_with sign MD5withRSA 2048

done_testing
