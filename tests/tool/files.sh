#!/bin/bash
# files.sh - words that are no commands; manual page and completion, which know every option and JSON key; what is installed.
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

# completes TEXT WORD...: what completion offers after the words has TEXT, on a line of its own.
completes() {
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

# Every option that a command's help has.
options_of() {
    "$TOOL" "$1" --help | grep -oE -- '^ +--[a-z]+' | tr -d ' '
}

page_has_options_of() {
    local option
    for option in $(options_of "$1"); do
        grep -F -- "Fl -${option#--}" "$page" || { echo "no $option" && false; }
    done
}

completes_options_of() {
    local option
    for option in $(options_of "$2"); do
        "$1" "$option" "$2" -- || { echo "no $option" && false; }
    done
}

if command -v mandoc >/dev/null; then
    check "the manual page is clean" mandoc -T lint -W warning "$page"
else
    skip_check "the manual page is clean" "no mandoc"
fi
commands=$("$TOOL" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  .*/\1/p')
for command in $commands; do
    check "$command: the manual has it"         grep -Fx ".Ss $command" "$page"
    check "$command: the manual has its options" page_has_options_of "$command"
done
for shell in '' zsh_ fish_; do
    if [[ -n $shell ]] && ! command -v "${shell%_}" >/dev/null; then
        skip_check "completion for ${shell%_}" "no ${shell%_}"
        continue
    fi
    for command in $commands; do
        check "${shell%_} $command: completion has it" "${shell}completes" "$command" ''
        check "${shell%_} $command: and its options" completes_options_of "${shell}completes" "$command"
    done
    check "${shell%_} completion of a command to help with" "${shell}completes" policy help ''
done
for word in '=' ''; do
    check "completion of a format, --format $word" completes openmetrics stats --format "$word"
done
check "completion of a format that has begun" completes json stats --format = js
check "completion of a file" completes "$page" check --module "${page%.1}"

# The manual has just those JSON keys that each command prints.
# documented COMMAND: the items of the lists after a line with "JSON is".
documented() {
    sed -n "/^\.Ss $1\$/,/^\.S[sh] /p" "$CHECKOUT/tools/p11-proxy.1" | sed -n '/JSON is/,$s/^\.It Cm //p' |
        sed 's/ , /\n/g' | sort -u
}
# documents COMMAND CODE ARGUMENT...: has them all, and no others.
documents() {
    exits "$2" "$TOOL" "${@:3}" && jq -r '[.. | objects | keys] | add | unique[]' "$scratch/out" >>"$scratch/keys.$1" &&
        diff <(documented "$1") <(sort -u "$scratch/keys.$1")
}

if command -v jq >/dev/null; then
    configure 'x-disabled-algorithms: MD5, RSA keySize < 2048, anon'
    check "check"             documents check 0 check --module "$PROXY" --json
    check "where it is set, and where it has the default" jq -e \
        '[.settings[] | select(.key == "x-target" or .key == "x-pool").from] == ["'"$P11_PROXY_CONFIG"':2", "default"]' "$scratch/out"
    exits 0 "$TOOL" policy --json
    jq -r '[.. | objects | keys] | add | unique[]' "$scratch/out" >"$scratch/keys.policy"
    check "policy, with names and without" documents policy 1 policy --json MD5 RSA CKM_RSA_PKCS AES
    check "sizes are a number, or 0 for any" jq -e 'map(.min_key_bits) == [0, 2048, 2048, 0]' "$scratch/out"
    check "bench"             documents bench 0 bench --module "$PROXY" --seconds 1 --json
    coproc fake { exec "$FAKE_PROCESS"; }
    read -r pid _ <&"${fake[0]}"
    check "stats"             documents stats 0 stats --json "$pid"
    kill "$pid"
    configure 'x-disabled-algorithms: RSA keySize >= 0'
    check "no size at all is null" json 0 'map(.min_key_bits) == [null]' "$TOOL" policy --json CKM_RSA_PKCS
else
    skip_check "JSON keys" "no jq"
fi

DESTDIR=$scratch/root meson install -C "$BUILD" --no-rebuild >/dev/null 2>&1
is_installed() {
    [[ -n $(find "$scratch/root" -path "*/$1") ]]
}
check "installed: the program"     is_installed bin/p11-proxy
check "installed: the manual page" is_installed man1/p11-proxy.1
for file in bash-completion/completions/p11-proxy zsh/site-functions/_p11-proxy fish/vendor_completions.d/p11-proxy.fish; do
    check "installed: $file"       is_installed $file
done
done_testing
