#!/bin/bash
# stats_find.sh - p11-proxy stats: whose counters it finds, and what becomes of hostile ones.
# shellcheck source=tests/tool/stats_lib.sh
. "$CHECKOUT/tests/tool/stats_lib.sh"

# all PIDS FILTER: jq's filter is true for the PIDs that are found of those given.
all_found() {
    exits 0 "$TOOL" stats --json && jq -e "[.processes[].pid | select(IN($1))] | sort | $2" "$scratch/out"
}
check_all() {
    if command -v jq >/dev/null; then
        check "$1" all_found "$2" "$3"
    else
        skip_check "$1" "no jq"
    fi
}

# Several.
check "a process that does not use it" complains 1 "process $$ ($(</proc/$$/comm)) does not use the proxy" "$TOOL" stats $$
check "in one line"              test "$(wc -l <"$scratch/err")" == 1
gone=$(</proc/sys/kernel/pid_max) # they are all below
check "a process that is not there" complains 1 "process $gone is not there" "$TOOL" stats "$gone"
pretend
first=$pid
pretend twice
check_json "two copies of the proxy in one process" 0 '
    [.processes[].module] == ["/usr/lib/pkcs11/p11-proxy-luna.so", "/usr/lib/pkcs11/p11-proxy.so"]' stats --json
check "an empty line between"    shows ""
check_all "several processes"    "$first, $pid" "length == 3"
check "one that is named twice is shown once" exits 0 "$TOOL" stats "$first" "$first"
check "so there is one"          test "$(grep -c ^process "$scratch/out")" == 1
check "one of two named is not there" exits 1 "$TOOL" stats "$gone" "$first"
check "the other is shown"       grep -F "process $first (" "$scratch/out"
end_pretence
check_all "who ended is gone"    "$first, $pid" ". == [$first]"
pretend twice
check "two copies: OpenMetrics that keeps all rules" keeps_the_rules
end_pretence
pretend "same twice"
check "one module twice: OpenMetrics has no series twice" keeps_the_rules
check_metric "one module twice in a process" 'p11_proxy_missed_draws_total{slot="7",token="first token"} 12'
end_pretence
pretend split
check_all "a mapping in two parts is one" "$pid" "length == 1"
end_pretence

# Children.
pretend fork
check_all "a forked child has no counters" "$pid, $child" ". == [$pid]"
end_pretence
if [[ $(id -u) == 0 ]] && below true 2>/dev/null; then
    pretend below
    check_all "in a PID namespace below" "$pid" ". == [$pid]"
    end_pretence
    pretend below namespace
    check_all "parent and child have the same PID: the parent counts" "$pid, $child" ". == [$pid]"
    check "the parent is found by name" exits 0 stats
    check "the child is not"     complains 1 "it inherited the counters of another" "$TOOL" stats "$child"
    end_pretence
else
    skip_check "PID namespaces" "they take root, and a machine that permits them"
fi

# A closed descriptor. Root may open what is mapped, unless it is a container's.
opens_mappings() {
    local range
    [[ $(id -u) == 0 ]] || return 1
    read -r range _ </proc/self/maps
    : <"/proc/self/map_files/$range"
}
for word in close reuse; do
    pretend $word
    if opens_mappings 2>/dev/null; then
        check "$word: root reads it" shows "slot 7, token 'first token'"
    else
        check "$word: it is told"    complains 1 "it closed the descriptor of its counters; " stats
    fi
    end_pretence
done

# What happens while it looks. The command has the pretender's ends, of which it writes one and reads the other.
input=$scratch/told
mkfifo "$input"
exec {told}<>"$input"
changes() {
    "${as[@]}" "${on_machine[@]}" AT_DESCRIPTORS='echo go >&3; read -r word <&4' \
        "$TOOL" stats "$@" 3>&"$told" 4<&"$heard"
}
as=()
pretend finalize
check "C_Finalize meanwhile is no closed descriptor" \
    complains 1 "process $pid (pretender) does not use the proxy, or has" changes "$pid"
end_pretence
pretend renew
check "C_Finalize and C_Initialize meanwhile: it is found" says 0 "slot 7, token 'first token'" changes "$pid"
end_pretence
if [[ $(id -u) == 0 ]]; then
    as=(as_someone)
    pretend as_someone renew
    check "likewise by who may not look at mappings" says 0 "slot 7, token 'first token'" changes "$pid"
    end_pretence
