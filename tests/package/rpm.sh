#!/bin/bash
# rpm.sh - the RPM package: built from its specification, installed, used, and removed.
# shellcheck source=tests/package/lib.sh
. "$CHECKOUT/tests/package/lib.sh"
command -v rpmbuild >/dev/null || skip_all "there is no rpmbuild"

version=$(sed -n "s/^project(.* version: '\([^']*\)'.*/\1/p" "$CHECKOUT/meson.build")
module=$(pkg-config --variable=p11_module_path p11-kit-1)/p11-proxy.so
top=$scratch/rpmbuild
database=$scratch/database
tree=$scratch/p11-proxy-$version

# What Fedora's meson package defines, for the folders of this machine. The source is configured as it is there.
builds() {
    copy_of_tree "$tree"
    mkdir -p "$top/SOURCES"
    tar -C "$scratch" --create --gzip --file "$top/SOURCES/p11-proxy-$version.tar.gz" "p11-proxy-$version"
    # Requirements have the names of another distribution.
    rpmbuild -bb --nodeps --define "_topdir $top" --define "_libdir ${module%/pkcs11/*}" \
        --define 'meson meson setup build --prefix=/usr' --define 'meson_build ninja -C build' \
        --define 'meson_install DESTDIR=%{buildroot} meson install -C build --no-rebuild' \
        "$CHECKOUT/tools/packaging/p11-proxy.spec"
}
as_rpm() {
    rpm --dbpath "$database" --nodeps "$@"
}
draws() {
    [[ $(pkcs11-tool --module "$module" --generate-random 32 | wc -c) == 32 ]]
}
is_not_set_up() {
    ! grep -rs p11-proxy /etc/pkcs11/modules
}

check "the specification builds" builds
check "installed"                as_rpm --install "$top"/RPMS/*/p11-proxy-"$version"-*.rpm
check "the program is there"     says 0 "p11-proxy $version" p11-proxy --version
check "it is set up"             p11-proxy setup "$TARGET"
check "it draws"                 draws
check "removed"                  as_rpm --erase p11-proxy
check "with what was set up"     is_not_set_up
check "and the module"           test ! -e "$module"
done_testing
