#!/bin/bash
# strongswan.sh - strongSwan's pki makes certificates with a key on the token.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs pki p11-kit
new_key
recipe strongSwan
export STRONGSWAN_CONF=$place/strongswan.conf

# pki asks for the PIN. What it says of plugins that this machine cannot load is not of interest.
makes_certificates() {
    echo 1234 | as_user bash -eu recipe.sh 2>/dev/null | sed 's/^.*-----BEGIN/-----BEGIN/' >made.pem &&
        openssl verify -CAfile made.pem made.pem &&
        openssl pkey -pubin -in <(openssl x509 -in made.pem -noout -pubkey) -noout -text
}

same "a certificate"            behind_server makes_certificates
gains "pki (strongSwan)"
done_testing
