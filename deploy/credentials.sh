#!/bin/sh
# Makes what a fleet on servers of its own needs to let its processes in, and nobody else: keys, the servers' part of them and
# their certificate, and credentials for each process. For deploy/compose.yaml, deploy/kubernetes and machines of your own.
#
#   deploy/credentials.sh [PROCESS...]       those of deploy/compose.yaml when none is named
#
# A PROCESS is a role and a number (worker-2), orchestrator-0, or person-NAME. What is there is kept, so it may be called again:
# for more processes, after `muster keys revoke` and `rotate`, and for what was taken away (nats/server.pem, creds/worker-2.creds).
#
#   secrets/keys       the fleet's keys: whoever reads them is its owner. They go nowhere
#   secrets/nats       the folder of each server: nats.conf and what it names
#   secrets/creds      NAME.creds for each process, ca.pem by which it knows the servers, presence.creds for orchestrators
#   secrets/roles/ROLE the same, for all processes of a role (a Kubernetes Secret holds such a folder)
#
# MUSTER is the program (muster), SECRETS the folder (deploy/secrets), SERVERS the names and addresses of the servers.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
muster=${MUSTER:-muster}
secrets=${SECRETS:-$here/secrets}
servers=${SERVERS:-nats-0.nats nats-1.nats nats-2.nats nats localhost 127.0.0.1}
if [ $# -eq 0 ]; then
    set -- orchestrator-0 orchestrator-1 planner-0 researcher-0 worker-0 worker-1 reflector-0 refiner-0 writer-0 person-owner
fi

# Nobody else enters the folder.
umask 077
mkdir -p "$secrets/nats" "$secrets/creds" "$secrets/roles"
keys=$secrets/keys
"$muster" keys init --keys "$keys" >/dev/null

"$muster" keys export --keys "$keys" >"$secrets/nats/accounts.conf.new"
mv "$secrets/nats/accounts.conf.new" "$secrets/nats/accounts.conf"
cp "$here/cluster/nats.conf" "$secrets/nats/nats.conf"
if [ ! -e "$secrets/nats/server.pem" ]; then
    # Names are words.
    # shellcheck disable=SC2086
    "$muster" keys certificate --keys "$keys" --out "$secrets/nats" $servers >/dev/null
fi

cp "$secrets/nats/ca.pem" "$keys/presence.creds" "$secrets/creds/"
for process in "$@"; do
    role=${process%-*} file=$secrets/creds/$process.creds
    case "$process" in
        person-*) set -- "person:${process#person-}" ;;
        *-*) set -- "$role" --name "$process" ;;
        *) echo "$process: a role and a number are wanted, such as worker-2, or person-NAME" >&2; exit 2 ;;
    esac
    if [ ! -e "$file" ]; then
        "$muster" keys issue "$@" --keys "$keys" --out "$file" >/dev/null
    fi
    case "$process" in person-*) continue ;; esac
    mkdir -p "$secrets/roles/$role"
    cp "$file" "$secrets/creds/ca.pem" "$secrets/roles/$role/"
    if [ "$role" = orchestrator ]; then cp "$keys/presence.creds" "$secrets/roles/$role/"; fi
done

# Processes in containers are other users than whoever runs this, and are given single files: these are closed by the folders
# around them, which nobody else enters.
chmod 0644 "$secrets"/creds/*
echo "$secrets has the credentials of $(ls "$secrets/creds" | grep -c '[0-9]\.creds$') processes, and what servers need in nats/"
