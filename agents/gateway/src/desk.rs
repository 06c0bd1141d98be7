//! What all requests at one gateway share: the tasks that were given out here, the programs that asked here, and who waits.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

use muster_agents::host::for_programs::ForPrograms;
use muster_bus::{Bus, BusError};
use muster_shared::ids::{AgentId, Role, RunId, Seq};
use muster_shared::wire::gateway::{GatewayRefusal, Moved};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::check::Checker;
use crate::open::OpenTask;
use crate::past::TaskKey;
use crate::programs::Programs;
use crate::queues::Queues;
use crate::refusal::{Closed, bad_token, failed, of_other_role};
use crate::settings::GatewaySettings;
use crate::token::Token;
use muster_shared::sync::lock;

/// Tasks of which is kept why they are not at hand any more, or where they went; and secrets of runs that are kept.
const MOST_KEPT: usize = 4096;

/// One gateway.
pub(crate) struct Desk {
    pub(crate) bus: Bus,
    pub(crate) settings: GatewaySettings,
    pub(crate) shared: ForPrograms,
    pub(crate) checker: Checker,
    pub(crate) programs: Programs,
    pub(crate) queues: Queues,
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) stop: CancellationToken,
    tasks: Mutex<Tasks>,
    /// How many ask for a task of a role.
    asking: Mutex<HashMap<Role, usize>>,
    /// Whether it is listened to who is connected.
    pub(crate) listens: AtomicBool,
    secrets: Mutex<HashMap<RunId, String>>,
    /// Signs tokens of runs whose secret nobody knows.
    own_secret: String,
}

#[derive(Default)]
struct Tasks {
    open: HashMap<TaskKey, Arc<OpenTask>>,
    past: Bounded<PastTask>,
    moved: Bounded<Moved>,
}

/// A task that was at hand here.
#[derive(Debug, Clone)]
pub(crate) struct PastTask {
    started: Seq,
    pub(crate) why: Closed,
    pub(crate) answers: Vec<(String, Value)>,
}

/// The newest so many.
struct Bounded<T> {
    all: HashMap<TaskKey, T>,
    order: VecDeque<TaskKey>,
}

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        Self { all: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T> Bounded<T> {
    fn put(&mut self, key: TaskKey, what: T) {
        if self.all.insert(key.clone(), what).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MOST_KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }
}

/// Where a task is that a token names.
pub(crate) enum Whereabouts {
    /// At hand here.
    Here(Arc<OpenTask>),
    /// It was.
    Past(Box<PastTask>),
    /// Another gateway has it, or had it.
    At(AgentId),
    /// Nobody has it at hand.
    Nowhere,
}

/// Somebody who asks for a task.
pub(crate) struct Seat {
    desk: Arc<Desk>,
    role: Role,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut asking = lock(&self.desk.asking);
        match asking.get_mut(&self.role) {
            Some(waiting) if *waiting > 1 => *waiting -= 1,
            _ => drop(asking.remove(&self.role)),
        }
    }
}

impl Desk {
    pub(crate) fn new(
        bus: Bus,
        settings: GatewaySettings,
        shared: ForPrograms,
        stop: CancellationToken,
    ) -> Self {
        let requests = Arc::new(Semaphore::new(settings.requests.max(1)));
        let (programs, queues) = (Programs::new(bus.clone()), Queues::new(bus.clone()));
        let own_secret = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let (checker, tasks, secrets) = (Checker::default(), Mutex::default(), Mutex::default());
        let (asking, listens) = (Mutex::default(), AtomicBool::new(false));
        Self {
            bus,
            settings,
            shared,
            checker,
            programs,
            queues,
            requests,
            stop,
            tasks,
            asking,
            listens,
            secrets,
            own_secret,
        }
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        lock(&self.tasks)
    }

    /// All tasks at hand.
    pub(crate) fn open(&self) -> Vec<Arc<OpenTask>> {
        self.tasks().open.values().cloned().collect()
    }

    /// The tasks that an agent has at hand here.
    pub(crate) fn of_agent(&self, agent: &AgentId) -> Vec<Arc<OpenTask>> {
        self.tasks().open.values().filter(|task| task.agent == *agent).cloned().collect()
    }

    /// How many tasks of a role are at hand.
    pub(crate) fn of_role(&self, role: &Role) -> usize {
        self.tasks().open.values().filter(|task| task.role == *role).count()
    }

