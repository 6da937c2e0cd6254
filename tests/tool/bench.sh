#!/bin/bash
# bench.sh - p11-proxy bench: what it accepts, what it prints. Numbers are looked at only where they are certain.
# shellcheck source=tests/tool/lib.sh
. "$CHECKOUT/tests/tool/lib.sh"

check_common_options bench
check_module_option bench
check "an argument"            complains 2 "'surplus'" "$TOOL" bench surplus
wrong() {
    check "--$1 '$3'" complains 2 "--$1 is not a $2: '$3'" "$TOOL" bench "--$1" "$3"
}
for number in 0 1048577 -1 '32 fish'; do wrong size "number from 1 to 1048576" "$number"; done
for number in 0 257 1x ''; do wrong threads "number from 1 to 256" "$number"; done
for number in 0 3601 0.5; do wrong seconds "number from 1 to 3600" "$number"; done
for delay in 1 0ms 1001ms 2s 1.5ms '1 ms' ms -1ms '' 18446744073709551616us; do
    wrong simulate "time like 50us or 1ms, at most 1s" "$delay"
done
check "--plot without a path"  complains 2 "--plot is no path: ''" "$TOOL" bench --plot=

benches() {
    "$TOOL" bench --module "$PROXY" --seconds 1 "$@"
}
snapshot() {
    find "$scratch/tokens" -type f -exec sha256sum {} + | sort
}

configure
snapshot >"$scratch/before"
check "both are measured"        says 0 "through the proxy " benches
check "the first line says what" grep -Fx "32 bytes a draw, 1 thread, token 'proxy-test'" "$scratch/out"
check "and a ratio"              grep -E '^[0-9.]+ times as many draws a second' "$scratch/out"
check "and what the pool served" grep -E '^the pool served (100|[1-9][0-9])\.[0-9]{2} % of' "$scratch/out"
for figure in "a draw of 16 bytes" "  with 4 threads" "open, draw 16 bytes, close" "1000 draws after a pause, each"; do
    check "a figure: $figure"    grep -E "^$figure +[0-9]+\.[0-9]{3} +[0-9]+\.[0-9]{3} +[0-9.]+$" "$scratch/out"
done
check "no progress bar but on a terminal" test ! -s "$scratch/err"
check "no escapes"               test -z "$(grep $'[\e\r]' "$scratch/out")"
check "nothing on the token changes" diff "$scratch/before" <(snapshot)
check_json "--json, --size, --threads, --seconds" 0 \
    '.size == 100 and .threads == 3 and .seconds == 1 and .simulate_ns == 0 and .token == "proxy-test" and
     .straight.timed_draws > 0 and .proxy.min_ns <= .proxy.median_ns and .proxy.median_ns <= .proxy.p99_ns and
     .proxy.p99_ns <= .proxy.max_ns and .straight.bytes_per_s > 0 and .pool_share > 0.5 and .pool_share <= 1 and
     (.figures | length) == 9 and .figures.draw_4096.straight_ns > 0' benches --json --size 100 --threads 3
check_json "draws that are too large for the pool" 0 '.pool_share == 0' benches --json --size 1025
configure 'x-statistics: off'
check_json "a share that is not known without counters" 0 '.pool_share == null' benches --json
configure
check_json "--simulate" 0 \
    '.simulate_ns == 2000000 and .straight.min_ns >= 2000000 and .proxy.median_ns < 2000000' \
    benches --json --simulate 2ms

# A token that draws without being initialised, one that permits a single session, and one that comes to itself.
on_scripted() {
    env P11_PROXY_TARGET="$SCRIPTED" "${@:2}" "$TOOL" bench --module "$PROXY" --seconds 1 --json
}
check_json "a token that is not initialised" 0 '.token == "scripted" and .straight.timed_draws > 0' \
    on_scripted 0 TARGET_SCRIPT='not initialised'
check_json "a single session: figures with more are left out" 0 \
    '.figures.draw_32_threads_2 == null and .figures.open_draw_close == null and .figures.draw_16 != null' \
    on_scripted 0 TARGET_SCRIPT='sessions at most 1'
check_json "a token without locks: figures with threads are left out" 0 \
    '.figures.draw_32_threads_2 == null and .figures.open_draw_close_threads_4 == null and .figures.draw_16 != null' \
    on_scripted 0 TARGET_SCRIPT='C_Initialize locking: fail 0xa'
check "a load of several threads cannot be measured then" complains 1 "it does not work with several threads" \
    env P11_PROXY_TARGET="$SCRIPTED" TARGET_SCRIPT='C_Initialize locking: fail 0xa' \
    "$TOOL" bench --module "$PROXY" --threads 2
kit_proxy=$(find /lib /usr/lib -name p11-kit-proxy.so 2>/dev/null | head -n 1)
if [[ -n $kit_proxy ]]; then
    mkdir -p "$scratch/home/.config/pkcs11/modules"
    printf 'user-config: only\n' >"$scratch/home/.config/pkcs11/pkcs11.conf"
    printf '%s\n' "module: $PROXY" "x-target: $kit_proxy" 'x-log: off' >"$scratch/home/.config/pkcs11/modules/p11-proxy.module"
    loops() {
        as_someone env -u P11_PROXY_CONFIG "$TOOL" bench --module "$PROXY"
    }
    check "a target that loads the proxy in turn" complains 1 "it loads the proxy in turn, so there is nothing to compare" loops
else
    skip_check "a target that loads the proxy in turn" "no p11-kit-proxy.so"
fi

plot="$scratch/a plot"
check "--plot"                   says 0 "The plot is in $plot;" benches --plot "$plot"
if command -v gnuplot >/dev/null; then
    check "gnuplot draws both"   bash -c "{ echo 'set terminal svg'; cat '$plot'; } | gnuplot | grep -F 'through the proxy'"
else
    skip_check "gnuplot draws both" "no gnuplot"
fi
check "--plot into nowhere, before anything is measured" \
    complains 1 "cannot be written (No such file or directory): $scratch/none/p" benches --plot "$scratch/none/p"
check "no plot of what was not measured" complains 1 "not there" "$TOOL" bench --module /none.so --plot "$scratch/p"
check "so there is no file"      test ! -e "$scratch/p"
check "--plot onto a full disk"  complains 1 "cannot be written (No space left on device): /dev/full" benches --plot /dev/full

# What cannot be measured.
check "no proxy there"           complains 1 "--module says where it is" "$TOOL" bench --module "$scratch/none.so"
TARGET=$SCRIPTED configure
refuses() {
    local text=$1
    complains 1 "$text" env "${@:2}" "$TOOL" bench --seconds 1 --module "$PROXY"
}
check "a login is needed"        refuses "C_GenerateRandom answers CKR_USER_NOT_LOGGED_IN" TARGET_SCRIPT='login for random'
check "no random number generator" refuses "there is no token that makes random bytes" TARGET_SCRIPT='no generator'
check "too few sessions"         refuses "C_OpenSession answers CKR_SESSION_COUNT" TARGET_SCRIPT='C_OpenSession: fail 0xb1'
check "it does not start"        refuses "C_Initialize answers CKR_GENERAL_ERROR" TARGET_SCRIPT='C_Initialize: fail 5'
TARGET=$MISFIT_MODULE configure
check "one that crashes"         refuses "$MISFIT_MODULE: it ended the process" MISFIT=crash
TARGET=$scratch/none.so configure
check "a target that is missing" refuses "x-target does not exist" A=b
configure 'x-pool-size: 3 fish'
check "a wrong configuration"    refuses "$P11_PROXY_CONFIG:4" A=b
done_testing
