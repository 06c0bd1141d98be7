//! A task that a program was given here: what is known of it, and how it is written down.

use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use muster_agents::definition::Contract;
use muster_agents::model::call_admission::CallAdmission;
use muster_agents::react::close::with_usage;
use muster_agents::react::history::History;
use muster_agents::react::journal::{Journal, JournalError};
use muster_agents::react::mailbox::Mailbox;
use muster_agents::react::progress::ProgressStream;
use muster_bus::Bus;
use muster_shared::flow::{Information, ModelCall, Note, TaskOffered, Usage};
use muster_shared::ids::{AgentId, Role, Seq};
use muster_shared::run::{AgentEvent, AgentKey, Entry, RecordEvent, Released};
use muster_shared::time::Millis;
use muster_shared::wire::gateway::GatewayRefusal;
use serde_json::Value;
use uuid::Uuid;

use crate::check::PlausibleUsage;
use crate::past::{self, Attempt, Past, Recorded, TaskKey, id_of, recorded_as};
use crate::refusal::{Closed, failed};
use muster_shared::sync::lock;

/// Answers that are kept for a caller that asks the same again.
const KEPT: usize = 32;
/// How often an event is thought of anew because another gateway wrote meanwhile.
const MOST_TRIES: u32 = 4;

/// A task that a program was given here.
pub(crate) struct OpenTask {
    pub(crate) key: TaskKey,
    pub(crate) role: Role,
    pub(crate) agent: AgentId,
    /// Where its `started` stands.
    pub(crate) started: Seq,
    /// Where the queue's acknowledgement goes.
    pub(crate) ack: String,
    pub(crate) offer: Arc<TaskOffered>,
    /// The token that names this gateway.
    pub(crate) token: String,
    /// The message by which it was taken.
    pub(crate) take_id: Option<String>,
    /// The model that the program asks by itself.
    pub(crate) model: String,
    pub(crate) contract: Contract,
    pub(crate) mailbox: Mailbox,
    pub(crate) progress: ProgressStream,
    /// The bus in the agent's name.
    pub(crate) bus: Bus,
    heard: Mutex<Instant>,
    /// Requests about it that are being worked on.
    at_work: AtomicU32,
    /// Whether nothing was heard of it when it was looked at last.
    suspect: AtomicBool,
    /// That it is to be put down, since when, and why.
    parking: Mutex<Option<(Instant, String)>>,
    pub(crate) course: Arc<tokio::sync::Mutex<Course>>,
}

/// What becomes of a task, one request after the other.
pub(crate) struct Course {
    pub(crate) journal: Journal,
    pub(crate) history: History,
    /// Calls of models that no step holds yet.
    pub(crate) pending: Vec<ModelCall>,
    /// What guards said that no step holds yet.
    pub(crate) notes: Vec<Note>,
    /// What calls used that gave no answer.
    pub(crate) wasted: Usage,
    /// The gate of model calls; away while one is under way.
    pub(crate) gate: Option<CallAdmission>,
    pub(crate) is_asking: bool,
    /// What the program was told since its last step.
    pub(crate) told: Vec<Information>,
    /// How often a result was sent back for what it cites.
    pub(crate) sent_back: u32,
    /// The usage that a program may have had since this gateway has the task.
    pub(crate) plausible: PlausibleUsage,
    recorded: HashMap<Uuid, Recorded>,
    answers: VecDeque<(String, Value)>,
    /// Why nothing more is written, if so.
    pub(crate) closed: Option<Closed>,
}

/// What an open task is made of.
pub(crate) struct Opened {
    pub(crate) role: Role,
    pub(crate) agent: AgentId,
    pub(crate) started: Seq,
    pub(crate) offer: TaskOffered,
    pub(crate) token: String,
    pub(crate) take_id: Option<String>,
    pub(crate) model: String,
    pub(crate) contract: Contract,
    pub(crate) progress: ProgressStream,
    pub(crate) bus: Bus,
    pub(crate) patience: Duration,
    pub(crate) past: Past,
}

impl OpenTask {
    pub(crate) fn new(opened: Opened) -> Self {
        let Opened {
            role,
            agent,
            started,
            offer,
            token,
            take_id,
            model,
            contract,
            progress,
            bus,
            patience,
            past,
        } = opened;
        let key = TaskKey::of(&offer);
        let author = key.author(&agent, &role);
        let journal = Journal::resume(bus.record(), &offer, author, patience, started, past.last);
        let course = Course {
            journal,
            history: past.history,
            pending: Vec::new(),
            notes: Vec::new(),
            wasted: Usage::default(),
            gate: None,
            is_asking: false,
            told: Vec::new(),
            sent_back: 0,
            plausible: PlausibleUsage::default(),
            recorded: past.recorded,
            answers: VecDeque::new(),
            closed: past.closed,
        };
        Self {
            key,
            role,
            agent,
            started,
            ack: past.ack,
            mailbox: Mailbox::with(&offer.heard),
            offer: Arc::new(offer),
            token,
            take_id,
            model,
            contract,
            progress,
            bus,
            heard: Mutex::new(Instant::now()),
            at_work: AtomicU32::new(0),
            suspect: AtomicBool::new(false),
            parking: Mutex::default(),
            course: Arc::new(tokio::sync::Mutex::new(course)),
        }
    }

