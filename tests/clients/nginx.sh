#!/bin/bash
# nginx.sh - a server whose key is on the token: requests, and reloads under load.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs nginx curl
[[ -n $(find /usr/lib -path '*engines-3/pkcs11.so' 2>/dev/null) ]] || skip "there is no pkcs11 engine for OpenSSL 3"
new_key
recipe nginx
port=$(free_port)
cd "$scratch/files"
echo hello >index.html
sed -i -e "s/8443/127.0.0.1:$port/" -e "s#http {#&\n access_log off; root $place; $(
    for kind in client_body proxy fastcgi uwsgi scgi; do printf '%s_temp_path %s/%s; ' $kind "$place" $kind; done)#" nginx.conf
printf '%s\n' 'env SOFTHSM2_CONF;' 'env P11_PROXY_CONFIG;' 'env P11_SLOW_TARGET;' 'env P11_SLOW_CALLS;' \
    'worker_processes 2;' "pid $place/pid;" >>nginx.conf
cd /

server() {
    as_user nginx -e stderr -c "$place/nginx.conf" -g 'daemon off;'
}

workers() {
    pgrep -P "$(<pid)" | sort | head -n 1
}

others_work() {
    [[ $(workers) != "$1" ]]
}

# Each generation of workers forks from a master that has the token open.
reloads() {
    local before i
    for i in {1..5}; do
        before=$(workers)
        kill -HUP "$(<pid)"
        until_true others_work "$before" && get || return 1
    done
    ! grep -E '\[(alert|crit|emerg)\]|signal' server.log
}

serves() {
    with_server "$port" server gets 10
}

serves_while_reloaded() {
    with_server "$port" server under_load reloads
}

same "ten requests"                  serves
gains nginx
same "five reloads under load"       serves_while_reloaded
done_testing
