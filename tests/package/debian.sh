#!/bin/bash
# debian.sh - the Debian package: built, installed, used, upgraded below a running program, and purged.
# shellcheck source=tests/package/lib.sh
. "$CHECKOUT/tests/package/lib.sh"
for program in dpkg-buildpackage dh lintian; do
    command -v "$program" >/dev/null || skip_all "there is no $program"
done
! dpkg-query -W p11-proxy >/dev/null 2>&1 || skip_all "the package is installed on this machine"

version=$(sed -n "s/^project(.* version: '\([^']*\)'.*/\1/p" "$CHECKOUT/meson.build")
tree=$scratch/tree
module=$(pkg-config --variable=p11_module_path p11-kit-1)/p11-proxy.so
copy_of_tree "$tree"

# The next version of the same files; every one has a new inode.
next_release() {
    dpkg-deb --raw-extract "$tree"/build/package/p11-proxy_*.deb "$scratch/next" &&
        sed -i "s/^Version: .*/Version: $version-2/" "$scratch/next/DEBIAN/control" &&
        dpkg-deb --build "$scratch/next" "$scratch/next.deb"
}
files_of_package() {
    dpkg-query -L p11-proxy | while read -r file; do [[ -d $file ]] || printf '%s\n' "$file"; done | sort
}
# What an RPM would have, but for the documents, which lie elsewhere.
has_files_of_spec() {
    sed -n '/^%files/,$s/\*$//; s/^%{_\([a-z0-9]*\)}/\1 /p' "$CHECKOUT/tools/packaging/p11-proxy.spec" |
        while read -r folder file; do
            case $folder in
            bindir) echo "/usr/bin$file" ;;
            libdir) echo "${module%/pkcs11/*}$file" ;;
            datadir) echo "/usr/share$file" ;;
            mandir) echo "/usr/share/man$file.gz" ;;
            esac
        done | sort | diff - <(files_of_package | grep -v /usr/share/doc/)
}
# Other modules of this machine may have something to say.
says_what_it_said() {
    p11-kit list-modules 2>&1 | diff "$scratch/modules.before" -
}
draws() {
    [[ $(pkcs11-tool --module "$module" --generate-random 32 | wc -c) == 32 ]]
}
p11_kit_shows() {
    p11-kit list-modules >"$scratch/modules"
    cat "$scratch/modules"
    grep "^$1: " "$scratch/modules"
}
leaves_nothing() {
    ! find / -xdev -path "$scratch" -prune -o -path "$CHECKOUT" -prune -o -path "$BUILD" -prune -o -path /tmp -prune \
        -o -path /proc -prune -o \( -name '*p11-proxy*' -newer "$scratch/began" \) -print | grep .
}

check "versions agree: NEWS"     test "$(sed -n 's/^\([0-9][^ ]*\) .*/\1/p;T;q' "$CHECKOUT/tools/packaging/NEWS")" == "$version"
check "versions agree: the spec" grep -x "Version: *$version" "$CHECKOUT/tools/packaging/p11-proxy.spec"
touch "$scratch/began"
p11-kit list-modules >"$scratch/modules.before" 2>&1
check "built, and lintian finds no error" "$tree/tools/package"
check "installed"                dpkg --install "$tree"/build/package/p11-proxy_*.deb
check "the spec has its files"   has_files_of_spec
check "its module is stripped"   sh -c "! readelf -SW '$module' | grep -E ' \.(symtab|debug_info)'"
check "without a target p11-kit says nothing of it" says_what_it_said
check "set up"                   p11-proxy setup "$TARGET"
check "p11-kit shows the module" p11_kit_shows p11-proxy
check "it draws"                 draws

# A program that uses it while it is replaced.
java_draws() {
    local line
    echo >&"${program[1]}" && read -r -t 60 line <&"${program[0]}" && [[ $line == drawn ]]
}
# The counters of the old module, by the new tool.
# shellcheck disable=SC2154
stats_say() {
    p11-proxy stats --json "$program_PID" | tee "$scratch/stats" | grep '"pool_draws"'
}
has_new_file() {
    grep -F "$module (deleted)" "/proc/$program_PID/maps"
}
check "the next release"         next_release
if command -v java >/dev/null; then
    printf '%s\n' 'name = proxy' "library = $module" 'slotListIndex = 0' >"$scratch/proxy.cfg"
    coproc program { exec java "$CHECKOUT/tests/package/Draws.java" "$scratch/proxy.cfg" 2>"$scratch/java.err"; }
    check "Java draws"           java_draws
    check "upgraded meanwhile"   dpkg --install "$scratch/next.deb"
    check "Java still has the old file" has_new_file
    check "and goes on"          java_draws
    check "the new tool shows its counters" stats_say
    check "a new program draws"  draws
    check "it stays set up"      p11_kit_shows p11-proxy
else
    skip_check "upgraded below a running Java" "there is no java"
    check "upgraded"             dpkg --install "$scratch/next.deb"
fi

check "purged"                   dpkg --purge p11-proxy
check "nothing is left"          leaves_nothing
check "p11-kit has what it had"  says_what_it_said
if command -v java >/dev/null; then
    check "Java goes on"         java_draws
    kill "$program_PID"
fi
done_testing
