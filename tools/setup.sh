# setup.sh - what tools/quickstart, tools/package and tests/run share: packages, builds, and a user that p11-kit
# listens to.
# shellcheck shell=bash
#
# To be sourced by a script that has set -eu -o pipefail.

program=${0##*/}

say() {
    printf '%s: %s\n' "$program" "$*"
}

# die WHAT WHAT_TO_DO: the two things that a reader of an error wants.
die() {
    printf '%s: %s\n' "$program" "$1" >&2
    printf '%s: %s\n' "$program" "$2" >&2
    exit 1
}

# Prints those of the named Debian packages that are not installed.
missing_packages() {
    local package
    for package in "$@"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
            printf '%s\n' "$package"
    done
}

# list_packages PACKAGE...: what is needed, and what install_packages would install.
list_packages() {
    local missing
    mapfile -t missing < <(missing_packages "$@")
    printf 'needed: %s\n' "$*"
    printf 'to be installed: %s\n' "${missing[*]-}"
}

# Runs a command as root: as it is, or by sudo.
as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    else
        sudo "$@"
    fi
}

# Installs what is missing of the named Debian packages. Does nothing, and needs no root, if nothing is.
install_packages() {
    local missing
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        die "this is no Debian or Ubuntu: there is no dpkg-query and apt-get to find packages with" \
            "install what these packages hold with your own tools, then build by hand as README.md says: $*"
    fi
    mapfile -t missing < <(missing_packages "$@")
    [[ ${#missing[@]} -gt 0 ]] || return 0

    say "installing from the distribution: ${missing[*]}"
    if [[ $(id -u) != 0 ]] && ! command -v sudo >/dev/null; then
        die "packages are missing, and neither are you root nor is there sudo" \
            "have an administrator run: apt-get install --no-install-recommends ${missing[*]}"
    fi
    as_root apt-get -q update ||
        die "apt-get update failed, see above: no network, a stale /etc/apt/sources.list, or no right to use sudo" \
            "mend that, or have an administrator run: apt-get install --no-install-recommends ${missing[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${missing[@]}" ||
        die "apt-get could not install: ${missing[*]}" \
            "see its message above; this was made for Debian 12, where all of them are in main"
}

# build_into DIRECTORY [MESON_OPTION...]: configures or configures anew, then compiles.
build_into() {
    local directory=$1 log=$1/setup.log
    local again=()
    shift
    mkdir -p "$directory" ||
        die "cannot make the directory $directory" "run this in a checkout that you may write to"
    [[ ! -e $directory/meson-private/coredata.dat ]] || again=(--reconfigure)

    say "building into $directory"
    if ! meson setup "${again[@]}" "$@" "$directory" >"$log" 2>&1; then
        cat "$log" >&2
        die "meson could not configure $directory, see above" \
            "if an older build or another compiler is in the way: rm -r $directory, and run this again"
    fi
    if ! ninja -C "$directory" >"$log" 2>&1; then
        cat "$log" >&2
        die "the build in $directory failed, see above" \
            "if you changed the source, the first error says where; else: rm -r $directory, and run this again"
    fi
}

# Prints the path of SoftHSM's module.
softhsm_module() {
    local path
    for path in /usr/lib/softhsm/libsofthsm2.so /usr/lib/*/softhsm/libsofthsm2.so; do
        if [[ -e $path ]]; then
            printf '%s\n' "$path"
            return 0
        fi
    done
    die "SoftHSM's module, libsofthsm2.so, is in none of the places where Debian puts it" \
        "reinstall it: apt-get install --reinstall libsofthsm2"
}

# new_softhsm_token DIRECTORY: a token with the label proxy-test and the PIN 1234, and DIRECTORY/softhsm2.conf that
# leads to it. The user's own tokens and settings stay as they are.
new_softhsm_token() {
    local directory=$1
    mkdir -p "$directory/tokens"
    printf '%s\n' "directories.tokendir = $directory/tokens" 'objectstore.backend = file' \
        'log.level = ERROR' 'slots.removable = false' >"$directory/softhsm2.conf"
    SOFTHSM2_CONF=$directory/softhsm2.conf softhsm2-util --init-token --free \
        --label proxy-test --pin 1234 --so-pin 12345678 >"$directory/softhsm2-util.log" 2>&1 ||
        die "SoftHSM made no token: $(cat "$directory/softhsm2-util.log")" \
            "check that softhsm2-util runs and that $directory can be written to"
}

# as_p11_kit_user HOME COMMAND...: runs a command with HOME/.config/pkcs11 as its p11-kit configuration.
#
# p11-kit reads no user's files for root, and /etc belongs to the machine. Containers commonly refuse a mount
# namespace, which could have an /etc/pkcs11 of its own. So root runs the command as user 65534, with one
# capability kept: to reach files as root does, because that user cannot enter root's home.
as_p11_kit_user() {
    local home=$1 as=()
    shift
    [[ $(id -u) != 0 ]] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups
                               --inh-caps=+dac_override --ambient-caps=+dac_override)
    env -u XDG_CONFIG_HOME HOME="$home" "${as[@]}" "$@"
}
