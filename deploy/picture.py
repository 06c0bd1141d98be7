#!/usr/bin/env python3
"""Draws docs/demo.svg: a recording of the demonstration, from a real run of it.

    make clean-state nats && cargo build --profile demo --locked --bin muster
    python3 deploy/picture.py [MUSTER]

MUSTER is the binary to use, target/demo/muster when absent. Needs Python alone. Lines appear in the order and with the
words that deploy/demo.sh printed them; only the pace is slower, so that they can be read. The state is cleaned first,
since a plan is improved by what earlier runs taught.
"""

import html
import pathlib
import re
import subprocess
import sys
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs/demo.svg"

COLUMNS, ROWS = 108, 27
CHARACTER, LINE, MARGIN, BAR = 7.83, 19, 16, 34
# Pauses between two lines, in seconds: a run that takes two seconds cannot be read at its own pace.
SLOWER, SHORTEST, LONGEST, AT_THE_END = 4.0, 0.14, 1.6, 7.0
TIME_LIMIT = 120

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PROGRESS = re.compile(r"^( +[0-9.]+s)( +)(\[[ x~-]\] )?(.*)$")
COLOURS = {"[x] ": "done", "[-] ": "work", "[ ] ": "wait", "[~] ": "part"}


def record(muster):
    """What the demonstration prints: a list of (seconds since it began, line)."""
    command = ["sh", "deploy/demo.sh", muster]
    begun = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    lines = []
    for line in process.stdout:
        lines.append((time.monotonic() - begun, ESCAPE.sub("", line.rstrip())))
        if lines[-1][0] > TIME_LIMIT:
            process.kill()
            sys.exit(f"the demonstration took longer than {TIME_LIMIT} s")
    if process.wait() != 0:
        sys.exit(f"{' '.join(command)} failed:\n" + "\n".join(line for _, line in lines))
    return lines


def shown(lines):
    """Up to the end of the report's summary: what comes after it is in the report."""
    headings = [at for at, (_, line) in enumerate(lines) if line.startswith("## ")]
    end = headings[1] if len(headings) > 1 else len(lines)
    return lines[:end]


def wrapped(line):
    """A line as rows of the terminal."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(line, COLUMNS, subsequent_indent=indent, break_on_hyphens=False) or [""]


def styled(row):
    """A row as SVG text spans."""
    span = lambda style, text: f'<tspan class="{style}">{html.escape(text)}</tspan>' if text else ""
    if row.startswith("$ ") or row.startswith("#"):
        return span("strong", row)
    if match := PROGRESS.match(row):
        clock, gap, mark, rest = match.groups()
        return span("dim", clock) + gap + span(COLOURS.get(mark, ""), mark or "") + html.escape(rest)
    if row.startswith("run ") or row.startswith("report:"):
        return span("done", row)
    return html.escape(row)


def frames(lines):
    """Rows with the second at which each appears, and how long all of it takes."""
    now, before, rows = 0.6, 0.0, [(0.0, "$ make demo")]
    for at, line in lines:
        now += min(max((at - before) * SLOWER, SHORTEST), LONGEST)
        before = at
        rows += [(now, row) for row in wrapped(line)]
    return rows, now + AT_THE_END


def scrolling(rows, whole):
    """Key frames that move the text up by a row as soon as the window is full."""
    steps = [(at, index + 1 - ROWS) for index, (at, _) in enumerate(rows) if index + 1 > ROWS]
    keys = {0.0: 0}
    keys.update({round(100 * at / whole, 2): -up * LINE for at, up in steps})
    return "".join(f"{percent}%{{transform:translateY({by}px)}}" for percent, by in sorted(keys.items()))


def svg(rows, whole):
    width, height = round(COLUMNS * CHARACTER + 2 * MARGIN), BAR + ROWS * LINE + MARGIN
    last = max(0, len(rows) - ROWS) * LINE
    texts = []
    for index, (at, row) in enumerate(rows):
        place = f'x="{MARGIN}" y="{BAR + (index + 1) * LINE - 5}"'
        texts.append(f'<text {place} style="animation-name:l{index}">{styled(row)}</text>')
    # Where nothing is animated, all rows are there and the last ones are in the window.
    appear = "".join(
        f"@keyframes l{index}{{0%{{opacity:0}}{100 * at / whole:.2f}%{{opacity:1}}}}" for index, (at, _) in enumerate(rows)
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width} {height}" width="{width}" role="img"
  aria-label="A terminal in which make demo runs: a plan, its tasks and the report with citations">
<style>
text{{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d7dae0;white-space:pre;
animation:{whole:.2f}s step-end infinite}}
.strong{{fill:#fff;font-weight:600}}.dim{{fill:#7d8590}}.done{{fill:#7ee787}}.work{{fill:#79c0ff}}.wait{{fill:#7d8590}}
.part{{fill:#ffa657}}
#all{{animation:scroll {whole:.2f}s step-end infinite}}
@keyframes scroll{{{scrolling(rows, whole)}}}
{appear}
@media (prefers-reduced-motion:reduce){{text,#all{{animation:none}}}}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#16191f"/>
<g fill="#3d444d"><circle cx="20" cy="17" r="5"/><circle cx="38" cy="17" r="5"/><circle cx="56" cy="17" r="5"/></g>
<clipPath id="window"><rect x="0" y="{BAR}" width="{width}" height="{ROWS * LINE}"/></clipPath>
<g clip-path="url(#window)"><g id="all" transform="translate(0,-{last})">
{chr(10).join(texts)}
</g></g>
</svg>
"""


def main():
    muster = sys.argv[1] if len(sys.argv) > 1 else "target/demo/muster"
    rows, whole = frames(shown(record(muster)))
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(svg(rows, whole))
    print(f"{TARGET.relative_to(ROOT)}: {len(rows)} rows, {whole:.0f} s")


if __name__ == "__main__":
    main()
