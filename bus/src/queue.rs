//! Work queues: tasks for agents. What cannot be read goes to the dead letters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use muster_shared::flow::{TaskOffered, Voucher};
use muster_shared::ids::{AgentId, Queue, Role, RunId, TaskId};
use muster_shared::run::Decided;
use muster_shared::wire::{Body, Envelope, TraceContext};

use crate::backend::{Ack, Delivery, Headers, INBOX, Incoming, Message, Pull, QueueSpec};
use crate::bus::{Core, now};
use crate::dead::DeadLetter;
use crate::error::BusError;
use crate::record::check_offer;
use crate::seal::trace_in;
use crate::signatures::Signature;
use crate::subject::{Subject, offers_of, queue_filter};
use crate::topology::TASKS;

/// How long the queue of one agent outlives it.
const ADDRESSED_IDLE: Duration = Duration::from_secs(600);

/// The group of all who make queues.
const MAKERS: &str = "orchestrators";
/// The answer that queues are there.
pub(crate) const QUEUES_MADE: &[u8] = b"+OK";

/// The task queues.
#[derive(Clone)]
pub struct Tasks {
    pub(crate) core: Arc<Core>,
}

impl Tasks {
    /// Joins a queue: all who join the same share its tasks.
    ///
    /// # Errors
    /// When the bus is not provisioned, or fails.
    pub async fn join(&self, queue: &Queue) -> Result<TaskQueue, BusError> {
        let pull = self.core.backend.join(&self.spec(queue)).await?;
        Ok(TaskQueue { core: Arc::clone(&self.core), pull })
    }

