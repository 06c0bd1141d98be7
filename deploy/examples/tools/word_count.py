"""Counts a text: arguments come as JSON on standard input, the result goes as JSON to standard output."""

import json
import sys

text = json.load(sys.stdin)["text"]
counts = {"lines": len(text.splitlines()), "words": len(text.split()), "characters": len(text)}
content = f"{counts['lines']} lines, {counts['words']} words, {counts['characters']} characters."
json.dump({"content": content, "data": counts}, sys.stdout)
