#!/bin/bash
# remote.sh - a token in another process, by p11-kit's server and client: the proxy on the one side, and on the other.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

/usr/bin/python3 -c 'import PyKCS11' 2>/dev/null || skip "there is no PyKCS11"
new_key
recipe p11-kit-client.so
client=$(pkg-config --variable=p11_module_path p11-kit-1)/$(sed -n 's/^x-target: //p' "$scratch/files/p11-proxy.module")
rm "$scratch/files/p11-proxy.module"
needs p11-kit "$client"

# remote MODULE SERVED: a client that loads MODULE, and the manual's server, which has the module SERVED.
remote() {
    sed -i "s#/run/user/1000#$place#" recipe.sh
    eval "$(grep ^export recipe.sh)"
    timeout 120 /usr/bin/python3 "$CHECKOUT/tests/clients/remote.py" "$1" "exec $(grep -v ^export recipe.sh) --provider $2"
}

proxy_here() {
    P11_SLOW_TARGET=$client remote "$place/p11-proxy.so" "$TARGET"
}

proxy_there() {
    remote "$client" "$place/p11-proxy.so"
}

# That the token gives nothing more is logged.
normalise() {
    grep -v '^p11-proxy\['
}

same "the proxy in the client, the server killed and started again"   proxy_here
check "most draws are answered in the client"    pool_serves
same "the proxy in the server, killed and started again"              proxy_there
check "most draws are answered in the server"    pool_serves
done_testing
