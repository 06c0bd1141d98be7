#!/usr/bin/env python3
"""A Muster specialist that counts words, with nothing but nats-py. docs/agents.md has the protocol.

    pip install nats-py
    NATS_URL=nats://127.0.0.1:4222 python3 deploy/examples/specialist.py
"""
import asyncio, json, os, socket, time, uuid
import nats
from nats.js.api import ConsumerConfig
from nats.js.errors import APIError, NotFoundError

ROLE, ME, JSON = "word_counter", f"word_counter-{uuid.uuid4().hex[:8]}", {"Content-Type": "application/json"}
PLACE, PACE = {"pid": os.getpid(), "host": socket.gethostname()}, float(os.environ.get("PACE", "0.1"))
SPECIALIST = {"description": "Counts the words of a text.", "capabilities": ["word count"]}
PROFILE = PLACE | {"agent": ME, "role": ROLE, "version": "1", "event_version": 1, "slots": 2, "busy": 0, "model": "none",
                   "started_at": int(time.time() * 1000), "encoding": "json", "specialist": SPECIALIST}
hand = {}  # what is in hand: (run, task, generation) -> orders about it

def message(kind, content, **about):
    about |= {"v": 1, "id": str(uuid.uuid4()), "sender": ME, "sent": int(time.time() * 1000)}
    return json.dumps(about | {"body": {"type": kind, "content": content}}).encode()

async def every(seconds, *actions):
    while True:
        for action in actions:
            await action()
        await asyncio.sleep(seconds)

async def last(js, subject):  # the newest entry of the record: its place and what it says
    try:
        found = await js.get_last_msg("RUNS", subject)
        return found.seq, json.loads(found.data)["body"]["content"]
    except NotFoundError:
        return 0, {}

async def work(js, ack, offer, orders):
    run, task, gen, order = offer["run"], offer["task"], offer["generation"], ""
    fence = f"evt.{run}.*.*.{task}.{gen}."  # the same for all agents: of two that write, one is refused
    seq, begun, step, end = [await last(js, fence + kind) for kind in (">", "started", "step", "outcome")]
    seq, done, words = seq[0], step[1].get("number", 0), len(offer["work"]["execute"]["task"]["goal"].split())
    async def write(kind, **content):
        nonlocal seq
        headers = JSON | {"Nats-Expected-Last-Subject-Sequence": str(seq),
                          "Nats-Expected-Last-Subject-Sequence-Subject": fence + ">"}
        subject = f"evt.{run}.{ROLE}.{ME}.{task}.{gen}.{kind}"
        seq = (await js.publish(subject, message(kind, content, run=run, task=task), headers=headers)).seq
    if end[0]:
        return  # somebody was faster: it is acknowledged and dropped
    await write("started", attempt=begun[1].get("attempt", 0) + 1, ack=ack, after_step=done, **PLACE)
    for number in range(done + 1, 4):
        try:
            order = await asyncio.wait_for(orders.get(), PACE)  # in place of real work
            break
        except asyncio.TimeoutError:
            await write("step", number=number, thought={"text": "Count, to be sure."}, action={"name": "count"},
                        observation={"status": "success", "content": str(words), "millis": 0})
    if order.startswith("park"):
        return await write("released", reason="it was put down", parked=True)
    said = f"The task has {words} words."
    result = {"conclusion": said, "findings": [{"text": said, "confidence": 100}], "data": {"words": words}}
    await write("outcome", ending="cancelled" if order else "done", product=None if order else {"result": result})

async def take(js, queue, idle):
    await js.add_consumer("TASKS", ConsumerConfig(
        durable_name=queue, filter_subject=f"task.{queue}.>", ack_policy="explicit", ack_wait=30, max_deliver=-1,
        max_ack_pending=20000, max_waiting=8192, inactive_threshold=idle))
    tasks = await js.pull_subscribe_bind(durable=queue, stream="TASKS")
    while True:
        try:
            msg, = await tasks.fetch(1, timeout=20)
        except (nats.errors.TimeoutError, asyncio.TimeoutError):
            continue
        content = json.loads(msg.data)["body"]["content"]
        offer = content.get("offer") or content  # a single offer travels inside its decision
        key, keeper = tuple(offer[part] for part in ("run", "task", "generation")), asyncio.create_task(every(10, msg.in_progress))
        try:
            await work(js, msg.reply, offer, hand.setdefault(key, asyncio.Queue()))
            await msg.ack_sync()
        except APIError as refused:  # 10071, 10164: another agent has the task
            print(refused, flush=True)
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
    beats = (lambda: js.publish(f"$KV.AGENTS.{ME}", message("profile", PROFILE | {"busy": len(hand)}), headers=JSON | {"Nats-TTL": "15s"}),
             lambda: nc.publish(f"hb.{ROLE}.{ME}", message("heartbeat", {"agent": ME, "busy": len(hand), "slots": 2})))
    await asyncio.gather(every(5, *beats), take(js, ROLE, None), take(js, "@" + ME, 600))

asyncio.run(main())
