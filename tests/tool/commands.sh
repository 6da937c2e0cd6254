#!/bin/bash
# commands.sh - p11-proxy: help, and words that are no commands.
# shellcheck source=tests/tool/lib.sh
. "$CHECKOUT/tests/tool/lib.sh"

check "no command"               complains 2 "a command is missing" "$TOOL"
check "and where help is"        grep -Fx "Try 'p11-proxy --help'." "$scratch/err"
check "a mistyped one"           complains 2 "there is no command 'chekc'; the nearest is 'check'" "$TOOL" chekc
check "a shortened one"          complains 2 "the nearest is 'stats'" "$TOOL" stat
check "help for a mistyped one"  complains 2 "the nearest is 'bench'" "$TOOL" help bnech
check "another word has no near one" complains 2 "there is no command 'install'" "$TOOL" install
check "and none is offered"      test -z "$(grep -F nearest "$scratch/err")"

for words in --help -h help "help help"; do
    # shellcheck disable=SC2086
    check "$words: the commands" says 0 "  setup         register the proxy" "$TOOL" $words
    check "$words: help of each"     grep -F "  help COMMAND  show what a command takes" "$scratch/out"
done
for command in check setup bench policy stats; do
    check "help $command"        says 0 "usage: p11-proxy $command" "$TOOL" help "$command"
    check "--help after $command" says 0 "usage: p11-proxy $command" "$TOOL" "$command" --help
done
done_testing
