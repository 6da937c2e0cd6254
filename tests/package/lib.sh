# lib.sh - a test that installs, as on a machine of its own: all that it writes is gone when it ends.
# shellcheck shell=bash
#
# A test sources this first and goes on as root of a root directory whose lower layer is the machine's. It is skipped
# by name where that cannot be had: only root has it, and not in every container.

private_root() {
    # shellcheck disable=SC2016
    unshare --mount --propagation private bash -eu -c '
        mount -t tmpfs -o mode=755 tmpfs "$1"
        mkdir "$1/root" "$1/upper" "$1/work"
        mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
        for folder in /proc /sys /dev; do
            mount --rbind "$folder" "$1/root$folder"
        done
        mount -t tmpfs tmpfs "$1/root/run"
        mount -t tmpfs -o mode=1777 tmpfs "$1/root/tmp"
        for folder in "$CHECKOUT" "$BUILD"; do
            mkdir -p "$1/root$folder"
            mount --rbind "$folder" "$1/root$folder"
        done
        cd /
        exec chroot "$1/root" "${@:2}"' private_root "$@"
}

if [[ ${IN_PRIVATE_ROOT-} != yes ]]; then
    place=$(mktemp -d)
    trap 'rmdir "$place"' EXIT
    if ! private_root "$place" true 2>/dev/null; then
        echo "no root directory of its own can be had here"
        exit 77
    fi
    IN_PRIVATE_ROOT=yes private_root "$place" "$(realpath "$0")"
    exit
fi
unset TMPDIR

# shellcheck source=tests/tool/lib.sh
. "$CHECKOUT/tests/tool/lib.sh"
unset P11_PROXY_CONFIG
export HOME=/root PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive

# copy_of_tree DIRECTORY: the source, without what was built.
copy_of_tree() {
    mkdir -p "$1"
    tar -C "$CHECKOUT" --create --exclude './build*' . | tar --extract --no-same-owner --directory "$1"
}
