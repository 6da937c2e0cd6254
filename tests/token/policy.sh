#!/bin/bash
# policy.sh - real programs under a policy: what is disabled is gone from their lists, and refused when they try.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

# under LIST COMMAND...: with that list of disabled algorithms.
under() {
    configure "x-disabled-algorithms: $1"
    "${@:2}"
}

# fails_with TEXT COMMAND...: with a code that is no signal's, and says TEXT.
fails_with() {
    local out code=0
    out=$("${@:2}" 2>&1) || code=$?
    printf '%s\nexit code %d\n' "$out" "$code"
    [[ $code != 0 && $code -lt 124 && $out == *"$1"* ]]
}

tool() {
    pkcs11-tool --module "$PROXY" "$@"
}

# Mechanisms, each a word, as pkcs11-tool lists them.
mechanisms() {
    pkcs11-tool --module "$1" --list-mechanisms | sed -n 's/^  \([^ ,]*\).*/\1/p'
}

# gone LIST NAME...: just these mechanisms vanish from pkcs11-tool's list, and the order of the others stays.
gone() {
    mechanisms "$TARGET" | grep -vxF "$(printf '%s\n' "${@:2}")" >"$scratch/wanted"
    under "$1" mechanisms "$PROXY" >"$scratch/shown"
    diff -u "$scratch/wanted" "$scratch/shown" && [[ $(wc -l <"$scratch/wanted") -lt $(mechanisms "$TARGET" | wc -l) ]]
}

nothing_gone() {
    diff -u <(pkcs11-tool --module "$TARGET" --list-mechanisms) \
        <(under "$1" pkcs11-tool --module "$PROXY" --list-mechanisms)
}

says_raised_size() {
    under 'RSA keySize < 2048' tool --list-mechanisms | grep '^  RSA-PKCS, keySize={2048,'
}

md5() {
    head -c 100 /dev/zero >"$scratch/data"
    tool --hash --mechanism MD5 --input-file "$scratch/data" --output-file "$scratch/digest"
}

sign() {
    head -c 32 /dev/zero >"$scratch/data"
    tool --login --pin 1234 --sign --mechanism "$1" --id "$2" --input-file "$scratch/data" \
        --output-file "$scratch/signature"
}

makes_key() {
    tool --login --pin 1234 --keypairgen --key-type "$1" --id 09 --label new
}

java_with() {
    timeout 120 java -cp "$scratch" Work "$scratch/java.cfg" "$@"
}

# The services that vanish, each on a line.
services_gone() {
    under '' java_with services >"$scratch/all" && under "$1" java_with services >"$scratch/left" &&
        comm -23 "$scratch/all" "$scratch/left" >"$scratch/gone" && comm -13 "$scratch/all" "$scratch/left" >"$scratch/new"
    cat "$scratch/gone"
    [[ ! -s $scratch/new ]] && grep -x 'MessageDigest MD5' "$scratch/gone" && grep -x 'MessageDigest SHA-1' "$scratch/gone" &&
        ! grep -E 'SHA256|SHA-256|AES|^Signature (SHA512|NONE)' "$scratch/gone"
}

for key in rsa:2048:01 rsa:1024:02 EC:prime256v1:03 EC:secp384r1:04; do
    pkcs11-tool --module "$TARGET" --login --pin 1234 --keypairgen --key-type "${key%:*}" --id "${key##*:}" \
        --label "key${key##*:}" >/dev/null 2>&1
done
printf '%s\n' "name = policy" "library = $PROXY" 'slotListIndex = 0' >"$scratch/java.cfg"
javac -d "$scratch" "$CHECKOUT/tests/clients/Work.java"

check "pkcs11-tool: an empty list hides nothing"     nothing_gone ''
check "pkcs11-tool: nor does a list that is audited" nothing_gone $'MD5, SHA1\nx-policy: audit'
check "pkcs11-tool: MD5"                             gone 'MD5' MD5 MD5-RSA-PKCS
check "pkcs11-tool: SHA-1 leaves SHA-256"            gone 'Sha-1' SHA-1 SHA1-RSA-PKCS SHA1-RSA-PKCS-PSS DSA-SHA1 ECDSA-SHA1
check "pkcs11-tool: DES is not DESede"               gone 'DES' DES-KEY-GEN DES-ECB DES-CBC DES-CBC-PAD DES-ECB-ENCRYPT-DATA DES-CBC-ENCRYPT-DATA mechtype-0x1100 mechtype-0x1101
check "pkcs11-tool: a mechanism by its number"       gone '0x250' SHA256
check "pkcs11-tool: sizes are no reason to hide"     says_raised_size
check "pkcs11-tool: MD5 is refused"                  under 'MD5' fails_with CKR_MECHANISM_INVALID md5
check "pkcs11-tool: MD5 is fine without"             under '' md5
check "pkcs11-tool: 1024 bits are refused"           under 'RSA keySize < 2048' fails_with CKR_KEY_SIZE_RANGE sign SHA256-RSA-PKCS 02
check "pkcs11-tool: 2048 bits are fine"              under 'RSA keySize < 2048' sign SHA256-RSA-PKCS 01
check "pkcs11-tool: no new key of 1024 bits"         under 'RSA keySize < 2048' fails_with CKR_KEY_SIZE_RANGE makes_key rsa:1024
check "pkcs11-tool: one curve is refused"            under 'secp256r1' fails_with 'rv = ' sign ECDSA 03
check "pkcs11-tool: another is fine"                 under 'secp256r1' sign ECDSA 04
check "pkcs11-tool: no new key on it"                under 'secp256r1' fails_with 'rv = ' makes_key EC:prime256v1
check "a wrong list is told with its place"          under 'MD5, SHA9' fails_with "$P11_PROXY_CONFIG:4:" tool --list-slots
check "Java: services are gone"                      services_gone 'SHA-1, MD5, DES, RC4'
check "Java: SHA256withRSA, with a new key of 2048 bits" under 'SHA-1, MD5, RSA keySize < 2048' java_with sign SHA256withRSA 2048
check "Java: no new key of 1024 bits"                under 'RSA keySize < 2048' fails_with 2048 java_with sign SHA256withRSA 1024
check "Java: MD5withRSA, if nothing is disabled"     under '' java_with sign MD5withRSA 2048
check "Java: MD5withRSA through a raw signature"     under 'CKM_MD5_RSA_PKCS' fails_with CKR_DATA_INVALID java_with sign MD5withRSA 2048

done_testing
