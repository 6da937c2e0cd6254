#!/bin/bash
# node.sh - a program in Node.js, with pkcs11js.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs node
[[ -d $UNPACKED/node_modules/pkcs11js ]] || skip "there is no pkcs11js in build/clients"
export NODE_PATH=$UNPACKED/node_modules
new_key
recipe Node.js

draws() {
    timeout 60 node draw.js | sort -u | wc -l
}

works() {
    timeout 60 node "$CHECKOUT/tests/clients/work.js" "$place/p11-proxy.so"
}

same "the manual's program"                     draws
same "draws, digests and signatures"            works
gains "Node.js (pkcs11js)"
done_testing
