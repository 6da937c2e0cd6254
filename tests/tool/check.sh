#!/bin/bash
# check.sh - p11-proxy check: what it finds, what it advises, and that it leaves everything alone.
# shellcheck source=tests/tool/lib.sh
. "$CHECKOUT/tests/tool/lib.sh"

check_common_options check
check_module_option check
check "an argument" complains 2 "'surplus'" "$TOOL" check surplus

looks() {
    "$TOOL" check --module "$PROXY"
}

# It waits half a minute for this one; the other checks go on meanwhile.
printf '%s\n' "x-target: $MISFIT_MODULE" >"$scratch/hang.module"
P11_PROXY_CONFIG=$scratch/hang.module MISFIT=hang looks >"$scratch/hang" 2>&1 &
hanging=$!

configure
check "a good configuration: exit code 0" exits 0 looks
check "which file gave which key"         says 0 "x-target: $TARGET ($P11_PROXY_CONFIG:2)" looks
check "how many have the default"         says 0 "12 keys have the default" looks
check "what the target is"                says 0 "of SoftHSM: $TARGET" looks
check "the interfaces"                    says 0 "it offers PKCS#11 2.40 and no list of interfaces" looks
check "the slots"                         says 0 "slots: 2, with a token: 2" looks
check "the time of a call"                says 0 "token 'proxy-test' makes 32 random bytes in " looks
has_time_of_call() {
    grep -E "random bytes in [0-9]+\.[0-9]{3} ms, with no login" "$scratch/out"
}
check "in milliseconds"                   has_time_of_call
check "the proxy starts"                  says 0 "the proxy starts: $PROXY" looks
check "what the proxy learns of the token" says 0 "the pool asks token 'proxy-test' for " looks
# A busy machine may make the token seem slow, and then it is asked for less.
has_learned_in_range() {
    grep -E "for ((32768|65536) bytes in a call|[0-9]+ bytes in a call, since more was .*); 32 bytes alone cost [0-9.]+ ms" "$scratch/out"
}
check "how much at once, and what that costs" has_learned_in_range
check "no colours but on a terminal"      no_escapes 0 looks
if command -v script >/dev/null; then
    on_a_terminal() {
        env "$@" script -qec "'$TOOL' check --module '$PROXY'" /dev/null </dev/null
    }
    check "colours on a terminal"         says 0 $'\e[32mok' on_a_terminal -u NO_COLOR TERM=xterm
    without_escapes() {
        on_a_terminal "$@" >"$scratch/out" && ! grep -q $'\e' "$scratch/out"
    }
    check "none with NO_COLOR"            without_escapes NO_COLOR=1 TERM=xterm
    check "none on a dumb terminal"       without_escapes -u NO_COLOR TERM=dumb
else
    skip_check "colours" "no script(1)"
fi
check_json "--json" 0 \
    '.problems == 0 and (.findings | length) > 8 and (.settings | length) == 14 and
     (.settings[] | select(.key == "x-target").from | endswith(":2"))' "$TOOL" check --json --module "$PROXY"

# Nothing is written, nobody logs in.
snapshot() {
    find "$scratch/tokens" "$P11_PROXY_CONFIG" -type f -exec sha256sum {} + | sort
}
leaves_all_alone() {
    snapshot >"$scratch/before"
    looks >/dev/null
    snapshot | diff "$scratch/before" -
}
check "tokens and files are as before" leaves_all_alone

# The target's file.
printf 'x-log: off\n' >"$P11_PROXY_CONFIG"
check "no target"                says 1 "no token's module is configured" looks
check "and where to write it"    grep -F "write a line x-target: PATH" "$scratch/out"
TARGET=$scratch/none.so configure
check "a target that is missing" says 1 "x-target does not exist: '$scratch/none.so'" looks
TARGET=$PROXY configure
check "the proxy itself"         says 1 "this proxy itself, or a copy: $PROXY" looks
cp "$PROXY" "$scratch/copy.so"
TARGET=$scratch/copy.so configure
check "a copy of it"             says 1 "this proxy itself, or a copy" looks
printf 'no module' >"$scratch/text.so"
TARGET=$scratch/text.so configure
check "no shared object"         says 1 "no shared object: $scratch/text.so" looks
cp "$TARGET" "$scratch/other.so"
printf '\x08\0' | dd of="$scratch/other.so" bs=1 seek=18 conv=notrunc status=none
TARGET=$scratch/other.so configure
check "another architecture"     says 1 "another architecture, ELF machine 8 with 64 bits" looks
cp "$TARGET" "$scratch/cut.so"
truncate -s 60 "$scratch/cut.so"
TARGET=$scratch/cut.so configure
check "one that cannot be loaded: the loader's reason" says 1 "cannot be loaded: $scratch/cut.so: " looks
TARGET=$(find /lib /usr/lib -name 'libm.so.6' | head -n 1) configure
check "no PKCS#11 module"        says 1 "it has no C_GetFunctionList" looks
TARGET=$MISFIT_MODULE configure
check "one that crashes"         says 1 "it crashed (Aborted): while it was loaded" env MISFIT=crash "$TOOL" check
check "one that ends the process" says 1 "it ended the process: while it was loaded" env MISFIT=exit "$TOOL" check
check "one with no list"         says 1 "is not usable: C_GetFunctionList answers CKR_OK" "$TOOL" check
check "it ends for none of them" grep -F "the kernel wipes the pool" "$scratch/out"

