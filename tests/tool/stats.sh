#!/bin/bash
# stats.sh - p11-proxy stats: what it takes, and what it makes of counters.
# shellcheck source=tests/tool/stats_lib.sh
. "$CHECKOUT/tests/tool/stats_lib.sh"

# The command line.
check_common_options stats
check "it takes no --module"     complains 2 "p11-proxy stats --help" "$TOOL" stats --module "$PROXY"
check "a PID that is none"       complains 2 "no process has this number: '12x'" "$TOOL" stats 12x
check "PID 0"                    complains 2 "no process has this number: '0'" "$TOOL" stats 0
check "a negative one"           complains 2 "no process has this number: '-1'" "$TOOL" stats -- -1
check "one that is too large"    complains 2 "this number: '4294967297'" "$TOOL" stats 4294967297
check "an unknown format"        complains 2 "--format is not table, json or openmetrics: 'xml'" "$TOOL" stats --format=xml
check "--format without one"     complains 2 "p11-proxy stats --help" "$TOOL" stats --format
for period in 0 0.09 3601 nan 1s -1 '' ' 1' 0x1 1e2 1.1.1; do
    check "--watch=$period"      complains 2 "--watch is not a number of seconds from 0.1 to 3600: '$period'" \
        "$TOOL" stats --watch="$period"
done
check "--watch of openmetrics"   complains 2 "--watch does not go with" "$TOOL" stats --watch --format=openmetrics
for format in table openmetrics; do
    check "--json and --format=$format" complains 2 "--json does not go with another --format" \
        "$TOOL" stats --json --format=$format
    check "in any order"         complains 2 "--json does not go with" "$TOOL" stats --format=$format --json
done

# Nobody there.
check_alone "nobody uses it"     complains 0 "no process that we may read uses the proxy" alone "$TOOL" stats
check_alone "nobody: --json"     says 0 '"processes": []' alone "$TOOL" stats --json
check_alone "nobody: openmetrics" says 0 '# EOF' alone "$TOOL" stats --format=openmetrics
check_alone "and nothing else"   test "$(wc -l <"$scratch/out")" == 1

# The table.
pretend
check "the process"              shows "process $pid (pretender), p11-proxy 9.8.7 for 2 h 5 min"
check "nothing on stderr"        test ! -s "$scratch/err"
check "its module"               shows "module    /usr/lib/pkcs11/p11-proxy.so"
check "its target"               shows "target    /usr/lib/target.so"
check "its modes"                shows "pool      filled by a background thread; mixed with the kernel's bytes"
check "its policy"               shows "policy    enforce; refused 1,015 calls"
check "a slot and its token"     shows "slot 7, token 'first token'"
check "draws from the pool, all stripes" shows "draws       2,000,000   99.5 %  from the pool   64,000,000 bytes"
check "draws by the token"       shows "10,000    0.5 %  by the token       320,000 bytes"
check "failed draws"             shows "6    0.0 %  failed"
check "the pool's bytes"         shows "pool    8,192 bytes held, 16,384 wanted, 65,536 at most; locked, droppable"
check "the time that was saved"  shows "saved   33 min 20 s of waiting"
check "refills"                  shows "refills         4,000 of 16,384 bytes on average"
check "missed draws"             shows "missed             12 draws"
check "expired bytes"            shows "expired         1,234 bytes"
check "drops by cause"           shows "dropped         5,678 bytes: seed 3, login 2"
check "alarms"                   shows "alarms              1"
check "a slot of no use"         shows "slot 8: no draws"
check "sessions of unknown slots" shows "draws               0 by the token, 4 failed"
check "what was refused"         shows "refused"
check "which mechanism, and why" shows "12  CKM_MD5_RSA_PKCS, by 'MD5'"
check "and where that stands"    shows "/etc/pkcs11/modules/p11-proxy.module:4"
check "a key that was"           shows "1,003  a key, by 'RSA keySize < 2048'"
by_use() {
    stats | sed -n '/mechanisms used/,$s/^ *[0-9,]*  //p' | diff - <(printf '%s\n' "mechanisms used" "$@")
}
check "mechanisms, most used first" by_use CKM_SHA256_RSA_PKCS CKM_AES_CBC 0x80001234 others
trusts() {
    exits 0 stats && ! grep -iE "suspect|health" "$scratch/out"
}
check "no suspicion"             trusts
check "no escapes"               no_escapes 0 stats
fits() {
    stats | awk 'length > 80 { print; bad = 1 } END { exit bad }'
}
check "it fits 80 columns"       fits
if command -v script >/dev/null; then
    on_a_terminal() {
        env "$@" script -qec "'$TOOL' stats $pid" /dev/null </dev/null
    }
    check "the process stands out on a terminal" says 0 $'\e[1mprocess' on_a_terminal -u NO_COLOR TERM=xterm
    without_escapes() {
        on_a_terminal NO_COLOR=1 TERM=xterm >"$scratch/out" && ! grep -q $'\e' "$scratch/out"
    }
    check "but not with NO_COLOR" without_escapes
else
    skip_check "colours" "no script(1)"
fi

# shellcheck source=tools/completion
. "$CHECKOUT/tools/completion"
completes_pid() {
    COMP_WORDS=("$TOOL" stats "${pid:0:1}") COMP_CWORD=2
    _p11_proxy
    printf '%s\n' "${COMPREPLY[@]}" | grep -Fx "$pid"
}
check "completion knows it"      completes_pid

