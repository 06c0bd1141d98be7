#!/usr/bin/env node
// A Muster specialist that counts words, with nothing but @nats-io/transport-node. docs/gateway.md has what it may ask of the
// task gateway.
//
//     npm install @nats-io/transport-node
//     NATS_URL=nats://127.0.0.1:4222 node deploy/examples/specialist.mjs
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect, credsAuthenticator } from "@nats-io/transport-node";

const [ROLE, PACE] = ["word_counter", Number(process.env.PACE ?? "0.1") * 1000];
const ME = process.env.MUSTER_AGENT_ID || `word_counter-${randomUUID().slice(0, 8)}`;
const WHO = { agent: ME, pid: process.pid, slots: 2, description: "Counts the words of a text.", capabilities: ["word count"] };
const sleep = (millis) => new Promise((done) => setTimeout(done, millis));
// Read anew for each connection: the file is written anew when the fleet's keys change.
const creds = process.env.NATS_CREDS && ((nonce) => credsAuthenticator(readFileSync(process.env.NATS_CREDS))(nonce));
const { NATS_CA: caFile, NATS_CERT: certFile, NATS_KEY: keyFile } = process.env; // where the fleet has an authority of its own
const nc = await connect({
  servers: process.env.NATS_URL,
  name: ME, // by this name it is known at once when it dies
  maxReconnectAttempts: -1, // a cut may last
  authenticator: creds || undefined,
  tls: caFile ? { caFile, certFile, keyFile } : undefined,
  inboxPrefix: process.env.NATS_INBOX_PREFIX, // what its credentials let it listen to
});

async function ask(verb, said) {
  const body = JSON.stringify({ ...said, id: randomUUID() }); // sent again with this id, nothing is recorded twice
  for (;;) {
    try {
      const answer = (await nc.request(`agent.${ROLE}.${verb}`, body, { timeout: 40_000 })).json();
      if (!answer.error?.retry) return answer;
    } catch (error) {
      if (nc.isClosed()) throw error; // no gateway answers for now, or the answer was lost
    }
    await sleep(500);
  }
}

// About a task: what is not ours any more, or refused, ends our work on it.
async function tell(task, verb, said = {}) {
  const answer = await ask(verb, { token: task.token, ...said });
  if (answer.error || answer.over) throw new Error(answer.reason ?? answer.error.message);
  task.token = answer.token ?? task.token;
}

async function work(task) {
  const words = task.goal.split(/\s+/).filter(Boolean).length;
  for (let number = task.next_step; number < 4; number++) { // earlier steps count, whoever took them
    await sleep(PACE); // in place of real work
    if (task.over) throw task.over;
    await tell(task, "step", { thought: "Count, to be sure.", action: { name: "count" }, observation: String(words) });
  }
  await tell(task, "finish", { result: { conclusion: `${words} words.`, data: { words } } });
}

async function serve() {
  for (;;) {
    const { task } = await ask("take", WHO);
    if (!task) continue;
    const beat = setInterval(() => tell(task, "beat").catch((why) => { task.over = why; }), 3000); // within 15 s
    await work(task).then(() => console.log("done"), (why) => console.log(why.message));
    clearInterval(beat);
  }
}

await Promise.all([serve(), serve()]);
