# lib.sh - one program's job, done twice: with the token's own module, and through the proxy.
# shellcheck shell=bash
#
# A test sources this, says what it needs, reads its recipe from the manual page, and calls same and gains.
# meson sets what tests/token/lib.sh wants, and UNPACKED, where tests/clients/prepare unpacked servers.

# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

page=$CHECKOUT/common/p11-proxy.module.5
name=${0##*/}
name=${name%.sh}
# The slow checks come with --long, or with tests/run --long.
long=false
# shellcheck disable=SC2034
[[ ${!#} != --long && -z ${TESTS_LONG-} ]] || long=true

# Debian's own programs: the tests' packages belong to them. Servers come last, so installed ones win.
export PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$UNPACKED/usr/sbin:$UNPACKED/usr/bin
export LC_ALL=C.UTF-8

skip() {
    printf 'SKIP %s: %s\n' "$name" "$1"
    exit 77
}

# needs FILE...: programs by their names, other files by their paths.
needs() {
    local what
    for what in "$@"; do
        command -v "$what" >/dev/null || [[ -e $what ]] || skip "there is no $what"
    done
}

# Both sides see the same paths, so that what they print can be compared: $place/p11-proxy.so is the module of
# the one or the other, and the token is a copy of $scratch/tokens as it was.
place=$scratch/place
config=$place/home/.config/pkcs11
export SOFTHSM2_CONF=$place/softhsm2.conf P11_PROXY_CONFIG=$config/modules/p11-proxy.module
export P11_SLOW_TARGET=$TARGET P11_SLOW_CALLS=$place/calls
quiet=('x-log: stderr warning')
settings=("${quiet[@]}")
target_of_proxy=$SLOW
last_job=()

# set_out bare|proxied: makes $place anew. SLOW stands before the token on both sides, and counts draws.
set_out() {
    rm -rf "$place"
    mkdir -p "$config/modules"
    [[ $(id -u) != 0 ]] || chmod 777 "$place"
    cp -r "$scratch/tokens" "$place/tokens"
    sed "s#$scratch/tokens#$place/tokens#" "$scratch/softhsm2.conf" >"$SOFTHSM2_CONF"
    printf 'user-config: only\n' >"$config/pkcs11.conf"
    printf '%s\n' "module: $place/p11-proxy.so" "x-target: $target_of_proxy" "${settings[@]}" >"$P11_PROXY_CONFIG"
    if [[ $1 == bare ]]; then
        cp "$SLOW" "$place/p11-proxy.so"
    else
        cp "$PROXY" "$place/p11-proxy.so"
    fi
    [[ ! -d $scratch/files ]] || cp -r "$scratch/files/." "$place"
}

# How often the token was asked for random bytes.
calls_of_token() {
    if [[ -e $P11_SLOW_CALLS ]]; then
        od -A n -t u8 -N 8 "$P11_SLOW_CALLS" | tr -d ' '
    else
        echo 0
    fi
}

# What differs from run to run with any module. A test that knows of more has a function of its own.
normalise() {
    cat
}

# leg bare|proxied JOB...: does the job in $place; leaves SIDE.out, SIDE.calls and the folder SIDE in $scratch. The
# job sees the side in $side.
leg() {
    local code=0
    side=$1
    shift
    set_out "$side"
    (cd "$place" && "$@") >"$scratch/$side.raw" 2>&1 </dev/null || code=$?
    { normalise <"$scratch/$side.raw" && echo "exit code $code"; } >"$scratch/$side.out"
    calls_of_token >"$scratch/$side.calls"
    rm -rf "${scratch:?}/$side"
    mv "$place" "$scratch/$side"
}

# ends_alike CODE JOB...: the job prints the same on both sides, and ends with CODE.
ends_alike() {
    local code=$1
    shift
    last_job=("$@")
    leg bare "$@"
    leg proxied "$@"
    cat "$scratch/bare.raw"
    grep -qx "exit code $code" "$scratch/bare.out" && diff -u "$scratch/bare.out" "$scratch/proxied.out"
}

# same WHAT JOB...: a check that the job goes as well through the proxy as without it.
same() {
    local what=$1
    shift
    check "$what" ends_alike 0 "$@"
}

# recipe TITLE: reads the program's part of the manual page. A block whose first line is "# NAME" is a file, which
# each side finds in $place; another one has the commands, which "follow TITLE" runs.
recipe() {
    mkdir -p "$scratch/files"
    rm -f "$scratch/files/recipe.sh"
    awk -v title="$1" -v files="$scratch/files" -v commands="$scratch/files/recipe.sh" -v module="$place/p11-proxy.so" '
        /^\.S[sh] / { inside = substr($0, 5) == title; next }
        inside && /^\.Bd -literal/ { block = 1; to = commands; first = 1; next }
        /^\.Ed/ { block = 0; next }
        !block { next }
        { gsub(/\\e/, "\\"); gsub(/\\&/, ""); gsub("/usr/lib/x86_64-linux-gnu/pkcs11/p11-proxy.so", module) }
        first && /^# [^ ]+$/ { to = files "/" $2; first = 0; next }
        { first = 0; sub(/^\$ /, ""); print >to; found = 1 }
        END { exit !found }' "$page" || { echo "the manual page has no recipe for $1"; exit 1; }
}

# The recipe's commands, as a shell takes them.
follow() {
    bash -eu -o pipefail recipe.sh
}

# The cells of a program's row in the manual page's table of which programs gain.
row_of() {
    awk -v start=".It $1 Ta " 'index($0, start) == 1 { print substr($0, length(start) + 1) }' "$page"
}

# The last job drew, and at least half of its draws reached no token.
pool_serves() {
    [[ $(<"$scratch/bare.calls") -gt 0 && $(($(<"$scratch/proxied.calls") * 2)) -le $(<"$scratch/bare.calls") ]]
}

# gains PROGRAM: the last job drew, had the token asked and named mechanisms as the program's row in the table says.
gains() {
    check "the table has it right: $1: $(row_of "$1")" gains_as_in_table "$1"
}

# A program that never asks has the token left alone. One that gains random bytes has at least half of its draws
# served by the pool; from any other one the token is not asked more often than without the proxy. Where the policy
# acts, a list of everything would refuse something: audit tells, and changes nothing.
gains_as_in_table() {
    local bare proxied refused row asked=0
    row=$(row_of "$1")
    bare=$(<"$scratch/bare.calls") proxied=$(<"$scratch/proxied.calls")
    settings=('x-disabled-algorithms: RSA, EC, EdDSA, AES, DES, MD5, SHA1, SHA256, SHA384, SHA512' 'x-policy: audit'
              "x-log: $place/audit warning")
    leg proxied "${last_job[@]}"
    settings=("${quiet[@]}")
    refused=$(grep -c 'would refuse' "$scratch/proxied/audit" || true)
    echo "it asked $bare times; through the proxy the token was asked $proxied times; $refused kinds of refusal"
    diff -u "$scratch/bare.out" "$scratch/proxied.out" || return 1
    case $row in
    never*) asked=$((bare == 0 && proxied == 0)) ;;
    yes*random*) pool_serves && asked=1 ;;
    yes* | 'at start'*) asked=$((bare > 0 && proxied > 0 && proxied <= bare)) ;;
    *) return 1 ;;
    esac
    [[ $asked == 1 ]] && if [[ $row == *policy* ]]; then [[ $refused -gt 0 ]]; else [[ $refused == 0 ]]; fi
}

