//! Gives an agent tasks and watches what it does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use muster_bus::{Bus, BusError, ControlTarget, Tapped};
use muster_shared::flow::{
    Action, Budget, Ending, Observation, ObservationStatus, Outcome, PlanTask, Product, RunLimits, Step,
    TaskOffered, TaskResult, Thought, Usage, Work,
};
use muster_shared::ids::{AgentId, Attempt, Generation, Queue, Role, RunId, Seq, TaskId, TaskIndex};
use muster_shared::run::{AgentEvent, AgentKey, Decided, EventKind, Input, Started};
use muster_shared::time::Millis;
use muster_shared::wire::{ControlMessage, Encoding, Profile};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{Kind, Passed, Trial, Watch, check};
use crate::app::now;

/// Most messages that are kept.
const MOST_KEPT: usize = 20_000;
/// How often is looked whether something has come.
const LOOK: Duration = Duration::from_millis(20);
/// Time for the last words of a task: an acknowledgement, or what should not come.
const LAST_WORDS: Duration = Duration::from_millis(400);
/// How long an agent's next heartbeat is waited for.
const NEXT_BEAT: Duration = check::LATE.saturating_add(Duration::from_millis(500));
/// Everything that an agent says.
const SUBJECTS: [&str; 4] = ["evt.>", "hb.>", "$KV.AGENTS.>", "$JS.ACK.TASKS.>"];

/// Listens to a bus.
pub(crate) struct Listener {
    bus: Bus,
    heard: Arc<Mutex<Vec<Passed>>>,
    ear: tokio::task::JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.ear.abort();
    }
}

impl Listener {
    /// Begins to listen.
    pub(crate) async fn new(bus: Bus) -> Result<Self, BusError> {
        let mut all = bus.tap().raw(&SUBJECTS).await?;
        let heard: Arc<Mutex<Vec<Passed>>> = Arc::default();
        let kept = Arc::clone(&heard);
        let ear = tokio::spawn(async move {
            while let Some(tapped) = all.next().await {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() < MOST_KEPT {
                    kept.push(passed(tapped));
                }
            }
        });
        Ok(Self { bus, heard, ear })
    }

    fn heard(&self) -> Vec<Passed> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The agent that is meant: this one, one of this role, or any; else those that there are.
    pub(crate) async fn find(
        &self,
        wanted: Option<&AgentId>,
        role: Option<&str>,
    ) -> Result<Result<Profile, Vec<AgentId>>, BusError> {
        let mut agents = self.bus.registry().list().await?;
        agents.retain(|profile| profile.role != "orchestrator");
        let meant = agents.iter().position(|profile| {
            wanted.is_none_or(|wanted| profile.agent == *wanted)
                && role.is_none_or(|role| profile.role == role)
        });
        Ok(match meant {
            Some(at) => Ok(agents.swap_remove(at)),
            None => Err(agents.into_iter().map(|profile| profile.agent).collect()),
        })
    }

    /// Gives the agent all trials, one after the other, and tells what was seen.
    pub(crate) async fn watch(&self, profile: &Profile, limit: Duration) -> Result<Watch, BusError> {
        let (begun, already) = (Instant::now(), self.entries(profile));
        let mut trials = Vec::new();
        for kind in [Kind::Plain, Kind::TakenOver, Kind::Closed, Kind::Cancelled] {
            trials.push(self.trial(profile, kind, limit).await?);
        }
        // Whoever says once that it lives is forgotten: it has to say so again.
        while self.entries(profile) == already && begun.elapsed() < NEXT_BEAT {
            sleep(LOOK).await;
        }
        sleep(LAST_WORDS).await;
        let mut passed = self.heard();
        for trial in &trials {
            for (seq, kept) in self.bus.tap().stored(trial.run).await? {
                let same = passed.iter_mut().find(|one| {
                    one.stored.is_none() && one.subject == kept.subject && one.payload == kept.bytes
                });
                if let Some(same) = same {
                    same.stored = Some(seq);
                }
            }
        }
        let (agent, role) = (profile.agent.clone(), profile.role.clone());
        Ok(Watch { agent, role, passed, trials, until: now() })
    }

    /// How often the agent has entered itself into the registry.
    fn entries(&self, profile: &Profile) -> usize {
        let entry = format!("$KV.AGENTS.{}", profile.agent);
        self.heard().iter().filter(|passed| passed.subject == entry && !passed.payload.is_empty()).count()
    }

    async fn trial(&self, profile: &Profile, kind: Kind, limit: Duration) -> Result<Trial, BusError> {
        let run = RunId::from_uuid(Uuid::now_v7());
        let (task, generation) = (TaskId::Leaf(TaskIndex::top(1)), Generation(1));
        let mut trial = Trial { kind, run, task, generation, from: now(), until: now(), cancelled_at: None };
        self.prepare(profile, &trial).await?;
        trial.from = now();
        self.offer(profile, &trial).await?;
        let until = Instant::now() + limit;
        while Instant::now() < until {
            let heard = self.heard();
            let of_kind = |kind: EventKind| {
                let (start, end) = (format!("evt.{run}."), format!(".{kind}"));
                let own = format!(".{}.", profile.agent);
                heard.iter().any(|passed| {
                    passed.subject.starts_with(&start)
                        && passed.subject.ends_with(&end)
                        && passed.subject.contains(&own)
                })
            };
            if kind == Kind::Cancelled && trial.cancelled_at.is_none() && of_kind(EventKind::Started) {
                trial.cancelled_at = Some(now());
                self.cancel(profile, &trial).await?;
            }
            let acknowledged = heard.iter().any(|passed| {
                passed.at >= trial.from
                    && passed.subject.starts_with(&format!("$JS.ACK.TASKS.@{}.", profile.agent))
                    && (passed.payload.is_empty() || passed.payload.starts_with(b"+ACK"))
            });
            if acknowledged && (kind == Kind::Closed || of_kind(EventKind::Outcome)) {
                break;
            }
            sleep(LOOK).await;
        }
        sleep(LAST_WORDS).await;
        trial.until = now();
        Ok(trial)
    }

