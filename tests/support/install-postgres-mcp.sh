#!/bin/sh
# Installs PostgreSQL and an MCP server for it, which one test runs together, and prints the path of the MCP server.
#
# PostgreSQL comes from the system's packages, with apt-get, if initdb is missing. The MCP server comes from PyPI and is
# installed with pip in target/mcp-servers/postgres.
set -eu

PACKAGES='database-mcp-postgres==0.2.1 database-mcp-core==0.3.1 mcp==2.3.0 psycopg==3.3.9 psycopg-binary==3.3.9'
TIME_LIMIT=${MUSTER_INSTALL_TIME_LIMIT:-600}

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
folder=$root/target/mcp-servers/postgres
program=$folder/bin/database-mcp-postgres

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

has_postgres() { ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }

if ! has_postgres; then
    echo 'Installing postgresql ...' >&2
    as_root timeout "$TIME_LIMIT" sh -c 'apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends postgresql' >&2
    has_postgres
fi

if [ "$(cat "$folder/installed" 2>/dev/null || true)" != "$PACKAGES" ] || [ ! -x "$program" ]; then
    rm -rf "$folder"
    python3 -m venv "$folder"
    # shellcheck disable=SC2086 # each package is one argument
    timeout "$TIME_LIMIT" "$folder/bin/python" -m pip install --quiet --disable-pip-version-check $PACKAGES >&2
    printf '%s\n' "$PACKAGES" >"$folder/installed"
fi
printf '%s\n' "$program"
