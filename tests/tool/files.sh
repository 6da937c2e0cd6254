#!/bin/bash
# files.sh - words that are no commands; manual page and completion, which know every option; what is installed.
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
    check "${shell%_} completion of a time" "${shell}completes" 20ms bench --simulate ''
    check "${shell%_} completion of a command to help with" "${shell}completes" policy help ''
done
for word in '=' ''; do
    check "completion of a format, --format $word" completes openmetrics stats --format "$word"
done
check "completion of a format that has begun" completes json stats --format = js
check "completion of a file" completes "$page" check --module "${page%.1}"

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