# new_key: an RSA key pair with the label key on the token, and a certificate for localhost with it; the same key
# in key.pem and cert.pem.
new_key() {
    mkdir -p "$scratch/files"
    (cd "$scratch/files"
     openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
         -addext subjectAltName=DNS:localhost,IP:127.0.0.1
     SOFTHSM2_CONF=$scratch/softhsm2.conf
     write() { pkcs11-tool --module "$TARGET" --login --pin 1234 --id 01 --label key --write-object "$@"; }
     write key.pem --type privkey --usage-sign --usage-decrypt
     openssl pkey -in key.pem -pubout -outform DER -out "$scratch/key.pub.der"
     write "$scratch/key.pub.der" --type pubkey --usage-sign
     openssl x509 -in cert.pem -outform DER -out "$scratch/cert.der"
     write "$scratch/cert.der" --type cert) >"$scratch/new_key.log" 2>&1 ||
        { cat "$scratch/new_key.log"; exit 1; }
}

as_user() {
    as_p11_kit_user "$place/home" "$@"
}

# free_port: a port on loopback that nothing listens at.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# until_true COMMAND...: tries again until it succeeds; half a minute only ends a hang.
until_true() {
    local until=$((SECONDS + 30))
    until "$@" >/dev/null 2>&1; do
        [[ $SECONDS -lt $until ]] || { echo "it never came true: $*"; return 1; }
        sleep 0.05
    done
}

# A server at a TCP port is ready when it listens, another one when it has printed a line.
is_ready() {
    if [[ $1 =~ ^[0-9]+$ ]]; then
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
    else
        grep -qF "$1" server.log
    fi
}

is_ready_or_gone() {
    is_ready "$1" || ! kill -0 "$2"
}

# with_server PORT|LINE SERVER CLIENT...: runs the client when the function SERVER is ready; then ends all processes
# of the server with SIGTERM, and waits for them. What they print goes to server.log.
with_server() {
    local ready=$1 server=$2 pid code=0
    shift 2
    set -m
    "$server" >server.log 2>&1 &
    pid=$!
    set +m
    { until_true is_ready_or_gone "$ready" "$pid" && is_ready "$ready" && "$@"; } || code=$?
    kill -- "-$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    until_true group_is_gone "$pid" || code=1
    [[ $code == 0 ]] || sed 's/^/server: /' server.log
    return "$code"
}

# A zombie is gone, too: when it is reaped is another's affair.
group_is_gone() {
    ! pgrep -g "$1" -r D,R,S,T
}

# get: the page of a server at $port. Its certificate is the token's.
get() {
    # shellcheck disable=SC2154
    curl -sS --no-keepalive --cacert cert.pem "https://localhost:$port/"
}

gets() {
    local i
    for ((i = 0; i < $1; i++)); do get || return 1; done
}

# under_load JOB...: two clients ask for the page until the job is done. Prints each different answer that they got.
under_load() {
    local client clients=() code=0
    for client in one two; do
        while [[ ! -e enough ]]; do get; done >"$client" 2>&1 &
        clients+=($!)
    done
    until_true test -s one -a -s two && "$@" || code=$?
    touch enough
    wait "${clients[@]}"
    sort -u one two
    return "$code"
}

# behind_server JOB...: the job with the token behind p11-kit's server: without SoftHSM's empty slot beside it, and
# without SoftHSM in the program, which some crash at exit.
behind_server() {
    local code=0
    export P11_SLOW_TARGET P11_KIT_SERVER_ADDRESS=unix:path=$place/socket
    P11_SLOW_TARGET=$(pkg-config --variable=p11_module_path p11-kit-1)/p11-kit-client.so
    eval "$(as_user p11-kit server --sh --name "$place/socket" --provider "$TARGET" pkcs11:token=proxy-test)"
    until_true /usr/bin/python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' "$place/socket"
    "$@" || code=$?
    kill "$P11_KIT_SERVER_PID"
    return "$code"
}
