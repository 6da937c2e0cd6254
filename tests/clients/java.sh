#!/bin/bash
# java.sh - SunPKCS11: keytool, jarsigner, TLS, random bytes by name, digests that are cloned, and two tokens at once.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs java javac keytool jarsigner
new_key
recipe Java
mkdir "$scratch/classes"
javac -d "$scratch/classes" "$CHECKOUT/tests/clients/Work.java"
softoken=$(find /usr/lib -name libsoftokn3.so 2>/dev/null | head -n 1)

run() {
    timeout 120 java -XX:TieredStopAtLevel=1 -Xshare:auto -cp "$scratch/classes" "$@"
}

keystore=(-providerclass sun.security.pkcs11.SunPKCS11 -providerarg proxy.cfg -keystore NONE -storetype PKCS11
          -storepass 1234)

# A certificate names the key by numbers that are made anew; how long it is stays.
normalise() {
    sed -E -e "s/([0-9A-F]{2}:){19,}[0-9A-F]{2}/FINGERPRINT/; s/[A-Z][a-z]{2} [0-9]{1,2}, 20[0-9]{2}/DATE/" \
        -e "s/[0-9.]* ms each/SOME ms each/"
}

makes_a_key() {
    keytool -genkeypair -alias new -keyalg RSA -keysize 2048 -dname CN=new "${keystore[@]}" &&
        keytool -list "${keystore[@]}" | sort
}

signs_an_archive() {
    echo hi >file && (cd "$place" && jar cf archive.jar file) &&
        jarsigner "${keystore[@]}" -signedjar signed.jar archive.jar key && jarsigner -verify signed.jar
}


# with_softoken LINE...: NSS's own token in nss.cfg, whose string Java hands over, and the proxy with it as target.
with_softoken() {
    local library=$place/p11-proxy.so string="configdir='$place' flags=readOnly,noCertDB,noModDB,forceOpen"
    [[ $side != bare ]] || library=$softoken
    sed -i "s#^x-target: .*#x-target: $softoken#" "$P11_PROXY_CONFIG"
    printf '%s\n' "$@" >>"$P11_PROXY_CONFIG"
    printf '%s\n' 'name = nss' "library = $library" "nssArgs = \"$string\"" 'slotListIndex = 0' >nss.cfg
}

clones() {
    with_softoken "$@" && run Work nss.cfg clones
}

# A second token is a copy of the module with a file of its own, which is found where p11-kit finds it.
two_tokens() {
    with_softoken
    mv p11-proxy.so p11-proxy-nss.so
    mv "$P11_PROXY_CONFIG" "$config/modules/p11-proxy-nss.module"
    sed -i 's/p11-proxy.so/p11-proxy-nss.so/' nss.cfg "$config/modules/p11-proxy-nss.module"
    cp "$PROXY" p11-proxy.so
    [[ $side != bare ]] || cp "$SLOW" p11-proxy.so
    printf '%s\n' "module: $place/p11-proxy.so" "x-target: $SLOW" 'x-log: stderr warning' >"$P11_PROXY_CONFIG"
    export -n P11_PROXY_CONFIG
    as_user timeout 120 java -cp "$scratch/classes" Work proxy.cfg beside nss.cfg
}

draws_and_signs() {
    run Work proxy.cfg tls && run Work proxy.cfg threads 2000
}

same "keytool lists"                        follow
same "keytool makes a key"                  makes_a_key
same "jarsigner signs"                      signs_an_archive
same "TLS, both sides with a key on the token" run Work proxy.cfg tls
same "random bytes of odd sizes"            run Work proxy.cfg sizes 20
same "a generator by its name, from eight threads" run Work proxy.cfg threads 2000
same "session ids"                          run Work proxy.cfg ids 300
same "a server that draws, too"             draws_and_signs
gains java
if [[ -n $softoken ]]; then
    same "a digest is cloned"               clones
    same "and under a policy"               clones 'x-disabled-algorithms: MD5, RSA keySize < 1024'
    same "two tokens by two copies in one JVM" two_tokens
else
    skip_check "a digest is cloned" "no softoken"
fi
done_testing
