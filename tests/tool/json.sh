#!/bin/bash
# json.sh - the manual has just those JSON keys that each command prints.
# shellcheck source=tests/tool/stats_lib.sh
. "$CHECKOUT/tests/tool/stats_lib.sh"
command -v jq >/dev/null || skip_all "no jq"

page=$CHECKOUT/tools/p11-proxy.1
keys() {
    "$CHECKOUT/tests/tool/keys.py" "${manual-$page}" "$@"
}
# prints NAME CODE COMMAND...: what it prints goes to NAME.
prints() {
    exits "${@:2}" && mv "$scratch/out" "$scratch/$1"
}

configure 'x-disabled-algorithms: MD5, RSA keySize < 2048, anon'
check "check prints it"   prints check 0 "$TOOL" check --module "$PROXY" --json
check "check"             keys check "$scratch/check"
check "where it is set, and where it has the default" jq -e \
    '[.settings[] | select(.key == "x-target" or .key == "x-pool").from] == ["'"$P11_PROXY_CONFIG"':2", "default"]' "$scratch/check"
check "policy prints it"  prints policy 0 "$TOOL" policy --json
check "and names"         prints names 1 "$TOOL" policy --json MD5 RSA CKM_RSA_PKCS AES
check "policy"            keys policy "$scratch/policy" "$scratch/names"
check "sizes are a number, or 0 for any" jq -e 'map(.min_key_bits) == [0, 2048, 2048, 0]' "$scratch/names"
check "bench prints it"   prints bench 0 "$TOOL" bench --module "$PROXY" --seconds 1 --json
check "bench"             keys bench "$scratch/bench"
fake
check "stats prints it"   prints stats 0 stats --json
check "stats"             keys stats "$scratch/stats"
end_fake
configure 'x-disabled-algorithms: RSA keySize >= 0'
check "no size at all is null" json 0 'map(.min_key_bits) == [null]' "$TOOL" policy --json CKM_RSA_PKCS

# That the comparison sees what differs.
manual=$scratch/page
for key in advice rule p99_ns dropped_bytes; do
    sed "s/^\(\.It Cm.*\)\b$key\b/\1other/" "$page" >"$manual"
    for command in check policy bench stats; do
        grep -q "\"$key\"" "$scratch/$command" || continue
        check "$command: '$key' would be missed" exits 1 keys "$command" "$scratch/$command"
    done
done
done_testing
