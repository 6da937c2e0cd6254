#!/bin/bash
# curl.sh - a client whose key is on the token, before a server that wants its certificate.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs curl
[[ -n $(find /usr/lib -path '*engines-3/pkcs11.so' 2>/dev/null) ]] || skip "there is no pkcs11 engine for OpenSSL 3"
new_key
recipe curl
port=$(free_port)
sed -i "s/8443/$port/" "$scratch/files/recipe.sh"
cp "$scratch/files/cert.pem" "$scratch/files/ca.pem"
export CURL_CA_BUNDLE=$place/ca.pem

server() {
    openssl s_server -accept "$port" -cert cert.pem -key key.pem -Verify 1 -CAfile cert.pem -verify_return_error -www
}

asks_five_times() {
    local i
    for i in {1..5}; do
        follow | grep -A 1 -E 'Verify return code|Client certificate|Subject:' || return 1
    done
}

is_let_in() {
    with_server "$port" server asks_five_times
}

same "a server that wants a certificate lets it in"   is_let_in
gains curl
done_testing
