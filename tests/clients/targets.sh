#!/bin/bash
# targets.sh - one smoke test before each token's module: targets.sh softhsm|softoken|tpm2|opencryptoki|p11-kit-client
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

kind=$1
if [[ $kind == opencryptoki && -z ${OWN_MACHINE-} ]]; then
    [[ -x $UNPACKED/usr/sbin/pkcsslotd ]] || skip_all "there is no opencryptoki in build/clients"
    rm -rf "$scratch"
    exec "$CHECKOUT/tests/own-machine" "$0" "$@"
fi
if [[ $kind == opencryptoki ]]; then
    cp -a "$UNPACKED/usr/"{lib,sbin} /usr
    cp -a "$UNPACKED/etc" /
    ldconfig
fi
needs pkcs11-tool
recipe "TOKEN MODULES"
line=$(sed -n 's/^x-target: //p' "$files/$kind.module")
target=$line
[[ $target == /* ]] || target=$kit_modules/$line
needs "$target"

set_up() {
    pkcs11-tool --module "$target" "$@" >/dev/null 2>&1
}

# What one module's own way of being set up is; the others need nothing. loaded is what pkcs11-tool loads.
prepare() { :; }
through=() with=()
case $kind in
softoken)
    # Its string comes from p11-kit where it is bare. pkcs11-tool sees it through p11-kit-proxy.so on both sides.
    needs certutil
    mkdir "$files/db"
    echo 1234 >"$scratch/pin"
    certutil -N -d "sql:$files/db" -f "$scratch/pin"
    string=$(sed -n "s#^x-target-init: ##p" "$files/softoken.module")
    settings+=("x-target-init: ${string//\/etc\/pki\/nssdb/$place/db}")
    through=(as_someone)
    prepare() {
        loaded=$kit_proxy
        chmod -R a+rwX db # softoken asks access(2), which does not know of capabilities
        [[ $side == proxied ]] ||
            printf '%s\n' "module: ${bare_module}" "x-init-reserved: ${settings[-1]#*: }" >"$P11_PROXY_CONFIG"
    }
    ;;
tpm2)
    needs swtpm /usr/lib/x86_64-linux-gnu/libtss2-tcti-swtpm.so.0
    mkdir "$scratch/tpm" "$files/store"
    swtpm socket --tpm2 --tpmstate "dir=$scratch/tpm" --server "type=unixio,path=$scratch/swtpm" \
        --ctrl "type=unixio,path=$scratch/swtpm.ctrl" --flags startup-clear,not-need-init --daemon --pid "file=$scratch/swtpm.pid"
    trap 'kill "$(<"$scratch/swtpm.pid")"; rm -rf "$scratch"' EXIT
    export TPM2_PKCS11_TCTI=swtpm:path=$scratch/swtpm TPM2_PKCS11_STORE=$files/store
    set_up --init-token --slot-index 0 --label proxy-test --so-pin 12345678 &&
        set_up --token-label proxy-test --login --login-type so --so-pin 12345678 --init-pin --new-pin 1234
    export TPM2_PKCS11_STORE=$place/store
    ;;
opencryptoki)
    groupadd pkcs11
    usermod -aG pkcs11 root
    mkdir -p /run/lock/opencryptoki/swtok /var/lib/opencryptoki/swtok/TOK_OBJ /var/log/opencryptoki
    chgrp -R pkcs11 /run/lock /var/lib/opencryptoki /var/log/opencryptoki
    printf '%s\n' 'version opencryptoki-3.8' 'slot 0' '{' 'stdll = libpkcs11_sw.so' '}' >/etc/opencryptoki/opencryptoki.conf
    pkcsslotd
    # The PINs that it comes with have to be changed by those whose they are.
    set_up --init-token --slot-index 0 --label proxy-test --so-pin 87654321 &&
        set_up --login --login-type so --so-pin 87654321 --change-pin --new-pin 12345678 &&
        set_up --login --login-type so --so-pin 12345678 --init-pin --new-pin 4321 &&
        set_up --login --pin 4321 --change-pin --new-pin 1234
    ;;
p11-kit-client)
    with=(behind_server)
    through=(as_someone)
    ;;
esac

tool() {
    "${through[@]}" pkcs11-tool --module "$loaded" --token-label proxy-test "$@"
}

user() {
    tool --login --pin 1234 "$@"
}

draws() {
    local bytes
    for bytes in 0 1 16 1000 1024 1025 5000; do
        user --generate-random "$bytes" 2>/dev/null | wc -c
    done
}

# signs ID TYPE MECHANISM FILE OPTION...: a key pair of this type is made; what the token signs, OpenSSL verifies.
# Then the pair is deleted again: not every token is copied for each side.
signs() {
    user --keypairgen --key-type "$2" --id "$1" --label key &&
        user --sign --mechanism "$3" --id "$1" --input-file "$4" --output-file signature "${@:5}" &&
        user --read-object --type pubkey --id "$1" --output-file public.der &&
        openssl dgst -sha256 -verify public.der -keyform DER -signature signature data && user --list-objects &&
        user --delete-object --type privkey --id "$1" && user --delete-object --type pubkey --id "$1"
}

works() {
    echo hello >data
    openssl dgst -sha256 -binary data >digest
    # The start of a DigestInfo with SHA-256, as PKCS #1 has it.
    { printf '\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20' && cat digest; } >digest-info
    loaded=$module bare_module=$target
    [[ $side == proxied ]] || loaded=$target
    prepare
    tool --show-info && tool --list-slots && tool --list-mechanisms && draws && signs 11 rsa:2048 RSA-PKCS digest-info || return 1
    [[ $kind == opencryptoki ]] || signs 12 EC:prime256v1 ECDSA digest --signature-format openssl || return 1
    ! tool --login --pin 87654321 --list-objects && user --list-objects
}

draws_ids() {
    loaded=$module bare_module=$COUNTING
    prepare
    "${through[@]}" /usr/bin/python3 "$CHECKOUT/tests/clients/pykcs11.py" "$loaded" draw
}

normalise() {
    sed -E -e 's/0x[0-9a-f]{6,}/NUMBER/g' -e 's/(EC_POINT:|Modulus:) .*/\1 BYTES/' -e 's/[0-9a-f]{30,}/BYTES/g' | sort
}

target_of_proxy=$line
same "info, mechanisms, random bytes, keys, signatures, a wrong PIN" "${with[@]}" works
target_of_proxy=$COUNTING COUNTING_TARGET=$target
same "ids in one program"           "${with[@]}" draws_ids
check "the pool has most of them"   pool_serves
# systemd lists tokens that say that they are hardware, as this one does.
if [[ $kind == tpm2 ]] && has systemd-cryptenroll; then
    recipe systemd-cryptenroll
    same "systemd-cryptenroll lists it"     as_someone bash -eu recipe.sh
    gains systemd-cryptenroll
fi
done_testing
