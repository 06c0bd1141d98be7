#!/usr/bin/env python3
"""Verifies that the entries in a file of `muster audit RUN --export FILE` fit each other, with nothing of Muster: python3
verify_audit.py FILE. Who wrote them, seals prove: `muster audit --file FILE --keys KEYS` checks those."""
import base64, hashlib, json, sys

def sha(*parts): return hashlib.sha256(b"".join(parts)).digest()
def add(so_far, place, digest): return sha(so_far, place.to_bytes(8, "big"), digest)

def digest(entry):
    subject = entry["subject"].encode()
    return sha(len(subject).to_bytes(4, "big"), subject, base64.b64decode(entry["payload"], validate=True))

def verify(head, entries):
    assert (head["muster_audit"], head["algorithm"]) == (1, "SHA-256"), "another form"
    assert len(entries) == head["entries"], "cut off"
    so_far, waiting, own, last, links = None, [], 0, 0, 0
    for at, entry in enumerate(entries):
        seq, link = entry["seq"], json.loads(entry.get("link", "null"))
        assert seq > last, f"entry {seq} is out of order"
        last = seq
        if entry["subject"].startswith("evt."):
            waiting.append(entry)
        elif own:  # an offer of the decision before it
            own -= 1
            assert link is None, f"entry {seq} is no offer"
        elif link is None:
            assert so_far is None, f"entry {seq} has no link"
        else:
            through = link["of"][-1][0] if "of" in link else 0
            if so_far is None:
                assert "prev" not in link and not through, f"the chain does not begin at entry {seq}"
                so_far, waiting = sha(b"muster-chain-1 " + head["run"].encode()), []
            else:
                assert link.get("prev") == so_far.hex()[:8], f"entry {seq} follows another link"
            for covered in [e for e in waiting if e["seq"] <= through]:
                so_far = add(so_far, covered["seq"], digest(covered))
            waiting = [e for e in waiting if e["seq"] > through]
            own, links = len(link["own"]) - 1, links + 1
            for written in [e for e in entries[at:] if not e["subject"].startswith("evt.")][: own + 1]:
                so_far = add(so_far, 0, digest(written))
            assert so_far.hex() == link["hash"], f"what the link at entry {seq} covers was changed"
    assert not own, "offers of the last decision are missing"
    return links, len(waiting), so_far

if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        head, *entries = map(json.loads, file)
    try:
        links, uncovered, so_far = verify(head, entries)
    except AssertionError as wrong:
        sys.exit(f"run {head['run']}: {wrong}")
    if so_far is None:
        sys.exit(f"run {head['run']} has no chain")
    print(f"run {head['run']}: {len(entries)} entries, {links} links, {uncovered} after the last; head {so_far.hex()}")
    print("seals were not checked: this proves that the entries fit each other, not who wrote them, nor that none came after")
