#!/bin/bash
# programs.sh - programs that people use, each a function: programs.sh NAME
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

uri='pkcs11:token=proxy-test;object=key;type=private'

needs_engine() {
    [[ -n $(find /usr/lib -path '*engines-3/pkcs11.so' 2>/dev/null) ]] || skip_all "there is no pkcs11 engine for OpenSSL 3"
}

# repeat N COMMAND...: until one fails.
repeat() {
    local i
    for ((i = 0; i < $1; i++)); do "${@:2}" || return 1; done
}

# verifies FILE: signature is the key's.
verifies() {
    openssl dgst -verify <(openssl x509 -in cert.pem -noout -pubkey) -sha256 -signature signature "$1"
}

gnupg() {
    needs gnupg-pkcs11-scd gpg-agent gpg-connect-agent
    recipe GnuPG
    # The agent asks for the PIN by a program, on its standard input.
    # shellcheck disable=SC2016
    printf '%s\n' '#!/bin/sh' 'echo OK' 'while read -r command rest; do' '[ $command != GETPIN ] || echo D 1234' \
        'echo OK' '[ $command != BYE ] || exit 0' 'done' >"$files/pinentry"
    chmod +x "$files/pinentry"
    echo "pinentry-program $place/pinentry" >>"$files/gpg-agent.conf"
    learns_and_signs() {
        local id hash
        export GNUPGHOME=$place
        chmod 700 "$place"
        hash=$(openssl dgst -sha256 -r cert.pem | cut -d ' ' -f 1)
        follow 2>&1 | sed '/^gpg-connect-agent/d' | tee learned
        id=$(sed -n 's/^S CERTINFO 101 //p' learned)
        gpg-connect-agent --hex "SCD SETDATA $hash" "SCD PKSIGN --hash=sha256 $id" /bye | tee signature
        gpgconf --kill gpg-agent
        grep -q '^D' signature
    }
    same "it learns and signs"              learns_and_signs
    gains gnupg-pkcs11-scd
}

gnutls() {
    needs p11tool certtool gnutls-serv gnutls-cli
    recipe GnuTLS
    port=$(free_port)
    sed -i "s/5556/$port/" "$files/recipe.sh"
    printf '%s\n' 'cn = "made"' 'serial = 1' 'expiration_days = 2' signing_key >"$files/template"
    draws() {
        as_user p11tool --generate-random=48 pkcs11:token=proxy-test 2>/dev/null | wc -c
    }
    issues_a_certificate() {
        as_user certtool --generate-self-signed --load-privkey "$uri?pin-value=1234" --template template \
            --load-pubkey "${uri/private/public}" --outfile made.pem 2>/dev/null && openssl verify -CAfile made.pem made.pem
    }
    # The last line of the recipe is a server.
    server() {
        tail -n 2 recipe.sh >server.sh && as_user bash -c ". ./server.sh"
    }
    says_hello() {
        echo hello | as_user gnutls-cli --x509cafile cert.pem -p "$port" localhost | grep -E 'Status|hello'
    }
    same "p11tool lists tokens"             as_user p11tool --list-tokens
    same "p11tool lists objects"            as_user p11tool --login --set-pin=1234 --list-all "${uri%;type*}"
    same "p11tool draws"                    draws
    gains "p11tool --generate-random"
    same "certtool signs a certificate"     issues_a_certificate
    gains certtool
    same "a server, and ten clients"        with_server server repeat 10 says_hello
    gains gnutls-serv
}

go() {
    needs gcc /usr/bin/go /usr/share/gocode/src/github.com/miekg/pkcs11
    recipe Go
    export GOPATH=/usr/share/gocode GO111MODULE=off GOCACHE=$UNPACKED/go-cache GOFLAGS=-buildvcs=false
    # The module's path is the same on both sides, so one program serves both.
    (cd "$files" && /usr/bin/go build -o make_key main.go)
    same "an RSA key of the token's bytes"  timeout 120 ./make_key
    gains "Go (miekg/pkcs11)" random
}

