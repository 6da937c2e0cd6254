# lib.sh - what every test of the tool needs besides a token: configurations, and checks of its output.
# shellcheck shell=bash
#
# meson sets TOOL besides what tests/token/lib.sh wants.

# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

log=off

# with LINE COMMAND...: LINE is in the configuration, and stays there.
with() {
    configure "$1" && "${@:2}"
}

# with_target PATH COMMAND...: the same of the target.
with_target() {
    TARGET=$1 configure && "${@:2}"
}

# contents: what the token has, and the configuration.
contents() {
    find "$scratch/tokens" "$P11_PROXY_CONFIG" -type f -exec sha256sum {} + | sort
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
    check_with jq "$1" json "${@:2}"
}

# "${on_machine[@]}" VARIABLE=VALUE... COMMAND...: as tests/tool/machine.c lets it see the machine.
# shellcheck disable=SC2034
on_machine=(env "ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" "LD_PRELOAD=$MACHINE_LIBRARY")

# use MODULE: starts an application that uses it, and sets pid.
use() {
    coproc user { exec "$USERS" local "$1" none; }
    # shellcheck disable=SC2154
    pid=$user_PID
    orders i 0x0 && orders o 0x0 && orders s 0x0
}
# orders STEP CODE: what it is to do, as tests/token/users.c has it, and what that is answered with.
orders() {
    local answer
    echo "A$1" >&"${user[1]}"
    read -r answer <&"${user[0]}"
    [[ $answer == "A$1 $2" ]]
}
end_use() {
    kill "$pid"
    wait "$pid" || true
}

# What is the same for every subcommand.
check_common_options() {
    local words
    for words in "$1 --help" "$1 -h" "help $1"; do
        # shellcheck disable=SC2086
        check "$words"               says 0 "usage: p11-proxy $1" "$TOOL" $words
    done
    check "$1 --version"             says 0 "p11-proxy 0" "$TOOL" "$1" --version
    check "$1: an unknown option"    complains 2 "p11-proxy $1 --help" "$TOOL" "$1" --no-such-option
    check "$1: --json with a value"  complains 2 "p11-proxy $1 --help" "$TOOL" "$1" --json=1
}

# And for those that read a configuration.
check_module_option() {
    check "$1: --module with an empty path" complains 2 "--module is no path: ''" "$TOOL" "$1" --module=
}
