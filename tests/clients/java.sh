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
work=(timeout 120 java -XX:TieredStopAtLevel=1 -cp "$scratch/classes" Work proxy.cfg)
keystore=(-providerclass sun.security.pkcs11.SunPKCS11 -providerarg proxy.cfg -keystore NONE -storetype PKCS11
          -storepass 1234)

# A certificate names the key by numbers that are made anew; how long it is stays.
normalise() {
    sed -E -e "s/([0-9A-F]{2}:){19,}[0-9A-F]{2}/FINGERPRINT/; s/[A-Z][a-z]{2} [0-9]{1,2}, 20[0-9]{2}/DATE/"
}

makes_a_key() {
    keytool -genkeypair -alias new -keyalg RSA -keysize 2048 -dname CN=new "${keystore[@]}" && follow | sort
}

signs_an_archive() {
    echo hi >file && jar cf archive.jar file &&
        jarsigner "${keystore[@]}" -signedjar signed.jar archive.jar key && jarsigner -verify signed.jar
}

# A second token, which is NSS's own, by a copy of the module with a file of its own. That is found where p11-kit finds
# it. Java hands over the token's string. "with_softoken LINE..." has more lines in that file.
with_softoken() {
    local nss=$place/p11-proxy-nss.so
    cp "$PROXY" "$nss"
    register p11-proxy-nss "module: $nss" "x-target: $softoken" "${settings[@]}" "$@"
    [[ $side != bare ]] || nss=$softoken
    printf '%s\n' 'name = nss' "library = $nss" 'slotListIndex = 0' \
        "nssArgs = \"configdir='$place' flags=readOnly,noCertDB,noModDB,forceOpen\"" >nss.cfg
    export -n P11_PROXY_CONFIG
    as_someone "${work[@]}" beside nss.cfg
}

same "keytool makes a key, and lists"       makes_a_key
same "jarsigner signs"                      signs_an_archive
same "a generator by its name, from eight threads" "${work[@]}" draws
same "TLS, both sides with a key on the token" "${work[@]}" tls
gains java
if [[ -n $softoken ]]; then
    same "two tokens by two copies in one JVM, and digests that are cloned" with_softoken
    same "and under a policy"               with_softoken 'x-disabled-algorithms: MD5, RSA keySize < 1024'
else
    skip_check "two tokens by two copies in one JVM" "no softoken"
fi
done_testing
