# growth.sh - how cost grows with threads, sessions, slots, items of policy and the size of the pool: data and plots.
# shellcheck shell=bash
#
# To be sourced by tests/bench/run, whose turns, config and through it uses, and its paths.
# shellcheck disable=SC2154

# grows NAME AXIS LABEL... reads "X VALUE..." lines of NAME.dat and plots a line for each LABEL.
grows() {
    local name=$1 axis=$2 column=1 label lines=''
    shift 2
    for label in "$@"; do
        column=$((column + 1))
        lines+="${lines:+, }'$place/$name.dat' using 1:$column with linespoints title '$label'"
    done
    gnuplot <<END || die "gnuplot could not plot $place/$name.dat" "see its message above"
set terminal svg size 640,400 background rgb 'white'
set output '$place/$name.svg'
set logscale xy
set xlabel '$axis'
set ylabel 'ns'
set key top left
set grid
plot $lines
END
    say "$place/$name.svg"
}

# measure_line NAME X SUBJECT...: measures the subjects, whose names do not matter, and appends a line to NAME.dat.
measure_line() {
    local name=$1 x=$2
    shift 2
    local kept=$results
    results=$place/line
    : >"$results"
    turns "$@"
    { printf '%s' "$x" && awk -F '\t' '{printf " %s", $2} END {print ""}' "$results"; } >>"$place/$name.dat"
    results=$kept
}

# A SoftHSM with 64 tokens, kept for the next time.
many_tokens() {
    local directory=$place/many token
    [[ ! -e $directory/64 ]] || return 0
    rm -rf "$directory"
    new_softhsm_token "$directory"
    for ((token = 2; token <= 64; token++)); do
        SOFTHSM2_CONF=$directory/softhsm2.conf softhsm2-util --init-token --free --label "number $token" --pin 1234 \
            --so-pin 12345678 >"$directory/softhsm2-util.log" 2>&1 ||
            die "SoftHSM made no token: $(cat "$directory/softhsm2-util.log")" "check that softhsm2-util runs"
    done
    : >"$directory/64"
}

measure_growth() {
    local x many
    rm -f "$place"/*.dat
    for x in 1 2 4 8 16 32 64; do
        measure_line threads "$x" "proxy=threads:$x$(through large)" "floor=floor-threads:$x" "bare=threads:$x@$softhsm"
    done
    grows threads 'threads' 'a draw of 32 bytes, warm' 'the floor' 'SoftHSM straight'

    config counting "$counting" 'x-pool-size: 1MiB'
    for x in 1 10 100 1000 10000 100000; do
        measure_line sessions "$x" "draw=sessions:$x$(through counting)" "info=info-among:$x$(through keyring)" \
            "open=open-close:$x$(through keyring)"
    done
    grows sessions 'open sessions' 'a draw of 32 bytes, in turn' 'C_GetSessionInfo' 'C_OpenSession, C_CloseSession'

    many_tokens
    many=,SOFTHSM2_CONF=$place/many/softhsm2.conf
    for x in 1 2 4 8 16 32 64; do
        measure_line slots "$x" "proxy=slots:$x$(through large)$many" "bare=slots:$x@$softhsm$many"
    done
    grows slots 'slots' 'a draw of 32 bytes, in turn' 'SoftHSM straight'

    for x in 57 560 5600 56000; do
        config growing "$keyring" "x-disabled-algorithms-file: $names" "$(policy_items "$x")"
        measure_line policy "$x" "with=sign-init$(through growing)" "without=sign-init$(through keyring)" \
            "start=start$(through growing)"
    done
    grows policy 'items' 'C_SignInit' 'C_SignInit without a policy' 'load, C_Initialize, C_Finalize'

    for x in 4 16 64 256 1024 4096 16384; do
        config growing "$softhsm" "x-pool-size: ${x}KiB"
        measure_line pool "$x" "burst=burst:32$(through growing)" "without=draw:32$(through growing)"
    done
    grows pool 'KiB' '1000 draws of 32 bytes, pool filled' 'draws without a pause'
}
