#!/bin/bash
# files.sh - words that are no commands; manual page and completion, which know every option and JSON key.
# shellcheck source=tests/tool/lib.sh
. "$CHECKOUT/tests/tool/lib.sh"

check "no command"               complains 2 "a command is missing" "$TOOL"
check "and where help is"        grep -Fx "Try 'p11-proxy --help'." "$scratch/err"
check "another word"             complains 2 "there is no command 'install'" "$TOOL" install
check "help for one"             complains 2 "there is no command 'bnech'" "$TOOL" help bnech
for word in --help -h help; do
    check "$word: the commands"  says 0 "  setup         register the proxy" "$TOOL" $word
done

page=$CHECKOUT/tools/p11-proxy.1
# shellcheck source=tools/completion/bash
. "$CHECKOUT/tools/completion/bash"

# The shells find the program by its name.
PATH=$(dirname "$TOOL"):$PATH

# SHELL_completes TEXT WORD...: what completion offers after the words has TEXT, on a line of its own.
bash_completes() {
    local wanted=$1
    COMP_WORDS=(p11-proxy "${@:2}")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _p11_proxy
    printf '%s\n' "${COMPREPLY[@]}" | grep -Fx -- "$wanted"
}
fish_completes() {
    fish --no-config --command "source $CHECKOUT/tools/completion/fish; complete --do-complete 'p11-proxy ${*:2}'" |
        cut -f 1 | grep -Fx -- "$1"
}
# zsh completes on a terminal only; its _describe is replaced by one that prints.
zsh_completes() {
    # shellcheck disable=SC2016
    zsh -f -c 'words=("$@[2,-1]") CURRENT=$#words
        _describe() { print -l -- ${found%%:*} }
        source "$1"' zsh "$CHECKOUT/tools/completion/zsh" p11-proxy "${@:2}" | grep -Fx -- "$1"
}
page_has() {
    grep -F -- "Fl -${1#--}" "$page"
}

# with_each_option_of COMMAND FUNCTION: succeeds with every option that the command's help has.
with_each_option_of() {
    local option
    for option in $("$TOOL" "$1" --help | grep -oE -- '^ +--[a-z-]+'); do
        "$2" "$option" "$1" -- || { echo "no $option" && return 1; }
    done
}

check_with mandoc "the manual page is clean" mandoc -T lint -W warning "$page"
commands=$("$TOOL" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  .*/\1/p')
for command in $commands; do
    check "$command: the manual has it"         grep -Fx ".Ss $command" "$page"
    check "$command: the manual has its options" with_each_option_of "$command" page_has
done
for shell in bash zsh fish; do
    for command in $commands; do
        check_with $shell "$shell $command: completion has it" ${shell}_completes "$command" ''
        check_with $shell "$shell $command: and its options" with_each_option_of "$command" ${shell}_completes
    done
    check_with $shell "$shell completion of a command to help with" ${shell}_completes policy help ''
done
for word in '=' ''; do
    check "completion of a format, --format $word" bash_completes openmetrics stats --format "$word"
done
check "completion of a format that has begun" bash_completes json stats --format = js
check "completion of a file" bash_completes "$page" check --module "${page%.1}"

# The manual has just those JSON keys that each command prints.
# documented COMMAND: the items of the lists after a line with "JSON is".
documented() {
    sed -n "/^\.Ss $1\$/,/^\.S[sh] /p" "$CHECKOUT/tools/p11-proxy.1" | sed -n '/JSON is/,$s/^\.It Cm //p' |
        sed 's/ , /\n/g' | sort -u
}
# documents COMMAND CODE PROGRAM...: has all that the program prints, and no others.
documents() {
    exits "${@:2}" && diff <(documented "$1") <(jq -r '[.. | objects | keys] | add[]' "$scratch/out" | sort -u)
}
both_policies() {
    "$TOOL" policy --json && "$TOOL" policy --json MD5 RSA CKM_RSA_PKCS AES
}

configure 'x-disabled-algorithms: MD5, RSA keySize < 2048, anon'
check_with jq "check"     documents check 0 "$TOOL" check --module "$PROXY" --json
check_with jq "where it is set, and where it has the default" jq -e \
    '[.settings[] | select(.key == "x-target" or .key == "x-pool").from] == ["'"$P11_PROXY_CONFIG"':2", "default"]' "$scratch/out"
check_with jq "policy, with names and without" documents policy 1 both_policies
check_with jq "sizes are a number, or 0 for any" jq -e 'arrays | map(.min_key_bits) == [0, 2048, 2048, 0]' "$scratch/out"
check_with jq "bench"     documents bench 0 "$TOOL" bench --module "$PROXY" --seconds 1 --json
coproc fake { exec "$FAKE_PROCESS"; }
read -r pid _ <&"${fake[0]}"
check_with jq "stats"     documents stats 0 "$TOOL" stats --json "$pid"
kill "$pid"
check_json "no size at all is null" 0 'map(.min_key_bits) == [null]' \
    with 'x-disabled-algorithms: RSA keySize >= 0' "$TOOL" policy --json CKM_RSA_PKCS
done_testing
