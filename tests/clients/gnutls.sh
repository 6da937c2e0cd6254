#!/bin/bash
# gnutls.sh - p11tool, certtool and a server with its key on the token, all through p11-kit.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs p11tool certtool gnutls-serv gnutls-cli
new_key
recipe GnuTLS
port=$(free_port)
sed -i "s/5556/$port/" "$scratch/files/recipe.sh"
uri='pkcs11:token=proxy-test;object=key'
printf '%s\n' 'cn = "made"' 'serial = 1' 'expiration_days = 2' signing_key >"$scratch/files/template"

draws() {
    as_user p11tool --generate-random=48 pkcs11:token=proxy-test 2>/dev/null | wc -c
}

issues_a_certificate() {
    as_user certtool --generate-self-signed --load-privkey "$uri;type=private?pin-value=1234" --template template \
        --load-pubkey "$uri;type=public" --outfile made.pem 2>/dev/null && openssl verify -CAfile made.pem made.pem
}

lists() {
    as_user p11tool --login --set-pin=1234 --list-all "$uri"
}

# The last line of the recipe is a server.
server() {
    tail -n 2 recipe.sh >server.sh && as_user bash -c ". ./server.sh"
}

says_hello_ten_times() {
    local i
    for i in {1..10}; do
        echo hello | as_user gnutls-cli --x509cafile cert.pem -p "$port" localhost | grep -E 'Status|hello' || return 1
    done
}

serves() {
    with_server "$port" server says_hello_ten_times
}

same "p11tool lists tokens"             as_user p11tool --list-tokens
same "p11tool lists objects"            lists
same "p11tool draws"                    draws
gains "p11tool --generate-random"
same "certtool signs a certificate"     issues_a_certificate
gains certtool
same "a server, and ten clients"        serves
gains gnutls-serv
done_testing
