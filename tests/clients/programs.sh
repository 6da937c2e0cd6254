#!/bin/bash
# programs.sh - programs that people use, servers last, each a function: programs.sh NAME
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

uri='pkcs11:token=proxy-test;object=key;type=private'

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
    sed -i "s/5556/$port/" "$files/recipe.sh"
    printf '%s\n' 'cn = "made"' 'serial = 1' 'expiration_days = 2' signing_key >"$files/template"
    draws() {
        as_someone p11tool --generate-random=48 pkcs11:token=proxy-test 2>/dev/null | wc -c
    }
    issues_a_certificate() {
        as_someone certtool --generate-self-signed --load-privkey "$uri?pin-value=1234" --template template \
            --load-pubkey "${uri/private/public}" --outfile made.pem 2>/dev/null && openssl verify -CAfile made.pem made.pem
    }
    # The last line of the recipe is a server.
    server() {
        tail -n 2 recipe.sh >server.sh && as_someone bash -c ". ./server.sh"
    }
    says_hello() {
        echo hello | as_someone gnutls-cli --x509cafile cert.pem -p "$port" localhost | grep -E 'Status|hello'
    }
    same "p11tool lists tokens"             as_someone p11tool --list-tokens
    same "p11tool lists objects"            as_someone p11tool --login --set-pin=1234 --list-all "${uri%;type*}"
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
    needs "$engine"
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

# What else it does, targets.sh has it do with each token.
pkcs11-tool-itself() {
    recipe pkcs11-tool
    # What is made anew each time.
    normalise() {
        sed -E -e 's/0x[0-9a-f]{6,}/NUMBER/g' -e 's/(serial num *: ).*/\1NUMBER/' -e 's/serial=.*/serial= BYTES/'
    }
    tool() {
        pkcs11-tool --module "$module" "$@"
    }
    initialises() {
        tool --init-token --slot-index 1 --label second --so-pin 12345678 && tool --list-token-slots | grep label | sort &&
            tool --token-label second --login --login-type so --so-pin 12345678 --init-pin --new-pin 5678 &&
            tool --token-label second --login --pin 5678 --list-objects
    }
    # SoftHSM says no to the label that the tool gives with OAEP, and the tool ends there.
    check "the tool's own tests"            ends_alike 1 follow
    gains pkcs11-tool
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
    local client=$kit_modules/p11-kit-client.so
    needs_pykcs11
    needs p11-kit "$client"
    recipe p11-kit-client.so
    rm "$files/p11-proxy.module"
    # between MODULE SERVED: a client that loads MODULE, and the manual's server, which has the module SERVED.
    between() {
        sed -i "s#/run/user/1000#$place#" recipe.sh
        eval "$(grep ^export recipe.sh)"
        timeout 120 /usr/bin/python3 "$CHECKOUT/tests/clients/pykcs11.py" "$1" remote "exec $(grep -v ^export recipe.sh) --provider $2"
    }
    proxy_here() {
        COUNTING_TARGET=$client between "$module" "$TARGET"
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
        echo 1234 | as_someone bash -eu recipe.sh 2>/dev/null | sed 's/^.*-----BEGIN/-----BEGIN/' >made.pem &&
            openssl verify -CAfile made.pem made.pem &&
            openssl pkey -pubin -in <(openssl x509 -in made.pem -noout -pubkey) -noout -text
    }
    same "a certificate"                    behind_server makes_certificates
    gains "pki (strongSwan)"
}

