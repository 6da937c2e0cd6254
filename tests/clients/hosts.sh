#!/bin/bash
# hosts.sh - the proxy in programs of other kinds, and in places that forbid much: as the token's module there.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

read -ra cryptoki < <(pkg-config --cflags p11-kit-1)
cryptoki+=(-D_GNU_SOURCE "-I$CHECKOUT/module")
# build_host NAME COMPILER...: a program that lives as tests/token/users.c has it.
build_host() {
    "${@:2}" "${cryptoki[@]}" -pthread -o "$scratch/$1" "$CHECKOUT/tests/token/users.c" 2>&1
}
build_host host gcc
host=$scratch/host
life=(local "$module" none Ai Ao Ad Ah Al At Ak Ad Af Au)
recipe "A hardened unit"

works() {
    as_someone "$@" "$host" "${life[@]}"
}

same "RTLD_GLOBAL"                      "$host" global "${life[@]:1}"
# A child that exits without C_Finalize did not always survive it: several times.
same "a link namespace of its own"      repeat 5 "$host" namespace "${life[@]:1}"
# built WHAT NAME COMPILER...: the same with another kind of program.
built() {
    if build_host "${@:2}" >"$scratch/log"; then
        same "$1" "$scratch/$2" "${life[@]}"
    else
        skip_check "$1" "$(tail -n 1 "$scratch/log")"
    fi
}
built "a static program" host-static gcc -static
# A search for leaks in a child stops at threads that only its parent has.
ASAN_OPTIONS=detect_leaks=0 built "a program with sanitizers" host-asan gcc -fsanitize=address,undefined

# Some limits leave no room for threads, or for the token: then neither has the bare one.
limited() {
    ulimit "$1" "$2"
    works
}
same "no memory may be locked"          limited -l 0
same "few files"                        limited -n 20
same "little address space"             limited -v 400000
same "no new privileges"                works setpriv --no-new-privs

# alone CODE: in a mount namespace in which the shell code has run.
export home
export -f as_someone as_p11_kit_user
alone() {
    unshare --mount bash -c "$1 && as_someone \"\$@\"" bash "$host" "${life[@]}"
}
if [[ $EUID == 0 ]] && unshare --mount true 2>/dev/null; then
    same "a root that cannot be written to" alone "mount --bind $scratch $scratch && mount -o remount,bind,ro /"
    same "no /proc"                     alone 'umount -l /proc'
    same "no /dev and no /sys"          alone 'mount -t tmpfs none /dev && mount -t tmpfs none /sys'
else
    skip_check "a root that cannot be written to, no /proc, no /dev" "no mount namespace"
fi

unit=(/usr/bin/python3 "$CHECKOUT/tests/clients/sandbox.py" "$files/hardened.conf")
if "${unit[@]}" true >"$scratch/log"; then
    check "the unit's filter kills"     exits 159 "${unit[@]}" chroot / true
    same "the manual's hardened unit"   works "${unit[@]}"
else
    skip_check "the manual's hardened unit" "$(tail -n 1 "$scratch/log")"
fi

# The manual's way to build with musl. Its target is one of musl's, too.
builds_with_musl() {
    mkdir "$scratch/musl"
    cp "$files/recipe.sh" "$scratch/musl" && cd "$scratch/musl" && sed -i "s#tests=false#& $CHECKOUT#" recipe.sh && follow
}
with_musl() {
    [[ $side == bare ]] || cp "$scratch/musl/build-musl/module/p11-proxy.so" "$module"
    [[ $side == proxied ]] || cp "$P11_PROXY_TARGET" "$module"
    TARGET_SCRIPT=quiet "$scratch/host-musl" "${life[@]}"
}
if has musl-gcc; then
    recipe "musl"
    check "the manual's way to build with musl"  builds_with_musl
    musl=(musl-gcc -isystem "$scratch/musl/include")
    export P11_PROXY_TARGET=$scratch/target.so
    build_host host-musl "${musl[@]}" >"$scratch/log" &&
        "${musl[@]}" "${cryptoki[@]}" -I "$CHECKOUT/common" -shared -fPIC -fvisibility=hidden -o "$P11_PROXY_TARGET" \
            "$CHECKOUT"/tests/targets/{lists,script,scripted,token,work}.c
    same "a program with musl"          with_musl
else
    skip_check "a program with musl" "no musl-gcc"
fi
done_testing
