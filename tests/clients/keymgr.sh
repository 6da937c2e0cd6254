#!/bin/bash
# keymgr.sh - Knot DNS makes its keys on the token, by GnuTLS.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs keymgr
new_key
recipe "keymgr (Knot DNS)"
sed -i "1i database:\n  storage: $place" "$scratch/files/knot.conf"

normalise() {
    sed -E -e 's/[0-9a-f]{40}/ID/' -e 's/^ID +[0-9]+ /ID TAG /' -e 's/=[0-9]{10}/=TIME/g'
}

# The recipe's command, as a user whose p11-kit has no other modules.
makes_keys() {
    as_user bash -eu recipe.sh && as_user keymgr -c knot.conf example.com generate algorithm=RSASHA256 size=2048 &&
        as_user keymgr -c knot.conf example.com list | sort -k 3 && as_user keymgr -c knot.conf example.com ds | wc -l
}

same "keys are made and listed"         makes_keys
gains keymgr
done_testing
