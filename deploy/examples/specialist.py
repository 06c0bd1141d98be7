#!/usr/bin/env python3
"""A Muster specialist that counts words, with nothing but nats-py. docs/agents.md has the protocol.

    pip install nats-py
    NATS_URL=nats://127.0.0.1:4222 python3 deploy/examples/specialist.py
"""
import asyncio, contextlib, json, os, uuid
import nats
from nats.js import api, errors

ROLE, ME, PACE = "word_counter", f"word_counter-{uuid.uuid4().hex[:8]}", float(os.environ.get("PACE", "0.1"))
PROFILE = {"agent": ME, "role": ROLE, "pid": os.getpid(), "slots": 2, "encoding": "json",
           "specialist": {"description": "Counts the words of a text.", "capabilities": ["word count"]}}
hand = {}  # by queue: the task in hand, and what was ordered about it

def message(kind, **content):  # what is left out, the receiver fills in
    return json.dumps({"body": {"type": kind, "content": content}}).encode()

def content(msg):
    return json.loads(msg.data)["body"]["content"]

async def beat(nc):
    while True:
        await nc.publish(f"$KV.AGENTS.{ME}", message("profile", **PROFILE), headers={"Nats-TTL": "15s"})
        await nc.publish(f"hb.{ROLE}.{ME}", message("heartbeat", agent=ME, busy=len(hand), slots=2))
        await asyncio.sleep(5)

async def obey(msg):
    order = content(msg)
    for task in hand.values() if order["control"].startswith(("cancel", "park")) else ():
        if all(order.get(part, of) == of for part, of in task.items()):  # an order may mean a whole run
            task["order"] = order["control"]

async def take(js, queue):
    tasks = await js.pull_subscribe(f"task.{queue}.>", queue, "TASKS", api.ConsumerConfig(inactive_threshold=600))
    while True:
        try:
            msg, = await tasks.fetch(1, timeout=20)
            offer = content(msg).get("offer") or content(msg)  # a single offer travels inside its decision
            hand[queue] = {part: offer[part] for part in ("run", "task", "generation")}
            await work(js, msg, hand[queue], offer["work"]["execute"]["task"]["goal"])
            await msg.ack_sync()
        except nats.errors.Error as why:  # nothing to do for 20 s; or 10071, 10164: another agent has the task
            print(why, flush=True)
        hand.pop(queue, None)

async def work(js, msg, task, goal):
    fence = "evt.{run}.*.*.{task}.{generation}.>".format(**task)  # the same for all: of two that write, one is refused
    async def write(kind, **content):
        headers = {"Nats-Expected-Last-Subject-Sequence": str(seq), "Nats-Expected-Last-Subject-Sequence-Subject": fence}
        subject = fence.replace("*.*.", f"{ROLE}.{ME}.").replace(">", kind)
        return (await js.publish(subject, message(kind, **content), headers=headers)).seq
    seq, before = 0, {}
    with contextlib.suppress(errors.NotFoundError):
        last = await js.get_last_msg("RUNS", fence)
        seq, before = last.seq, content(last)
    if "ending" in before or "parked" in before:
        return  # it has ended: it is acknowledged and dropped
    done, words = before.get("number", before.get("after_step", 0)), len(goal.split())
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

async def main():
    nc = await nats.connect(os.environ["NATS_URL"], name=ME)  # by this name orchestrators learn whose connection ended
    listen = [nc.subscribe(subject, cb=obey) for subject in ("ctl.all", f"ctl.role.{ROLE}", f"ctl.agent.{ME}")]
    await asyncio.gather(*listen, beat(nc), take(nc.jetstream(), ROLE), take(nc.jetstream(), "@" + ME))

asyncio.run(main())
