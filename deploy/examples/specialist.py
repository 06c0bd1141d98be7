#!/usr/bin/env python3
"""A Muster specialist that counts words, with nothing but nats-py. docs/agents.md explains each line.

    pip install nats-py
    NATS_URL=nats://127.0.0.1:4222 python3 deploy/examples/specialist.py
"""
import asyncio, json, os, socket, time, uuid
import nats
from nats.js.api import ConsumerConfig
from nats.js.errors import APIError, NotFoundError

ROLE, ME, HOST, JSON = "word_counter", f"word_counter-{uuid.uuid4().hex[:8]}", socket.gethostname(), {"Content-Type": "application/json"}
PROFILE = {"agent": ME, "role": ROLE, "pid": os.getpid(), "host": HOST, "version": "1", "event_version": 1, "slots": 2, "busy": 0,
           "model": "none", "started_at": int(time.time() * 1000), "encoding": "json",
           "specialist": {"description": "Counts the words of a text.", "capabilities": ["word count"]}}
PACE = float(os.environ.get("PACE", "0.1"))  # stands for real work
hand = {}  # what is in hand: (run, task, generation) -> orders about it

def message(kind, content, **about):
    about |= {"v": 1, "id": str(uuid.uuid4()), "sender": ME, "sent": int(time.time() * 1000)}
    return json.dumps(about | {"body": {"type": kind, "content": content}}).encode()

async def beat(nc, js):  # the registry forgets whoever is silent for 15 s
    while True:
        await js.publish(f"$KV.AGENTS.{ME}", message("profile", PROFILE | {"busy": len(hand)}), headers=JSON | {"Nats-TTL": "15s"})
        await nc.publish(f"hb.{ROLE}.{ME}", message("heartbeat", {"agent": ME, "busy": len(hand), "slots": 2}), headers=JSON)
        await asyncio.sleep(5)

async def keep(msg):  # a task without a sign of progress for 30 s is given to another
    while True:
        await asyncio.sleep(10)
        await msg.in_progress()

async def last(js, subject):  # the newest entry of the record: its place and what it says
    try:
        found = await js.get_last_msg("RUNS", subject)
        return found.seq, json.loads(found.data)["body"]["content"]
    except NotFoundError:
        return 0, {}

async def work(js, msg, offer, orders):
    run, task, gen = offer["run"], offer["task"], offer["generation"]
    fence = f"evt.{run}.*.*.{task}.{gen}."  # the same for all agents: of two that write, one is refused
    (seq, _), (_, begun), (_, step), (ended, _) = [await last(js, fence + kind) for kind in (">", "started", "step", "outcome")]
    if ended:  # somebody was faster
        return await msg.ack_sync()

    async def write(kind, content):
        nonlocal seq
        headers = JSON | {"Nats-Expected-Last-Subject-Sequence": str(seq), "Nats-Expected-Last-Subject-Sequence-Subject": fence + ">"}
        body = message(kind, content, run=run, task=task)
        seq = (await js.publish(f"evt.{run}.{ROLE}.{ME}.{task}.{gen}.{kind}", body, headers=headers)).seq

    done, order, words = step.get("number", 0), None, len(offer["work"]["execute"]["task"]["goal"].split())
    await write("started", {"attempt": begun.get("attempt", 0) + 1, "ack": msg.reply, "pid": os.getpid(), "host": HOST, "after_step": done})
    for number in range(done + 1, 4):
        try:
            order = await asyncio.wait_for(orders.get(), PACE)
            break
        except asyncio.TimeoutError:
            await write("step", {"number": number, "thought": {"text": "Count again, to be sure."}, "action": {"name": "count"},
                                 "observation": {"status": "success", "content": str(words), "millis": 0}})
    said = f"The task has {words} words."
    result = {"conclusion": said, "findings": [{"text": said, "confidence": 100}], "data": {"words": words}}
    if order is None:
        await write("outcome", {"ending": "done", "product": {"result": result}})
    elif order.startswith("cancel"):
        await write("outcome", {"ending": "cancelled", "reason": "it was cancelled"})
    else:  # put down: the run offers it again when it goes on
        await write("released", {"reason": "it was put down", "parked": True})
    await msg.ack_sync()

async def take(js, queue):
    idle = 600 if queue.startswith("@") else None  # a queue of one's own goes when its agent is long gone
    await js.add_consumer("TASKS", ConsumerConfig(durable_name=queue, filter_subject=f"task.{queue}.>", ack_policy="explicit", ack_wait=30,
                          max_deliver=-1, max_ack_pending=20000, max_waiting=8192, inactive_threshold=idle))
    tasks = await js.pull_subscribe_bind(durable=queue, stream="TASKS")
    while True:
        try:
            msg, = await tasks.fetch(1, timeout=20)
        except (nats.errors.TimeoutError, asyncio.TimeoutError):
            continue
        content = json.loads(msg.data)["body"]["content"]
        offer = content.get("offer") or content  # a single offer travels inside its decision
        key, keeper = (offer["run"], offer["task"], offer["generation"]), asyncio.create_task(keep(msg))
        try:
            await work(js, msg, offer, hand.setdefault(key, asyncio.Queue()))
        except APIError as error:
            print("another agent has the task" if error.err_code in (10071, 10164) else error, flush=True)
        finally:
            keeper.cancel(), hand.pop(key, None)

async def main():
    nc = await nats.connect(os.environ["NATS_URL"], name=ME)  # by this name orchestrators learn whose connection ended
    js = nc.jetstream()

    async def obey(msg):
        order = json.loads(msg.data)["body"]["content"]
        for (run, task, gen), orders in hand.items():
            if order.get("run") == run and order.get("task", task) == task and order.get("generation", gen) == gen:
                orders.put_nowait(order["control"])

    for subject in ("ctl.all", f"ctl.role.{ROLE}", f"ctl.agent.{ME}"):
        await nc.subscribe(subject, cb=obey)
    await asyncio.gather(beat(nc, js), take(js, ROLE), take(js, "@" + ME))

asyncio.run(main())
