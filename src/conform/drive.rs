//! Gives an agent tasks and watches what it does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use muster_bus::subject::task_fence;
use muster_bus::{AppendError, Bus, BusError, ControlTarget, Tapped};
use muster_shared::flow::{Ending, TaskOffered};
use muster_shared::ids::{AgentId, Attempt, Generation, Queue, RunId, Seq, TaskId, TaskIndex};
use muster_shared::run::event::TaskOrphaned;
use muster_shared::run::{AgentEvent, Decided, EventKind, Input, RunEvent};
use muster_shared::wire::{Body, ControlMessage, Encoding, Envelope, Profile, decode};
use tokio::process::Child;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::offers::{begun, earlier, other, outcome};
use super::{End, Given, Observations, Passed, Trial, TrialKind, check};
use crate::app::now;

/// Most messages that are kept.
const MOST_KEPT: usize = 20_000;
/// How often is looked whether something has come.
const LOOK: Duration = Duration::from_millis(20);
/// Time for the last words of a task: an acknowledgement, or what should not come.
const LAST_WORDS: Duration = Duration::from_millis(400);
/// How long an agent's next heartbeat is waited for.
const NEXT_BEAT: Duration = check::LATE.saturating_add(Duration::from_millis(500));
/// How often another agent tries to get in between two writes.
const MOST_TRIES: usize = 8;
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

/// The agent that is tried, and how.
pub(crate) struct Tried<'a> {
    /// What it says of itself.
    pub(crate) profile: &'a Profile,
    /// What it is asked to do.
    pub(crate) given: &'a Given,
    /// Time for each trial.
    pub(crate) limit: Duration,
    /// Its process, on a bus of its own. In a fleet there is none, and others take from the queue of its role.
    pub(crate) child: Option<&'a mut Child>,
}

