//! An agent that does everything right, and the same with one thing wrong each.
#![allow(clippy::unwrap_used)]

use muster_shared::run::EventKind;
use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::render::checks::CheckResult;

const AGENT: &str = "counter-1";
const HEADER: &str = "Nats-Expected-Last-Subject-Sequence";

/// A transcript that can be spoilt.
struct Story {
    watch: Observations,
    clock: u64,
    seq: u64,
    generation: Generation,
}

impl Story {
    fn message(
        &mut self,
        subject: String,
        kind: &str,
        content: &Value,
        headers: &[(&str, String)],
        kept: bool,
    ) {
        self.clock += 10;
        let envelope = json!({
            "v": 1, "id": Uuid::nil(), "sender": AGENT, "sent": self.clock,
            "body": { "type": kind, "content": content },
        });
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        self.seq += u64::from(kept);
        self.watch.passed.push(Passed {
            at: Millis(self.clock),
            subject,
            headers,
            payload: envelope.to_string().into_bytes(),
            stored: kept.then_some(Seq(self.seq)),
        });
    }

    fn refused(&mut self, run: RunId, kind: EventKind, content: &Value) {
        self.write(run, kind, content);
        let last = self.watch.passed.last_mut().unwrap();
        (last.stored, self.seq) = (None, self.seq - 1);
    }

    fn write(&mut self, run: RunId, kind: EventKind, content: &Value) {
        let body = match kind {
            EventKind::Tool => "tool_started".to_owned(),
            other => other.to_string(),
        };
        let generation = self.generation;
        let headers = [
            (HEADER, self.seq.to_string()),
            ("Nats-Expected-Last-Subject-Sequence-Subject", format!("evt.{run}.*.*.1.{generation}.>")),
        ];
        let subject = format!("evt.{run}.counter.{AGENT}.1.{generation}.{kind}");
        self.message(subject, &body, content, &headers, true);
    }

    fn ack(&mut self) {
        self.clock += 10;
        self.watch.passed.push(Passed {
            at: Millis(self.clock),
            subject: format!("$JS.ACK.TASKS.@{AGENT}.1.1.1.1.0"),
            headers: Vec::new(),
            payload: b"+ACK".to_vec(),
            stored: None,
        });
    }

    fn trial(&mut self, kind: TrialKind) {
        let run = RunId::from_uuid(Uuid::from_u128(u128::from(self.clock) + 1));
        let from = Millis(self.clock + 1);
        self.generation = kind.generation();
        let (attempts, done) = kind.before();
        let mut disturbed_at = None;
        if kind.is_worked_on() {
            let ack = format!("$JS.ACK.TASKS.@{AGENT}.1.1.1.1.0");
            let started =
                json!({"attempt": attempts + 1, "ack": ack, "pid": 1, "host": "h", "after_step": done});
            self.write(run, EventKind::Started, &started);
            let step = json!({"number": done + 1, "thought": {"text": "t"}, "action": {"name": "count"}});
            self.write(run, EventKind::Step, &step);
            let is_disturbed = matches!(
                kind,
                TrialKind::Cancelled | TrialKind::Parked | TrialKind::Redelivered | TrialKind::Overtaken
            );
            disturbed_at = is_disturbed.then_some(Millis(self.clock));
            self.clock += if is_disturbed { 200 } else { 0 };
            let ending = if kind == TrialKind::Cancelled { "cancelled" } else { "done" };
            let product = json!({"result": {"conclusion": "7", "data": {"words": 7}}});
            let outcome = json!({"ending": ending, "product": product});
            match kind {
                TrialKind::Parked => {
                    self.write(run, EventKind::Released, &json!({"reason": "put down", "parked": true}));
                }
                TrialKind::Overtaken => self.refused(run, EventKind::Outcome, &outcome),
                _ => self.write(run, EventKind::Outcome, &outcome),
            }
        }
        self.ack();
        let (task, until) = ("1".parse().unwrap(), Millis(self.clock));
        self.watch.trials.push(Trial { kind, run, task, from, until, disturbed_at });
    }
}

fn queue(name: &str) -> QueueSettings {
    QueueSettings {
        name: name.to_owned(),
        filters: vec![format!("task.{name}.>")],
        ack_wait: Duration::from_secs(30),
        explicit_ack: true,
        max_deliver: -1,
        backoff: false,
        idle: Duration::ZERO,
    }
}