# The target in work.
finds() {
    looks >"$scratch/out" || true
    grep -F -- "$1" "$scratch/out" || { cat "$scratch/out" && false; }
}
TARGET=$RECORDING configure
export RECORDING_INTERFACES='3.0 2.40'
check "interfaces by name"        finds "it offers the interfaces PKCS 11 3.0, PKCS 11 2.40"
TARGET=$COUNTING configure
with() {
    env "$@" "$TOOL" check --module "$PROXY"
}
check "a login is needed"         says 0 "makes random bytes after a login only" with COUNTING_LOGIN_FOR_RANDOM=1
check "no random number generator" says 0 "has no random number generator" with COUNTING_RNG_FLAG=0
check "no token"                  says 0 "with a token: 0" with COUNTING_SLOTS=0
check "few sessions"              says 0 "has 2 sessions in all" with COUNTING_SESSIONS_MAX=2
check "random bytes fail"         says 1 "C_GenerateRandom answers CKR_DEVICE_ERROR" with COUNTING_FAIL_AFTER=1
check "a token that is ill"       says 0 "C_GetTokenInfo answers CKR_DEVICE_REMOVED" with COUNTING_TOKEN_CODE=0x32
check "sessions are refused"      says 1 "C_OpenSession answers CKR_SESSION_COUNT" with COUNTING_RO_REFUSAL=0xb1
check "a token that takes little" says 0 " bytes in a call, since more was refused" with COUNTING_RANDOM_MAX=200
takes_no_more_than_it_can() {
    grep -E "token 'counting' for (128|64|32|16|8) bytes in a call" "$scratch/out"
}
check "how much that is"          takes_no_more_than_it_can
check "a generator that is stuck" says 1 "fails the health test, so C_GenerateRandom fails" with COUNTING_FAULT=3
check "it does not start"         says 1 "C_Initialize answers CKR_GENERAL_ERROR" with COUNTING_INIT_CODE=5

# The proxy.
configure
check "no proxy there" says 1 "the proxy is not there" "$TOOL" check --module "$scratch/p11-proxy.so"
check "no proxy but a text" says 1 "the proxy cannot be loaded" "$TOOL" check --module "$scratch/text.so"

# The configuration.
configure 'x-pool-size: 3 fish'
check "a wrong value"            says 1 "$P11_PROXY_CONFIG:4: x-pool-size is not between" looks
configure
chmod 666 "$P11_PROXY_CONFIG"
check "everybody may write it"   says 1 "everybody may write the configuration: $P11_PROXY_CONFIG" looks
check "and what to do"           grep -F "chmod o-w $P11_PROXY_CONFIG" "$scratch/out"
chmod 644 "$P11_PROXY_CONFIG"
mkdir -m 777 "$scratch/open"
cp "$P11_PROXY_CONFIG" "$scratch/open/p11-proxy.module"
check "everybody may replace it" says 1 "everybody may write a folder above the configuration: $scratch/open" \
    env P11_PROXY_CONFIG="$scratch/open/p11-proxy.module" "$TOOL" check
mkdir -m 755 "$scratch/open/inner"
cp "$P11_PROXY_CONFIG" "$scratch/open/inner/p11-proxy.module"
check "or the folder that it is in" says 1 "everybody may write a folder above the configuration: $scratch/open" \
    env P11_PROXY_CONFIG="$scratch/open/inner/p11-proxy.module" "$TOOL" check
chmod 1777 "$scratch/open"
no_writers() {
    exits 0 looks && ! grep -F "may write" "$scratch/out"
}
in_open() {
    P11_PROXY_CONFIG=$scratch/open/inner/p11-proxy.module "$@"
}
check "where each may touch his own only, nobody may" in_open no_writers

