#!/usr/bin/env python3
"""A Muster specialist that counts words, with nothing but nats-py. docs/gateway.md has what it may ask of the task gateway.

    pip install nats-py nkeys
    NATS_URL=nats://127.0.0.1:4222 python3 deploy/examples/specialist.py
"""
import asyncio, json, os, ssl, uuid
import nats

ROLE, ME, PACE = "word_counter", os.environ.get("MUSTER_AGENT_ID") or f"word_counter-{uuid.uuid4().hex[:8]}", float(os.environ.get("PACE", "0.1"))
WHO = {"agent": ME, "pid": os.getpid(), "slots": 2, "description": "Counts the words of a text.", "capabilities": ["word count"]}

async def ask(nc, verb, **said):
    said["id"] = uuid.uuid4().hex  # sent again with it, after a lost answer, nothing is recorded twice
    while True:
        try:
            answer = json.loads((await nc.request(f"agent.{ROLE}.{verb}", json.dumps(said).encode(), timeout=40)).data)
        except (nats.errors.TimeoutError, nats.errors.NoRespondersError):
            answer = {"error": {"retry": True}}
        if not answer.get("error", {}).get("retry"):
            return answer
        await asyncio.sleep(0.5)

async def tell(nc, task, verb, **said):  # about a task; what is not ours any more, or refused, ends our work on it
    answer = await ask(nc, verb, token=task["token"], **said)
    if answer.get("error") or answer.get("over"):
        raise LookupError(answer.get("reason") or answer["error"]["message"])
    task["token"] = answer.get("token", task["token"])

async def beat(nc, task):  # without a word for 15 s the task goes to another
    while True:
        await asyncio.sleep(3)
        await tell(nc, task, "beat")

async def work(nc, task):
    words = len(task["goal"].split())
    for _ in range(task["next_step"], 4):  # earlier steps count, whoever took them
        await asyncio.sleep(PACE)  # in place of real work
        await tell(nc, task, "step", thought="Count, to be sure.", action={"name": "count"}, observation=str(words))
    await tell(nc, task, "finish", result={"conclusion": f"{words} words.", "data": {"words": words}})

async def serve(nc):
    while True:
        if task := (await ask(nc, "take", **WHO)).get("task"):
            jobs = [asyncio.create_task(job(nc, task)) for job in (work, beat)]
            done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
            for job in jobs:
                job.cancel()
            print(*(job.exception() or "done" for job in done), flush=True)

def encrypted(ca=os.environ.get("NATS_CA"), cert=os.environ.get("NATS_CERT")):
    context = ssl.create_default_context(cafile=ca) if ca else None  # of the fleet's own authority; None leaves it to the URL
    if context and cert:
        context.load_cert_chain(cert, os.environ["NATS_KEY"])
    return context

async def main():
    inbox = os.environ.get("NATS_INBOX_PREFIX", "_INBOX").encode()  # what its credentials let it listen to
    nc = await nats.connect(os.environ["NATS_URL"], name=ME, inbox_prefix=inbox,  # by this name it is known at once when it dies
                            user_credentials=os.environ.get("NATS_CREDS"), tls=encrypted(), max_reconnect_attempts=-1)
    await asyncio.gather(serve(nc), serve(nc))

asyncio.run(main())
