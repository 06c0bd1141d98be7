#!/bin/sh
# The demonstration behind `make demo`: one fleet, one real question about Muster's own documents.
# Usage: demo.sh [MUSTER], where MUSTER is the binary to use instead of the one of `make build`: a path of its own, or
# one within the repository.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
muster=${1:-target/release/muster}
case "$muster" in
    /*) ;;
    *) muster=$root/$muster ;;
esac
report=muster-report.md
question="What limits delegation loops, how does a run survive the death of a worker, and which clouds is Muster certified for?"

MUSTER_NATS_SERVER=$(sh deploy/install-nats.sh)
export MUSTER_NATS_SERVER

# Only the documents, so that sources of the program, or a picture of an earlier answer, do not answer for them.
documents=$(mktemp -d)
trap 'rm -rf "$documents"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
for file in *.md docs/*.md docs/*/*.md; do
    if [ ! -f "$file" ] || [ "$file" = "$report" ]; then continue; fi
    mkdir -p "$documents/$(dirname "$file")"
    cp "$file" "$documents/$file"
done

echo "Question: $question"
echo
# `muster run` brings up a fleet of its own when none is up, and takes it down afterwards.
"$muster" run "$question" --effort thorough --docs "$documents" --output "$report"

echo
echo "== $report (first screen)"
head -n 40 "$report"
echo
echo "What the fleet did, step by step:  ${muster#"$root"/} trace last"