    /// Makes the queues of agents that may not do so themselves, for as long as they ask: that of their role, and their own.
    /// All who do this share the requests.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn make_for_agents(&self) -> Result<(), BusError> {
        let mut requests = self.core.backend.serve("queue.*.*", MAKERS).await?;
        while let Some(Incoming { message, reply }) = requests.next().await {
            let Some(reply) = reply.filter(|reply| reply.starts_with(INBOX)) else { continue };
            let made = match Subject::parse(&message.subject) {
                Ok(Subject::Queues(role, agent)) => {
                    self.make(role, agent).await.map_err(|error| error.to_string())
                }
                Ok(_) | Err(_) => Err("ask on queue.<role>.<agent>".to_owned()),
            };
            let payload = match made {
                Ok(()) => Bytes::from_static(QUEUES_MADE),
                Err(reason) => Bytes::from(reason),
            };
            let answer = Message { subject: reply, headers: Headers::default(), payload };
            if let Err(error) = self.core.backend.publish(answer).await {
                tracing::warn!(%error, "an agent that asked for its queues cannot be answered");
            }
        }
        Ok(())
    }

    async fn make(&self, role: Role, agent: AgentId) -> Result<(), BusError> {
        for queue in [Queue::Role(role), Queue::Agent(agent)] {
            self.core.backend.join(&self.spec(&queue)).await?;
        }
        Ok(())
    }

    fn spec(&self, queue: &Queue) -> QueueSpec {
        QueueSpec {
            stream: TASKS,
            name: queue.to_string(),
            filter: queue_filter(queue),
            ack_wait: self.core.settings.ack_wait,
            idle: matches!(queue, Queue::Agent(_)).then_some(ADDRESSED_IDLE),
        }
    }

    /// Empties the queue of an agent that is gone: nobody else would ever take what is in it.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn abandon(&self, agent: &AgentId) -> Result<(), BusError> {
        self.core.backend.purge(TASKS, &queue_filter(&Queue::Agent(agent.clone()))).await.map(drop)
    }

    /// Offers that wait in each queue, those in somebody's hands not counted.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn waiting(&self) -> Result<BTreeMap<Queue, u64>, BusError> {
        let state = self.core.backend.state(TASKS, Some("task.>")).await?;
        let in_hand = self.core.backend.in_hand(TASKS).await?;
        let mut waiting = BTreeMap::new();
        for (text, count) in &state.subjects {
            if let Ok(Subject::Task(queue, ..)) = Subject::parse(text) {
                *waiting.entry(queue).or_insert(0) += count;
            }
        }
        for (queue, count) in &mut waiting {
            *count = count.saturating_sub(in_hand.get(&queue.to_string()).copied().unwrap_or(0));
        }
        Ok(waiting)
    }

    /// Tasks of a queue that were given out and are not done.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn in_hand(&self, queue: &Queue) -> Result<u64, BusError> {
        let in_hand = self.core.backend.in_hand(TASKS).await?;
        Ok(in_hand.get(&queue.to_string()).copied().unwrap_or(0))
    }

    /// Hands a task of a dead agent to the next one, by the subject its `started` carries. Doing it again is
    /// harmless.
    ///
    /// # Errors
    /// When the subject is none of a task, or the bus fails.
    pub async fn hand_on(&self, ack_subject: &str) -> Result<(), BusError> {
        check_ack(ack_subject)?;
        self.core.backend.ack(ack_subject, Ack::Nak(Duration::ZERO), false).await
    }

    /// Says that a task is being worked on, by the subject its `started` carries.
    ///
    /// # Errors
    /// When the subject is none of a task, or the bus fails.
    pub async fn progress_of(&self, ack_subject: &str) -> Result<(), BusError> {
        check_ack(ack_subject)?;
        self.core.backend.ack(ack_subject, Ack::Progress, false).await
    }

    /// Removes a task from its queue that has ended, by the subject its `started` carries.
    ///
    /// # Errors
    /// When the subject is none of a task, or the bus fails.
    pub async fn done_with(&self, ack_subject: &str) -> Result<(), BusError> {
        check_ack(ack_subject)?;
        self.core.backend.ack(ack_subject, Ack::Done, false).await
    }

    /// Hands a task to the next agent that one may have taken that died before it could say so. Says whether anybody had
    /// taken it: one that still waits in its queue stays where it is. Should it be in good hands, the record's fence
    /// lets one of both through.
    ///
    /// # Errors
    /// When the queue is not there, or the bus fails.
    pub async fn hand_on_unstarted(
        &self,
        queue: &Queue,
        run: RunId,
        task: &TaskId,
    ) -> Result<bool, BusError> {
        let subject = Subject::Task(queue.clone(), run, task.clone()).to_string();
        self.core.backend.give_out_again(&self.spec(queue), &subject).await
    }

    /// Takes a task out of its queue undone, whoever has it, by the subject its `started` carries.
    ///
    /// # Errors
    /// When the subject is none of a task, or the bus fails.
    pub async fn withdraw(&self, ack_subject: &str) -> Result<(), BusError> {
        check_ack(ack_subject)?;
        self.core.backend.ack(ack_subject, Ack::Term, true).await
    }

    /// Takes all tasks of a run out of their queues undone, whether anybody has them or not.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn withdraw_all(&self, run: RunId) -> Result<(), BusError> {
        self.core.backend.purge(TASKS, &offers_of(run)).await.map(drop)
    }
}

/// What stands in a record may be published to only when it is what it should be.
fn check_ack(subject: &str) -> Result<(), BusError> {
    if subject.starts_with(&format!("$JS.ACK.{TASKS}.")) {
        return Ok(());
    }
    let name = subject.chars().take(80).collect();
    Err(BusError::BadName { name, rule: "it must be the acknowledgement subject of a task" })
}

/// A queue of tasks that this process takes from.
#[derive(Clone)]
pub struct TaskQueue {
    core: Arc<Core>,
    pull: Arc<dyn Pull>,
}

impl TaskQueue {
    /// The next task; nothing when none came within `wait`. One at a time: ask again for every free slot.
    ///
    /// # Errors
    /// When the bus fails. A call that was interrupted by a reconnect may end early, with nothing.
    pub async fn take(&self, wait: Duration) -> Result<Option<TakenTask>, BusError> {
        take(&self.core, &*self.pull, wait, |delivery, envelope| {
            let trace = trace_in(&delivery.stored.message, &envelope);
            let sent = envelope.sent;
            let offer = offer_in(&delivery.stored.message.subject, envelope)?;
            // Whoever carries out what a task wants knows that it may.
            let vouched = self.core.vouched(&delivery.stored.message, &offer, delivery.stored.at)?;
            let (core, ack) = (Arc::clone(&self.core), delivery.ack.clone());
            let waited = delivery.stored.at.max(now()).since(sent);
            Ok(TakenTask {
                core,
                offer,
                vouched,
                delivered: delivery.delivered,
                ack_subject: ack,
                trace,
                waited,
            })
        })
        .await
    }
}

