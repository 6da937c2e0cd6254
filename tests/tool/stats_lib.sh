# stats_lib.sh - what the tests of p11-proxy stats share: processes with counters, and what is said of them.
# shellcheck shell=bash

# shellcheck source=tests/tool/lib.sh
. "$CHECKOUT/tests/tool/lib.sh"

# fake [as_someone | below] [WORD...]: starts a process that counts as tests/tool/fake_process.c says, and waits
# until it does. Sets pid and child.
mkfifo "$scratch/hold"
exec {hold}<>"$scratch/hold"
trap 'exec {hold}>&-; rm -rf "$scratch"' EXIT
fake() {
    local how=()
    case ${1-} in
    as_someone | below) how=("$1") && shift ;;
    esac
    start "${how[@]}" "$FAKE_PROCESS" "$@"
}

# start COMMAND...: a process that prints its PID, and ends with its input.
start() {
    exec {output}< <(exec {hold}>&- && "$@" <"$scratch/hold")
    # shellcheck disable=SC2034
    read -r pid child <&"$output"
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

# shows LINE: the table has it, but for blanks around it.
shows() {
    exits 0 stats &&
        { sed 's/^ *//; s/ *$//' "$scratch/out" | grep -Fx -- "$1" || { cat "$scratch/out" && false; }; }
}

# check_stats_json WHAT FILTER: true of the first proxy of our process.
check_stats_json() {
    check_json "$1" 0 ".processes[0] | $2" stats --json
}

# check_metric WHAT [SAMPLE]: OpenMetrics of our process keeps all rules, and has the sample as openmetrics.py prints it.
check_metric() {
    if /usr/bin/python3 -c 'import prometheus_client' 2>/dev/null; then
        check "openmetrics: $1" has_sample "${2-}"
    else
        skip_check "openmetrics: $1" "no python3-prometheus-client"
    fi
}
has_sample() {
    stats --format=openmetrics | "$CHECKOUT/tests/tool/openmetrics.py" >"$scratch/samples" &&
        { [[ -z $1 ]] || grep -Fx -- "$1" "$scratch/samples" || { cat "$scratch/samples" && false; }; }
}