# web PROGRAM: a server whose certificate is the token's. The functions server and generation, which changes with each
# reload, and the signal reload are set.
web() {
    get() {
        curl -sS --no-keepalive --cacert cert.pem "https://localhost:$port/"
    }
    same "ten requests"                     with_server server repeat 10 get
    gains "$1"
    is_another() {
        [[ $(generation) != "$1" ]]
    }
    reloads() {
        local before
        before=$(generation)
        kill "$reload" "$(<pid)"
        until_true is_another "$before" && get
    }
    # Two clients ask for the page meanwhile. Prints each different answer that they got.
    reloads_under_load() {
        local client clients=() code=0
        for client in one two; do
            while [[ ! -e enough ]]; do get; done >"$client" 2>&1 &
            clients+=($!)
        done
        until_true test -s one -a -s two && until_true is_another 0 && repeat 5 reloads || code=$?
        touch enough
        wait "${clients[@]}"
        sort -u one two
        [[ $code == 0 ]] && ! grep -E '[:[](error|alert|crit|emerg)\]|signal [0-9]' ./*.log
    }
    same "five reloads under load"          with_server server reloads_under_load
}

# A reload loads mod_ssl, the engine and the module anew in the parent, while children of before still serve.
apache() {
    local what reload=-USR1
    needs apache2 /usr/lib/apache2/modules/mod_mpm_prefork.so curl "$engine"
    recipe Apache
    mkdir "$files/html"
    echo hello >"$files/html/index.html"
    sed -i "s/8443/127.0.0.1:$port/; s/\*:127/127/" "$files/ssl.conf"
    {
        for what in mpm_prefork authz_core dir ssl socache_shmcb; do
            echo "LoadModule ${what}_module /usr/lib/apache2/modules/mod_$what.so"
        done
        printf '%s\n' "ServerRoot $place" "DocumentRoot $place/html" 'ServerName localhost' 'PidFile pid' \
            'ErrorLog error.log' 'Mutex file:.' 'StartServers 2' 'MinSpareServers 1' "Include $place/ssl.conf"
    } >"$files/apache.conf"
    server() {
        export PKCS11_MODULE_PATH=$module
        as_someone apache2 -DFOREGROUND -f "$place/apache.conf"
    }
    generation() {
        grep -c 'resuming normal operations' error.log
    }
    web apache2
}

# Each generation of workers forks from a master that has the token open.
nginx() {
    local kind reload=-HUP
    needs nginx curl "$engine"
    recipe nginx
    echo hello >"$files/index.html"
    sed -i -e "s/8443/127.0.0.1:$port/" -e "s#http {#&\n access_log off; root $place; $(
        for kind in client_body proxy fastcgi uwsgi scgi; do printf '%s_temp_path %s/%s; ' $kind "$place" $kind; done)#" \
        "$files/nginx.conf"
    printf '%s\n' 'env SOFTHSM2_CONF;' 'env P11_PROXY_CONFIG;' 'env COUNTING_TARGET;' 'env COUNTING_CALLS;' \
        'worker_processes 2;' "pid $place/pid;" >>"$files/nginx.conf"
    server() {
        as_someone "$(type -P nginx)" -e stderr -c "$place/nginx.conf" -g 'daemon off;'
    }
    generation() {
        pgrep -P "$(<pid)" | sort | head -n 1
    }
    web nginx
}

# Keys on a token: listed, held by an agent, and used for a login on loopback.
openssh() {
    needs ssh-keygen ssh-agent ssh-add ssh
    recipe OpenSSH
    printf '#!/bin/sh\necho 1234\n' >"$files/askpass"
    chmod +x "$files/askpass"
    export SSH_ASKPASS=$place/askpass SSH_ASKPASS_REQUIRE=force DISPLAY=none

    # with_agent JOB...: the agent takes modules from where it was told only, and looks at the real path.
    with_agent() {
        local code=0
        eval "$(ssh-agent -a "$place/agent" -P "$(realpath "$place")/*")" >/dev/null
        "$@" || code=$?
        ssh-agent -k >/dev/null
        return "$code"
    }
    signs() {
        follow && ssh-add -L >key.pub && echo hi >data && rm -f data.sig &&
            timeout 60 ssh-keygen -q -Y sign -n file -f key.pub data && ssh-keygen -Y check-novalidate -n file -s data.sig <data
    }
    uses_an_agent() {
        signs && timeout 60 ssh-add -e "$module" && ! ssh-add -l && signs
    }
    link_is_refused() {
        ln -s "$PROXY" link.so
        ! timeout 60 ssh-add -s "$place/link.so"
    }
    same "it lists the key"                 ssh-keygen -D "$module"
    same "an agent takes it, signs, gives it back and takes it again" with_agent uses_an_agent
    gains ssh-agent
    same "a link to a module is refused"    with_agent link_is_refused

    # Root's server wants a user and a folder of its own. Where the machine has none, a namespace has.
    local separated=()
    if [[ $EUID == 0 ]] && ! { [[ -d /run/sshd ]] && getent passwd sshd >/dev/null; }; then
        { cat /etc/passwd && echo 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin'; } >"$scratch/passwd"
        # shellcheck disable=SC2016
        separated=(unshare -m sh -c 'mount --bind "$0" /etc/passwd && mount -t tmpfs none /run && mkdir /run/sshd && exec "$@"'
                   "$scratch/passwd")
    fi
    if ! { has sshd && "${separated[@]}" true; }; then
        skip_check "five logins on loopback" "no sshd, or no namespace for its folder"
        return
    fi
    # A server of our own on loopback, which lets the token's key in.
    server() {
        ssh-keygen -q -t ed25519 -N '' -f host_key
        ssh-keygen -D "$module" >authorized_keys
        printf '%s\n' "Port $port" 'ListenAddress 127.0.0.1' "HostKey $place/host_key" 'StrictModes no' 'UsePAM no' \
            "AuthorizedKeysFile $place/authorized_keys" 'PasswordAuthentication no' 'PidFile none' \
            'PermitRootLogin prohibit-password' >sshd_config
        "${separated[@]}" "$(type -P sshd)" -D -e -f "$place/sshd_config"
    }
    logs_in() {
        ssh -F none -I "$module" -o UserKnownHostsFile="$place/known" -o StrictHostKeyChecking=accept-new \
            -o IdentityAgent=none -o IdentityFile=none -o LogLevel=ERROR -p "$port" "$(id -un)@127.0.0.1" echo in
    }
    same "five logins on loopback"          with_server server repeat 5 logs_in
    gains ssh
}

needs pkcs11-tool
new_key
"$1"
done_testing
