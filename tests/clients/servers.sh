#!/bin/bash
# servers.sh - servers whose key is on the token, each a function: servers.sh NAME
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

port=$(free_port)

# get: the server's page. Its certificate is the token's.
get() {
    curl -sS --no-keepalive --cacert cert.pem "https://localhost:$port/"
}

gets() {
    local i
    for i in {1..10}; do get || return 1; done
}

# Two clients ask for the page meanwhile. Prints each different answer that they got.
reloads_under_load() {
    local client clients=() code=0
    for client in one two; do
        while [[ ! -e enough ]]; do get; done >"$client" 2>&1 &
        clients+=($!)
    done
    until_true test -s one -a -s two && reloads || code=$?
    touch enough
    wait "${clients[@]}"
    sort -u one two
    return "$code"
}

reloads() {
    local before i
    until_true is_another 0 || return 1
    for i in {1..5}; do
        before=$(generation)
        kill "$reload" "$(<pid)"
        until_true is_another "$before" && get || return 1
    done
    ! grep -E '[:[](error|alert|crit|emerg)\]|signal [0-9]' ./*.log
}
is_another() {
    [[ $(generation) != "$1" ]]
}

# web PROGRAM: the functions server and generation, which changes with each reload, and the signal reload are set.
web() {
    same "ten requests"                     with_server server gets
    gains "$1"
    same "five reloads under load"          with_server server reloads_under_load
}

needs_web() {
    needs "$@" curl
    [[ -n $(find /usr/lib -path '*engines-3/pkcs11.so' 2>/dev/null) ]] || skip_all "there is no pkcs11 engine for OpenSSL 3"
}

# A reload loads mod_ssl, the engine and the module anew in the parent, while children of before still serve.
apache() {
    local what reload=-USR1
    needs_web apache2 /usr/lib/apache2/modules/mod_mpm_prefork.so
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
        as_user apache2 -DFOREGROUND -f "$place/apache.conf"
    }
    generation() {
        grep -c 'resuming normal operations' error.log
    }
    web apache2
}

# Each generation of workers forks from a master that has the token open.
nginx() {
    local kind reload=-HUP
    needs_web nginx
    recipe nginx
    echo hello >"$files/index.html"
    sed -i -e "s/8443/127.0.0.1:$port/" -e "s#http {#&\n access_log off; root $place; $(
        for kind in client_body proxy fastcgi uwsgi scgi; do printf '%s_temp_path %s/%s; ' $kind "$place" $kind; done)#" \
        "$files/nginx.conf"
    printf '%s\n' 'env SOFTHSM2_CONF;' 'env P11_PROXY_CONFIG;' 'env P11_SLOW_TARGET;' 'env P11_SLOW_CALLS;' \
        'worker_processes 2;' "pid $place/pid;" >>"$files/nginx.conf"
    server() {
        as_user "$(type -P nginx)" -e stderr -c "$place/nginx.conf" -g 'daemon off;'
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
    if [[ $(id -u) == 0 ]] && ! { [[ -d /run/sshd ]] && getent passwd sshd >/dev/null; }; then
        { cat /etc/passwd && echo 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin'; } >"$scratch/passwd"
        # shellcheck disable=SC2016
        separated=(unshare -m sh -c 'mount --bind "$0" /etc/passwd && mount -t tmpfs none /run && mkdir /run/sshd && exec "$@"'
                   "$scratch/passwd")
    fi
    if ! { command -v sshd >/dev/null && "${separated[@]}" true; }; then
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
        "${separated[@]}" "$(command -v sshd)" -D -e -f "$place/sshd_config"
    }
    logs_in() {
        local i
        for i in {1..5}; do
            ssh -F none -I "$module" -o UserKnownHostsFile="$place/known" -o StrictHostKeyChecking=accept-new \
                -o IdentityAgent=none -o IdentityFile=none -o LogLevel=ERROR -p "$port" "$(id -un)@127.0.0.1" echo in || return 1
        done
    }
    same "five logins on loopback"          with_server server logs_in
    gains ssh
}

new_key
"$1"
done_testing
