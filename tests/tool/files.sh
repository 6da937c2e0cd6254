#!/bin/bash
# files.sh - what is installed with the tool: manual page, completion, and that they know every option.
# shellcheck source=tests/tool/lib.sh
. "$CHECKOUT/tests/tool/lib.sh"

page=$CHECKOUT/tools/p11-proxy.1
# shellcheck source=tools/completion
. "$CHECKOUT/tools/completion"

# completes TEXT WORD...: what completion offers after the words has TEXT, on a line of its own.
completes() {
    local wanted=$1
    COMP_WORDS=(p11-proxy "${@:2}")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _p11_proxy
    printf '%s\n' "${COMPREPLY[@]}" | grep -Fx -- "$wanted"
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
    for option in $(options_of "$1"); do
        completes "$option" "$1" --
    done
}

if command -v mandoc >/dev/null; then
    check "the manual page is clean" mandoc -T lint -W warning "$page"
else
    skip_check "the manual page is clean" "no mandoc"
fi
for command in $("$TOOL" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  .*/\1/p'); do
    check "$command: completion knows it"       completes "$command" ''
    check "$command: the manual has it"         grep -Fx ".Ss $command" "$page"
    check "$command: the manual has its options" page_has_options_of "$command"
    check "$command: and so has completion"     completes_options_of "$command"
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
check "installed: the completion"  is_installed bash-completion/completions/p11-proxy
done_testing
