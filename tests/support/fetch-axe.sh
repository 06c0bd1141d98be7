#!/bin/sh
# Fetches axe-core, which tests of the dashboard look for barriers with, into target/tools and prints where it is. It is
# nobody's dependency and not kept here (MPL-2.0).
#
# Taken from, in this order: $MUSTER_AXE, what was fetched before, the package on the npm registry (npm), the wheel on the
# Python package index that carries it (pip). Each is compared with its SHA-256.
set -eu

NPM_VERSION=4.14.1
NPM_SUM=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
WHEEL=axe-playwright-python==0.1.8
WHEEL_SUM=84494fec757e4710dc751c8d7a636e457f4532f08f85c86dc9070133fbff53bc
TIME_LIMIT=${MUSTER_INSTALL_TIME_LIMIT:-180}

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
folder=$root/target/tools
target=$folder/axe.min.js

sum_of() {
    if command -v sha256sum >/dev/null 2>&1; then sha256sum "$1" | cut -d' ' -f1; else shasum -a 256 "$1" | cut -d' ' -f1; fi
}

is_known() { [ -f "$1" ] && case "$(sum_of "$1")" in "$NPM_SUM" | "$WHEEL_SUM") return 0 ;; *) return 1 ;; esac; }

limited() {
    if command -v timeout >/dev/null 2>&1; then timeout "$TIME_LIMIT" "$@"; else "$@"; fi
}

if [ -n "${MUSTER_AXE:-}" ]; then
    printf '%s\n' "$MUSTER_AXE"
    exit 0
fi
if is_known "$target"; then
    printf '%s\n' "$target"
    exit 0
fi

mkdir -p "$folder"
work=$(mktemp -d "$folder/.axe.XXXXXX")
trap 'rm -rf "$work"' EXIT

from_npm() {
    command -v npm >/dev/null 2>&1 || return 1
    (cd "$work" && limited npm pack --silent "axe-core@$NPM_VERSION" >npm.log 2>&1) || return 1
    tar -xzf "$work/axe-core-$NPM_VERSION.tgz" -C "$work" package/axe.min.js && mv "$work/package/axe.min.js" "$work/axe.min.js"
}

from_wheel() {
    for python in python3 python; do
        command -v "$python" >/dev/null 2>&1 && "$python" -m pip --version >/dev/null 2>&1 || continue
        limited "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
            --dest "$work/wheel" "$WHEEL" >"$work/pip.log" 2>&1 || continue
        "$python" -c 'import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, open(sys.argv[2], "wb") as out:
    out.write(wheel.read("axe_playwright_python/axe.min.js"))' "$work"/wheel/*.whl "$work/axe.min.js" && return 0
    done
    return 1
}

for how in from_npm from_wheel; do
    if "$how" && is_known "$work/axe.min.js"; then
        mv -f "$work/axe.min.js" "$target"
        printf '%s\n' "$target"
        exit 0
    fi
done
echo "axe-core $NPM_VERSION cannot be had from npm or pip, or is not what it should be; set MUSTER_AXE to a copy of axe.min.js" >&2
exit 1
