#!/bin/bash
# hosts.sh - the proxy in programs of other kinds, and in places that forbid much: as the token's module there.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

read -ra cryptoki < <(pkg-config --cflags p11-kit-1)
build_host() {
    local to=$1
    shift
    "$@" -D_GNU_SOURCE "-I$CHECKOUT/module" "${cryptoki[@]}" -pthread -o "$to" "$CHECKOUT/tests/token/users.c" 2>"$to.log" || { cat "$to.log" && false; }
}
build_host "$scratch/host" gcc
life=("$place/p11-proxy.so" none Ai Ao Ad Ah Al At Ak Ad Af Au)
recipe "A hardened unit"

works() {
    as_user "$@" "$scratch/host" "${life[@]}"
}

# A child that exits without C_Finalize did not always survive it: several times.
in_a_namespace() {
    local i
    for i in {1..5}; do "$scratch/host" namespace "${life[@]}" || return 1; done
}

same "RTLD_GLOBAL"                      "$scratch/host" global "${life[@]}"
same "a link namespace of its own"      in_a_namespace
if build_host "$scratch/host-static" gcc -static; then
    same "a static program"             "$scratch/host-static" "${life[@]}"
else
    skip_check "a static program" "this C library cannot be linked statically"
fi
# A search for leaks in a child stops at threads that only its parent has.
if build_host "$scratch/host-asan" gcc -fsanitize=address,undefined; then
    ASAN_OPTIONS=detect_leaks=0 same "a program with sanitizers" "$scratch/host-asan" "${life[@]}"
else
    skip_check "a program with sanitizers" "gcc has no sanitizers here"
fi

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
export place
export -f as_user as_p11_kit_user
alone() {
    unshare --mount bash -c "$1 && as_user \"\$@\"" bash "$scratch/host" "${life[@]}"
}
if [[ $(id -u) == 0 ]] && unshare --mount true 2>/dev/null; then
    same "a root that cannot be written to" alone "mount --bind $scratch $scratch && mount -o remount,bind,ro /"
    same "no /proc"                     alone 'umount -l /proc'
    same "no /dev and no /sys"          alone 'mount -t tmpfs none /dev && mount -t tmpfs none /sys'
else
    skip_check "a root that cannot be written to, no /proc, no /dev" "no mount namespace"
fi

# unit PATTERN: with those lines of the manual's unit.
sandbox=(/usr/bin/python3 "$CHECKOUT/tests/clients/sandbox.py")
unit() {
    grep -E "^($1)=" hardened.conf >unit.conf && works "${sandbox[@]}" unit.conf
}
kills() {
    local code=0
    "${sandbox[@]}" "$scratch/files/hardened.conf" chroot / true || code=$?
    [[ $code == 159 ]]
}
if "${sandbox[@]}" "$scratch/files/hardened.conf" true >"$scratch/sandbox.log"; then
    check "the filter kills"                kills
    same "a system call filter that kills"  unit SystemCallFilter
    same "no memory to write and execute"   unit MemoryDenyWriteExecute
    same "no sockets but local ones"        unit RestrictAddressFamilies
    same "the manual's hardened unit"       unit '[A-Z].*'
else
    skip_check "the manual's hardened unit" "$(tail -n 1 "$scratch/sandbox.log")"
fi

# The manual's way to build with musl. Its target is one of musl's, too.
builds_with_musl() {
    mkdir "$scratch/musl"
    cp "$scratch/files/recipe.sh" "$scratch/musl" && cd "$scratch/musl" && sed -i "s#tests=false#& $CHECKOUT#" recipe.sh && follow
}
with_musl() {
    cp -L "$scratch/musl/target.so" .
    local module=$scratch/musl/build-musl/module/p11-proxy.so
    [[ $side == proxied ]] || module=$place/target.so
    TARGET_SCRIPT=quiet "$scratch/host-musl" "$module" "${life[@]:1}"
}
if command -v musl-gcc >/dev/null; then
    recipe "musl"
    check "the manual's way to build with musl"  builds_with_musl
    read -ra scripted < <(cd "$CHECKOUT/tests/targets" && echo {lists,script,scripted,token,work}.c)
    musl=(musl-gcc -isystem "$scratch/musl/include")
    build_host "$scratch/host-musl" "${musl[@]}" &&
        (cd "$CHECKOUT/tests/targets" && "${musl[@]}" -D_GNU_SOURCE "-I$CHECKOUT/module" "${cryptoki[@]}" -shared -fPIC \
            -fvisibility=hidden -o "$scratch/musl/target.so" "${scripted[@]}")
    export P11_PROXY_TARGET=$place/target.so
    same "a program with musl"          with_musl
    unset P11_PROXY_TARGET
else
    skip_check "a program with musl" "no musl-gcc"
fi
done_testing
