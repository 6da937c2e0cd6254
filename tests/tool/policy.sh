#!/bin/bash
# policy.sh - p11-proxy policy: names, rules and what they deny.
# shellcheck source=tests/tool/lib.sh
. "$CHECKOUT/tests/tool/lib.sh"

check_common_options policy
check_module_option policy

configure
check "no policy: it says so"              says 0 "policy: none" "$TOOL" policy
check "no policy: everything is permitted" says 0 "permitted  MD5" "$TOOL" policy MD5
check_json "no policy: --json"             0 '.policy == "none" and .items == []' "$TOOL" policy --json

configure 'x-disabled-algorithms: MD5, RSA keySize < 2048, secp192r1, EC keySize < 224, anon, 0x80001234'
place=$P11_PROXY_CONFIG:4
check "the policy as text"              says 0 "denies CKM_MD5_RSA_PKCS" "$TOOL" policy
check "a name that is listed"           says 1 "refused    MD5, by $place: MD5" "$TOOL" policy MD5
check "a name that has one as its part" says 1 "refused    MD5withRSA, by $place: MD5" "$TOOL" policy MD5withRSA
check "a mechanism's name"              says 1 "refused    CKM_MD5, by $place: MD5" "$TOOL" policy CKM_MD5
check "a mechanism's number"            says 1 "refused    0x210, by $place: MD5" "$TOOL" policy 0x210
check "another vendor's number"         says 0 "permitted  0x80001235" "$TOOL" policy 0x80001235
check "a curve"                         says 1 "refused    secp192r1, by $place: secp192r1" "$TOOL" policy secp192r1
check "a curve that is too small"       says 1 "by $place: EC keySize < 224" "$TOOL" policy secp160r1
check "sizes are told"                  says 0 "CKM_RSA_PKCS, with keys of 2048 bits and more" \
    "$TOOL" policy CKM_RSA_PKCS
check "of a whole family, too"          says 0 "permitted  RSA, with keys of 2048 bits and more" "$TOOL" policy RSA
check "what is refused of a permitted name" says 0 "except CKM_MD5_RSA_PKCS, by $place: MD5" "$TOOL" policy RSA
check "a listed name without effect"    says 0 "no effect  anon, a part of TLS cipher suites, in $place: anon" "$TOOL" policy anon
check "keys of a curve are told"        says 0 "except keys, by $place: EC keySize < 224" "$TOOL" policy EC
check "an unknown name has a neighbour" says 2 "unknown    SHA257 (nearest: SHA256)" "$TOOL" policy SHA257
check "of several one refused: 1"       exits 1 "$TOOL" policy AES MD5
check "of several one unknown: 2"       exits 2 "$TOOL" policy MD5 SHA257 AES
# Longer than need be, a half of a pair, beyond the last: none of these is a character.
is_sound_json() {
    { "$TOOL" policy --json "$1" || true; } | python3 -c 'import json, sys; json.loads(sys.stdin.buffer.read().decode())'
}
for bytes in $'\xe0\x80\x80' $'\xf0\x80\x80\x80' $'\xed\xa0\x80' $'\xf4\x90\x80\x80' $'\xc0\x80'; do
    check "bytes that are no UTF-8 ($(printf %s "$bytes" | od -A n -t x1)): JSON" is_sound_json "MD5$bytes"
done
check "UTF-8 is left as it is" says 2 "unknown    Schlüssel €" "$TOOL" policy 'Schlüssel €'
# By its bytes: what \u makes of it is the locale's to say.
check "nothing turns the line round"  says 2 "unknown    MD5???gpj" "$TOOL" policy $'MD5\xe2\x80\xaegpj'
check "bytes that a terminal acts upon" no_escapes 2 "$TOOL" policy $'MD5\e[31m'
check_json "--json of the policy" 0 \
    '.policy == "enforce" and (.items | length) == 6 and .items[0].rule.text == "MD5" and
     .items[0].no_effect == null and (.items[4].no_effect | contains("TLS"))' "$TOOL" policy --json
check_json "--json of names" 2 \
    '.[0].verdict == "refused" and .[0].rule.line == 4 and .[1].verdict == "permitted" and
     .[2].verdict == "unknown" and .[3].min_key_bits == 2048' "$TOOL" policy --json MD5 AES SHA257 CKM_RSA_PKCS

# Each listed beside MD5; none of them is said to be refused.
for name in AES/ECB ffdhe2048 SHA256withRSA/PSS; do
    check "listed in vain: $name" with "x-disabled-algorithms: MD5, $name" says 0 "no effect  $name, " "$TOOL" policy "$name"
done
check "a condition on certificates" with 'x-disabled-algorithms: MD5, SHA1 jdkCA & usage TLSServer' \
    says 0 "no effect  SHA1, a condition on certificates" "$TOOL" policy SHA1
printf 'jdk.crypto.disabledAlgorithms=MessageDigest.MD5, Cipher.RSA/ECB/PKCS1Padding\n' >"$scratch/list"
check "a service's digest"          with "x-disabled-algorithms-file: $scratch/list" \
    says 1 "refused    CKM_MD5, by $scratch/list:1:" "$TOOL" policy CKM_MD5
check "a service's mechanism"       says 0 "except CKM_RSA_PKCS for some uses" "$TOOL" policy CKM_RSA_PKCS

check "a name of which nothing is left" with 'x-disabled-algorithms: EC' \
    says 1 "refused    SHA256withECDSA, by $place: EC" "$TOOL" policy SHA256withECDSA

check "audit permits and says what would be" with $'x-disabled-algorithms: MD5\nx-policy: audit' \
    says 0 "enforce would refuse it, by $place: MD5" "$TOOL" policy MD5
check_json "--json: audit" 0 '.[0].verdict == "permitted" and .[0].audited' "$TOOL" policy --json MD5

printf 'jdk.tls.disabledAlgorithms=DES, NoSuchThing\n' >"$scratch/list"
check "a list file" with "x-disabled-algorithms-file: $scratch/list" \
    says 1 "by $scratch/list:1: jdk.tls.disabledAlgorithms: DES" "$TOOL" policy DES
check "its unknown names are warned of" grep -F NoSuchThing "$scratch/err"

check "a policy that cannot be compiled" with 'x-disabled-algorithms: MD55' complains 2 "$place" "$TOOL" policy MD5
check "a list file that is not there"    with "x-disabled-algorithms-file: $scratch/none" \
    complains 2 "$scratch/none" "$TOOL" policy

# The file is found by the module's name, whether or not there is such a module.
unset P11_PROXY_CONFIG
register other 'x-disabled-algorithms: DES'
check "--module decides the file" says 1 "/other.module:1: DES" as_someone "$TOOL" policy --module /none/other.so DES
done_testing