/// A task in this process's hands. Dropped without a word, it goes to another agent after `ack_wait`.
pub struct TakenTask {
    core: Arc<Core>,
    /// What is to be done.
    pub offer: TaskOffered,
    /// Who vouches for what it may use, for whoever carries out a call for it; nobody where no keys of a fleet are known.
    pub vouched: Option<Signature>,
    /// How often it was given out, from 1.
    pub delivered: u64,
    /// Where its acknowledgement goes, for [`muster_shared::run::Started`].
    pub ack_subject: String,
    /// The trace it belongs to.
    pub trace: Option<TraceContext>,
    /// How long it took from its author to here. Two clocks: good for a hint only.
    pub waited: Duration,
}

impl TakenTask {
    /// Proves to whoever carries out a call for this task what it may use; nothing where no keys of a fleet are known.
    #[must_use]
    pub fn voucher(&self) -> Option<Voucher> {
        let signature = self.vouched.as_ref()?.to_string();
        let TaskOffered { generation, budget, .. } = &self.offer;
        Some(Voucher { generation: *generation, budget: *budget, signature })
    }

    /// Says that the task is being worked on; every 10 s is good.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn progress(&self) -> Result<(), BusError> {
        self.core.backend.ack(&self.ack_subject, Ack::Progress, false).await
    }

    /// Removes the task from its queue. Nothing waits for the broker: a task whose removal is lost is given out again, which
    /// the record's fence makes harmless.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn done(self) -> Result<(), BusError> {
        self.core.backend.ack(&self.ack_subject, Ack::Done, false).await
    }

    /// Gives the task back, to be given out again after `delay`.
    ///
    /// # Errors
    /// When the bus fails; the task is then given out again after `ack_wait`.
    pub async fn hand_back(self, delay: Duration) -> Result<(), BusError> {
        self.core.backend.ack(&self.ack_subject, Ack::Nak(delay), false).await
    }
}

/// The offer in a queue entry, if it is the one that its subject names.
fn offer_in(subject: &str, envelope: Envelope) -> Result<TaskOffered, String> {
    let Subject::Task(queue, run, task) = Subject::parse(subject)? else {
        return Err(format!("{subject} is not the subject of a task"));
    };
    let offer = match envelope.body {
        Body::Offered(offer) => offer,
        Body::Decided(Decided { offer: Some(offer), .. }) => *offer,
        other => return Err(format!("a body of kind {:?} does not belong in a task queue", other.kind())),
    };
    check_offer(&offer, run, &queue, &task)?;
    Ok(offer)
}

/// Takes the next message that can be read; those that cannot go to the dead letters.
pub(crate) async fn take<T>(
    core: &Core,
    pull: &dyn Pull,
    wait: Duration,
    read: impl Fn(Delivery, Envelope) -> Result<T, String> + Send,
) -> Result<Option<T>, BusError> {
    let until = Instant::now() + wait;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Some(delivery) = pull.pull(left).await? else { return Ok(None) };
        let opened = core.open(&delivery.stored.message).await?;
        match opened.and_then(|envelope| read(delivery.clone(), envelope)) {
            Ok(taken) => return Ok(Some(taken)),
            Err(reason) => reject(core, &delivery, &reason).await?,
        }
    }
}

/// Removes a message from its queue and keeps it as a dead letter.
pub(crate) async fn reject(core: &Core, delivery: &Delivery, reason: &str) -> Result<(), BusError> {
    tracing::warn!(subject = %delivery.stored.message.subject, reason, "a message goes to the dead letters");
    core.bury(DeadLetter::of(&delivery.stored.message, reason)).await?;
    core.backend.ack(&delivery.ack, Ack::Term, true).await
}