    /// Writes what stands in the record before the agent comes.
    async fn prepare(&self, profile: &Profile, trial: &Trial) -> Result<(), BusError> {
        let earlier = match trial.kind {
            Kind::Plain | Kind::Cancelled => Vec::new(),
            Kind::TakenOver => vec![begun(), AgentEvent::Step(step())],
            Kind::Closed => vec![begun(), AgentEvent::Outcome(outcome())],
        };
        let key = AgentKey {
            role: role_of(profile)?,
            agent: AgentId::new("conform", 0),
            task: trial.task.clone(),
            generation: trial.generation,
        };
        let mut after = Seq(0);
        for event in &earlier {
            let written =
                self.bus.record().append_agent(trial.run, &key, after, event, profile.encoding).await;
            after = written.map_err(BusError::from)?;
        }
        Ok(())
    }

    async fn offer(&self, profile: &Profile, trial: &Trial) -> Result<(), BusError> {
        let offer = offer(profile, trial)?;
        let decided = Decided {
            batch: Uuid::new_v4(),
            by: self.bus.who().clone(),
            inputs: vec![Input::Capacity],
            now: now(),
            basis: Seq(0),
            capacity: std::collections::BTreeMap::new(),
            specialists: Vec::new(),
            placements: Vec::new(),
            offers: 0,
            continues: false,
            events: Vec::new(),
            offer: Some(Box::new(offer)),
        };
        let written =
            self.bus.record().append_decision(trial.run, Seq(0), &decided, &[], profile.encoding).await;
        written.map(|_| ()).map_err(BusError::from)
    }

    async fn cancel(&self, profile: &Profile, trial: &Trial) -> Result<(), BusError> {
        let order = ControlMessage::CancelTask {
            run: trial.run,
            task: trial.task.clone(),
            generation: trial.generation,
            reason: "to see whether it stops".to_owned(),
        };
        self.bus.control().send(&ControlTarget::Agent(profile.agent.clone()), &order).await
    }
}

fn passed(tapped: Tapped) -> Passed {
    let Tapped { subject, at, bytes, headers, .. } = tapped;
    Passed { at, subject, headers, payload: bytes.to_vec(), stored: None }
}

fn role_of(profile: &Profile) -> Result<Role, BusError> {
    let wrong = |_| BusError::BadName {
        name: profile.role.clone(),
        rule: "a role is lower-case letters, digits and _",
    };
    profile.role.parse().map_err(wrong)
}

fn offer(profile: &Profile, trial: &Trial) -> Result<TaskOffered, BusError> {
    let limits = RunLimits::default();
    let goal = "Count the words of this sentence.".to_owned();
    Ok(TaskOffered {
        run: trial.run,
        task: trial.task.clone(),
        generation: trial.generation,
        queue: Queue::Agent(profile.agent.clone()),
        work: Work::Execute {
            task: PlanTask::new("conform", goal.as_str(), role_of(profile)?),
            inputs: Vec::new(),
            parents: Vec::new(),
            progress: String::new(),
            lessons: Vec::new(),
            failed_before: None,
            left_out: Vec::new(),
            member: None,
        },
        goal,
        role_name: String::new(),
        conversation: Vec::new(),
        corpus: None,
        model: None,
        deadline: Millis(now().0.saturating_add(120_000)),
        limits,
        budget: Budget::default(),
        continues: None,
        answered: None,
        heard: Vec::new(),
        may_ask_peers: false,
        chain: Vec::new(),
        withheld: Vec::new(),
        nonce: "c0ffee00c0ffee00".to_owned(),
        encoding: if profile.encoding == Encoding::Json { Encoding::Json } else { Encoding::default() },
    })
}

fn begun() -> AgentEvent {
    let (ack, host) = ("$JS.ACK.TASKS.conform.1.1.1.1.0".to_owned(), "conform".to_owned());
    AgentEvent::Started(Started { attempt: Attempt(1), ack, pid: 1, host, after_step: 0 })
}

fn step() -> Step {
    let content = "7".to_owned();
    Step {
        number: 1,
        thought: Thought { text: "Count once.".to_owned(), ..Thought::default() },
        action: Action { name: "count".to_owned(), arguments: serde_json::Value::Null },
        observation: Some(Observation {
            status: ObservationStatus::Success,
            content,
            millis: 0,
            truncated: false,
        }),
        notes: Vec::new(),
        heard: Vec::new(),
        calls: Vec::new(),
        millis: 0,
        outside_millis: 0,
    }
}

fn outcome() -> Outcome {
    let result = TaskResult { conclusion: "7 words.".to_owned(), ..TaskResult::default() };
    Outcome {
        ending: Ending::Done,
        reason: String::new(),
        product: Some(Product::Result(result)),
        last_step: None,
        steps: Vec::new(),
        usage: Usage::default(),
        breach: None,
    }
}
