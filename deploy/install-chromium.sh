#!/bin/sh
# Finds a Chromium for the tests of the dashboard, or installs the one of the system's packages, and prints where it is.
# The dashboard itself needs none of this: any browser shows it.
#
# Looked for, in this order: $MUSTER_CHROMIUM, chromium, chromium-browser and google-chrome on PATH. Installed with apt-get
# where there is one, by root or by sudo without a password.
set -eu

# Seconds before a download counts as failed.
TIME_LIMIT=${MUSTER_INSTALL_TIME_LIMIT:-600}

say() { printf '%s\n' "$*" >&2; }

# Accepts a browser that runs: prints its path. A stand-in that only points at another package does not.
accept() {
    [ -n "$1" ] && [ -x "$1" ] && "$1" --version >/dev/null 2>&1 && printf '%s\n' "$1"
}

find_one() {
    if accept "${MUSTER_CHROMIUM:-}"; then return 0; fi
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        if accept "$(command -v "$name" 2>/dev/null || true)"; then return 0; fi
    done
    return 1
}

if find_one; then exit 0; fi

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

if command -v apt-get >/dev/null 2>&1 && as_root true 2>/dev/null; then
    say "Installing chromium ..."
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    if as_root timeout "$TIME_LIMIT" sh -c 'apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium fonts-dejavu-core' >"$log" 2>&1; then
        if find_one; then exit 0; fi
    fi
    say "$(tail -n 2 "$log")"
fi

say "There is no Chromium here, and none could be installed: install chromium, or set MUSTER_CHROMIUM to the path of one."
exit 1
