#!/usr/bin/env python3
"""A guard for Muster that keeps words out of tool calls and reports. docs/guards.md has the hooks, payloads and settings.

    pip install nats-py nkeys
    NATS_URL=nats://127.0.0.1:4222 NATS_CREDS=words.creds NATS_INBOX_PREFIX=_INBOX.words python3 deploy/examples/guard.py

`muster keys issue guard:words --out words.creds` makes the credentials.

In muster.toml:  [guards.words]
                 hooks = ["before_tool", "before_report"]
"""
import asyncio, json, os, re, ssl
import nats

NAME, WORDS = os.environ.get("GUARD", "words"), os.environ.get("WORDS", "rm -rf,drop table").split(",")
FORBIDDEN = re.compile("|".join(map(re.escape, WORDS)), re.IGNORECASE)

def judge(hook, payload):
    text = json.dumps(payload, ensure_ascii=False)
    found = FORBIDDEN.search(text)
    if not found:
        return {"verdict": "allow"}
    if hook == "before_tool":
        return {"verdict": "refuse", "reason": f"{payload['tool']} is not called with {found[0]!r}"}
    return {"verdict": "change", "reason": f"took out {found[0]!r}", "payload": json.loads(FORBIDDEN.sub("[…]", text))}

async def answer(msg):
    asked = json.loads(msg.data)
    verdict = judge(asked["hook"], asked["payload"])
    print(asked["run"], asked.get("task"), asked["hook"], verdict["verdict"], verdict.get("reason", ""), flush=True)
    await msg.respond(json.dumps(verdict).encode())

def encrypted(ca=os.environ.get("NATS_CA"), cert=os.environ.get("NATS_CERT")):
    context = ssl.create_default_context(cafile=ca) if ca else None  # of the fleet's own authority; None leaves it to the URL
    if context and cert:
        context.load_cert_chain(cert, os.environ["NATS_KEY"])
    return context

async def main():
    inbox = os.environ.get("NATS_INBOX_PREFIX", "_INBOX").encode()  # what its credentials let it listen to
    nc = await nats.connect(os.environ["NATS_URL"], name=f"guard-{NAME}", inbox_prefix=inbox, tls=encrypted(),
                            user_credentials=os.environ.get("NATS_CREDS"), max_reconnect_attempts=-1)
    await nc.subscribe(f"guard.{NAME}", queue=NAME, cb=answer)  # of several that run, one is asked
    while not nc.is_closed:  # for good, when its credentials were taken away: whoever started it sees that it has ended
        await asyncio.sleep(1)

asyncio.run(main())