# What is advised is done, and then there is nothing more to advise. A group of our own that is not root's.
group=$(id -G | tr ' ' '\n' | grep -vx 0 | head -n 1 || true)
[[ $(id -u) != 0 ]] || group=65534
advised() {
    sed -n 's/^ *-> \(.*: \)\{0,1\}\(ch\(own\|mod\) .*\)/\2/p' "$scratch/out"
}
mended() {
    local code=0
    "$TOOL" check --module "$PROXY" >"$scratch/out" || code=$?
    [[ $code == "$1" ]] && grep -F -- "$2" "$scratch/out" && bash -eux -c "$(advised)" && no_writers
}
check "nobody else may write it" no_writers
for mode in 666 646 664; do
    [[ -n $group ]] || break
    configure
    chgrp "$group" "$P11_PROXY_CONFIG"
    chmod $mode "$P11_PROXY_CONFIG"
    case $mode in
    664) check "a group may: the advice mends it" mended 0 "group $group may write the configuration: $P11_PROXY_CONFIG" ;;
    *) check "mode $mode: the advice mends it" mended 1 "everybody may write the configuration: $P11_PROXY_CONFIG" ;;
    esac
done
if [[ $(id -u) == 0 ]]; then
    for mode in 644 664 666; do
        chown 12345:54321 "$P11_PROXY_CONFIG"
        chmod $mode "$P11_PROXY_CONFIG"
        case $mode in
        644) check "another user's: the advice mends it" mended 0 "user 12345 may write the configuration" ;;
        664) check "and another group's: likewise" mended 0 "user 12345 and group 54321 may write the configuration" ;;
        666) check "and everybody's: likewise" mended 1 "everybody may write the configuration" ;;
        esac
    done
    chown 12345:54321 "$scratch/open" && chmod 775 "$scratch/open"
    check "a folder: likewise"   in_open mended 0 "user 12345 and group 54321 may write a folder above the configuration: $scratch/open"
else
    skip_check "another user's" "it takes root"
fi
configure
cp "$TARGET" "$scratch/softhsm.so"
chmod 666 "$scratch/softhsm.so"
TARGET=$scratch/softhsm.so configure
check "everybody may write the target" says 1 "everybody may write the target: $scratch/softhsm.so" looks
configure 'x-pool: off'
check "the pool is off"          says 0 "the pool is off" looks
configure 'x-pool-threads: never' 'x-pool-lock-memory: never'
check "no thread"                says 0 "x-pool-threads is never" looks
check "no locked memory"         grep -F "x-pool-lock-memory is never" "$scratch/out"

# The policy: whether the proxy takes it is the proxy's to say, so no exit code is asked for.
configure 'x-disabled-algorithms: MD5, anon'
check "a policy"                 finds "a policy of 2 items is in force"
check "an item with no effect"   finds "$P11_PROXY_CONFIG:4: anon has no effect: a word of TLS"
configure 'x-disabled-algorithms: MD5' 'x-policy: audit'
check "an audit"                 finds "x-policy is audit: 1 items, and nothing is refused"
configure 'x-disabled-algorithms: MD55'
check "an unknown item"          says 1 "$P11_PROXY_CONFIG:4" looks
configure 'x-disabled-algorithms: ECDSA, CKM_RSA_PKCS, SHA1'
check "what OpenSSH needs is refused" finds "$P11_PROXY_CONFIG:4: ECDSA refuses CKM_ECDSA of token 'proxy-test', with which OpenSSH"
check "by number as by name"          finds "CKM_RSA_PKCS refuses CKM_RSA_PKCS of token 'proxy-test'"
needs_nothing_else() {
    ! looks | grep -E 'SHA1 refuses|CKM_ECDH1_DERIVE of'
}
check "what nobody needs is no note"  needs_nothing_else
TARGET=$COUNTING configure 'x-disabled-algorithms: CKM_RSA_PKCS'
lacks() {
    ! looks | grep 'refuses CKM_RSA_PKCS'
}
check "nor what the token has not"    lacks
printf 'jdk.tls.disabledAlgorithms=DES, NoSuchThing\n' >"$scratch/list"
configure "x-disabled-algorithms-file: $scratch/list"
check "an unknown item in a file" finds "NoSuchThing"

