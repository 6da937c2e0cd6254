#!/bin/bash
# policy.sh - real programs under a policy: what is disabled is gone from their lists, and refused when they try.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

# under LIST COMMAND...: with that list of disabled algorithms.
target_init=
under() {
    printf '%s\n' "module: $PROXY" "x-target: $TARGET" 'x-log: stderr warning' "x-disabled-algorithms: $1" \
        "${target_init:+x-target-init: $target_init}" >"$P11_PROXY_CONFIG"
    shift
    "$@"
}

# fails_with TEXT COMMAND...: with a code that is no signal's, and says TEXT.
fails_with() {
    local text=$1 out code=0
    shift
    out=$("$@" 2>&1) || code=$?
    printf '%s\nexit code %d\n' "$out" "$code"
    [[ $code != 0 && $code -lt 124 && $out == *"$text"* ]]
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
    local list=$1
    shift
    mechanisms "$TARGET" | grep -vxF "$(printf '%s\n' "$@")" >"$scratch/wanted"
    under "$list" mechanisms "$PROXY" >"$scratch/shown"
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

p11tool_says_less() {
    local bare proxied
    bare=$(p11tool --provider "$TARGET" --list-mechanisms | grep -c CKM_)
    proxied=$(under 'MD5' p11tool --provider "$PROXY" --list-mechanisms | tee "$scratch/p11tool" | grep -c CKM_)
    echo "$bare without a policy, $proxied under it"
    [[ $proxied -lt $bare ]] && ! grep -E 'CKM_MD5( |$)|CKM_MD5_RSA' "$scratch/p11tool"
}

java_with() {
    timeout 120 java -cp "$scratch" Policy "$scratch/java.cfg" "$@"
}

# The services that vanish, each on a line.
services_gone() {
    local list=$1
    under '' java_with services >"$scratch/all" && under "$list" java_with services >"$scratch/left" &&
        comm -23 "$scratch/all" "$scratch/left" >"$scratch/gone" && comm -13 "$scratch/all" "$scratch/left" >"$scratch/new"
    cat "$scratch/gone"
    shift
    [[ -s $scratch/gone && ! -s $scratch/new ]] || return 1
    local service
    for service in "$@"; do
        grep -x "$service" "$scratch/gone" || return 1
    done
    ! grep -E 'SHA256|SHA-256|AES|^Signature (SHA512|NONE)' "$scratch/gone"
}

signs_in_java() {
    java_with sign "$1" | grep -x signed
}

# SunPKCS11 copies a digest by C_GetOperationState and C_SetOperationState, which SoftHSM has not.
clones_in_java() {
    local TARGET=$softoken target_init="configdir='' certPrefix='' keyPrefix='' secmod='' flags=noModDB,noCertDB,readOnly"
    under "$1" java_with clone "$2" | grep -x 'the same'
}

engine_sign() {
    OPENSSL_CONF=$scratch/openssl.cnf timeout 60 openssl dgst -engine pkcs11 -keyform engine \
        -sign 'pkcs11:id=%01;type=private;pin-value=1234' "$1" -out "$scratch/signature" "$scratch/data"
}

for key in rsa:2048:01 rsa:1024:02 EC:prime256v1:03 EC:secp384r1:04; do
    pkcs11-tool --module "$TARGET" --login --pin 1234 --keypairgen --key-type "${key%:*}" --id "${key##*:}" \
        --label "key${key##*:}" >/dev/null 2>&1
done
printf '%s\n' "name = policy" "library = $PROXY" 'slotListIndex = 0' >"$scratch/java.cfg"
javac -d "$scratch" "$CHECKOUT/tests/token/Policy.java"

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
check "p11tool: MD5 is gone"                         p11tool_says_less
check "Java: services are gone"                      services_gone 'SHA-1, MD5, DES, RC4' 'MessageDigest MD5' 'MessageDigest SHA-1'
check "Java: SHA256withRSA"                          under 'SHA-1, MD5, DES, RC4' signs_in_java SHA256withRSA
check "Java: no MD5"                                 under 'MD5' fails_with NoSuchAlgorithmException java_with digest MD5
check "Java: MD5withRSA, if nothing is disabled"     under '' signs_in_java MD5withRSA
check "Java: MD5withRSA through a raw signature"     under 'CKM_MD5_RSA_PKCS' fails_with CKR_DATA_INVALID java_with sign MD5withRSA
check "Java: MD5withRSA by its name"                 under 'MD5withRSA' fails_with CKR_DATA_INVALID java_with sign MD5withRSA
check "Java: no new key of 1024 bits"                under 'RSA keySize < 2048' fails_with 2048 java_with key 1024
check "Java: a new key of 2048 bits"                 under 'RSA keySize < 2048' java_with key 2048

softoken=/usr/lib/x86_64-linux-gnu/libsoftokn3.so
if [[ -r $softoken ]]; then
    check "Java: a digest is cloned under a policy"  clones_in_java 'MD5' SHA-256
else
    skip_check "Java: a digest is cloned" "there is no softoken here"
fi

engine=$(find /usr/lib -path '*engines-3/pkcs11.so' 2>/dev/null | head -n 1 || true)
if [[ -n $engine ]]; then
    printf '%s\n' 'openssl_conf = start' '[start]' 'engines = engines' '[engines]' 'pkcs11 = pkcs11' '[pkcs11]' \
        'engine_id = pkcs11' "dynamic_path = $engine" "MODULE_PATH = $PROXY" 'init = 0' >"$scratch/openssl.cnf"
    check "OpenSSL: SHA-256"                         under 'MD5' engine_sign -sha256
    check "OpenSSL: MD5, if nothing is disabled"     under '' engine_sign -md5
    check "OpenSSL: MD5 under its own padding"       under 'MD5' fails_with 'rror' engine_sign -md5
    check "OpenSSL: 2048 bits are too few"           under 'RSA keySize < 3072' fails_with 'rror' engine_sign -sha256
else
    skip_check "OpenSSL" "there is no pkcs11 engine for OpenSSL 3 here"
fi
done_testing
