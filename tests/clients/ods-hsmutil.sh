#!/bin/bash
# ods-hsmutil.sh - OpenDNSSEC's tool: keys with ids of the token's making, and its own test.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs ods-hsmutil
new_key
recipe OpenDNSSEC

# An id is made of random bytes, and the order of objects is that of a folder.
normalise() {
    sed -E -e 's/[0-9a-f]{32}/ID/' -e 's/(random data\.\.\. )[0-9]+/\1NUMBER/' | sort
}

makes_three() {
    follow && ods-hsmutil -c conf.xml generate proxy ecdsa 256 &&
        ods-hsmutil -c conf.xml list
}

same "keys are made and listed"         makes_three
# Its test makes large keys, which takes long, and numbers.
if $long; then
    check "the tool's own test"         ends_alike 3 ods-hsmutil -c conf.xml test proxy
    gains ods-hsmutil
fi
done_testing
