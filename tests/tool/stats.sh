#!/bin/bash
# stats.sh - p11-proxy stats: what it takes, and how it shows counters.
# shellcheck source=tests/tool/stats_lib.sh
. "$CHECKOUT/tests/tool/stats_lib.sh"

# The command line.
check_common_options stats
check "it takes no --module"     complains 2 "p11-proxy stats --help" "$TOOL" stats --module "$PROXY"
for word in 12x 0 4294967297 ''; do
    check "no PID: '$word'"      complains 2 "no process has this number: '$word'" "$TOOL" stats "$word"
done
check "an unknown format"        complains 2 "--format is not table, json or openmetrics: 'xml'" "$TOOL" stats --format=xml
for period in 0.09 3601 nan 1s '' ' 1' 0x1; do
    check "--watch=$period"      complains 2 "--watch is not a number of seconds from 0.1 to 3600: '$period'" \
        "$TOOL" stats --watch="$period"
done
check "--watch of openmetrics"   complains 2 "--watch does not go with" "$TOOL" stats --watch --format=openmetrics
# The table: all of it.
fake
table() {
    diff - <(stats) <<END
process $pid (fake_process), p11-proxy 9.8.7 for 2.1 h
  module    /usr/lib/pkcs11/p11-proxy.so
  target    /usr/lib/target.so
  pool      filled by a background thread; mixed with the kernel's bytes
  policy    enforce; refused 1,015 calls
  slot 7, token 'first token'
                                  calls          bytes
    from the pool             2,000,000     64,000,000   99.9 % of all draws
    missed                           12
    fills                         4,000     64,015,104
    expired                                      1,234
    dropped                                      5,678   seed 3   login 2
    alarms                            1
    held now                                     8,192
    wanted now                                  16,384
    at most                                     65,536
    asked for in a call                         16,384
    from the token                  800         25,600
    failed                            6
    calls to the token           14,011     65,536,000
    of these failed                   7
    saved               about 33.3 min of waiting; a call to the token takes 1.0 ms
  slot 8, token 'second token': no draws
  sessions of unknown slots
    failed                            4
  refused
    CKM_MD5_RSA_PKCS                 12   by 'MD5' in /etc/pkcs11/modules/p11-proxy.module:4
    key                           1,003   by 'RSA keySize < 2048' in /etc/pkcs11/modules/p11-proxy.module:5
  mechanisms used
    CKM_SHA256_RSA_PKCS          34,567
    CKM_AES_CBC                      20
    0x80001234                       20
    others                            9
END
}
check "the table"                table

# For programs.
check_stats_json "json" '.pid == '"$pid"' and .program == "fake_process" and .version == "9.8.7" and .pool and .thread and
    .module == "/usr/lib/pkcs11/p11-proxy.so" and .target == "/usr/lib/target.so" and .mix == "kernel" and
    .policy == "enforce" and (.started_seconds | now - . | . > 7499 and . < 7800)'
check_stats_json "json: a slot" '.slots[0] == {
        slot: 7, token: "first token", trust: "trusted", pool_draws: 2000000, pool_drawn_bytes: 64000000,
        token_draws: 800, token_drawn_bytes: 25600, failed_draws: 6, calls: 14011, called_bytes: 65536000,
        failed_calls: 7, missed_draws: 12, fills: 4000, filled_bytes: 64015104, expired_bytes: 1234,
        dropped_bytes: 5678, alarms: 1, held_bytes: 8192, level_bytes: 16384, capacity_bytes: 65536,
        chunk_bytes: 16384, locked: true, droppable: true, call_ns: 1000000, saved_ns: 2000000000000,
        drops: (.slots[0].drops | map_values(0) + {seed: 3, login: 2})}'
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
check "--format=json is one line" test "$(stats --format=json | wc -l)" == 1

# For monitoring.
check_metric "draws from the pool" 'p11_proxy_pool_draws_total{slot="7",token="first token"} 2e+06'
check_metric "a gauge"           'p11_proxy_held_bytes{slot="7",token="first token"} 8192'
check_metric "unknown slots"     'p11_proxy_failed_draws_total{slot="unknown"} 4'
check_metric "a mechanism"       'p11_proxy_mechanism_calls_total{mechanism="CKM_AES_CBC"} 20'
check_metric "saved time"        'p11_proxy_saved_seconds{slot="7",token="first token"} 2000'
check_metric "a drop"            'p11_proxy_drops_total{cause="seed",slot="7",token="first token"} 3'
check_metric "a refusal" 'p11_proxy_refusals_total{file="/etc/pkcs11/modules/p11-proxy.module",line="5",mechanism="key",policy="enforce",rule="RSA keySize < 2048"} 1003'
check_metric "the process" 'p11_proxy_info{mix="kernel",policy="enforce",pool="on",target="/usr/lib/target.so",thread="on",version="9.8.7"} 1'

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
fake suspect untimed
check "a suspect token"          shows "SUSPECT: its last random bytes failed the health test"
check "a cost that is not plausible is not known" grep -Fx "    saved               not known yet" "$scratch/out"
check_stats_json "json: suspect" '.slots[0].trust == "suspect" and .slots[1].trust == "trusted" and .slots[0].saved_ns == null'
check_metric "suspect"           'p11_proxy_trust{slot="7",token="first token"} 1'
end_fake
fake latched audit
check "a token that failed"      shows "FAILED the health test twice in a row: no random bytes until C_Finalize"
check "an audit"                 grep -Fx "  policy    audit; would refuse 1,015 calls" "$scratch/out"
check "what would be refused"    grep -Fx "  would be refused" "$scratch/out"
check_stats_json "json: audit"   '.policy == "audit" and .slots[0].trust == "latched"'
end_fake
fake bare
check "no pool"                  shows "pool      off"
check_stats_json "json: no pool" '(.pool or .thread) == false and .mix == "none" and .policy == "none"'
done_testing