    /// Room for one more that asks for a task of a role; given back when it is dropped.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn seat(self: &Arc<Self>, role: &Role) -> Result<Seat, String> {
        let open = self.of_role(role);
        let mut asking = lock(&self.asking);
        let waiting = asking.get(role).copied().unwrap_or_default();
        if waiting >= self.settings.waiting {
            return Err(format!("{waiting} programs wait for tasks of this role here, which are the most"));
        }
        if open + waiting >= self.settings.tasks {
            return Err(format!("{open} tasks of this role are in hand here, which are the most"));
        }
        *asking.entry(role.clone()).or_default() += 1;
        Ok(Seat { desk: Arc::clone(self), role: role.clone() })
    }

    /// Takes a task in hand. Whoever had it before has it no more.
    pub(crate) fn put(&self, task: Arc<OpenTask>) {
        let mut tasks = self.tasks();
        tasks.moved.all.remove(&task.key);
        tasks.past.all.remove(&task.key);
        tasks.open.insert(task.key.clone(), task);
    }

    /// A task is not at hand any more.
    pub(crate) fn close(&self, task: &OpenTask, why: Closed, answers: Vec<(String, Value)>) {
        let mut tasks = self.tasks();
        if tasks.open.get(&task.key).is_some_and(|open| open.started == task.started) {
            tasks.open.remove(&task.key);
        }
        tasks.past.put(task.key.clone(), PastTask { started: task.started, why, answers });
    }

    /// This process stood still or was cut off: others may go on with what it had at hand. What they do not have is taken in
    /// hand again, from the record, with the next word about it.
    pub(crate) fn let_all_go(&self) {
        let mut tasks = self.tasks();
        if !tasks.open.is_empty() {
            tracing::info!(
                tasks = tasks.open.len(),
                "tasks at hand are looked up anew when their programs ask"
            );
        }
        tasks.open.clear();
        tasks.moved = Bounded::default();
    }

    /// Another gateway goes on with a task.
    pub(crate) fn moved(&self, moved: Moved) {
        if moved.to == *self.bus.who() {
            return;
        }
        let key = TaskKey { run: moved.run, task: moved.task.clone(), generation: moved.generation };
        let mut tasks = self.tasks();
        if tasks.open.get(&key).is_some_and(|open| open.started <= moved.started) {
            tracing::info!(run = %key.run, task = %key.task, to = %moved.to, "a task goes on at another gateway");
            tasks.open.remove(&key);
        }
        tasks.moved.put(key, moved);
    }

    /// Where the task of a token is.
    pub(crate) fn find(&self, token: &Token, may_pass_on: bool) -> Whereabouts {
        let key = TaskKey { run: token.run, task: token.task.clone(), generation: token.generation };
        let tasks = self.tasks();
        if let Some(open) = tasks.open.get(&key) {
            if open.started == token.started {
                return Whereabouts::Here(Arc::clone(open));
            }
            let why = Closed::With(open.agent.clone());
            return Whereabouts::Past(Box::new(PastTask {
                started: token.started,
                why,
                answers: Vec::new(),
            }));
        }
        if let Some(past) = tasks.past.all.get(&key).filter(|past| past.started == token.started) {
            return Whereabouts::Past(Box::new(past.clone()));
        }
        if !may_pass_on {
            return Whereabouts::Nowhere;
        }
        let moved = tasks.moved.all.get(&key).filter(|moved| moved.started >= token.started);
        let at = moved.map_or(&token.home, |moved| &moved.to);
        if at == self.bus.who() { Whereabouts::Nowhere } else { Whereabouts::At(at.clone()) }
    }

    /// Reads a token that was sent to a role.
    pub(crate) async fn token(&self, text: &str, role: &Role) -> Result<Token, GatewayRefusal> {
        let unproven = Token::read(text).ok_or_else(bad_token)?;
        let secret = self.secret_of(unproven.run()).await.map_err(failed)?;
        let token = unproven.proven(&secret).ok_or_else(bad_token)?;
        if token.role != *role {
            return Err(of_other_role(token.role.as_str(), role.as_str()));
        }
        Ok(token)
    }

    /// What tokens of a run are signed with.
    pub(crate) async fn secret_of(&self, run: RunId) -> Result<String, BusError> {
        let kept = || lock(&self.secrets);
        if let Some(known) = kept().get(&run) {
            return Ok(known.clone());
        }
        let record = self.bus.record();
        if record.last_decision(run).await?.is_none() {
            return Ok(self.own_secret.clone());
        }
        let Some(secret) = record.secret_of(run).await? else { return Ok(self.own_secret.clone()) };
        let mut kept = kept();
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(run, secret.clone());
        Ok(secret)
    }
}
