#!/bin/bash
# openvpn.sh - a client with its key on the token, and a server on loopback.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs openvpn
new_key
recipe OpenVPN
port=$(free_port)
serial=$(SOFTHSM2_CONF=$scratch/softhsm2.conf pkcs11-tool --module "$TARGET" --list-token-slots |
    sed -n "s/^  serial num *: //p" | head -n 1)
sed -i -e "s/1194/$port/; s/0123456789abcdef/$serial/" -e 's/^client/tls-client/; s/^dev tun/dev null/' \
    "$scratch/files/client.conf"

server() {
    openvpn --dev null --local 127.0.0.1 --port "$port" --tls-server --dh none --ca cert.pem \
        --cert cert.pem --key key.pem
}

# The PIN comes by the management interface, as from a desktop.
client() {
    openvpn --config client.conf --management "$place/management" unix \
        --management-query-passwords --verb 3 >client.log 2>&1 &
    local pid=$! code=0
    /usr/bin/python3 "$CHECKOUT/tests/clients/openvpn.py" "$place/management" || code=$?
    until_true grep -q 'Initialization Sequence Completed' server.log || code=1
    kill "$pid"
    wait "$pid" || true
    grep -oE 'Initialization Sequence Completed|VERIFY OK.*|Peer Connection Initiated' client.log server.log
    [[ $code == 0 ]] || cat client.log
    return "$code"
}

connects() {
    with_server 'link local (bound)' server client
}

same "its list of ids"          openvpn --show-pkcs11-ids "$place/p11-proxy.so"
same "a connection"             connects
gains openvpn
done_testing
