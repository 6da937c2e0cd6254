#!/bin/bash
# stats.sh - p11-proxy stats: how it shows counters, whose it finds, what becomes of hostile ones, and those of a proxy.
# shellcheck source=tests/tool/lib.sh
. "$CHECKOUT/tests/tool/lib.sh"

# start COMMAND...: a process that prints its PID, and perhaps that of a child. It ends with its input.
mkfifo "$scratch/hold"
exec {hold}<>"$scratch/hold"
trap 'exec {hold}>&-; rm -rf "$scratch"' EXIT
start() {
    exec {output}< <(exec {hold}>&- && "$@" <"$scratch/hold")
    read -r pid child <&"$output"
}

# fake [WORD...]: a process that counts as tests/tool/fake_process.c says. "by=FUNCTION fake" runs it by that function.
fake() {
    start ${by:+"$by"} "$FAKE_PROCESS" "$@"
}

# below COMMAND...: in a PID namespace of its own.
below() {
    unshare --pid --fork "$@" 2>/dev/null
}

# Ends the process that was started last: its output ends with it.
end_fake() {
    kill -KILL "$pid"
    cat <&"$output" >/dev/null
    exec {output}<&-
}

# Other tests may have processes that use the proxy, so the program is asked about one.
stats() {
    "$TOOL" stats "$@" "$pid"
}

# check_stats_json WHAT FILTER: true of the first proxy of our process.
check_stats_json() {
    check_json "$1" 0 ".processes[0] | $2" stats --json
}

# check_metrics WHAT [SAMPLE...]: OpenMetrics of our process keeps all rules, and has these samples.
check_metrics() {
    if /usr/bin/python3 -c 'import prometheus_client' 2>/dev/null; then
        check "openmetrics: $1"  has_samples "${@:2}"
    else
        skip_check "openmetrics: $1" "no python3-prometheus-client"
    fi
}
has_samples() {
    stats --format=openmetrics | "$CHECKOUT/tests/tool/openmetrics.py" "$@"
}

# The command line.
check_common_options stats
check "it takes no --module"     complains 2 "p11-proxy stats --help" "$TOOL" stats --module "$PROXY"
for word in 12x 0 4294967297 ''; do
    check "no PID: '$word'"      complains 2 "no process has this number: '$word'" "$TOOL" stats "$word"
done
check "an unknown format"        complains 2 "--format is not table, json or openmetrics: 'xml'" "$TOOL" stats --format=xml
check "--watch=3601"             complains 2 "--watch is not a number from 1 to 3600: '3601'" "$TOOL" stats --watch=3601
check "--watch of openmetrics"   complains 2 "--watch does not go with" "$TOOL" stats --watch --format=openmetrics
# The table: all of it.
fake
table() {
    diff - <(stats) <<END
process $pid (fake_process), p11-proxy 9.8.7 for 2:05 h
  module    /usr/lib/pkcs11/p11-proxy.so
  target    /usr/lib/target.so
  pool      filled by a background thread; mixed with the kernel's bytes
  policy    enforce; calls refused: 1015
  slot 7, token 'first token'
                                  calls          bytes
    from the pool               2000000       64000000   99.9 % of all draws
    missed                           12
    fills                          4000       64015104
    expired                                       1234
    dropped                                       5678   seed 3   login 2   health 1
    alarms                            1
    held now                                      8192
    wanted now                                   16384
    at most                                      65536
    asked for in a call                          16384
    from the token                  800          25600
    failed                            6
    calls to the token            14011       65536000
    of these failed                   7
  slot 8, token 'second token': no draws
  refused
    CKM_MD5_RSA_PKCS                 12   by 'MD5' in /etc/pkcs11/modules/p11-proxy.module:4
    key                            1003   by 'RSA keySize < 2048' in /etc/pkcs11/modules/p11-proxy.module:5
END
}
check "the table"                table

# For programs.
check_stats_json "json" '.pid == '"$pid"' and .program == "fake_process" and .version == "9.8.7" and .pool and .thread and
    .module == "/usr/lib/pkcs11/p11-proxy.so" and .target == "/usr/lib/target.so" and .mix == "kernel" and
    .policy == "enforce" and (.started_seconds | now - . | . > 7499 and . < 7800) and
    .refused == 1015'
check_stats_json "json: a slot" '.slots[0] == {
        slot: 7, token: "first token", trust: "trusted", pool_draws: 2000000, pool_drawn_bytes: 64000000,
        token_draws: 800, token_drawn_bytes: 25600, failed_draws: 6, calls: 14011, called_bytes: 65536000,
        failed_calls: 7, missed_draws: 12, fills: 4000, filled_bytes: 64015104, expired_bytes: 1234,
        dropped_bytes: 5678, alarms: 1, held_bytes: 8192, level_bytes: 16384, capacity_bytes: 65536,
        chunk_bytes: 16384, locked: true,
        drops: (.slots[0].drops | map_values(0) + {seed: 3, login: 2, health: 1})}'