# Machines that this one is not.
sees() {
    MACHINE=$2 CPUINFO=$3 "${on_machine[@]}" "$TOOL" check --module "$PROXY" >"$scratch/out" || true
    grep -F -A 1 -- "$1" "$scratch/out" || { cat "$scratch/out" && false; }
}
configure
printf 'processor\t: 0\nflags\t\t: fpu hypervisor vme\n' >"$scratch/virtual"
printf 'processor\t: 0\nmodel name\t: a hypervisor\nflags\t\t: fpu hypervisors vme\n' >"$scratch/real"
check "memory is not wiped on fork"  sees "does not prove that it wipes memory on fork, so there is no pool" wipe /dev/null
check "which is a problem"           grep -E '^problem .* no pool' "$scratch/out"
check "no droppable pages"           sees "has no droppable pages, so a restored checkpoint is noticed by its clock only" droppable /dev/null
check "and what to do"               grep -F "Linux 6.11 has them" "$scratch/out"
check "memory cannot be locked"      sees "a pool of 64 KiB cannot be kept out of swap: the limit is" lock /dev/null
check "and what to do"               grep -F "raise the limit on locked memory (ulimit -l)" "$scratch/out"
check "all of it is there"           sees "a restored checkpoint is noticed by a droppable page" none "$scratch/real"
check "a machine with a generation ID" sees "note     this machine can be cloned (/dev/null)" clonable "$scratch/real"
check "and where to write the mix"   grep -F "set x-pool-mix: kernel in $P11_PROXY_CONFIG" "$scratch/out"
check "a virtual machine without"    sees "note     this is a virtual machine (hypervisor in /proc/cpuinfo)" generation "$scratch/virtual"
check "and where to write the mix"   grep -F "set x-pool-mix: kernel in $P11_PROXY_CONFIG" "$scratch/out"
check "no virtual machine"           sees "ok       nothing says that this machine can be cloned" generation "$scratch/real"
configure 'x-pool-mix: kernel'
for machine in clonable generation; do
    check "$machine: with the mix"   sees "ok       this machine can be cloned, and x-pool-mix: kernel makes its clones differ" \
        $machine "$scratch/virtual"
done

# p11-kit.
configure
built_elsewhere() {
    says 0 "$1" env LD_LIBRARY_PATH="$scratch/kit" "$TOOL" check --module "$PROXY"
}
same_places() {
    ! looks | grep -F "does not read"
}
kit=$(find /lib /usr/lib -name libp11-kit.so.0 2>/dev/null | head -n 1)
if [[ -n $kit ]] && grep -q /usr/share/p11-kit/modules "$kit"; then
    mkdir "$scratch/kit"
    check "p11-kit looks where the proxy does" same_places
    sed 's#/usr/share/p11-kit/modules#/opt/share/p11-kit/modules#' "$kit" >"$scratch/kit/libp11-kit.so.0"
    check "a p11-kit that reads other registrations" \
        built_elsewhere "($scratch/kit/libp11-kit.so.0) does not read registrations in /usr/share/p11-kit/modules, but /opt/share/p11-kit/modules"
    check "and what to do"           grep -F "build the proxy with p11-kit's own prefix" "$scratch/out"
    sed 's#/etc/pkcs11/modules#/opt/pkcs11/modules#' "$kit" >"$scratch/kit/libp11-kit.so.0"
    check "or those of another system folder" \
        built_elsewhere "does not read registrations in /etc/pkcs11/modules, but /opt/pkcs11/modules"
    sed 's#/usr\(/lib[a-z0-9_/-]*/pkcs11\)#/opt\1#' "$kit" >"$scratch/kit/libp11-kit.so.0"
    check "or modules elsewhere"     built_elsewhere "does not read modules in /usr/lib"
else
    skip_check "a p11-kit that looks elsewhere" "none that was built for this prefix"
fi
unset P11_PROXY_CONFIG
modules=$scratch/home/.config/pkcs11/modules
mkdir -p "$modules"
[[ $(id -u) != 0 ]] || chown -R 65534 "$scratch/tokens"
looks_as_someone() {
    as_someone "$TOOL" check --module "$PROXY"
}
printf '%s\n' "x-target: $TARGET" 'x-log: off' >"$modules/p11-proxy.module"
check "p11-kit does not know the proxy" says 0 "p11-kit does not know the proxy" looks_as_someone
printf '%s\n' "module: $PROXY" >>"$modules/p11-proxy.module"
printf '%s\n' "module: $TARGET" >"$modules/own.module"
check "p11-kit knows the token's own module" says 0 "knows the token's own module too (own.module)" looks_as_someone
check "and the file to write" grep -F "enable-in: nothing into a new file /etc/pkcs11/modules/own.module" "$scratch/out"
printf '%s\n' 'disable-in: firefox' >>"$modules/own.module"
check "and who does not see it" says 0 "so programs other than firefox see the token twice" looks_as_someone
printf '%s\n' 'disable-in: thunderbird' >>"$modules/p11-proxy.module"
check "who does not see the proxy" says 0 "shows the proxy to all programs but thunderbird" looks_as_someone
printf '%s\n' "module: $TARGET" 'enable-in: nothing' >"$modules/own.module"
printf '%s\n' 'enable-in: nothing' >"$modules/softhsm2.module"
check "switched off" says 0 "the token only through it" looks_as_someone
rm "$modules/softhsm2.module"
printf 'user-config: only\n' >"$modules/../pkcs11.conf"
check "only the user's modules count" says 0 "the token only through it" looks_as_someone
printf '%s\n' "module: $TARGET" >"$modules/own.module"
check "then the file to write is the user's" says 0 "add the line enable-in: nothing to $modules/own.module" looks_as_someone

wait "$hanging" || true
check "one that hangs" grep -F "did not answer within 30 s: while it was loaded" "$scratch/hang"
done_testing
