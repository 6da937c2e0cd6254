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
    exec {output}< <(exec {hold}>&- && "${how[@]}" "$FAKE_PROCESS" "$@" <"$scratch/hold")
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

# alone COMMAND...: where it sees no process but its own.
alone() {
    local as=()
    [[ $(id -u) == 0 ]] || as=(--user --map-root-user)
    unshare "${as[@]}" --pid --fork --mount-proc "$@"
}

# check_alone: as check, where a command can be alone.
check_alone() {
    if alone true 2>/dev/null; then
        check "$1" "${@:2}"
    else
        skip_check "$1" "this machine permits no PID namespace"
    fi
}

# Other tests may have processes that use the proxy, so the program is asked about one.
stats() {
    "$TOOL" stats "$@" "$pid"
}

# shows LINE [OPTION...]: has the line, but for blanks around it.
shows() {
    exits 0 stats "${@:2}" &&
        { sed 's/^ *//; s/ *$//' "$scratch/out" | grep -Fx -- "$1" || { cat "$scratch/out" && false; }; }
}

# check_stats_json WHAT FILTER: true of the first proxy of our process.
check_stats_json() {
    check_json "$1" 0 ".processes[0] | $2" stats --json
}

# check_openmetrics WHAT COMMAND...: as check, for a machine with a parser of OpenMetrics.
check_openmetrics() {
    if /usr/bin/python3 -c 'import prometheus_client' 2>/dev/null; then
        check "openmetrics: $1" "${@:2}"
    else
        skip_check "openmetrics: $1" "no python3-prometheus-client"
    fi
}

# check_rules WHAT: OpenMetrics of our process as its specification has it, with the same labels and numbers as JSON.
keeps_the_rules() {
    stats --json >"$scratch/json" && stats --format=openmetrics >"$scratch/out" &&
        "$CHECKOUT/tests/tool/openmetrics.py" "$scratch/json" <"$scratch/out"
}
check_rules() {
    check_openmetrics "$1" keeps_the_rules
}

# check_metric WHAT SAMPLE: in OpenMetrics of our process, as openmetrics.py prints it.
has_sample() {
    stats --format=openmetrics | "$CHECKOUT/tests/tool/openmetrics.py" >"$scratch/samples" &&
        { grep -Fx -- "$1" "$scratch/samples" || { cat "$scratch/samples" && false; }; }
}
check_metric() {
    check_openmetrics "$1" has_sample "$2"
}
