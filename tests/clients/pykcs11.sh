#!/bin/bash
# pykcs11.sh - Python programs: session ids, threads, and a pool of processes that fork with the module in use.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

/usr/bin/python3 -c 'import PyKCS11' 2>/dev/null || skip "there is no PyKCS11"
new_key
recipe PyKCS11

python() {
    timeout 120 /usr/bin/python3 "$CHECKOUT/tests/clients/pykcs11.py" "$place/p11-proxy.so" "$1"
}

prints_random_bytes() {
    /usr/bin/python3 draw.py | wc -l
}

same "the manual's program"              prints_random_bytes
same "session ids and a signature"       python draw
gains PyKCS11
same "nine threads"                      python threads
same "a pool of processes"               python fork
done_testing
