#!/bin/bash
# openssh.sh - keys on a token: listed, held by an agent, and used for a login on loopback.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs ssh-keygen ssh-agent ssh-add ssh
new_key
recipe OpenSSH
port=$(free_port)

printf '#!/bin/sh\necho 1234\n' >"$scratch/files/askpass"
chmod +x "$scratch/files/askpass"
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
    ssh-add -L >key.pub && echo hi >data && rm -f data.sig &&
        timeout 60 ssh-keygen -q -Y sign -n file -f key.pub data && ssh-keygen -Y check-novalidate -n file -s data.sig <data
}

uses_an_agent() {
    follow && signs && timeout 60 ssh-add -e "$place/p11-proxy.so" && ! ssh-add -l && follow && signs
}

link_is_refused() {
    ln -s "$PROXY" link.so
    ! timeout 60 ssh-add -s "$place/link.so"
}

# A server of our own on loopback, which lets the token's key in.
server() {
    ssh-keygen -q -t ed25519 -N '' -f host_key
    ssh-keygen -D "$place/p11-proxy.so" >authorized_keys
    printf '%s\n' "Port $port" 'ListenAddress 127.0.0.1' "HostKey $place/host_key" 'StrictModes no' 'UsePAM no' \
        "AuthorizedKeysFile $place/authorized_keys" 'PasswordAuthentication no' 'PidFile none' \
        'PermitRootLogin prohibit-password' >sshd_config
    "${separated[@]}" "$(command -v sshd)" -D -e -f "$place/sshd_config"
}

# Root's server wants a user and a folder of its own. Where the machine has none, a namespace has.
separated=()
if [[ $(id -u) == 0 ]] && ! { [[ -d /run/sshd ]] && getent passwd sshd >/dev/null; }; then
    { cat /etc/passwd && echo 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin'; } >"$scratch/passwd"
    # shellcheck disable=SC2016
    separated=(unshare -m sh -c 'mount --bind "$0" /etc/passwd && mount -t tmpfs none /run && mkdir /run/sshd && exec "$@"'
               "$scratch/passwd")
fi

logs_in() {
    local i
    for i in {1..5}; do
        ssh -F none -I "$place/p11-proxy.so" -o UserKnownHostsFile="$place/known" -o StrictHostKeyChecking=accept-new \
            -o IdentityAgent=none -o IdentityFile=none -o LogLevel=ERROR -p "$port" "$(id -un)@127.0.0.1" echo in || return 1
    done
}

logs_in_on_loopback() {
    with_server "$port" server logs_in
}

same "it lists the key"                     ssh-keygen -D "$place/p11-proxy.so"
same "an agent takes it, signs, gives it back and takes it again" with_agent uses_an_agent
gains ssh-agent
same "a link to a module is refused"        with_agent link_is_refused
if command -v sshd >/dev/null && "${separated[@]}" true; then
    same "five logins on loopback"          logs_in_on_loopback
    gains ssh
else
    skip_check "five logins on loopback" "no sshd, or no namespace for its folder"
fi
done_testing
