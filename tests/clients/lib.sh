# lib.sh - one program's job, done twice: with the token's own module, and through the proxy.
# shellcheck shell=bash
#
# A test sources this, says what it needs, reads its recipe from the manual page, and calls same and gains.
# meson sets what tests/token/lib.sh wants, and UNPACKED, where tests/clients/prepare unpacked servers.

# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

page=$CHECKOUT/common/p11-proxy.module.5

# Debian's own programs: the tests' packages belong to them. Servers come last, so installed ones win.
export PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$UNPACKED/usr/sbin:$UNPACKED/usr/bin
export LC_ALL=C.UTF-8

# Both sides see the same paths, so that what they print can be compared: $module is the module of the one or the
# other, and the token is a copy of $scratch/tokens as it was.
place=$scratch/place
module=$place/p11-proxy.so
home=$place/home
modules=$home/.config/pkcs11/modules
files=$scratch/files
mkdir "$files"
export SOFTHSM2_CONF=$place/softhsm2.conf P11_PROXY_CONFIG=$modules/p11-proxy.module
export COUNTING_TARGET=$TARGET COUNTING_CALLS=$place/calls
settings=('x-log: stderr warning')
target_of_proxy=$COUNTING

# Files that programs and tests find in p11-kit's folders.
kit_modules=$(pkg-config --variable=p11_module_path p11-kit-1)
engine=$(find /usr/lib -path '*engines-3/pkcs11.so' 2>/dev/null)
engine=${engine:-pkcs11.so, the engine of OpenSSL 3}

# set_out bare|proxied: makes $place anew. COUNTING stands before the token on both sides, and counts draws.
set_out() {
    rm -rf "$place"
    mkdir -p "$modules"
    [[ $EUID != 0 ]] || chmod 777 "$place"
    cp -r "$scratch/tokens" "$place/tokens"
    sed "s#$scratch/tokens#$place/tokens#" "$scratch/softhsm2.conf" >"$SOFTHSM2_CONF"
    printf 'user-config: only\n' >"${modules%/*}/pkcs11.conf"
    register p11-proxy "module: $module" "x-target: $target_of_proxy" "${settings[@]}"
    cp "$PROXY" "$module"
    [[ $1 != bare ]] || cp "$COUNTING" "$module"
    cp -r "$files/." "$place"
}

# What differs from run to run with any module. A test that knows of more has a function of its own.
normalise() {
    cat
}

# leg bare|proxied JOB...: does the job in $place; leaves SIDE.raw, SIDE.out, SIDE.calls, how often the token was
# asked for random bytes, and SIDE.audit. The job sees the side in $side.
leg() {
    local code=0
    side=$1
    shift
    set_out "$side"
    (cd "$place" && "$@") >"$scratch/$side.raw" 2>&1 </dev/null || code=$?
    { normalise <"$scratch/$side.raw" && echo "exit code $code"; } >"$scratch/$side.out"
    { od -A n -t u8 -N 8 "$COUNTING_CALLS" 2>/dev/null || echo 0; } >"$scratch/$side.calls"
    grep -s 'would refuse' "$place/audit" >"$scratch/$side.audit" || true
}

# ends_alike CODE JOB...: the job prints the same on both sides, and ends with CODE.
ends_alike() {
    last_job=("${@:2}")
    leg bare "${@:2}"
    leg proxied "${@:2}"
    cat "$scratch/bare.raw"
    grep -qx "exit code $1" "$scratch/bare.out" && diff -u "$scratch/bare.out" "$scratch/proxied.out"
}

# same WHAT JOB...: a check that the job goes as well through the proxy as without it.
same() {
    check "$1" ends_alike 0 "${@:2}"
}

