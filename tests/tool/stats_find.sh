#!/bin/bash
# stats_find.sh - p11-proxy stats: whose counters it finds, and what becomes of hostile ones.
# shellcheck source=tests/tool/stats_lib.sh
. "$CHECKOUT/tests/tool/stats_lib.sh"

# all_found PIDS FILTER: jq's filter is true for the PIDs that are found of those given.
all_found() {
    exits 0 "$TOOL" stats --json && jq -e "[.processes[].pid | select(IN($1))] | sort | $2" "$scratch/out"
}

check "a process that does not use it" complains 1 "process $$ ($(</proc/$$/comm)) does not use the proxy" "$TOOL" stats $$
gone=$(</proc/sys/kernel/pid_max) # all are below
check "a process that does not exist" complains 1 "process $gone does not exist" "$TOOL" stats "$gone"
fake
first=$pid
check "one that is named twice is shown once" test "$("$TOOL" stats "$first" "$first" | grep -c '^process')" == 1
check "one of two named does not exist" exits 1 "$TOOL" stats "$gone" "$first"
check "the other is shown"       grep -F "process $first (" "$scratch/out"
fake twice
check_json "two copies of the proxy in one process" 0 '
    [.processes[].module] == ["/usr/lib/pkcs11/p11-proxy-luna.so", "/usr/lib/pkcs11/p11-proxy.so"]' stats --json
check_rules "two copies: OpenMetrics that keeps all rules"
check "several processes"        all_found "$first, $pid" "length == 3"
end_fake
check "one that has ended is not found" all_found "$first, $pid" ". == [$first]"
fake duplicate
check_json "two descriptors of the same counters are one" 0 '.processes | length == 1' stats --json
end_fake
fake "same twice"
check_rules "one module twice: OpenMetrics has no series twice"
end_fake
fake "named oddly"
check_json "a name with half a character is valid UTF-8" 0 '.processes[0].program == "fourteen bytes?"' stats --json
end_fake
fake fork
check "a forked child has no counters" all_found "$pid, $child" ". == [$pid]"
check "which is said of it"      complains 1 "it inherited the counters of another" "$TOOL" stats "$child"
end_fake
if [[ $(id -u) == 0 ]] && below true; then
    fake below
    check "a process in a PID namespace" all_found "$pid" ". == [$pid]"
    end_fake
else
    skip_check "a process in a PID namespace" "it takes root, and a machine that permits one"
fi

# Files of another kind under the counters' name, which they have on a mount that is detached. A reader of the FIFO
# would wait for ever, one of the leased file for /proc/sys/fs/lease-break-time.
impostor() {
    # shellcheck disable=SC2016
    exec {output}< <(exec {hold}>&- && unshare --mount bash -c 'mount -t tmpfs none "$1" && cd "$1" && exec /usr/bin/python3 -c "$2" "$3"' \
        bash "$scratch" 'import fcntl, os, signal, subprocess, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
name = "memfd:p11-proxy-statistics (deleted)"
os.mkfifo(name) if sys.argv[1] == "fifo" else open(name, "w").close()
fd = os.open(name, os.O_RDWR)
if sys.argv[1] == "lease":
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
subprocess.run(["umount", "--lazy", os.getcwd()], check=True)
print(os.getpid(), flush=True)
sys.stdin.read()' "$1" <"$scratch/hold" 2>/dev/null)
    read -r pid <&"$output"
}
for kind in fifo lease; do
    if [[ $(id -u) == 0 ]] && impostor $kind; then
        named_like_counters() {
            readlink "/proc/$pid/fd"/* | grep -Fx "/memfd:p11-proxy-statistics (deleted)"
        }
        check "a $kind under the counters' name" named_like_counters
        check "is left alone"    complains 1 "does not use the proxy" "$TOOL" stats "$pid"
        end_fake
    else
        skip_check "a $kind under the counters' name" "it takes root, and a machine that permits a mount"
    fi
done

# Other users' processes.
pid=$first
if [[ $(id -u) == 0 ]]; then
    check "another user's"       complains 1 "(fake_process) cannot be read: it belongs to another user" as_someone "$TOOL" stats "$pid"
    as_someone_else() {
        # shellcheck disable=SC2016
        alone bash -c 'sleep infinity & "$@"; code=$?; kill $!; exit $code' bash \
            setpriv --reuid=65534 --regid=65534 --clear-groups \
            --inh-caps=-all,+dac_override --ambient-caps=-all,+dac_override "$@"
    }
    check_alone "others' are counted where none is found" \
        complains 0 "2 processes could not be read; root can read all" as_someone_else "$TOOL" stats
    fake as_someone
    check "root sees all"        shows "process $pid (fake_process), p11-proxy 9.8.7 for 2.1 h"
    check "their user sees them" says 0 "process $pid (" as_someone "$TOOL" stats
    end_fake
else
    skip_check "other users" "it takes root"
fi

# What was not made by a proxy, or not by this version.
refuses() {
    complains 1 "$1" stats && ! grep -F '"pid": '"$pid," <("$TOOL" stats --json)
}
fake magic
check "another beginning"        refuses "its counters do not begin with 'p11-proxy stats'"
end_fake
fake layout
check "another layout"           refuses "its counters have layout 3, but this p11-proxy, version 0"
check "is counted"               exits 0 "$TOOL" stats
check "on stderr, with advice"   grep -E "[0-9]+ process(es)? with counters that cannot be read; name one" "$scratch/err"
end_fake
fake short
check "another size"             refuses "its counters cannot be read"
end_fake
fake starting
check "one that begins"          refuses "is in C_Initialize; try again"
end_fake

for word in "slot twice" "mechanism twice" "refusal twice" "counts beyond all arrays"; do
    fake "$word"
    check "$word"                refuses "its counters are not those of a proxy"
    end_fake
done

# Hostile texts and numbers.
fake hostile
check "hostile: no escapes"      no_escapes 0 stats
evil='?[31m"\??????{}= '"'"
check "its name"                 grep -F 'process '"$pid"' (?[1m"?}\), p11-proxy v' "$scratch/out"
check "its module"               grep -Fx "  module    $evil" "$scratch/out"
check "a text that does not end" grep -Fx "  slot 7, token '$(printf '"%.0s' {1..39})'" "$scratch/out"
check_json "hostile: JSON that can be read" 0 '.processes[0] | .target | test("^[?]{511}$")' stats --json
check_rules "hostile: OpenMetrics that keeps all rules"
check_metric "hostile texts are read by both parsers" 'p11_proxy_calls_total{slot="unknown"} 0'
end_fake
check "the first is still there" all_found "$first" ". == [$first]"
done_testing
