#!/bin/bash
# nss.sh - NSS with the proxy as a module of its database: lists, keys and certificates.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs modutil certutil
new_key
recipe NSS
echo 1234 >"$scratch/files/pin"
head -c 100 /dev/urandom >"$scratch/files/noise"

lists() {
    follow && modutil -dbdir sql:db -list && certutil -K -d sql:db -h proxy-test -f pin &&
        certutil -L -d sql:db -h proxy-test -f pin
}

removes() {
    follow && modutil -dbdir sql:db -force -delete proxy && modutil -dbdir sql:db -list
}

# The order of objects is that of a folder.
normalise() {
    sed -E 's/[0-9a-f]{40}/ID/; s/^< [0-9]+>/< N>/' | sort
}

same "a module is added, and certutil makes a certificate with a new key" follow
gains certutil
same "what there is"                 lists
same "the module is taken out"       removes
done_testing
