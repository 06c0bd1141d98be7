//! Work queues: tasks for agents, commands for orchestrators. What cannot be read goes to the dead letters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_shared::flow::TaskOffered;
use muster_shared::ids::{AgentId, Queue, RunId, Seq, TaskId};
use muster_shared::run::Decided;
use muster_shared::time::Millis;
use muster_shared::wire::{Body, Command, Encoding, Envelope, TraceContext};
use uuid::Uuid;

use crate::backend::{Ack, Delivery, Pull, QueueSettings, QueueSpec, WriteOptions};
use crate::bus::{Core, now};
use crate::dead::DeadLetter;
use crate::error::{AppendError, BusError};
use crate::record::check_offer;
use crate::seal::{About, trace_in};
use crate::subject::{Subject, queue_filter};
use crate::topology::{COMMANDS, TASKS};

/// How long a command may be held without a sign of progress before another orchestrator gets it.
const COMMAND_WAIT: Duration = Duration::from_secs(5);
/// How long the queue of one agent outlives it.
const ADDRESSED_IDLE: Duration = Duration::from_secs(600);

/// The task queues.
#[derive(Clone)]
pub struct Tasks {
    core: Arc<Core>,
}

impl Tasks {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core) }
    }

    /// Joins a queue: all who join the same share its tasks.
    ///
    /// # Errors
    /// When the bus is not provisioned, or fails.
    pub async fn join(&self, queue: &Queue) -> Result<TaskQueue, BusError> {
        let pull = self.core.backend.join(&self.spec(queue)).await?;
        Ok(TaskQueue { core: Arc::clone(&self.core), pull })
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

    /// What a queue's settings are to be.
    #[must_use]
    pub fn settings_of(&self, queue: &Queue) -> QueueSettings {
        self.spec(queue).settings()
    }

    /// All queues that there are, whoever made them.
    ///
    /// # Errors
    /// When the bus is not provisioned, or fails.
    pub async fn queues(&self) -> Result<Vec<QueueSettings>, BusError> {
        self.core.backend.queues(TASKS).await
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
            let (core, ack) = (Arc::clone(&self.core), delivery.ack.clone());
            let waited = delivery.stored.at.max(now()).since(sent);
            Ok(TakenTask { core, offer, delivered: delivery.delivered, ack_subject: ack, trace, waited })
        })
        .await
    }
}

/// A task in this process's hands. Dropped without a word, it goes to another agent after `ack_wait`.
pub struct TakenTask {
    core: Arc<Core>,
    /// What is to be done.
    pub offer: TaskOffered,
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

    /// Removes the task undone. With a reason, a dead letter is kept.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn discard(self, reason: Option<&str>) -> Result<(), BusError> {
        if let Some(reason) = reason {
            let subject = Subject::Task(self.offer.queue.clone(), self.offer.run, self.offer.task.clone());
            let about = About::task(self.offer.run, &self.offer.task);
            let body = Body::Offered(self.offer.clone());
            let message = self.core.seal(subject.to_string(), body, about, self.offer.encoding).await?;
            self.core.bury(DeadLetter::of(&message, reason)).await?;
        }
        self.core.backend.ack(&self.ack_subject, Ack::Term, true).await
    }
}

impl std::fmt::Debug for TakenTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = f.debug_struct("TakenTask");
        text.field("offer", &self.offer).field("delivered", &self.delivered).finish_non_exhaustive()
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

/// The durable commands.
#[derive(Clone)]
pub struct Commands {
    core: Arc<Core>,
}

