#!/bin/bash
# documents.sh - README and the manual pages, followed to the letter on a root directory that is thrown away.
# shellcheck source=tests/package/lib.sh
. "$CHECKOUT/tests/package/lib.sh"

copy_of_tree "$scratch/tree"
cd "$scratch/tree"
# What the text takes for granted: a folder of Prometheus' exporter, a list, and an apt that asks nothing.
mkdir -p /var/lib/prometheus/node-exporter /etc/crypto-policies/back-ends
cp tests/policy/crypto-policies-default.config /etc/crypto-policies/back-ends/java.config
printf 'APT::Get::Assume-Yes "true";\nAPT::Get::Upgrade "false";\n' >"$scratch/apt.conf"
APT_CONFIG=$scratch/apt.conf TARGET=$TARGET tests/package/documents.py
