#!/bin/bash
# apache.sh - Apache with prefork, whose key is on the token: requests, and reloads under load.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs apache2 curl /usr/lib/apache2/modules/mod_mpm_prefork.so
[[ -n $(find /usr/lib -path '*engines-3/pkcs11.so' 2>/dev/null) ]] || skip "there is no pkcs11 engine for OpenSSL 3"
new_key
recipe Apache
port=$(free_port)
mkdir "$scratch/files/html"
echo hello >"$scratch/files/html/index.html"
sed -i "s/8443/127.0.0.1:$port/; s/\*:127/127/" "$scratch/files/ssl.conf"
{
    for what in mpm_prefork authz_core dir ssl socache_shmcb; do
        echo "LoadModule ${what}_module /usr/lib/apache2/modules/mod_$what.so"
    done
    printf '%s\n' "ServerRoot $place" "DocumentRoot $place/html" 'ServerName localhost' 'PidFile pid' \
        'ErrorLog error.log' 'Mutex file:.' 'StartServers 2' 'MinSpareServers 1' "Include $place/ssl.conf"
} >"$scratch/files/apache.conf"

server() {
    head -n 1 recipe.sh >environment && . ./environment && as_user apache2 -DFOREGROUND -f "$place/apache.conf"
}
resumed() {
    [[ $(grep -c 'resuming normal operations' error.log) == "$1" ]]
}

# A reload loads mod_ssl, the engine and the module anew in the parent, while children of before still serve.
reloads() {
    local i
    until_true resumed 1 || return 1
    for i in {1..5}; do
        kill -USR1 "$(<pid)"
        until_true resumed $((i + 1)) && get || return 1
    done
    ! grep -E ':(error|crit|alert|emerg)\]|exit signal' error.log
}

serves() {
    with_server "$port" server gets 10
}

serves_while_reloaded() {
    with_server "$port" server under_load reloads
}

same "ten requests"                  serves
gains apache2
same "five reloads under load"       serves_while_reloaded
done_testing