impl Commands {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core) }
    }

    /// Sends a command; it is kept until an orchestrator is done with it. The same command sent again within ten
    /// minutes is stored once: a goal is told by its run, other commands by the id they carry, and without one they
    /// are all different.
    ///
    /// # Errors
    /// When the command is too large, the queue is full, or the bus fails.
    pub async fn send(&self, command: &Command, encoding: Encoding) -> Result<Seq, BusError> {
        let run = command.run();
        let subject = Subject::Command(run, command.name().to_owned()).to_string();
        let body = Body::Command(command.clone());
        let expires = command.lifetime().map(|lifetime| now().after(lifetime));
        let message = self.core.seal(subject, body, About { expires, ..About::run(run) }, encoding).await?;
        let dedup = match (command, command.id()) {
            (Command::Submit { .. } | Command::Fork { .. }, _) => Some(format!("{run}.{}", command.name())),
            (_, Some(id)) => Some(format!("{run}.{}.{id}", command.name())),
            (_, None) => None,
        };
        let options = WriteOptions { dedup, ..WriteOptions::default() };
        match self.core.backend.append(COMMANDS, vec![message], options).await {
            Ok(appended) => Ok(appended.last),
            Err(AppendError::Ambiguous { limit }) => {
                Err(BusError::TimedOut { what: format!("the command {}", command.name()), limit })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Joins the queue of commands, which all orchestrators share.
    ///
    /// # Errors
    /// When the bus is not provisioned, or fails.
    pub async fn join(&self) -> Result<CommandQueue, BusError> {
        let spec = QueueSpec {
            stream: COMMANDS,
            name: "orchestrators".into(),
            filter: "cmd.>".into(),
            ack_wait: COMMAND_WAIT.min(self.core.settings.ack_wait),
            idle: None,
        };
        let pull = self.core.backend.join(&spec).await?;
        Ok(CommandQueue { core: Arc::clone(&self.core), pull })
    }
}

/// The queue of commands.
#[derive(Clone)]
pub struct CommandQueue {
    core: Arc<Core>,
    pull: Arc<dyn Pull>,
}

impl CommandQueue {
    /// The next command; nothing when none came within `wait`.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn take(&self, wait: Duration) -> Result<Option<TakenCommand>, BusError> {
        take(&self.core, &*self.pull, wait, |delivery, envelope| {
            check_time(delivery.stored.at, envelope.sent, self.core.settings.clock_ahead)?;
            let (id, sender) = (envelope.id, envelope.sender.clone());
            // Both by the sender's clock: how long it is good for does not depend on whose clock is right.
            let lifetime = envelope.expires.map(|expires| expires.since(envelope.sent));
            let command = command_in(&delivery.stored.message.subject, envelope)?;
            let (core, delivered) = (Arc::clone(&self.core), delivery.delivered);
            Ok(TakenCommand { core, delivery, command, sender, delivered, id, lifetime })
        })
        .await
    }
}

/// A command in this process's hands. Dropped without a word, it goes to another orchestrator after `ack_wait`.
pub struct TakenCommand {
    core: Arc<Core>,
    delivery: Delivery,
    /// What is asked.
    pub command: Command,
    /// Who asks.
    pub sender: AgentId,
    /// How often it was given out, from 1.
    pub delivered: u64,
    /// The message's own id.
    id: Uuid,
    lifetime: Option<Duration>,
}

impl TakenCommand {
    /// The command with an id that tells it from others like it, the same whenever it is given out, and with who asks.
    #[must_use]
    pub fn identified(&self) -> Command {
        self.command.clone().sent(self.id, &self.sender)
    }

    /// For how much longer it is of use, if it says when it is of none any more. `now` goes by the broker's stamps, as
    /// does the time at which it was stored.
    #[must_use]
    pub fn time_left(&self, now: Millis) -> Option<Duration> {
        Some(self.lifetime?.saturating_sub(now.since(self.delivery.stored.at)))
    }

    /// Says that the command is being worked on.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn progress(&self) -> Result<(), BusError> {
        self.core.backend.ack(&self.delivery.ack, Ack::Progress, false).await
    }

    /// Removes the command and waits until the broker did so.
    ///
    /// # Errors
    /// When the bus fails; the command may then be given out again.
    pub async fn done(self) -> Result<(), BusError> {
        self.core.backend.ack(&self.delivery.ack, Ack::Done, true).await
    }

    /// Gives the command back, to be given out again after `delay`.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn hand_back(self, delay: Duration) -> Result<(), BusError> {
        self.core.backend.ack(&self.delivery.ack, Ack::Nak(delay), false).await
    }

    /// Removes the command and keeps a dead letter with the reason.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn reject(self, reason: &str) -> Result<(), BusError> {
        reject(&self.core, &self.delivery, reason).await
    }
}

impl std::fmt::Debug for TakenCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = f.debug_struct("TakenCommand");
        text.field("command", &self.command).field("sender", &self.sender).finish_non_exhaustive()
    }
}

/// Refuses what claims to come from the future. A sender that does not say when it was sent is believed.
fn check_time(stored: Millis, sent: Millis, most: Duration) -> Result<(), String> {
    let ahead = sent.since(stored);
    if ahead <= most {
        return Ok(());
    }
    Err(format!(
        "field sent: it is {} s ahead of the broker's clock, {} s is the most: set the sender's clock by NTP, or leave \
         the field out (bus.clock_ahead)",
        ahead.as_secs(),
        most.as_secs()
    ))
}

/// The command in a message, if it is for the run that its subject names.
fn command_in(subject: &str, envelope: Envelope) -> Result<Command, String> {
    let Subject::Command(run, name) = Subject::parse(subject)? else {
        return Err(format!("{subject} is not the subject of a command"));
    };
    match envelope.body {
        Body::Command(command) if (command.run(), command.name()) == (run, name.as_str()) => Ok(command),
        Body::Command(_) => Err("the command is not the one its subject names".into()),
        other => Err(format!("a body of kind {:?} does not belong among commands", other.kind())),
    }
}

/// Takes the next message that can be read; those that cannot go to the dead letters.
async fn take<T>(
    core: &Core,
    pull: &dyn Pull,
    wait: Duration,
    read: impl Fn(Delivery, Envelope) -> Result<T, String> + Send,
) -> Result<Option<T>, BusError> {
    let until = Instant::now() + wait;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Some(delivery) = pull.pull(left).await? else { return Ok(None) };
        let (sender, opened) = match core.open(&delivery.stored.message).await? {
            Ok(envelope) => (Some(envelope.sender.clone()), read(delivery.clone(), envelope)),
            Err(reason) => (None, Err(reason)),
        };
        let reason = match opened {
            Ok(taken) => return Ok(Some(taken)),
            Err(reason) => reason,
        };
        reject(core, &delivery, &reason).await?;
        if let Some(sender) = sender.filter(|sender| *sender != AgentId::anonymous()) {
            core.tell_author(&sender, &delivery.stored.message, &reason).await;
        }
    }
}

/// Removes a message from its queue and keeps it as a dead letter.
async fn reject(core: &Core, delivery: &Delivery, reason: &str) -> Result<(), BusError> {
    tracing::warn!(subject = %delivery.stored.message.subject, reason, "a message goes to the dead letters");
    core.bury(DeadLetter::of(&delivery.stored.message, reason)).await?;
    core.backend.ack(&delivery.ack, Ack::Term, true).await
}