impl Tried<'_> {
    fn kinds(&self) -> impl Iterator<Item = TrialKind> + use<> {
        let alone = self.child.is_some();
        TrialKind::ALL.into_iter().filter(move |kind| alone || *kind != TrialKind::OfRole)
    }

    /// How its process ended, if it did.
    fn ended(&mut self) -> Option<String> {
        let status = self.child.as_mut()?.try_wait().ok()?;
        status.map(|status| status.to_string())
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
        agents.retain(|profile| profile.role != "orchestrator" && !profile.role.starts_with("guard-"));
        let meant = agents.iter().position(|profile| {
            wanted.is_none_or(|wanted| profile.agent == *wanted)
                && role.is_none_or(|role| profile.role == role)
        });
        Ok(match meant {
            Some(at) => Ok(agents.swap_remove(at)),
            None => Err(agents.into_iter().map(|profile| profile.agent).collect()),
        })
    }

    /// Gives the agent all trials, one after the other, and tells what was seen. Who starts nothing, or whose process
    /// ends, is given no more.
    pub(crate) async fn watch(&self, mut tried: Tried<'_>) -> Result<Observations, BusError> {
        let profile = tried.profile;
        let (begun, already) = (Instant::now(), self.entries(profile));
        let (mut trials, mut ended): (Vec<Trial>, Option<(TrialKind, String)>) = (Vec::new(), None);
        for kind in tried.kinds() {
            trials.push(self.trial(&mut tried, kind).await?);
            ended = tried.ended().map(|how| (kind, how));
            let starts = trials.iter().any(|trial| self.has_written(profile, trial, EventKind::Started));
            if ended.is_some() || (!starts && !matches!(kind, TrialKind::Plain)) {
                break;
            }
        }
        // Whoever says once that it lives is forgotten: it has to say so again.
        while ended.is_none() && self.entries(profile) == already && begun.elapsed() < NEXT_BEAT {
            sleep(LOOK).await;
        }
        sleep(LAST_WORDS).await;
        let (agent, role) = (profile.agent.clone(), profile.role.clone());
        let queues = [role.parse().ok().map(Queue::Role), Some(Queue::Agent(agent.clone()))];
        let tasks = self.bus.tasks();
        Ok(Observations {
            contract: profile.specialist.as_ref().map(|one| one.contract.clone()).unwrap_or_default(),
            unfit: trials.first().map(|trial| tried.given.unfit(profile, trial)).unwrap_or_default(),
            passed: self.passed(&trials).await?,
            trials,
            queues: queues.iter().flatten().map(|queue| tasks.settings_of(queue)).collect(),
            found: tasks.queues().await?,
            ended,
            until: now(),
            agent,
            role,
        })
    }

    /// All that was heard, with what of it got into the record.
    async fn passed(&self, trials: &[Trial]) -> Result<Vec<Passed>, BusError> {
        let mut passed = self.heard();
        for trial in trials {
            for (seq, kept) in self.bus.tap().stored(trial.run).await? {
                let same = passed.iter_mut().find(|one| {
                    one.stored.is_none() && one.subject == kept.subject && one.payload == kept.bytes
                });
                if let Some(same) = same {
                    same.stored = Some(seq);
                }
            }
        }
        Ok(passed)
    }

    /// How often the agent has entered itself into the registry.
    fn entries(&self, profile: &Profile) -> usize {
        let entry = format!("$KV.AGENTS.{}", profile.agent);
        self.heard().iter().filter(|passed| passed.subject == entry && !passed.payload.is_empty()).count()
    }

    async fn trial(&self, tried: &mut Tried<'_>, kind: TrialKind) -> Result<Trial, BusError> {
        let run = RunId::from_uuid(Uuid::now_v7());
        let task = TaskId::Leaf(TaskIndex::top(1));
        let mut trial = Trial { kind, run, task, from: now(), until: now(), disturbed_at: None };
        let (profile, limit) = (tried.profile, tried.limit);
        for (generation, event) in earlier(kind) {
            self.write_as_another(profile, &trial, generation, &event).await?;
        }
        trial.from = now();
        self.offer(tried, &trial).await?;
        let until = Instant::now() + limit;
        while Instant::now() < until && tried.ended().is_none() {
            if trial.disturbed_at.is_none() && self.has_written(profile, &trial, EventKind::Started) {
                self.disturb(profile, &mut trial).await?;
            }
            if self.is_over(profile, &trial) {
                break;
            }
            sleep(LOOK).await;
        }
        sleep(LAST_WORDS).await;
        trial.until = now();
        if kind == TrialKind::Overtaken {
            // The delivery is still the agent's: what comes again is to be found closed.
            let end = AgentEvent::Outcome(outcome(Ending::Cancelled).into());
            self.write_as_another(profile, &trial, kind.generation(), &end).await?;
        }
        Ok(trial)
    }

    /// Whether everything has come that is to come.
    fn is_over(&self, profile: &Profile, trial: &Trial) -> bool {
        match trial.kind.end() {
            End::Outcome => {
                self.is_acknowledged(profile, trial) && self.has_written(profile, trial, EventKind::Outcome)
            }
            End::PutDown => {
                let end = [EventKind::Released, EventKind::Outcome];
                self.is_acknowledged(profile, trial)
                    && end.iter().any(|kind| self.has_written(profile, trial, *kind))
            }
            End::Nothing => match trial.disturbed_at {
                // A write that came after the other's was refused, or ends what was done before it.
                Some(at) => self.writings(profile, trial).any(|passed| passed.at > at),
                None if trial.kind == TrialKind::Closed => self.is_acknowledged(profile, trial),
                // It has ended before anybody came between.
                None => self.has_written(profile, trial, EventKind::Outcome),
            },
        }
    }

    fn is_acknowledged(&self, profile: &Profile, trial: &Trial) -> bool {
        let queue = if trial.kind == TrialKind::OfRole {
            profile.role.clone()
        } else {
            format!("@{}", profile.agent)
        };
        let subject = format!("$JS.ACK.TASKS.{queue}.");
        self.heard().iter().any(|passed| {
            passed.at >= trial.from
                && passed.subject.starts_with(&subject)
                && (passed.payload.is_empty() || passed.payload.starts_with(b"+ACK"))
        })
    }

    /// What the agent wrote about a trial, in the record or not.
    fn writings(&self, profile: &Profile, trial: &Trial) -> impl Iterator<Item = Passed> + use<> {
        let (start, own) = (format!("evt.{}.", trial.run), format!(".{}.", profile.agent));
        self.heard()
            .into_iter()
            .filter(move |passed| passed.subject.starts_with(&start) && passed.subject.contains(&own))
    }

    fn has_written(&self, profile: &Profile, trial: &Trial, kind: EventKind) -> bool {
        let end = format!(".{kind}");
        self.writings(profile, trial).any(|passed| passed.subject.ends_with(&end))
    }

    async fn offer(&self, tried: &Tried<'_>, trial: &Trial) -> Result<(), BusError> {
        let offer = tried.given.offer(tried.profile, trial, now())?;
        self.decide(trial.run, Vec::new(), Some(Box::new(offer)), tried.profile.encoding).await
    }

    /// Decides that the agent is lost with the task: only then may another have it.
    async fn orphan(&self, profile: &Profile, trial: &Trial) -> Result<(), BusError> {
        let orphaned = TaskOrphaned {
            task: trial.task.clone(),
            generation: trial.kind.generation(),
            attempt: Attempt(1),
            agent: profile.agent.clone(),
            reason: "to see whether it notices".to_owned(),
            last_step: 0,
            beside: 0,
        };
        self.decide(trial.run, vec![orphaned.into()], None, profile.encoding).await
    }

    /// Writes a decision behind those that there are.
    async fn decide(
        &self,
        run: RunId,
        events: Vec<RunEvent>,
        offer: Option<Box<TaskOffered>>,
        encoding: Encoding,
    ) -> Result<(), BusError> {
        let decided = Decided {
            batch: Uuid::new_v4(),
            by: self.bus.who().clone(),
            inputs: vec![Input::Capacity],
            now: now(),
            basis: Seq(0),
            after: Seq(0),
            capacity: std::collections::BTreeMap::new(),
            specialists: Vec::new(),
            placements: Vec::new(),
            readings: Vec::new(),
            offers: 0,
            continues: false,
            events,
            offer,
        };
        let after = self.bus.record().last_decision(run).await?.map_or(Seq(0), |entry| entry.seq);
        let written = self.bus.record().append_decision(run, after, &decided, &[], encoding).await;
        written.map(|_| ()).map_err(BusError::from)
    }

    /// Does what is special about a trial, once the agent works on it.
    async fn disturb(&self, profile: &Profile, trial: &mut Trial) -> Result<(), BusError> {
        let (run, task, generation) = (trial.run, trial.task.clone(), trial.kind.generation());
        let reason = "to see whether it obeys".to_owned();
        trial.disturbed_at = Some(now());
        match trial.kind {
            TrialKind::Cancelled => {
                self.order(profile, &ControlMessage::CancelTask { run, task, generation, reason }).await
            }
            TrialKind::Parked => {
                self.order(profile, &ControlMessage::ParkTask { run, task, generation, reason }).await
            }
            TrialKind::Redelivered => {
                let ack = self.writings(profile, trial).find_map(|passed| ack_in(&passed));
                // One without a subject to acknowledge is a fault that the checks name.
                let handed_on = match ack {
                    Some(ack) => self.bus.tasks().hand_on(&ack).await,
                    None => Ok(()),
                };
                match handed_on {
                    Ok(()) | Err(BusError::BadName { .. }) => Ok(()),
                    Err(error) => Err(error),
                }
            }
            TrialKind::Overtaken => {
                self.orphan(profile, trial).await?;
                let came = self.write_as_another(profile, trial, generation, &begun(2)).await?;
                trial.disturbed_at = came.then(now);
                Ok(())
            }
            TrialKind::Plain
            | TrialKind::OfRole
            | TrialKind::Stored
            | TrialKind::TakenOver
            | TrialKind::Continued
            | TrialKind::Closed => Ok(()),
        }
    }

    async fn order(&self, profile: &Profile, order: &ControlMessage) -> Result<(), BusError> {
        self.bus.control().send(&ControlTarget::Agent(profile.agent.clone()), order).await
    }

    /// Another agent writes to a generation, unless it has ended. Returns whether it did.
    async fn write_as_another(
        &self,
        profile: &Profile,
        trial: &Trial,
        generation: Generation,
        event: &AgentEvent,
    ) -> Result<bool, BusError> {
        let key = other(profile, trial, generation)?;
        let fence = task_fence(trial.run, &trial.task, generation);
        let of_generation = |subject: &str| muster_bus::subject::matches(&fence, subject);
        for _ in 0..MOST_TRIES {
            let stored = self.bus.tap().stored(trial.run).await?;
            let mut written = stored.iter().filter(|(_, tapped)| of_generation(&tapped.subject));
            if written.clone().any(|(_, tapped)| tapped.subject.ends_with(".outcome")) {
                return Ok(false);
            }
            let after = written.next_back().map_or(Seq(0), |(seq, _)| *seq);
            match self.bus.record().append_agent(trial.run, &key, after, event, profile.encoding).await {
                Ok(_) => return Ok(true),
                Err(AppendError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }
}

/// The acknowledgement subject that a `started` carries.
fn ack_in(passed: &Passed) -> Option<String> {
    let encoding = Encoding::of(passed.header("Content-Type"), &passed.payload);
    let envelope: Envelope = decode(&passed.payload, encoding).ok()?;
    if let Body::Started(started) = envelope.body { Some(started.ack) } else { None }
}

fn passed(tapped: Tapped) -> Passed {
    let Tapped { subject, at, bytes, headers, .. } = tapped;
    Passed { at, subject, headers, payload: bytes.to_vec(), stored: None }
}
