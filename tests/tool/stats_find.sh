#!/bin/bash
# stats_find.sh - p11-proxy stats: whose counters it finds, and what becomes of hostile ones.
# shellcheck source=tests/tool/stats_lib.sh
. "$CHECKOUT/tests/tool/stats_lib.sh"

# all_found PIDS FILTER: jq's filter is true for the PIDs that are found of those given.
all_found() {
    exits 0 "$TOOL" stats --json && jq -e "[.processes[].pid | select(IN($1))] | unique | $2" "$scratch/out"
}

# alone COMMAND...: where it sees no process but its own.
alone() {
    local as=()
    [[ $(id -u) == 0 ]] || as=(--user --map-root-user)
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
check_metric "a module that is loaded twice makes no series twice"
check "several processes"        all_found "$first, $pid" "length == 2"
end_fake
check "one that has ended is not found" all_found "$first, $pid" ". == [$first]"
fake fork
check "a forked child has no counters" all_found "$pid, $child" ". == [$pid]"
check "which is said of it"      complains 1 "it counts from its own C_Initialize" "$TOOL" stats "$child"
end_fake
if [[ $(id -u) == 0 ]] && below true; then
    fake below
    check "a process in a PID namespace" all_found "$pid" ". == [$pid]"
    end_fake
else
    skip_check "a process in a PID namespace" "it takes root, and a machine that permits one"
fi

# A FIFO under the counters' name, which it has on a mount that is detached. A reader would wait for ever.
# shellcheck disable=SC2016
impostor=(unshare --mount bash -c 'mount -t tmpfs none "$1" && cd "$1" && name="memfd:p11-proxy-statistics (deleted)" &&
    mkfifo "$name" && exec 8<>"$name" 9<"$name" 8>&- && cd / && umount --lazy "$1" && echo $$ && read -r' bash "$scratch/home")
mkdir "$scratch/home"
if [[ $(id -u) == 0 ]] && unshare --mount mount -t tmpfs none "$scratch/home" 2>/dev/null; then
    start "${impostor[@]}"
    check "a FIFO under the counters' name" test "$(readlink "/proc/$pid/fd/9")" == "/memfd:p11-proxy-statistics (deleted)"
    check "is not waited for"    complains 1 "process $pid has counters that" "$TOOL" stats "$pid"
    end_fake
else
    skip_check "a FIFO under the counters' name" "it takes root, and a machine that permits a mount"
fi
rmdir "$scratch/home"

# Other users' processes.
pid=$first
if [[ $(id -u) == 0 ]]; then
    check "another user's"       complains 1 "cannot be read: it belongs to another user" as_someone "$TOOL" stats "$pid"
    fake as_someone
    check "root sees all"        shows "process $pid (fake_process), p11-proxy 9.8.7 for 2.1 h"
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
check_metric "hostile texts are read by both parsers" 'p11_proxy_calls_total{slot="unknown"} 0'
end_fake
check "the first is still there" all_found "$first" ". == [$first]"
done_testing
