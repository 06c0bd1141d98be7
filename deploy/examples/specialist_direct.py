#!/usr/bin/env python3
"""A Muster specialist that counts words and writes the record itself: the direct protocol, docs/protocol.md. Most programs
are better off with the task gateway (specialist.py).

    pip install nats-py nkeys
    NATS_URL=nats://127.0.0.1:4222 python3 deploy/examples/specialist_direct.py
"""
import asyncio, contextlib, json, os, ssl, uuid
import nats
from nats.js import api, errors

ROLE, ME, PACE = "word_counter", os.environ.get("MUSTER_AGENT_ID") or f"word_counter-{uuid.uuid4().hex[:8]}", float(os.environ.get("PACE", "0.1"))
PROFILE = {"agent": ME, "role": ROLE, "pid": os.getpid(), "slots": 2, "encoding": "json",
           "specialist": {"description": "Counts the words of a text.", "capabilities": ["word count"]}}
hand = {}  # by queue: the task in hand, and what was ordered about it

def message(kind, **content):  # what is left out, the receiver fills in
    return json.dumps({"body": {"type": kind, "content": content}}).encode()

async def content(msg, js=None):
    body = json.loads(msg.data)["body"]
    if body["type"] == "stored":  # too large for a message: it lies in the object store, under its hash
        body = json.loads((await (await js.object_store("MUSTER")).get(body["content"]["hash"])).data)
    return body["content"]

async def beat(nc):
    while True:
        await nc.publish(f"$KV.AGENTS.{ME}", message("profile", **PROFILE), headers={"Nats-TTL": "15s"})
        await nc.publish(f"hb.{ROLE}.{ME}", message("heartbeat", agent=ME, busy=len(hand), slots=2))
        await asyncio.sleep(5)

async def obey(msg):
    order = await content(msg)
    for task in hand.values() if order["control"].startswith(("cancel", "park")) else ():
        if all(order.get(part, of) == of for part, of in task.items()):  # an order may mean a whole run
            task["order"] = order["control"]

async def take(js, queue):
    idle = 600 if queue[0] == "@" else None  # a queue of one's own outlives its agent for so long
    tasks = await js.pull_subscribe(f"task.{queue}.>", queue, "TASKS", api.ConsumerConfig(inactive_threshold=idle))
    while True:
        try:
            msg, = await tasks.fetch(1, timeout=20)
            body = await content(msg, js)
            offer = body.get("offer") or body  # a single offer travels inside its decision
            hand[queue] = {part: offer[part] for part in ("run", "task", "generation")}
            await work(js, msg, hand[queue], offer)
            await msg.ack_sync()
        except (nats.errors.Error, LookupError, ValueError) as why:
            print(repr(why), flush=True)  # nothing to do for 20 s; 10071, 10164: another agent has it; or no offer for us
        hand.pop(queue, None)

async def work(js, msg, task, offer):
    said = msg.headers or {}  # a record in several streams says with the offer which of them, and how its subjects begin
    stream, events = said.get("Muster-Record", "RUNS"), said.get("Muster-Events", "evt")
    fence = "{0}.{run}.*.*.{task}.{generation}.>".format(events, **task)  # the same for all: of two that write, one is refused
    async def write(kind, **content):
        headers = {"Nats-Expected-Last-Subject-Sequence": str(seq), "Nats-Expected-Last-Subject-Sequence-Subject": fence}
        subject = fence.replace("*.*.", f"{ROLE}.{ME}.").replace(">", kind)
        return (await js.publish(subject, message(kind, **content), headers=headers)).seq
    async def last(subject):  # the newest entry of the record on a subject, and what it says
        with contextlib.suppress(errors.NotFoundError):
            entry = await js.get_last_msg(stream, subject)
            return entry.seq, await content(entry, js)
        return 0, {}
    seq, before = await last(fence)
    if "ending" in before or "parked" in before:
        return  # it has ended: it is acknowledged and dropped
    done, words = 0, len(offer["work"]["execute"]["task"]["goal"].split())
    for number in range(offer.get("continues") or task["generation"], task["generation"] + 1):  # earlier ones count too
        _, step = await last(fence.replace(f".{task['generation']}.>", f".{number}.step"))
        done = step.get("number", done)
    seq = await write("started", ack=msg.reply, after_step=done)
    for number in range(done + 1, 4):
        await asyncio.sleep(PACE)  # in place of real work
        await msg.in_progress()
        if "order" in task:
            park = task["order"].startswith("park")
            return await (write("released", reason="put down", parked=True) if park else write("outcome", ending="cancelled"))
        seq = await write("step", number=number, thought={"text": "Count, to be sure."}, action={"name": "count"},
                          observation={"status": "success", "content": str(words)})
    await write("outcome", ending="done", product={"result": {"conclusion": f"{words} words.", "data": {"words": words}}})

def encrypted():  # by the authority in NATS_CA, where the fleet has one of its own; None leaves it to the URL
    ca, cert = os.environ.get("NATS_CA"), os.environ.get("NATS_CERT")
    context = ssl.create_default_context(cafile=ca) if ca else None
    if context and cert:
        context.load_cert_chain(cert, os.environ["NATS_KEY"])
    return context

async def main():
    inbox = os.environ.get("NATS_INBOX_PREFIX", "_INBOX").encode()  # what its credentials let it listen to
    nc = await nats.connect(os.environ["NATS_URL"], name=ME, inbox_prefix=inbox,  # by this name its death is noticed
                            user_credentials=os.environ.get("NATS_CREDS"), tls=encrypted(), max_reconnect_attempts=-1)
    made = None
    while made is None:  # an orchestrator makes the queues of its role and its own, once one is there
        with contextlib.suppress(nats.errors.TimeoutError, nats.errors.NoRespondersError):
            made = await nc.request(f"queue.{ROLE}.{ME}", timeout=5)
    listen = [nc.subscribe(subject, cb=obey) for subject in ("ctl.all", f"ctl.role.{ROLE}", f"ctl.agent.{ME}")]
    await asyncio.gather(*listen, beat(nc), take(nc.jetstream(), ROLE), take(nc.jetstream(), "@" + ME))

asyncio.run(main())
