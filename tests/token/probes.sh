#!/bin/bash
# probes.sh - the static probes fire where they say, with the arguments that they promise; seen through gdb.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

# Read to the end, because a program that writes into a pipe without a reader fails.
readelf -n "$PROXY" | grep 'Provider: p11_proxy' >/dev/null || skip_all "built without sys/sdt.h"
needs gdb
gdb -nx -batch -ex run --args true 2>&1 | grep 'exited normally' >/dev/null || skip_all "no process may be traced here"

# fires PROBE WANTED FORMAT COMMAND...: FORMAT, as gdb's printf has it, once makes WANTED of the probe's arguments.
fires() {
    cat >"$scratch/gdb" <<END
set breakpoint pending on
set debuginfod enabled off
break -probe-stap p11_proxy:$1
commands
silent
printf $3
continue
end
run
END
    gdb -nx -batch -x "$scratch/gdb" --args "${@:4}" >"$scratch/gdb.out" 2>&1
    grep -x -- "$2" "$scratch/gdb.out" || { cat "$scratch/gdb.out" && false; }
}

random=(pkcs11-tool --module "$PROXY" --login --pin 1234 --generate-random)
check "draw__straight: the bytes of a request that waited, and its code" \
    fires draw__straight 'bytes 5000, code 0' '"bytes %lu, code %lu\n", $_probe_arg1, $_probe_arg2' "${random[@]}" 5000
check "refill: the bytes of the first, and its code" \
    fires refill 'bytes 1024, code 0' '"bytes %lu, code %lu\n", $_probe_arg1, $_probe_arg3' "${random[@]}" 16
# enum pool_drop: 2 is POOL_DROP_SESSIONS.
check "drop: the last session closed" \
    fires drop 'reason 2' '"reason %d\n", $_probe_arg0' "${random[@]}" 16
configure 'x-disabled-algorithms: MD5'
check "refusal: the mechanism, the rule and the function" \
    fires refusal '528: MD5, C_DigestInit' '"%lu: %s, %s\n", $_probe_arg0, (char *)$_probe_arg1, (char *)$_probe_arg2' \
    pkcs11-tool --module "$PROXY" --hash --mechanism MD5 --input-file /dev/null
done_testing