check_stats_json "json: refusals" '.refusals == [
        {mechanism: "CKM_MD5_RSA_PKCS", mechanism_number: 5, rule: "MD5", line: 4, times: 12,
         file: "/etc/pkcs11/modules/p11-proxy.module"},
        {mechanism: null, mechanism_number: null, rule: "RSA keySize < 2048", line: 5, times: 1003,
         file: "/etc/pkcs11/modules/p11-proxy.module"}]'
check_metrics "all kinds of samples" 'p11_proxy_pool_draws_total{slot="7",token="first token"} 2e+06' \
    'p11_proxy_held_bytes{slot="7",token="first token"} 8192' \
    'p11_proxy_drops_total{cause="seed",slot="7",token="first token"} 3' \
    'p11_proxy_refusals_total{file="/etc/pkcs11/modules/p11-proxy.module",line="5",mechanism="key",policy="enforce",rule="RSA keySize < 2048"} 1003' \
    'p11_proxy_info{mix="kernel",policy="enforce",pool="on",target="/usr/lib/target.so",thread="on",version="9.8.7"} 1'

# shellcheck source=tools/completion/bash
. "$CHECKOUT/tools/completion/bash"
completes_pid() {
    COMP_WORDS=("$TOOL" stats "${pid:0:1}") COMP_CWORD=2
    _p11_proxy
    printf '%s\n' "${COMPREPLY[@]}" | grep -Fx "$pid"
}
check "completion has the PID"   completes_pid
end_fake

# Other numbers.
fake suspect
check "a suspect token"          says 0 "SUSPECT: its last random bytes failed the health test" stats
check_stats_json "json: suspect" '.slots[0].trust == "suspect" and .slots[1].trust == "trusted"'
check_metrics "suspect"          'p11_proxy_trust{slot="7",token="first token"} 1'
end_fake
fake latched audit
check "a token that failed"      says 0 "FAILED the health test twice in a row: no random bytes until C_Finalize" stats
check "an audit"                 grep -Fx "  policy    audit; calls that would be refused: 1015" "$scratch/out"
check "what would be refused"    grep -Fx "  that would be refused" "$scratch/out"
check_stats_json "json: audit"   '.policy == "audit" and .slots[0].trust == "latched"'
end_fake
fake bare
check "no pool"                  says 0 "pool      off" stats
check_stats_json "json: no pool" '(.pool or .thread) == false and .mix == "none" and .policy == "none"'

# all_found PIDS FILTER: jq's filter is true for the PIDs that are found of those given.
all_found() {
    exits 0 "$TOOL" stats --json && jq -e "[.processes[].pid | select(IN($1))] | unique | $2" "$scratch/out"
}

# alone COMMAND...: where it sees no process but its own.
alone() {
    local as=()
    [[ $EUID == 0 ]] || as=(--user --map-root-user)
    unshare "${as[@]}" --pid --fork --mount-proc "$@"
}
if alone true 2>/dev/null; then
    check "no process"           complains 0 "no process that may be read uses the proxy" alone "$TOOL" stats
    check "no process: --json"   says 0 '"processes": [ ]' alone "$TOOL" stats --json
    check "no process: openmetrics" says 0 '# EOF' alone "$TOOL" stats --format=openmetrics
else
    skip_check "no process" "this machine permits no PID namespace"
fi

check "a process that does not use it" complains 1 "process $$ does not use the proxy" "$TOOL" stats $$
gone=$(</proc/sys/kernel/pid_max) # all are below
check "a process that does not exist" complains 1 "process $gone does not exist" "$TOOL" stats "$gone"
fake
first=$pid
check "one of two named does not exist" exits 1 "$TOOL" stats "$gone" "$first"
check "the other is shown"       grep -F "process $first (" "$scratch/out"
fake twice
check_json "copies of the proxy in one process" 0 '
    [.processes[].module | sub(".*/"; "")] == ["p11-proxy.so", "p11-proxy-luna.so", "p11-proxy.so"]' stats --json
check_json "a name with half a character is valid UTF-8" 0 '.processes[0].program == "fourteen bytes?"' stats --json
check_metrics "a module that is loaded twice makes no series twice"
check "several processes"        all_found "$first, $pid" "length == 2"
end_fake
check "one that has ended is not found" all_found "$first, $pid" ". == [$first]"
fake fork
check "a forked child has no counters" all_found "$pid, $child" ". == [$pid]"
check "which is said of it"      complains 1 "it counts from its own C_Initialize" "$TOOL" stats "$child"
end_fake
if [[ $EUID == 0 ]] && below true; then
    by=below fake
    check "a process in a PID namespace" all_found "$pid" ". == [$pid]"
    end_fake
else
    skip_check "a process in a PID namespace" "it takes root, and a machine that permits one"
fi

