#!/bin/bash
# go.sh - a program in Go that makes keys of the token's random bytes, hashes, and draws in many goroutines.
# shellcheck source=tests/clients/lib.sh
. "$CHECKOUT/tests/clients/lib.sh"

needs go gcc /usr/share/gocode/src/github.com/miekg/pkcs11
new_key
recipe Go
export GOPATH=/usr/share/gocode GO111MODULE=off GOCACHE=$UNPACKED/go-cache GOFLAGS=-buildvcs=false
mkdir "$scratch/manual"
# The module's path is the same on both sides, so one program serves both.
mv "$scratch/files/main.go" "$scratch/manual"
(cd "$scratch/manual" && go build -o "$scratch/files/make_key" main.go)
(cd "$CHECKOUT/tests/clients" && go build -o "$scratch/files/work" work.go)

works() {
    timeout 120 ./work "$place/p11-proxy.so"
}

same "an RSA key of the token's bytes"          timeout 120 ./make_key
same "goroutines draw, hash and sign"           works
gains "Go (miekg/pkcs11)"
done_testing
