#!/usr/bin/env python3
"""Submit a goal to a Muster fleet and watch its record, with nothing but a NATS client.

    pip install nats-py
    muster up --detach
    python3 deploy/examples/submit_goal.py "What limits delegation loops?"

The server's address is taken from NATS_URL, else from the local fleet's `.muster/fleet.json`.
Messages follow `muster schema --asyncapi`. Because the goal asks for JSON (`encoding`), every
event of its run is written as JSON; other traffic on the bus is MessagePack.
"""

import asyncio
import json
import os
import pathlib
import sys
import time
import uuid

import nats


def server_url() -> str:
    if url := os.environ.get("NATS_URL"):
        return url
    state = pathlib.Path(".muster/fleet.json")
    if state.exists():
        return json.loads(state.read_text())["url"]
    sys.exit("no fleet found: start one with `muster up --detach`, or set NATS_URL")


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
            "body": {"type": "command", "content": content},
        }
    ).encode()


async def main(words: str) -> int:
    client = await nats.connect(server_url(), connect_timeout=5)
    jetstream = client.jetstream()
    run = run_id()

    # What the fleet writes about this run: decisions and offers, and what agents report.
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def show(message) -> None:
        body = json.loads(message.data)["body"]
        kind, content = body["type"], body["content"]
        print(f"{message.subject}  {kind}", flush=True)
        for event in content.get("events", []) if kind == "decided" else []:
            print(f"    {event['event']}", flush=True)
            if event["event"] == "run_completed":
                print("\n" + event["report"]["body"])
                ended.set_result(0)
            elif event["event"] in ("run_failed", "run_aborted"):
                print("\n" + event["reason"])
                ended.set_result(1)

    await client.subscribe(f"run.{run}.>", cb=show)
    await client.subscribe(f"evt.{run}.>", cb=show)

    command = {"command": "submit", "run": run, "goal": {"text": words, "encoding": "json"}}
    await jetstream.publish(
        f"cmd.{run}.submit",
        envelope(run, command),
        headers={"Content-Type": "application/json", "Nats-Msg-Id": f"{run}.submit"},
    )
    try:
        return await asyncio.wait_for(ended, timeout=300)
    finally:
        await client.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(asyncio.run(main(sys.argv[1])))