# A FIFO under the counters' name, which it has on a mount that is detached. A reader would wait for ever.
# shellcheck disable=SC2016
impostor=(unshare --mount bash -c 'mount -t tmpfs none "$1" && cd "$1" && name="memfd:p11-proxy-statistics (deleted)" &&
    mkfifo "$name" && exec 8<>"$name" 9<"$name" 8>&- && cd / && umount --lazy "$1" && echo $$ && read -r' bash "$scratch/mount")
mkdir "$scratch/mount"
if [[ $EUID == 0 ]] && unshare --mount mount -t tmpfs none "$scratch/mount" 2>/dev/null; then
    start "${impostor[@]}"
    check "a FIFO under the counters' name" test "$(readlink "/proc/$pid/fd/9")" == "/memfd:p11-proxy-statistics (deleted)"
    check "is not waited for"    complains 1 "process $pid has counters that" "$TOOL" stats "$pid"
    end_fake
else
    skip_check "a FIFO under the counters' name" "it takes root, and a machine that permits a mount"
fi
rmdir "$scratch/mount"

# Other users' processes.
pid=$first
if [[ $EUID == 0 ]]; then
    check "another user's"       complains 1 "cannot be read: it belongs to another user" as_someone "$TOOL" stats "$pid"
    by=as_someone fake
    check "root sees all"        says 0 "process $pid (fake_process), p11-proxy 9.8.7 for 2:05 h" stats
    check "their user sees them" says 0 "process $pid (" as_someone "$TOOL" stats
    check "and how many are not read" json 0 '.forbidden_processes > 0' as_someone "$TOOL" stats --json
    end_fake
else
    skip_check "other users" "it takes root"
fi

# What was not made by a proxy, or not by this version.
for word in magic layout short; do
    fake "$word"
    check "$word: not read"      complains 1 "has counters that version" stats
    check "$word: counted"       json 0 ".strange_processes > 0 and all(.processes[]; .pid != $pid)" "$TOOL" stats --json
    end_fake
done
fake starting
check "one that begins"          complains 1 "does not use the proxy" stats
end_fake

# Hostile texts and numbers.
fake hostile
check "hostile: no escapes"      no_escapes 0 stats
evil='?[31m"\??????{}= '"'"
check "its name"                 grep -F 'process '"$pid"' (?[1m"?}\), p11-proxy v' "$scratch/out"
check "its module"               grep -Fx "  module    $evil" "$scratch/out"
check "a text that does not end" grep -Fx "  slot 7, token '$(printf '"%.0s' {1..39})'" "$scratch/out"
check_json "hostile: JSON that can be read" 0 '.processes[0] | .target | test("^[?]{511}$")' stats --json
check_metrics "hostile texts are read by both parsers"
end_fake

configure 'x-disabled-algorithms: MD5'
use "$PROXY"
check_stats_json "from C_Initialize on" '.module == "'"$PROXY"'" and .target == "'"$TARGET"'" and .thread and .policy == "enforce"'
check "the token before it is drawn from" exits 0 stats
check "by its label"             grep -E "^  slot [0-9]+, token 'proxy-test': no draws$" "$scratch/out"
check "a hundred draws"          orders d 0x0
# 98 of them are small.
check_stats_json "they are all counted" '
    .slots | map(select(.token == "proxy-test")) | length == 1 and
        (.[0] | .pool_draws + .token_draws == 100 and .pool_drawn_bytes + .token_drawn_bytes == 98 * 32 + 2 * 5000 and
            .pool_draws > 50 and .failed_draws == 0 and .fills > 0 and .trust == "trusted" and
            .held_bytes <= .capacity_bytes and .capacity_bytes == 65536)'
check_stats_json "in calls that asked for more than they gave" '
    .slots[] | select(.token == "proxy-test") | .calls < 100 and .called_bytes >= 98 * 32 + 2 * 5000'
check "one that is refused"      orders m 0x70
check_stats_json "and counted"   '.refused == 1 and .refusals == [{mechanism: "CKM_MD5", mechanism_number: 528,
    rule: "MD5", file: "'"$P11_PROXY_CONFIG"'", line: 4, times: 1}]'
check "C_Finalize"               orders f 0x0
check "then there are none"      complains 1 "does not use the proxy" stats
end_use

# A token may be called anything.
mkdir "$scratch/odd"
sed "s#^directories.tokendir.*#directories.tokendir = $scratch/odd#" "$SOFTHSM2_CONF" >"$scratch/odd.conf"
export SOFTHSM2_CONF=$scratch/odd.conf
softhsm2-util --init-token --free --label $'proxy-test "q" \\ \n \xff \xe2\x80\xae \x9b' --pin 1234 --so-pin 12345678 >/dev/null
configure
use "$PROXY"
check "a token with an odd label" orders d 0x0
check "is shown with what a terminal does not act upon" exits 0 stats
check "in one line"              grep -E "^  slot [0-9]+, token 'proxy-test \"q\" .{1} \? \? \?\?\? \?'$" "$scratch/out"
check_stats_json "in JSON"       '[.slots[].token | select(startswith("proxy-test"))] == ["proxy-test \"q\" \\ ? ? ??? ?"]'
check_metrics "OpenMetrics keeps all rules"
end_use

configure 'x-statistics: off'
use "$PROXY"
check "x-statistics: off"        complains 1 "does not use the proxy, has x-statistics: off, or" stats
end_use
done_testing
