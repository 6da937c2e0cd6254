#!/bin/bash
# packages.sh - the Debian package: built, installed, used, upgraded below a running program, purged; then the same with RPM.
# shellcheck source=tests/package/lib.sh
. "$CHECKOUT/tests/package/lib.sh"
needs dpkg-buildpackage dh lintian rpmbuild
! dpkg-query -W p11-proxy >/dev/null 2>&1 || skip_all "the package is installed on this machine"

version=$(sed -n "s/^project(.* version: '\([^']*\)'.*/\1/p" "$CHECKOUT/meson.build")
module=$(pkg-config --variable=p11_module_path p11-kit-1)/p11-proxy.so
tree=$scratch/p11-proxy-$version
copy_of_tree "$tree"

draws() {
    [[ $(pkcs11-tool --module "$module" --generate-random 32 | wc -c) == 32 ]]
}
# Other modules of this machine may have something to say.
says_what_it_said() {
    p11-kit list-modules 2>&1 | diff "$scratch/modules.before" -
}
leaves_nothing() {
    ! find / -xdev \( -path "$CHECKOUT" -o -path "$BUILD" -o -path /tmp -o -path /proc \) -prune \
        -o -name '*p11-proxy*' -newer "$scratch/began" -print | grep .
}

check "versions agree: NEWS"     test "$(sed -n 's/^\([0-9][^ ]*\) .*/\1/p;T;q' "$CHECKOUT/tools/packaging/NEWS")" == "$version"
check "versions agree: the spec" grep -x "Version: *$version" "$CHECKOUT/tools/packaging/p11-proxy.spec"
touch "$scratch/began"
p11-kit list-modules >"$scratch/modules.before" 2>&1
check "built, and lintian finds no error" "$tree/tools/package"
check "installed"                dpkg --install "$tree"/build/package/p11-proxy_*.deb
check "its module is stripped"   sh -c "! readelf -SW '$module' | grep -E ' \.(symtab|debug_info)'"
check "without a target p11-kit says nothing of it" says_what_it_said
check "set up"                   p11-proxy setup "$TARGET"
check "p11-kit shows the module" sh -c "p11-kit list-modules | grep '^p11-proxy: '"
check "it draws"                 draws

# The next version of the same files; every one has a new inode.
next_release() {
    dpkg-deb --raw-extract "$tree"/build/package/p11-proxy_*.deb "$scratch/next" &&
        sed -i "s/^Version: .*/Version: $version-2/" "$scratch/next/DEBIAN/control" &&
        dpkg-deb --build "$scratch/next" "$scratch/next.deb"
}
use "$module"
check "the next release"         next_release
check "a program draws"          orders d 0x0
check "upgraded meanwhile"       dpkg --install "$scratch/next.deb"
check "the program still has the old file" grep -F "$module (deleted)" "/proc/$pid/maps"
check "and goes on"              orders d 0x0
check "the new tool shows its counters" says 0 '"pool_draws"' p11-proxy stats --json "$pid"
check "a new program draws"      draws
check "purged"                   dpkg --purge p11-proxy
check "nothing is left"          leaves_nothing
check "p11-kit has what it had"  says_what_it_said
check "the program goes on"      orders d 0x0
end_use

# What Fedora's meson package defines, for the folders of this machine. The source is configured as it is there.
# Requirements have the names of another distribution.
builds_rpm() {
    rm -rf "$tree/build"
    mkdir -p "$scratch/rpm/SOURCES"
    tar -C "$scratch" --create --gzip --file "$scratch/rpm/SOURCES/p11-proxy-$version.tar.gz" "p11-proxy-$version"
    rpmbuild -bb --nodeps --define "_topdir $scratch/rpm" --define "_libdir ${module%/pkcs11/*}" \
        --define 'meson meson setup build --prefix=/usr' --define 'meson_build ninja -C build' \
        --define 'meson_install DESTDIR=%{buildroot} meson install -C build --no-rebuild' \
        "$CHECKOUT/tools/packaging/p11-proxy.spec"
}
as_rpm() {
    rpm --dbpath "$scratch/database" --nodeps "$@"
}
check "RPM: the specification builds" builds_rpm
check "RPM: installed"           as_rpm --install "$scratch"/rpm/RPMS/*/p11-proxy-"$version"-*.rpm
check "RPM: it is set up"        p11-proxy setup "$TARGET"
check "RPM: it draws"            draws
check "RPM: removed"             as_rpm --erase p11-proxy
check "RPM: nothing is left"     leaves_nothing
done_testing
