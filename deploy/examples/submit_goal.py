#!/usr/bin/env python3
"""Submit a goal to a Muster fleet and watch its record, with nothing but a NATS client.

    pip install nats-py nkeys
    muster up --detach
    python3 deploy/examples/submit_goal.py "What limits delegation loops?"

The server's address is taken from NATS_URL, else from the local fleet's `.muster/fleet.json`. `muster keys person` prints
NATS_CREDS and NATS_INBOX_PREFIX for a person's credentials.
Messages follow `muster schema --asyncapi`. Because the goal asks for JSON (`encoding`), every
event of its run is written as JSON; other traffic on the bus is MessagePack. A fleet with keys takes orders that are
signed: `signature` does it, as docs/gateway.md says.
"""

import asyncio
import base64
import json
import os
import pathlib
import random
import ssl
import sys
import time
import uuid

import nats
import nats.js.api


def server_url() -> str:
    if url := os.environ.get("NATS_URL"):
        return url
    state = pathlib.Path(".muster/fleet.json")
    if state.exists():
        return json.loads(state.read_text())["url"]
    sys.exit("no fleet found: start one with `muster up --detach`, or set NATS_URL")


def credentials() -> str | None:
    """Who we are: what `muster keys` gave us, or the owner of the fleet in this folder; nobody where all are let in."""
    own = pathlib.Path(".muster/nats/keys/operator.creds")
    return os.environ.get("NATS_CREDS") or (str(own) if "NATS_URL" not in os.environ and own.exists() else None)


def encrypted() -> ssl.SSLContext | None:
    """By whose authority the server is known: the fleet's own in this folder, or NATS_CA; nothing where all is plain."""
    own = pathlib.Path(".muster/nats/keys/ca.pem")
    is_own = "NATS_URL" not in os.environ and server_url().startswith("tls://") and own.exists()
    ca = os.environ.get("NATS_CA") or (str(own) if is_own else None)
    return ssl.create_default_context(cafile=ca) if ca else None


def signature(subject: str, payload: bytes) -> dict[str, str]:
    """The header that says who gives an order; none where all are let in."""
    if (path := credentials()) is None:
        return {}
    import nkeys  # nats-py needs it for credentials too

    lines = pathlib.Path(path).read_text().splitlines()
    after = lambda mark: lines[next(i for i, line in enumerate(lines) if mark in line) + 1].strip()
    said = b"\xffmuster signature 1\0order\0" + subject.encode() + b"\0" + payload
    made = nkeys.from_seed(after("BEGIN USER NKEY SEED").encode()).sign(said)
    made = base64.urlsafe_b64encode(made).rstrip(b"=").decode()
    return {"Muster-Signature": f"{made}.{after('BEGIN NATS USER JWT')}"}


def run_id() -> str:
    """A UUID of version 7: ids that begin with the time sort by it, so that `last` means the latest."""
    random = uuid.uuid4().int & ((1 << 80) - 1)
    bits = (int(time.time() * 1000) << 80) | random
    bits = bits & ~(0xF << 76) | (0x7 << 76)
    bits = bits & ~(0x3 << 62) | (0x2 << 62)
    return uuid.UUID(int=bits).hex


def envelope(run: str, content: dict) -> bytes:
    return json.dumps(
        {
            "v": 1,
            "id": str(uuid.uuid4()),
            "sender": "python-example",
            "sent": int(time.time() * 1000),
            "run": run,
            "body": {"type": "ask", "content": content},
        }
    ).encode()


async def main(words: str) -> int:
    inbox = os.environ.get("NATS_INBOX_PREFIX", "_INBOX").encode()  # a person's credentials allow one prefix only
    client = await nats.connect(server_url(), connect_timeout=5, user_credentials=credentials(), tls=encrypted(),
                                inbox_prefix=inbox)
    try:
        # Any orchestrator answers: `accepted` with the run, or `error` with the reason. The run is named here, so
        # that asking again after a lost answer makes no second one.
        run = run_id()
        ask = {"ask": "submit", "run": run, "goal": {"text": words, "encoding": "json"}}
        order = envelope(run, ask)
        headers = {"Content-Type": "application/json"} | signature("ask.submit", order)
        answer = await client.request("ask.submit", order, timeout=30, headers=headers)
        body = json.loads(answer.data)["body"]
        if body["type"] != "accepted":
            print(f"not accepted: {body['content']['reason']}", file=sys.stderr)
            return 1
        if body["content"].get("queued"):
            print("it stays queued until an orchestrator takes it up", flush=True)
        return await follow(client, run)
    finally:
        await client.close()


async def follow(client, run: str) -> int:
    """What the fleet writes about the run, from the record: nothing is missed, over lost connections too."""
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def show(message) -> None:
        body = json.loads(message.data)["body"]
        kind, content = body["type"], body["content"]
        print(f"{message.subject}  {kind}", flush=True)
        for event in content.get("events", []) if kind == "decided" else []:
            print(f"    {event['event']}", flush=True)
            if event["event"] in ("run_completed", "run_failed", "run_aborted") and not ended.done():
                report = event.get("report")
                print("\n" + (report["body"] if report else event["reason"]))
                ended.set_result(0 if event["event"] == "run_completed" else 1)

    jetstream = client.jetstream()
    found = await client.request("$JS.API.STREAM.NAMES", b'{"subject": "run.>"}')
    for stream in json.loads(found.data)["streams"]:  # one, or RUNS_0_OF_4 and so on: then its number is in the subjects
        part = "" if stream == "RUNS" else stream.split("_")[1] + "."
        # A person has eight consumers of each stream, with fixed names; the owner has any number, with any name.
        me = os.environ.get("NATS_INBOX_PREFIX", "").removeprefix("_INBOX.")
        names = [f"{me}-{number}" for number in random.sample(range(1, 9), 2)] if me else [None, None]
        for subject, name in zip((f"run.{part}{run}.>", f"evt.{part}{run}.>"), names):
            config = nats.js.api.ConsumerConfig(name=name, inactive_threshold=30)
            await jetstream.subscribe(subject, stream=stream, ordered_consumer=True, config=config, cb=show)
    return await asyncio.wait_for(ended, timeout=300)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(asyncio.run(main(sys.argv[1])))