node() {
    needs /usr/bin/node "$UNPACKED/node_modules/pkcs11js"
    export NODE_PATH=$UNPACKED/node_modules
    recipe Node.js
    draws() {
        timeout 60 /usr/bin/node draw.js | sort -u | wc -l
    }
    same "the manual's program"             draws
    gains "Node.js (pkcs11js)" random
}

nss() {
    needs modutil certutil
    recipe NSS
    echo 1234 >"$files/pin"
    head -c 100 /dev/urandom >"$files/noise"
    # The order of objects is that of a folder.
    normalise() {
        sed -E 's/[0-9a-f]{40}/ID/; s/^< [0-9]+>/< N>/' | sort
    }
    same "a module is added, and certutil makes a certificate with a new key" follow
    gains certutil
    lists_and_removes() {
        follow && modutil -dbdir sql:db -list && certutil -K -d sql:db -h proxy-test -f pin &&
            certutil -L -d sql:db -h proxy-test -f pin &&
            modutil -dbdir sql:db -force -delete proxy && modutil -dbdir sql:db -list
    }
    same "what there is; the module is taken out" lists_and_removes
}

ods-hsmutil() {
    needs /usr/bin/ods-hsmutil
    recipe OpenDNSSEC
    # An id is made of random bytes, and the order of objects is that of a folder.
    normalise() {
        sed -E -e 's/[0-9a-f]{32}/ID/' -e 's/(random data\.\.\. )[0-9]+/\1NUMBER/' | sort
    }
    makes_keys() {
        follow && /usr/bin/ods-hsmutil -c conf.xml generate proxy ecdsa 256 && /usr/bin/ods-hsmutil -c conf.xml list
    }
    same "keys are made and listed"         makes_keys
    # Its test draws, and makes large keys, which takes long.
    if [[ -n ${TESTS_LONG-} ]]; then
        check "its own test"                ends_alike 3 /usr/bin/ods-hsmutil -c conf.xml test proxy
        gains ods-hsmutil
    fi
}

openssl-engine() {
    needs_engine
    recipe OpenSSL
    echo hi >"$files/data"
    export PKCS11_MODULE_PATH=$module
    engine() {
        openssl "$@" -engine pkcs11 -keyform engine
    }
    signs() {
        follow && verifies data
    }
    uses_the_key() {
        openssl pkeyutl -encrypt -certin -inkey cert.pem -in data -out secret &&
            engine pkeyutl -decrypt -inkey "$uri;pin-value=1234" -in secret &&
            engine req -new -x509 -subj /CN=made -key "$uri;pin-value=1234" -out made.pem &&
            openssl verify -CAfile made.pem made.pem
    }
    same "twenty processes sign and end well" repeat 20 signs
    gains openssl
    same "a decryption and a certificate"   uses_the_key
    # SoftHSM's own OpenSSL starts with the engine, which leads to us.
    printf '%s\n' 'openssl_conf = start' '[start]' 'engines = engines' '[engines]' 'pkcs11 = pkcs11' '[pkcs11]' \
        'engine_id = pkcs11' "MODULE_PATH = $module" 'init = 1' >"$files/openssl.cnf"
    draws_beside_the_engine() {
        OPENSSL_CONF=openssl.cnf timeout 60 pkcs11-tool --module "$module" --generate-random 32 2>/dev/null | wc -c
    }
    same "SoftHSM starts an OpenSSL that leads to us" draws_beside_the_engine
}

