#!/bin/bash
# stats_module.sh - p11-proxy stats of an application that uses the proxy itself.
# shellcheck source=tests/tool/stats_lib.sh
. "$CHECKOUT/tests/tool/stats_lib.sh"

# use: starts the application. Sets pid, and where its orders go and its answers come from.
use() {
    coproc user { exec "$APPLICATION" "$PROXY"; }
    read -r pid <&"${user[0]}"
}
# orders ORDER CODE: what it is to do, and what that is answered with.
orders() {
    local code
    printf '%s\n' "$1" >&"${user[1]}"
    read -r code <&"${user[0]}"
    [[ $code == "$2" ]]
}
end_use() {
    kill "$pid"
    wait "$user_PID" || true
}

configure 'x-disabled-algorithms: MD5'
use
check "from C_Initialize on"     shows "module    $PROXY"
check "the target"               shows "target    $TARGET"
check "a thread fills the pool"  shows "pool      filled by a background thread"
check "a policy, and no refusal" shows "policy    enforce"
check "the token before it is drawn from" exits 0 stats
check "by its label"             grep -E "^  slot [0-9]+, token 'proxy-test': no draws$" "$scratch/out"
check "a thousand draws"         orders draw 0x0
check_stats_json "they are all counted" '
    .slots | map(select(.token == "proxy-test")) | length == 1 and
        (.[0] | .pool_draws + .token_draws == 1000 and .pool_drawn_bytes + .token_drawn_bytes == 32000 and
            .pool_draws > 500 and .failed_draws == 0 and .fills > 0 and .trust == "trusted" and
            .held_bytes <= .capacity_bytes and .capacity_bytes == 65536)'
check_stats_json "in calls that asked for more than they gave" '
    .slots[] | select(.token == "proxy-test") | .calls < 1000 and .called_bytes >= 32000'
check "a digest"                 orders digest 0x0
check_stats_json "it is counted" '.mechanisms == [{mechanism: "CKM_SHA256", mechanism_number: 592, calls: 1}]'
check "one that is refused"      orders md5 0x70
check_stats_json "and counted"   '.refused == 1 and .refusals == [{mechanism: "CKM_MD5", mechanism_number: 528,
    rule: "MD5", file: "'"$P11_PROXY_CONFIG"'", line: 4, times: 1}]'
check "C_Finalize"               orders end 0x0
check "then there are none"      complains 1 "does not use the proxy" stats
end_use

configure 'x-pool: off' 'x-disabled-algorithms: MD5' 'x-policy: audit'
use
check "an audit"                 orders md5 0x0
check "is shown"                 shows "policy    audit; would refuse 1 call"
check "no pool"                  shows "pool      off"
check "a thousand draws by the token" orders draw 0x0
check "are shown too"            shows "from the token                1,000         32,000"
end_use

# A token may be called anything.
mkdir "$scratch/odd"
sed "s#^directories.tokendir.*#directories.tokendir = $scratch/odd#" "$SOFTHSM2_CONF" >"$scratch/odd.conf"
export SOFTHSM2_CONF=$scratch/odd.conf
softhsm2-util --init-token --free --label $'proxy-test "q" \\ \n \xff \xe2\x80\xae \x9b' --pin 1234 --so-pin 12345678 >/dev/null
configure
use
check "a token with an odd label" orders draw 0x0
check "is shown with what a terminal does not act upon" exits 0 stats
check "in one line"              grep -E "^  slot [0-9]+, token 'proxy-test \"q\" .{1} \? \? \?\?\? \?'$" "$scratch/out"
check_stats_json "in JSON"       '[.slots[].token | select(startswith("proxy-test"))] == ["proxy-test \"q\" \\ ? ? ??? ?"]'
check_metric "OpenMetrics keeps all rules"
end_use

configure 'x-statistics: off'
use
check "x-statistics: off"        complains 1 "does not use the proxy, has x-statistics: off, or" stats
end_use
done_testing
