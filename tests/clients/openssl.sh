#!/bin/bash
# openssl.sh - keys through libp11's engine; OpenSSL above us and, as SoftHSM's generator, below us.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

[[ -n $(find /usr/lib -path '*engines-3/pkcs11.so' 2>/dev/null) ]] || skip "there is no pkcs11 engine for OpenSSL 3"
new_key
recipe OpenSSL
echo hi >"$scratch/files/data"
# SoftHSM's own OpenSSL starts with the engine, which leads to us.
cat >"$scratch/files/openssl.cnf" <<END
openssl_conf = start
[start]
engines = engines
[engines]
pkcs11 = pkcs11
[pkcs11]
engine_id = pkcs11
MODULE_PATH = $place/p11-proxy.so
init = 1
END

signs_and_verifies() {
    follow && openssl dgst -verify <(openssl x509 -in cert.pem -noout -pubkey) -sha256 -signature signature data
}

signs_often() {
    local i
    for i in {1..20}; do
        follow || { echo "round $i"; return 1; }
    done
}

decrypts() {
    openssl pkeyutl -encrypt -certin -inkey cert.pem -in data -out secret &&
        PKCS11_MODULE_PATH=$place/p11-proxy.so openssl pkeyutl -decrypt -engine pkcs11 -keyform engine \
            -inkey 'pkcs11:token=proxy-test;object=key;type=private;pin-value=1234' -in secret
}

issues_a_certificate() {
    PKCS11_MODULE_PATH=$place/p11-proxy.so openssl req -new -x509 -engine pkcs11 -keyform engine -subj /CN=made \
        -key 'pkcs11:token=proxy-test;object=key;type=private;pin-value=1234' -out made.pem &&
        openssl verify -CAfile made.pem made.pem
}

# SoftHSM alone mostly crashes at exit after a failed login with this OpenSSL. An error it must be; no worse.
SIGNALLED=128
wrong_pin_is_no_worse() {
    local bare=0 proxied=0 tries=0
    sed -i s/1234/4321/ "$scratch/files/recipe.sh"
    leg proxied follow
    proxied=$(sed -n 's/^exit code //p' "$scratch/proxied.out")
    while [[ $proxied -ge $SIGNALLED && $bare -lt $SIGNALLED && $tries -lt 10 ]]; do
        leg bare follow
        bare=$(sed -n 's/^exit code //p' "$scratch/bare.out")
        tries=$((tries + 1))
    done
    echo "exit code $proxied through the proxy, $bare without it"
    [[ $proxied != 0 && ($proxied -lt $SIGNALLED || $bare -ge $SIGNALLED) ]]
}

starts_beside_the_engine() {
    OPENSSL_CONF=openssl.cnf timeout 60 pkcs11-tool --module "$place/p11-proxy.so" --list-slots
}

draws_beside_the_engine() {
    OPENSSL_CONF=openssl.cnf timeout 60 pkcs11-tool --module "$place/p11-proxy.so" --generate-random 32 2>/dev/null | wc -c
}

same "a signature that OpenSSL verifies"     signs_and_verifies
gains openssl
same "twenty processes sign and end well"    signs_often
same "a decryption"                          decrypts
same "a certificate"                         issues_a_certificate
same "SoftHSM starts an OpenSSL that leads to us" starts_beside_the_engine
same "and random bytes come all the same"    draws_beside_the_engine
check "a wrong PIN is no worse than without us"   wrong_pin_is_no_worse
done_testing