pkcs11-tool-itself() {
    recipe pkcs11-tool
    # What is made anew each time.
    normalise() {
        sed -E -e 's/0x[0-9a-f]{6,}/NUMBER/g' -e 's/(serial num *: ).*/\1NUMBER/' \
            -e 's/(EC_POINT:|Modulus:|serial=).*/\1 BYTES/' -e 's/[0-9a-f]{30,}/BYTES/g'
    }
    tool() {
        pkcs11-tool --module "$module" "$@"
    }
    user() {
        tool --login --pin 1234 "$@"
    }
    draws() {
        local bytes
        for bytes in 0 1 16 32 1024 1025 70000; do
            tool --generate-random "$bytes" 2>/dev/null | wc -c
        done
    }
    # signs MECHANISM ID: what the proxy's key signs, the token's own module verifies.
    signs() {
        local options=(--mechanism "$1" --id "$2" --input-file data)
        head -c 32 /dev/zero >data
        user --sign "${options[@]}" --output-file signature && user --verify "${options[@]}" --signature-file signature &&
            pkcs11-tool --module "$TARGET" --login --pin 1234 --verify "${options[@]}" --signature-file signature
    }
    # The order of objects is that of a folder.
    makes_keys() {
        user --keypairgen --key-type rsa:2048 --id 02 --label rsa && signs SHA256-RSA-PKCS 02 &&
            user --keypairgen --key-type EC:prime256v1 --id 03 --label ec && signs ECDSA 03 &&
            user --delete-object --type privkey --id 03 && user --list-objects | sort
    }
    initialises() {
        tool --init-token --slot-index 1 --label second --so-pin 12345678 && tool --list-token-slots | grep label | sort &&
            tool --token-label second --login --login-type so --so-pin 12345678 --init-pin --new-pin 5678 &&
            tool --token-label second --login --pin 5678 --list-objects
    }
    describes() {
        tool --show-info && tool --list-slots && tool --list-mechanisms
    }
    same "the module, its slots and mechanisms" describes
    check "a login with a wrong PIN"        ends_alike 1 tool --login --pin 4321 --list-objects
    same "random bytes of seven sizes"      draws
    # SoftHSM says no to the label that the tool gives with OAEP, and the tool ends there.
    check "the tool's own tests"            ends_alike 1 follow
    gains pkcs11-tool
    same "keys are made, and sign"          makes_keys
    check "its tests of forking"            ends_alike 1 tool --test-fork
    same "a token is initialised"           initialises
}

needs_pykcs11() {
    /usr/bin/python3 -c 'import PyKCS11' 2>/dev/null || skip_all "there is no PyKCS11"
}

pykcs11() {
    needs_pykcs11
    recipe PyKCS11
    prints_random_bytes() {
        /usr/bin/python3 draw.py | wc -l
    }
    same "the manual's program"             prints_random_bytes
    same "session ids and a signature"      timeout 120 /usr/bin/python3 "$CHECKOUT/tests/clients/pykcs11.py" "$module" draw
    gains PyKCS11
}

# A token in another process, by p11-kit's server and client: the proxy on the one side, and on the other.
remote() {
    needs_pykcs11
    recipe p11-kit-client.so
    client=$(pkg-config --variable=p11_module_path p11-kit-1)/$(sed -n 's/^x-target: //p' "$files/p11-proxy.module")
    rm "$files/p11-proxy.module"
    needs p11-kit "$client"
    # between MODULE SERVED: a client that loads MODULE, and the manual's server, which has the module SERVED.
    between() {
        sed -i "s#/run/user/1000#$place#" recipe.sh
        eval "$(grep ^export recipe.sh)"
        timeout 120 /usr/bin/python3 "$CHECKOUT/tests/clients/pykcs11.py" "$1" remote "exec $(grep -v ^export recipe.sh) --provider $2"
    }
    proxy_here() {
        P11_SLOW_TARGET=$client between "$module" "$TARGET"
    }
    # That the token gives nothing more is logged.
    normalise() {
        grep -v '^p11-proxy\['
    }
    same "the proxy in the client, the server killed and started again"   proxy_here
    check "most draws are answered in the client"    pool_serves
    same "the proxy in the server, killed and started again"              between "$client" "$module"
    check "most draws are answered in the server"    pool_serves
}

strongswan() {
    needs pki p11-kit
    recipe strongSwan
    export STRONGSWAN_CONF=$place/strongswan.conf
    # pki asks for the PIN. What it says of plugins that this machine cannot load is not of interest.
    makes_certificates() {
        echo 1234 | as_user bash -eu recipe.sh 2>/dev/null | sed 's/^.*-----BEGIN/-----BEGIN/' >made.pem &&
            openssl verify -CAfile made.pem made.pem &&
            openssl pkey -pubin -in <(openssl x509 -in made.pem -noout -pubkey) -noout -text
    }
    same "a certificate"                    behind_server makes_certificates
    gains "pki (strongSwan)"
}

needs pkcs11-tool
new_key
"$1"
done_testing
