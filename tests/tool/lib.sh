# lib.sh - what every test of the tool needs: a token, a configuration, and checks of output and exit code.
# shellcheck shell=bash
#
# meson sets TOOL besides what tests/token/lib.sh wants.

# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

# configure [LINE...]: the proxy's file anew, with lines added.
configure() {
    printf '%s\n' "module: $PROXY" "x-target: $TARGET" 'x-log: off' "$@" >"$P11_PROXY_CONFIG"
}

# exits CODE COMMAND...: what it prints on stdout is in $scratch/out, on stderr in $scratch/err.
exits() {
    local wanted=$1 code=0
    shift
    "$@" >"$scratch/out" 2>"$scratch/err" || code=$?
    [[ $code == "$wanted" ]] && return
    printf 'exit code %d, where %d would be right\n' "$code" "$wanted"
    cat "$scratch/out" "$scratch/err"
    return 1
}

# says CODE TEXT COMMAND...: exits with CODE and has TEXT in a line of stdout.
says() {
    local text=$2
    exits "$1" "${@:3}" && { grep -F -- "$text" "$scratch/out" || { cat "$scratch/out" && false; }; }
}

# complains CODE TEXT COMMAND...: the same of stderr, with nothing on stdout.
complains() {
    local text=$2
    exits "$1" "${@:3}" && grep -F -- "$text" "$scratch/err" && [[ ! -s $scratch/out ]]
}

# json CODE FILTER COMMAND...: stdout is JSON for which jq's filter is true.
json() {
    local filter=$2
    exits "$1" "${@:3}" && { jq -e "$filter" "$scratch/out" || { cat "$scratch/out" && false; }; }
}

# no_escapes CODE COMMAND...: nothing on stdout that colours or moves.
no_escapes() {
    exits "$@" && ! grep -q $'[\e\r]' "$scratch/out"
}

# check_json: as check, for a machine with jq.
check_json() {
    if command -v jq >/dev/null; then
        check "$1" json "${@:2}"
    else
        skip_check "$1" "no jq"
    fi
}

# "${on_machine[@]}" VARIABLE=VALUE... COMMAND...: as tests/tool/machine.c lets it see the machine.
# shellcheck disable=SC2034
on_machine=(env "ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" "LD_PRELOAD=$MACHINE_LIBRARY")

# What is the same for every subcommand.
check_common_options() {
    check "$1: --help"            says 0 "usage: p11-proxy $1" "$TOOL" "$1" --help
    check "$1: -h"                says 0 "usage: p11-proxy $1" "$TOOL" "$1" -h
    check "help $1"               says 0 "usage: p11-proxy $1" "$TOOL" help "$1"
    check "$1: --version"         says 0 "p11-proxy 0" "$TOOL" "$1" --version
    check "$1: an unknown option" complains 2 "p11-proxy $1 --help" "$TOOL" "$1" --no-such-option
    check "$1: --json with a value" complains 2 "p11-proxy $1 --help" "$TOOL" "$1" --json=1
}

# And for those that read a configuration.
check_module_option() {
    check "$1: --module with an empty path" complains 2 "--module is no path: ''" "$TOOL" "$1" --module=
}
