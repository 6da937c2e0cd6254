#!/bin/bash
# ssh-agent.sh - a key on a token, held by the agent's helper through the proxy.
# shellcheck source=tests/token/lib.sh
. "$CHECKOUT/tests/token/lib.sh"

# The agent takes modules from where it was told only, and looks at the real path.
mkdir "$scratch/allowed"
cp "$PROXY" "$scratch/allowed/p11-proxy.so"
ln -s "$PROXY" "$scratch/allowed/link.so"
module=$scratch/allowed/p11-proxy.so

printf '#!/bin/sh\necho 1234\n' >"$scratch/askpass"
chmod +x "$scratch/askpass"
export SSH_ASKPASS=$scratch/askpass SSH_ASKPASS_REQUIRE=force DISPLAY=none

pkcs11-tool --module "$TARGET" --login --pin 1234 --keypairgen --key-type rsa:2048 --id 01 --label key >/dev/null 2>&1
eval "$(ssh-agent -a "$scratch/agent" -P "$scratch/allowed/*")" >/dev/null
trap 'ssh-agent -k >/dev/null; rm -rf "$scratch"' EXIT

adds()    { timeout 60 ssh-add -s "$module" && ssh-add -l | grep RSA; }
removes() { timeout 60 ssh-add -e "$module" && ! ssh-add -l; }
signs() {
    ssh-add -L >"$scratch/key.pub" && echo hi >"$scratch/data" && rm -f "$scratch/data.sig" &&
        timeout 60 ssh-keygen -Y sign -n file -f "$scratch/key.pub" "$scratch/data" &&
        ssh-keygen -Y check-novalidate -n file -s "$scratch/data.sig" <"$scratch/data"
}
link_is_refused() { ! timeout 60 ssh-add -s "$scratch/allowed/link.so"; }

check "the key is added"                   adds
check "it signs"                           signs
check "it is removed"                      removes
check "it is added again"                  adds
check "and signs again"                    signs
check "a link to a module is refused"      link_is_refused
done_testing
