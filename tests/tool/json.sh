#!/bin/bash
# json.sh - the manual has just those JSON keys that each command prints.
# shellcheck source=tests/tool/stats_lib.sh
. "$CHECKOUT/tests/tool/stats_lib.sh"
command -v jq >/dev/null || skip_all "no jq"

# documented COMMAND: the items of the lists after a line with "JSON is".
documented() {
    sed -n "/^\.Ss $1\$/,/^\.S[sh] /p" "$CHECKOUT/tools/p11-proxy.1" | sed -n '/JSON is/,$s/^\.It Cm //p' |
        sed 's/ , /\n/g' | sort -u
}
# documents COMMAND CODE ARGUMENT...: has them all, and no others.
documents() {
    exits "$2" "$TOOL" "${@:3}" && jq -r '[.. | objects | keys] | add | unique[]' "$scratch/out" >>"$scratch/keys.$1" &&
        diff <(documented "$1") <(sort -u "$scratch/keys.$1")
}

configure 'x-disabled-algorithms: MD5, RSA keySize < 2048, anon'
check "check"             documents check 0 check --module "$PROXY" --json
check "where it is set, and where it has the default" jq -e \
    '[.settings[] | select(.key == "x-target" or .key == "x-pool").from] == ["'"$P11_PROXY_CONFIG"':2", "default"]' "$scratch/out"
exits 0 "$TOOL" policy --json
jq -r '[.. | objects | keys] | add | unique[]' "$scratch/out" >"$scratch/keys.policy"
check "policy, with names and without" documents policy 1 policy --json MD5 RSA CKM_RSA_PKCS AES
check "sizes are a number, or 0 for any" jq -e 'map(.min_key_bits) == [0, 2048, 2048, 0]' "$scratch/out"
check "bench"             documents bench 0 bench --module "$PROXY" --seconds 1 --json
# shellcheck disable=SC2119
fake
check "stats"             documents stats 0 stats --json "$pid"
end_fake
configure 'x-disabled-algorithms: RSA keySize >= 0'
check "no size at all is null" json 0 'map(.min_key_bits) == [null]' "$TOOL" policy --json CKM_RSA_PKCS
done_testing