# recipe TITLE: reads the program's part of the manual page. A block whose first line is "# NAME" is a file, which
# each side finds in $place; another one has the commands, which "follow" runs.
recipe() {
    rm -f "$files/recipe.sh"
    awk -v title="$1" -v files="$files" -v commands="$files/recipe.sh" -v module="$module" '
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

# The last job drew, and at least half of its draws reached no token.
pool_serves() {
    [[ $(<"$scratch/bare.calls") -gt 0 && $(($(<"$scratch/proxied.calls") * 2)) -le $(<"$scratch/bare.calls") ]]
}

# gains PROGRAM [random]: the last job drew, had the token asked and named mechanisms as the program's row in the
# manual page's table says. With random it only draws.
gains() {
    local row
    row=$(awk -v start=".It $1 Ta " 'index($0, start) == 1 { print substr($0, length(start) + 1) }' "$page")
    check "the table has it right: $1: $row" gains_as_in_table "$row" "${2-}"
}

# A program that never asks has the token left alone. One that gains random bytes has at least half of its draws
# served by the pool; from any other one the token is not asked more often than without the proxy. Where the policy
# acts, a list of everything would refuse something: audit tells, and changes nothing.
gains_as_in_table() {
    local bare proxied settings=('x-disabled-algorithms: RSA, EC, EdDSA, AES, DES, MD5, SHA1, SHA256, SHA384, SHA512'
                                 'x-policy: audit' "x-log: $place/audit warning")
    leg proxied "${last_job[@]}"
    bare=$(<"$scratch/bare.calls") proxied=$(<"$scratch/proxied.calls")
    echo "it asked $bare times; through the proxy the token was asked $proxied times"
    diff -u "$scratch/bare.out" "$scratch/proxied.out" || return 1
    case $1 in
    never*) ((bare == 0 && proxied == 0)) ;;
    yes*random*) pool_serves ;;
    yes* | 'at start'*) ((bare > 0 && proxied > 0 && proxied <= bare)) ;;
    *) false ;;
    esac || return 1
    if [[ $1 == *policy* ]]; then
        [[ -s $scratch/proxied.audit || $2 == random ]]
    else
        [[ ! -s $scratch/proxied.audit ]]
    fi
}

# new_key: an RSA key pair with the label key on the token, and a certificate for localhost with it; the same key
# in key.pem and cert.pem.
new_key() {
    (cd "$files"
     export SOFTHSM2_CONF=$scratch/softhsm2.conf
     openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
         -addext subjectAltName=DNS:localhost,IP:127.0.0.1
     softhsm2-util --import key.pem --token proxy-test --pin 1234 --id 01 --label key
     pkcs11-tool --module "$TARGET" --login --pin 1234 --id 01 --label key --write-object cert.pem --type cert) >"$scratch/new_key.log" 2>&1 ||
        { cat "$scratch/new_key.log"; exit 1; }
}

# verifies FILE: signature is that key's.
verifies() {
    openssl dgst -verify <(openssl x509 -in cert.pem -noout -pubkey) -sha256 -signature signature "$1"
}

# until_true COMMAND...: tries again until it succeeds; half a minute only ends a hang.
until_true() {
    local until=$((SECONDS + 30))
    until "$@" >/dev/null 2>&1; do
        [[ $SECONDS -lt $until ]] || { echo "it never came true: $*"; return 1; }
        sleep 0.05
    done
}

# with_server SERVER CLIENT...: runs the client when the function SERVER listens at $port, which nothing else does; then
# ends all processes of the server with SIGTERM, and waits for them. What they print goes to server.log.
port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
with_server() {
    local pid code=0
    set -m
    "$1" >server.log 2>&1 &
    pid=$!
    set +m
    { until_true listens_or_gone "$pid" && listens && "${@:2}"; } || code=$?
    kill -- "-$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    until_true group_is_gone "$pid" || code=1
    [[ $code == 0 ]] || sed 's/^/server: /' server.log
    return "$code"
}
listens() {
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null
}
listens_or_gone() {
    listens || ! kill -0 "$1"
}

# A zombie is gone, too: when it is reaped is another's affair.
group_is_gone() {
    ! pgrep -g "$1" -r D,R,S,T
}

# behind_server JOB...: the job with the token behind p11-kit's server: without SoftHSM's empty slot beside it, and
# without SoftHSM in the program, which some crash at exit.
behind_server() {
    local code=0
    export COUNTING_TARGET=$kit_modules/p11-kit-client.so P11_KIT_SERVER_ADDRESS=unix:path=$place/socket
    eval "$(as_someone p11-kit server --sh --name "$place/socket" --provider "$TARGET" pkcs11:token=proxy-test)"
    until_true /usr/bin/python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' "$place/socket"
    "$@" || code=$?
    kill "$P11_KIT_SERVER_PID"
    return "$code"
}