fi
input=$scratch/hold

# Each descriptor is looked at once, however many counters there are.
looks_at_many() {
    rm -f "$scratch/looks"
    "${on_machine[@]}" LOOKS="$scratch/looks" "$TOOL" stats --json "$pid" >"$scratch/out" && read -r looks <"$scratch/looks" &&
        echo "$looks links" && [[ $looks -gt 200 && $looks -lt 400 ]]
}
pretend many
check "a process with very many counters" looks_at_many
check_json "of which some are shown" 0 '.processes | length == 16' stats --json
end_pretence

# Others' processes.
pid=$first
if [[ $(id -u) == 0 ]]; then
    check "another user's"       complains 1 "(pretender) cannot be read: it is another user's, or privileged; root can" \
        as_someone "$TOOL" stats "$pid"
    as_someone_else() {
        # shellcheck disable=SC2016
        alone bash -c 'sleep infinity & "$@"; code=$?; kill $!; exit $code' bash \
            setpriv --reuid=65534 --regid=65534 --clear-groups \
            --inh-caps=-all,+dac_override --ambient-caps=-all,+dac_override "$@"
    }
    check_alone "others' are counted where none is found" \
        complains 0 "2 processes of other users could not be looked at; root could" as_someone_else "$TOOL" stats
    pretend as_someone
    check "root sees all"        shows "process $pid (pretender), p11-proxy 9.8.7 for 2 h 5 min"
    check "their user sees them" says 0 "process $pid (" as_someone "$TOOL" stats
    mentions_others() {
        grep -F "could not be looked at" "$scratch/err"
    }
    check "and hears nothing of others" exits 1 mentions_others
    end_pretence
    pretend as_someone close
    check "a closed descriptor is for root" complains 1 "it closed the descriptor of its counters; root can read it" \
        as_someone "$TOOL" stats "$pid"
    check "and is counted"       exits 0 as_someone "$TOOL" stats
    check "on stderr"            grep -F "closed the descriptor of the counters; root can read them" "$scratch/err"
    end_pretence
else
    skip_check "other users" "it takes root"
fi

# What is no proxy's, or not of this version.
refuses() {
    complains 1 "$1" stats && ! grep -F '"pid": '"$pid," <("$TOOL" stats --json)
}
pretend magic
check "another beginning"        refuses "they do not begin with 'p11-proxy stats'"
end_pretence
pretend layout
check "another layout"           refuses "its counters have layout 2, and this p11-proxy, version 0"
check "is counted"               exits 0 "$TOOL" stats
check "on stderr, with advice"   grep -E "[0-9]+ process(es)? with counters that cannot be read; name one" "$scratch/err"
end_pretence
pretend short
check "another size"             refuses "they are of the wrong size"
end_pretence
pretend unsealed
check "a memory that may vanish" refuses "they are not sealed"
end_pretence
pretend starting
check "one that begins"          refuses "is in the midst of C_Initialize; try again"
end_pretence

# Hostile texts and numbers.
pretend hostile
check "hostile: no escapes"      no_escapes 0 stats
evil='?[31m"\??????{}= '"'"
check "its name"                 grep -F 'process '"$pid"' (?[1m"?}\), p11-proxy v' "$scratch/out"
check "its module"               grep -Fx "  module    $evil" "$scratch/out"
check "a text that does not end" grep -Fx "  slot 7, token '$(printf '"%.0s' {1..39})'" "$scratch/out"
check_json "hostile: JSON that can be read" 0 '.processes[0] | .target | test("^[?]{511}$")' stats --json
check_json "hostile: no slot twice" 0 '.processes[0].slots | map(.slot) | length == (unique | length)' stats --json
check_json "hostile: no mechanism twice" 0 '.processes[0].mechanisms | length == 2' stats --json
check_json "hostile: no refusal twice" 0 '.processes[0].refusals | length == (unique | length)' stats --json
check "hostile: OpenMetrics that keeps all rules" keeps_the_rules
check_metric "what is hostile is read by both parsers" 'p11_proxy_calls_total{slot="unknown",token=""} 0'
end_pretence
check_all "the first is still there" "$first" ". == [$first]"
done_testing