    pub(crate) fn attempt(&self) -> Attempt<'_> {
        Attempt { key: &self.key, agent: &self.agent, role: &self.role, started: self.started }
    }

    /// As whom its program writes of it.
    fn author(&self) -> AgentKey {
        self.key.author(&self.agent, &self.role)
    }

    /// A request about it came in; dropped, it is done.
    pub(crate) fn at_work(self: &Arc<Self>) -> AtWork {
        self.at_work.fetch_add(1, Ordering::Relaxed);
        self.hear();
        AtWork(Arc::clone(self))
    }

    fn hear(&self) {
        *lock(&self.heard) = Instant::now();
        self.suspect.store(false, Ordering::Relaxed);
    }

    /// How long nothing was heard of it.
    pub(crate) fn silent_for(&self) -> Duration {
        match self.at_work.load(Ordering::Relaxed) {
            0 => lock(&self.heard).elapsed(),
            _ => Duration::ZERO,
        }
    }

    /// Whether it was under suspicion already. What came in while this process stood still is read first.
    pub(crate) fn suspect(&self) -> bool {
        self.suspect.swap(true, Ordering::Relaxed)
    }

    /// It is to be put down as soon as that loses nothing.
    pub(crate) fn park(&self, why: &str) {
        lock(&self.parking).get_or_insert_with(|| (Instant::now(), why.to_owned()));
    }

    /// Since when it is to be put down, and why.
    pub(crate) fn is_to_park(&self) -> Option<(Instant, String)> {
        lock(&self.parking).clone()
    }

    /// Under which id a message is recorded.
    pub(crate) fn id_of(&self, message: Option<&str>) -> Uuid {
        message.map_or_else(Uuid::now_v7, |message| id_of(&self.attempt(), message))
    }
}

/// A request that is being worked on.
pub(crate) struct AtWork(Arc<OpenTask>);

impl Deref for AtWork {
    type Target = OpenTask;

    fn deref(&self) -> &OpenTask {
        &self.0
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.hear();
        self.0.at_work.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What came of an event.
pub(crate) enum Written {
    /// It is in the record now.
    Now,
    /// It was there already.
    Before(Recorded),
}

impl Course {
    /// The answer that a message was given before, if it was.
    pub(crate) fn known(&self, message: Option<&str>) -> Option<Value> {
        let message = message?;
        self.answers.iter().find(|(id, _)| id == message).map(|(_, answer)| answer.clone())
    }

    /// What a message became that is in the record.
    pub(crate) fn recorded(&self, id: Uuid) -> Option<Recorded> {
        self.recorded.get(&id).copied()
    }

    /// Keeps an answer for a caller that asks the same again.
    pub(crate) fn keep(&mut self, message: Option<&str>, answer: &Value) {
        let Some(message) = message else { return };
        if self.answers.len() >= KEPT {
            self.answers.pop_front();
        }
        self.answers.push_back((message.to_owned(), answer.clone()));
    }

    /// All answers that were kept.
    pub(crate) fn answers(&self) -> Vec<(String, Value)> {
        self.answers.iter().cloned().collect()
    }

    /// Writes an event as `make` has it from what was done before, once. Should another gateway have written meanwhile, what
    /// it wrote is read, and the event is made anew.
    pub(crate) async fn write(
        &mut self,
        task: &OpenTask,
        id: Uuid,
        make: impl Fn(&Self) -> Result<AgentEvent, GatewayRefusal> + Send,
    ) -> Result<Written, GatewayRefusal> {
        for _ in 0..MOST_TRIES {
            if let Some(recorded) = self.recorded(id) {
                return Ok(Written::Before(recorded));
            }
            if let Some(closed) = &self.closed {
                return Err(closed.refusal());
            }
            let event = make(self)?;
            match self.journal.append_as(id, &event).await {
                Ok(()) => {
                    self.took(task, id, event);
                    return Ok(Written::Now);
                }
                Err(JournalError::Lost | JournalError::Closed) => self.read_again(task).await?,
                Err(JournalError::TooLarge { bytes, most }) => {
                    let message = format!(
                        "it has {bytes} bytes, and {most} is the most that the record takes: write what is long to a file by `files`, and name it"
                    );
                    let code = muster_shared::wire::gateway::RefusalCode::TooLarge;
                    return Err(GatewayRefusal::new(code, message));
                }
                Err(JournalError::Bus(error)) => return Err(failed(error)),
            }
        }
        Err(failed("another gateway writes about the task at the same time"))
    }

    /// Takes note of an event that is in the record.
    fn took(&mut self, task: &OpenTask, id: Uuid, event: AgentEvent) {
        self.recorded.extend(recorded_as(&event).map(|recorded| (id, recorded)));
        let event = RecordEvent::Agent(task.author(), event);
        let entry = Entry { seq: self.journal.last(), at: Millis(0), run: task.key.run, event };
        self.history = std::mem::take(&mut self.history).and_then(vec![entry]);
    }

    /// Reads what was written meanwhile.
    async fn read_again(&mut self, task: &OpenTask) -> Result<(), GatewayRefusal> {
        let read = past::read(&task.bus, &task.offer, &task.attempt()).await.map_err(failed)?;
        let Some(past) = read else { return Err(Closed::Ended.refusal()) };
        let (author, patience) = (task.author(), self.journal.patience());
        self.journal =
            Journal::resume(task.bus.record(), &task.offer, author, patience, task.started, past.last);
        (self.history, self.recorded, self.closed) = (past.history, past.recorded, past.closed);
        Ok(())
    }

    /// What is said when the task is handed over, with what was used and nobody has counted.
    pub(crate) fn released(&self, released: Released) -> Released {
        with_usage(released, &self.history, &self.pending, self.wasted)
    }
}