fn good() -> Observations {
    let watch = Observations {
        agent: AGENT.parse().unwrap(),
        role: "counter".into(),
        contract: ContractSchemas {
            input: None,
            output: Some(json!({"type": "object", "required": ["words"]})),
        },
        unfit: Vec::new(),
        passed: Vec::new(),
        trials: Vec::new(),
        queues: vec![queue("counter"), queue("@counter-1")],
        found: vec![queue("counter"), queue("@counter-1"), queue("worker")],
        ended: None,
        until: Millis(0),
    };
    let mut story = Story { watch, clock: 1000, seq: 0, generation: Generation(1) };
    let profile = json!({
        "agent": AGENT, "role": "counter", "pid": 1, "host": "h", "version": "1", "event_version": 1,
        "slots": 1, "busy": 0, "model": "m", "started_at": 1,
    });
    story.message(format!("$KV.AGENTS.{AGENT}"), "profile", &profile, &[("Nats-TTL", "15s".into())], false);
    let beat = json!({"agent": AGENT, "busy": 0, "slots": 1});
    story.message(format!("hb.counter.{AGENT}"), "heartbeat", &beat, &[], false);
    for kind in TrialKind::ALL {
        story.trial(kind);
    }
    story.watch.until = Millis(story.clock);
    story.watch
}

fn failed(watch: &Observations) -> Vec<(String, String)> {
    let checks = check::check(watch).into_iter().filter(|check| check.verdict == CheckResult::Fail);
    checks.map(|check| (check.what, check.found)).collect()
}

/// The messages of one trial and kind.
fn of<'a>(watch: &'a mut Observations, kind: TrialKind, end: &str) -> &'a mut Passed {
    let run = watch.trials.iter().find(|trial| trial.kind == kind).unwrap().run;
    let start = format!("evt.{run}.");
    let found =
        watch.passed.iter_mut().find(|one| one.subject.starts_with(&start) && one.subject.ends_with(end));
    found.unwrap()
}

fn edit(passed: &mut Passed, change: impl FnOnce(&mut Value)) {
    let mut envelope: Value = serde_json::from_slice(&passed.payload).unwrap();
    change(&mut envelope);
    passed.payload = envelope.to_string().into_bytes();
}

#[test]
fn an_agent_that_keeps_the_protocol_passes() {
    assert_eq!(failed(&good()), []);
}