# For programs.
check_stats_json "json" '.pid == '"$pid"' and .program == "pretender" and .version == "9.8.7" and .pool and .thread and
    .module == "/usr/lib/pkcs11/p11-proxy.so" and .target == "/usr/lib/target.so" and .mix == "kernel" and
    .policy == "enforce" and (.started_seconds | now - . | . > 7499 and . < 7800)'
check_stats_json "json: a slot" '.slots[0] == {
        slot: 7, token: "first token", trust: "trusted", pool_draws: 2000000, pool_drawn_bytes: 64000000,
        token_draws: 10000, token_drawn_bytes: 320000, failed_draws: 6, calls: 14011, called_bytes: 65536000,
        failed_calls: 7, missed_draws: 12, fills: 4000, filled_bytes: 65536000, expired_bytes: 1234,
        dropped_bytes: 5678, alarms: 1, held_bytes: 8192, level_bytes: 16384, capacity_bytes: 65536,
        chunk_bytes: 16384, locked: true, droppable: true, call_ns: 1000000, saved_ns: 2000000000000,
        drops: {seed: 3, login: 2, sessions: 0, token: 0, finalize: 0, clock: 0, memory: 0, clone: 0, health: 0}}'
check_stats_json "json: what is not known is null" '.slots[1] | .call_ns == null and .saved_ns == null'
check_stats_json "json: unknown slots" '.unknown_slots.failed_draws == 4'
check_stats_json "json: refusals" '.refused == 1015 and .refusals == [
        {mechanism: "CKM_MD5_RSA_PKCS", mechanism_number: 5, rule: "MD5", line: 4, times: 12,
         file: "/etc/pkcs11/modules/p11-proxy.module"},
        {mechanism: null, mechanism_number: null, rule: "RSA keySize < 2048", line: 5, times: 1003,
         file: "/etc/pkcs11/modules/p11-proxy.module"}]'
check_stats_json "json: mechanisms" '.other_mechanism_calls == 9 and .mechanisms == [
        {mechanism: "CKM_SHA256_RSA_PKCS", mechanism_number: 64, calls: 34567},
        {mechanism: "CKM_AES_CBC", mechanism_number: 4226, calls: 20},
        {mechanism: "0x80001234", mechanism_number: 2147488308, calls: 20}]'
check_json "json: the time"      0 '.time_seconds | now - . | . >= -1 and . < 300' stats --json
check_json "--format=json"       0 '.processes | length == 1' stats --format=json
check_json "--json --format=json" 0 '.processes | length == 1' stats --json --format=json
check_json "of two formats the last" 0 '.processes | length == 1' stats --format=table --format=json

# For monitoring.
check_metric "draws from the pool" 'p11_proxy_draws_total{slot="7",source="pool",token="first token"} 2e+06'
check_metric "draws by the token" 'p11_proxy_draws_total{slot="7",source="token",token="first token"} 10000'
check_metric "their bytes"       'p11_proxy_drawn_bytes_total{slot="7",source="pool",token="first token"} 6.4e+07'
check_metric "failed draws"      'p11_proxy_failed_draws_total{slot="7",token="first token"} 6'
check_metric "unknown slots"     'p11_proxy_failed_draws_total{slot="unknown",token=""} 4'
check_metric "saved time"        'p11_proxy_saved_seconds{slot="7",token="first token"} 2000'
check_metric "held bytes"        'p11_proxy_held_bytes{slot="7",token="first token"} 8192'
check_metric "drops"             'p11_proxy_drops_total{cause="seed",slot="7",token="first token"} 3'
check_metric "alarms"            'p11_proxy_alarms_total{slot="7",token="first token"} 1'
check_metric "a refusal" 'p11_proxy_refusals_total{file="/etc/pkcs11/modules/p11-proxy.module",line="5",mechanism="key",policy="enforce",rule="RSA keySize < 2048"} 1003'
check_metric "a mechanism"       'p11_proxy_mechanism_calls_total{mechanism="CKM_AES_CBC"} 20'
check_metric "the process" 'p11_proxy_info{mix="kernel",policy="enforce",pool="on",target="/usr/lib/target.so",thread="on",version="9.8.7"} 1'
check "openmetrics: all rules"  keeps_the_rules
check "openmetrics: units"       says 0 '# UNIT p11_proxy_drawn_bytes bytes' stats --format=openmetrics
check "openmetrics: an end"      test "$(tail -n 1 "$scratch/out")" == '# EOF'
end_pretence

# Other numbers.
pretend suspect
check "a suspect token is told"  shows "SUSPECT: its last random bytes failed the health test"
check_stats_json "json: suspect" '.slots[0].trust == "suspect" and .slots[1].trust == "trusted"'
check_metric "suspect"           'p11_proxy_suspect{slot="7",token="first token"} 1'
if command -v script >/dev/null; then
    check "in red on a terminal" says 0 $'\e[1;31mSUSPECT' on_a_terminal -u NO_COLOR TERM=xterm
else
    skip_check "in red on a terminal" "no script(1)"
fi
end_pretence
pretend latched
check "one that failed is told"  shows "FAILED the health test twice in a row: no random bytes until C_Finalize"
check_stats_json "json: latched" '.slots[0].trust == "latched"'
end_pretence
pretend audit
check "an audit"                 shows "policy    audit; would refuse 1,015 calls"
check "what would be refused"    shows "would be refused"
check_stats_json "json: audit"   '.policy == "audit"'
check_metric "audit" 'p11_proxy_refused_calls_total{policy="audit"} 1015'
end_pretence
pretend bare
check "no pool"                  shows "pool      off"
check "nor for a slot"           shows "pool    none"
check_stats_json "json: no pool" '(.pool or .thread) == false and .mix == "none" and .policy == "none"'
done_testing
