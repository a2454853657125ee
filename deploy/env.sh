#!/bin/sh
# `make env`: makes .env from .env.example with fresh random secrets, and the folders that
# Compose mounts. Of an existing .env it only fills in what is missing, never changes what is set.
set -eu
cd "$(dirname "$0")/.."
umask 077

value_of() { sed -n "s/^$1=//p" .env | tail -n 1; }
set_value() { # the line NAME=, commented or not, becomes NAME=VALUE; without such a line it is added
  awk -v name="$1" -v value="$2" '
    !done && $0 ~ "^#?" name "=" { print name "=" value; done = 1; next }
    { print }
    END { if (!done) print name "=" value }' .env >.env.new
  mv .env.new .env
}

if [ ! -e .env ]; then
  cp .env.example .env
  # Services that run as you leave files that are yours. Root stays with the images' own user.
  if [ "$(id -u)" != 0 ]; then
    set_value RATCHET_UID "$(id -u)"
    set_value RATCHET_GID "$(id -g)"
  fi
  set_value WEBHOOK_SECRET "whsec_$(head -c 32 /dev/urandom | base64)"
  echo "made .env from .env.example"
fi
if [ -z "$(value_of POSTGRES_PASSWORD)" ]; then
  set_value POSTGRES_PASSWORD "$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')"
  echo "wrote a random POSTGRES_PASSWORD to .env"
else
  echo "kept the POSTGRES_PASSWORD of .env"
fi
if [ -z "$(value_of DASHBOARD_TOKEN)" ]; then
  set_value DASHBOARD_TOKEN "$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')"
  echo "wrote a random DASHBOARD_TOKEN to .env: the dashboard asks for it before it changes anything"
fi
chmod 600 .env
umask 022
for folder in ingest benchmarks tasks adapters checkpoints logs cache; do
  [ -d "$folder" ] || mkdir "$folder"
done