#[test]
fn every_fault_is_named() {
    type Spoil = fn(&mut Observations);
    let cases: [(&str, &str, Spoil); 34] = [
        ("registry", "nothing was published", |watch| {
            watch.passed.retain(|one| !one.subject.starts_with("$KV."));
        }),
        ("registry", "no Nats-TTL", |watch| watch.passed[0].headers.clear()),
        ("registry", "no slots", |watch| {
            edit(&mut watch.passed[0], |entry| entry["body"]["content"]["slots"] = json!(0));
        }),
        ("heartbeat", "nothing was heard", |watch| drop(watch.passed.remove(1))),
        ("heartbeat", "silent for 60 s", |watch| watch.until = Millis(61_010)),
        ("envelopes", "cannot be read", |watch| {
            of(watch, TrialKind::Plain, "step").payload = b"{\"body\": 1}".to_vec();
        }),
        ("envelopes", "sender", |watch| {
            edit(of(watch, TrialKind::Plain, "step"), |step| step["sender"] = json!("somebody"));
        }),
        ("envelopes", "no subject of the protocol", |watch| {
            of(watch, TrialKind::Plain, "step").subject = "evt.run.step".into();
        }),
        ("fence", "has no header", |watch| of(watch, TrialKind::Plain, "step").headers.clear()),
        ("fence", "excludes nobody", |watch| {
            of(watch, TrialKind::Plain, "step").headers[1].1 = "evt.>".into();
        }),
        ("started", "never started", |watch| {
            of(watch, TrialKind::Plain, "started").stored = None;
            of(watch, TrialKind::Plain, "step").stored = None;
            of(watch, TrialKind::Plain, "outcome").stored = None;
        }),
        ("started", "before started", |watch| of(watch, TrialKind::Plain, "started").stored = None),
        ("started", "attempt", |watch| {
            edit(of(watch, TrialKind::TakenOver, "started"), |one| {
                one["body"]["content"]["attempt"] = json!(1)
            });
        }),
        ("steps", "step 3 follows step 1", |watch| {
            edit(of(watch, TrialKind::TakenOver, "step"), |one| one["body"]["content"]["number"] = json!(3));
        }),
        ("outcome", "gives no result", |watch| {
            edit(of(watch, TrialKind::Plain, "outcome"), |one| {
                one["body"]["content"]["product"] = Value::Null
            });
        }),
        ("after the outcome", "step was written after", |watch| {
            let mut late = of(watch, TrialKind::Plain, "step").clone();
            late.stored = None;
            watch.passed.push(late);
        }),
        ("acknowledgement", "not acknowledged", |watch| {
            let at = watch.passed.iter().position(|one| one.subject.starts_with("$JS.ACK")).unwrap();
            watch.passed.remove(at);
        }),
        ("cancellation", "ended as Done", |watch| {
            edit(of(watch, TrialKind::Cancelled, "outcome"), |one| {
                one["body"]["content"]["ending"] = json!("done")
            });
        }),
        ("closed generation", "not acknowledged", |watch| {
            let closed = watch.trial(TrialKind::Closed).unwrap().clone();
            let within = |one: &Passed| one.at >= closed.from && one.at <= closed.until;
            watch.passed.retain(|one| !(one.subject.starts_with("$JS.ACK") && within(one)));
        }),
        ("process", "exit status: 3", |watch| {
            watch.ended = Some((TrialKind::Plain, "exit status: 3".to_owned()));
        }),
        ("queues", "nobody takes from task.counter.>", |watch| drop(watch.found.remove(0))),
        ("queues", "ack_wait of counter is 5 s", |watch| watch.found[0].ack_wait = Duration::from_secs(5)),
        ("queues", "max_deliver of @counter-1 is 1", |watch| watch.found[1].max_deliver = 1),
        ("queues", "a consumer named mine", |watch| watch.found[0].name = "mine".to_owned()),
        ("queues", "inactive_threshold of counter is 9 s", |watch| {
            watch.found[0].idle = Duration::from_secs(9);
        }),
        ("queues", "backoff", |watch| watch.found[0].backoff = true),
        ("queues", "counter takes task.>", |watch| watch.found[0].filters = vec!["task.>".to_owned()]),
        ("contract", "`data`", |watch| {
            edit(of(watch, TrialKind::Plain, "outcome"), |one| {
                one["body"]["content"]["product"]["result"]["data"] = json!({"letters": 7});
            });
        }),
        ("contract", "was done though it has no documents", |watch| {
            watch.unfit = vec!["it has no documents".to_owned()];
        }),
        ("sizes", "data of the plain task has", |watch| {
            edit(of(watch, TrialKind::Plain, "outcome"), |one| {
                one["body"]["content"]["product"]["result"]["data"] = json!({"words": "x".repeat(100_000)});
            });
        }),
        ("steps", "step 1 follows step 1 in the task that goes on", |watch| {
            edit(of(watch, TrialKind::Continued, "step"), |one| one["body"]["content"]["number"] = json!(1));
        }),
        ("putting down", "without parked: true", |watch| {
            edit(of(watch, TrialKind::Parked, "released"), |one| {
                one["body"]["content"]["parked"] = json!(false);
            });
        }),
        ("putting down", "went on", |watch| of(watch, TrialKind::Parked, "released").stored = None),
        ("second delivery", "1 of its steps were taken twice", |watch| {
            let twice = of(watch, TrialKind::Redelivered, "step").clone();
            watch.passed.push(Passed { stored: Some(Seq(900)), ..twice });
        }),
    ];
    for (what, said, spoil) in cases {
        let mut watch = good();
        spoil(&mut watch);
        let failed = failed(&watch);
        assert!(
            failed.iter().any(|(check, found)| check == what && found.contains(said)),
            "{what}, {said}: {failed:?}"
        );
    }
}

/// What happened too fast to be seen is no fault, and no praise.
#[test]
fn what_was_not_seen_is_told_as_that() {
    let mut watch = good();
    for trial in &mut watch.trials {
        trial.disturbed_at = None;
    }
    let run = watch.trial(TrialKind::Overtaken).unwrap().run.to_string();
    watch.passed.retain(|one| !one.subject.contains(&run));
    let checks = check::check(&watch);
    let not_seen = checks.iter().filter(|check| check::word(check.verdict) == "not seen");
    let not_seen: Vec<&str> = not_seen.map(|check| check.what.as_str()).collect();
    assert_eq!(
        not_seen,
        ["after a refused write", "progress", "second delivery", "cancellation", "putting down"]
    );
}

#[test]
fn going_on_after_a_refused_write_is_a_fault() {
    let mut watch = good();
    of(&mut watch, TrialKind::Plain, "step").stored = None;
    assert!(failed(&watch).iter().any(|(check, found)| {
        check == "after a refused write" && found.contains("outcome follows a refused step")
    }));
}

#[test]
fn long_tasks_must_show_progress() {
    let mut watch = good();
    let until = Millis(90_000);
    for one in watch.passed.iter_mut().skip(4) {
        one.at = until;
    }
    watch.trials[0].until = until;
    watch.passed[0].at = until;
    watch.until = until;
    assert!(failed(&watch).iter().any(|(check, found)| check == "progress" && found.contains("no progress")));
}
