# lib.sh - what every test with real programs needs: a token of its own, and checks that speak TAP.
# shellcheck shell=bash
#
# meson sets PROXY and COUNTING (the built modules) and CHECKOUT. A test sources this, calls check, and ends
# with done_testing.
set -eu -o pipefail

# Others are to read what we make, and not to write it.
umask 022

# shellcheck source=tools/setup.sh
. "$CHECKOUT/tools/setup.sh"

TARGET=$(softhsm_module)
kit_proxy=$(pkg-config --variable=proxy_module p11-kit-1)
checks=0
failed=0

# as_nobody COMMAND...: root runs it as user 65534.
as_nobody() {
    local as=()
    [[ $EUID != 0 ]] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    "${as[@]}" "$@"
}

# The folder that TMPDIR names may be closed to that user.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
if ! as_nobody test -x "$scratch"; then
    rmdir "$scratch"
    scratch=$(mktemp -d -p /tmp)
    chmod 755 "$scratch"
fi
new_softhsm_token "$scratch"
export SOFTHSM2_CONF=$scratch/softhsm2.conf

# configure [LINE...]: the file that the proxy reads, whatever this machine has configured. Logs go to $log.
export P11_PROXY_CONFIG=$scratch/p11-proxy.module
log='stderr warning'
configure() {
    printf '%s\n' "module: $PROXY" "x-target: $TARGET" "x-log: $log" "$@" >"$P11_PROXY_CONFIG"
}
configure

# as_someone COMMAND...: where p11-kit reads the files of this home, and no others of a user.
home=$scratch/home
modules=$home/.config/pkcs11/modules
mkdir -p "$modules"
printf 'user-config: only\n' >"${modules%/*}/pkcs11.conf"
as_someone() {
    as_p11_kit_user "$home" "$@"
}

# register NAME LINE...: writes the file of a module there.
register() {
    printf '%s\n' "${@:2}" >"$modules/$1.module"
}

# check WHAT COMMAND...: one check; what the command printed is shown if it failed.
check() {
    local what=$1
    shift
    checks=$((checks + 1))
    if "$@" >"$scratch/output" 2>&1; then
        printf 'ok %d - %s\n' "$checks" "$what"
    else
        failed=$((failed + 1))
        printf 'not ok %d - %s\n' "$checks" "$what"
        sed 's/^/# /' "$scratch/output"
    fi
}

skip_check() {
    checks=$((checks + 1))
    printf 'ok %d - %s # SKIP %s\n' "$checks" "$1" "$2"
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

# warns CODE TEXT COMMAND...: the same of stderr; complains: and nothing is on stdout.
warns() {
    local text=$2
    exits "$1" "${@:3}" && grep -F -- "$text" "$scratch/err"
}
complains() {
    warns "$@" && [[ ! -s $scratch/out ]]
}

# done_testing: the plan, and a code that says whether all went well.
done_testing() {
    printf '1..%d\n' "$checks"
    [[ $failed == 0 ]]
}

# skip_all WHY: for a component that this machine cannot have.
skip_all() {
    printf '%s\n' "$1"
    exit 77
}

# has WHAT: a program by its name, any other file by its path. Functions do not count.
has() {
    type -P "$1" >/dev/null || [[ -e $1 ]]
}

# needs WHAT...: all of it, or the whole test is skipped.
needs() {
    local what
    for what in "$@"; do
        has "$what" || skip_all "there is no $what"
    done
}

# check_with WHAT ...: as check, but skipped where WHAT is missing.
check_with() {
    if has "$1"; then
        check "${@:2}"
    else
        skip_check "$2" "there is no $1"
    fi
}

# repeat N COMMAND...: until one fails.
repeat() {
    local i
    for ((i = 0; i < $1; i++)); do "${@:2}" || return 1; done
}
