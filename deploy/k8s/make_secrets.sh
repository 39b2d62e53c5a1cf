#!/bin/sh
# Makes the two secrets that `kubectl apply -k` takes along, once: what is there is kept. They are not for the repository.
set -eu
umask 077
cd "$(dirname "$0")"
mkdir -p secrets
for name in redis-password dev-secret; do
    [ -s "secrets/$name" ] || od -An -N32 -tx1 /dev/urandom | tr -d ' \n' > "secrets/$name"
done
