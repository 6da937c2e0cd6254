#!/bin/bash
# probes.sh - the static probes fire where they say, with the arguments that they promise; seen through gdb.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

# Read to the end, because a program that writes into a pipe without a reader fails.
readelf -n "$PROXY" | grep 'Provider: p11_proxy' >/dev/null || skip_all "built without sys/sdt.h"
command -v gdb >/dev/null || skip_all "no gdb"
gdb -nx -batch -ex run --args true 2>&1 | grep 'exited normally' >/dev/null || skip_all "no process may be traced here"

# at_probe NAME FORMAT N COMMAND...: prints the line that FORMAT makes of the probe's argument N, each time.
at_probe() {
    local cast=
    [[ $2 != %s ]] || cast='(char *)'
    cat >"$scratch/gdb" <<END
set breakpoint pending on
set debuginfod enabled off
break -probe-stap p11_proxy:$1
commands
silent
printf "$1 $2\n", $cast\$_probe_arg$3
continue
end
run
END
    gdb -nx -batch -x "$scratch/gdb" --args "${@:4}" 2>&1
}

fires() {
    local wanted=$1
    at_probe "${@:2}" >"$scratch/gdb.out"
    grep -x -- "$wanted" "$scratch/gdb.out" || { cat "$scratch/gdb.out" && false; }
}

random=(pkcs11-tool --module "$PROXY" --login --pin 1234 --generate-random)
check "draw__straight: the bytes of a request that waited" \
    fires "draw__straight 5000" draw__straight '%lu' 1 "${random[@]}" 5000
check "draw__straight: its code" \
    fires "draw__straight 0" draw__straight '%lu' 2 "${random[@]}" 5000
check "refill: the bytes of the first" \
    fires "refill 1024" refill '%lu' 1 "${random[@]}" 16
check "refill: its code" \
    fires "refill 0" refill '%lu' 3 "${random[@]}" 16
# enum pool_drop: 2 is POOL_DROP_SESSIONS.
check "drop: the last session closed" \
    fires "drop 2" drop '%d' 0 "${random[@]}" 16

echo 'x-disabled-algorithms: MD5' >>"$P11_PROXY_CONFIG"
digest=(pkcs11-tool --module "$PROXY" --hash --mechanism MD5 --input-file /dev/null)
check "refusal: the rule" \
    fires "refusal MD5" refusal '%s' 1 "${digest[@]}"
check "refusal: the function" \
    fires "refusal C_DigestInit" refusal '%s' 2 "${digest[@]}"
check "refusal: the mechanism" \
    fires "refusal 528" refusal '%lu' 0 "${digest[@]}"
done_testing
