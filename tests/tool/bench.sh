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
for number in 0 1048577 -1 '32 fish' '' 18446744073709551616; do wrong size "number from 1 to 1048576" "$number"; done
wrong threads "number from 1 to 256" 257
wrong seconds "number from 1 to 3600" 3601

benches() {
    "$TOOL" bench --module "$PROXY" --seconds 1 "$@"
}

configure
contents >"$scratch/before"
plot="$scratch/a plot"
check "both are measured"        says 0 "through the proxy " benches --plot "$plot"
check "the first line says what" grep -Fx "32 bytes a draw, 1 thread, token 'proxy-test'" "$scratch/out"
check "and a ratio"              grep -E '^[0-9.]+ times as many draws a second' "$scratch/out"
for figure in "a draw of 32 bytes" "  with 4 threads" "open, draw 16 bytes, close" "1000 draws after a pause, each"; do
    check "a figure: $figure"    grep -E "^$figure +[0-9]+\.[0-9]{3} +[0-9]+\.[0-9]{3} +[0-9.]+$" "$scratch/out"
done
check "nothing on the token changes" diff "$scratch/before" <(contents)
check "where the plot is"        grep -F "The plot is in $plot;" "$scratch/out"
check_with gnuplot "gnuplot draws both" bash -c "{ echo 'set terminal svg'; cat '$plot'; } | gnuplot | grep -F 'through the proxy'"
check_json "--json, --size, --threads" 0 \
    '.size == 100 and .threads == 3 and .token == "proxy-test" and
     .proxy.min_ns <= .proxy.median_ns and .proxy.median_ns <= .proxy.p99_ns and .proxy.p99_ns <= .proxy.max_ns and
     .straight.bytes_per_s > 0 and (.figures | length) == 6' benches --json --size 100 --threads 3
on_scripted() {
    env P11_PROXY_TARGET="$SCRIPTED" "$@" "$TOOL" bench --module "$PROXY" --seconds 1 --json
}
# shellcheck disable=SC2016
check_json "a token of 2 ms" 0 \
    '.straight.min_ns >= 2000000 and .proxy.median_ns < 2000000 and .figures.draw_4096.proxy_ns >= 2000000 and
     ((1e9 / .straight.draws_per_s) as $mean | .straight.min_ns <= 1.02 * $mean and .straight.max_ns >= 0.999 * $mean)' \
    on_scripted TARGET_SCRIPT='C_GenerateRandom: last 2ms'

# A token that draws without being initialised, one that permits a single session, and one that knows no threads.
check_json "a token that is not initialised" 0 '.token == "scripted" and .straight.max_ns > 0' \
    on_scripted TARGET_SCRIPT='not initialised'
check_json "a single session: figures with more are left out" 0 \
    '.figures.draw_32_threads_4 == null and .figures.open_draw_close == null and .figures.draw_32 != null' \
    on_scripted TARGET_SCRIPT='sessions at most 1'
check_json "a token without locks: figures with threads are left out" 0 \
    '.figures.draw_32_threads_4 == null and .figures.open_draw_close_threads_4 == null and .figures.draw_32 != null' \
    on_scripted TARGET_SCRIPT='C_Initialize locking: fail 0xa'
check "a load of several threads cannot be measured then" complains 1 "it does not work with several threads" \
    env P11_PROXY_TARGET="$SCRIPTED" TARGET_SCRIPT='C_Initialize locking: fail 0xa' \
    "$TOOL" bench --module "$PROXY" --threads 2
register p11-proxy "module: $PROXY" "x-target: $kit_proxy" 'x-log: off'
check_with "$kit_proxy" "a target that loads the proxy in turn" \
    complains 1 "it loads the proxy in turn, so there is nothing to compare" \
    as_someone env -u P11_PROXY_CONFIG "$TOOL" bench --module "$PROXY"

# What cannot be measured.
check "no plot of what was not measured" complains 1 "--module says where it is" \
    "$TOOL" bench --module /none.so --plot "$scratch/p"
check "so there is no file"      test ! -e "$scratch/p"
TARGET=$SCRIPTED configure
check "--plot onto a full disk"  warns 1 "the plot cannot be written (No space left on device): /dev/full" \
    benches --plot /dev/full
refuses() {
    complains 1 "$1" env "${@:2}" "$TOOL" bench --seconds 1 --module "$PROXY"
}
check "a login is needed"        refuses "C_GenerateRandom answers 0x101 (" TARGET_SCRIPT='login for random'
check "no random number generator" refuses "there is no token that makes random bytes" TARGET_SCRIPT='no generator'
check "too few sessions"         refuses "C_OpenSession answers 0xb1 (" TARGET_SCRIPT='C_OpenSession: fail 0xb1'
check "it does not start"        refuses "C_Initialize answers 0x5 (" TARGET_SCRIPT='C_Initialize: fail 5'
check "one that crashes"         with_target "$MISFIT_MODULE" refuses "$MISFIT_MODULE: it ended the process" MISFIT=crash
check "a target that is missing" with_target "$scratch/none.so" refuses "x-target cannot be read"
check "a wrong configuration"    with 'x-pool-size: 3 fish' refuses "$P11_PROXY_CONFIG:4"
done_testing
