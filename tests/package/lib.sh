# lib.sh - a test that installs, as on a machine of its own: all that it writes is gone when it ends.
# shellcheck shell=bash
#
# A test sources this first, and is skipped by name where such a machine cannot be had.
[[ -n ${OWN_MACHINE-} ]] || exec "$CHECKOUT/tests/own-machine" "$(realpath "$0")"

# shellcheck source=tests/tool/lib.sh
. "$CHECKOUT/tests/tool/lib.sh"
unset P11_PROXY_CONFIG
export HOME=/root PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive

# copy_of_tree DIRECTORY: the source, without what was built.
copy_of_tree() {
    mkdir -p "$1"
    tar -C "$CHECKOUT" --create --exclude './build*' . | tar --extract --no-same-owner --directory "$1"
}
