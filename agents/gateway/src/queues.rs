//! Who waits for tasks, and the queues that are asked for them: only while somebody waits.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use muster_bus::{Bus, BusError, TakenTask, TaskQueue};
use muster_shared::ids::{AgentId, Queue};
use tokio::sync::oneshot;

use muster_shared::sync::lock;

/// The shortest and the longest that one question waits at the broker.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(30);
/// A pause after a question that failed.
const PAUSE: Duration = Duration::from_millis(250);

/// Somebody who waits for a task.
pub(crate) struct Waiter {
    pub(crate) agent: AgentId,
    /// The message by which it asked.
    pub(crate) message: Option<String>,
    until: Instant,
    /// Where its task goes; nothing once it has one.
    give: Mutex<Option<oneshot::Sender<TakenTask>>>,
}

impl Waiter {
    pub(crate) fn new(
        agent: AgentId,
        message: Option<String>,
        until: Instant,
    ) -> (Arc<Self>, oneshot::Receiver<TakenTask>) {
        let (give, taken) = oneshot::channel();
        (Arc::new(Self { agent, message, until, give: Mutex::new(Some(give)) }), taken)
    }

    fn waits(&self, now: Instant) -> bool {
        self.until > now && lock(&self.give).as_ref().is_some_and(|give| !give.is_closed())
    }

    /// Waits no more.
    pub(crate) fn leave(&self) {
        lock(&self.give).take();
    }
}

#[derive(Default)]
struct Line {
    waiting: VecDeque<Arc<Waiter>>,
    is_asked_for: bool,
    queue: Option<TaskQueue>,
}

impl Line {
    /// How long somebody still waits.
    fn patience(&mut self) -> Option<Duration> {
        let now = Instant::now();
        self.waiting.retain(|waiter| waiter.waits(now));
        let last = self.waiting.iter().map(|waiter| waiter.until).max()?;
        Some(last.saturating_duration_since(now).clamp(SHORTEST, LONGEST))
    }
}

/// All queues that somebody waits for here.
#[derive(Clone)]
pub(crate) struct Queues {
    bus: Bus,
    lines: Arc<Mutex<HashMap<Queue, Line>>>,
}

impl Queues {
    pub(crate) fn new(bus: Bus) -> Self {
        Self { bus, lines: Arc::default() }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Queue, Line>> {
        lock(&self.lines)
    }

    /// How many wait for tasks of a queue.
    pub(crate) fn waiting(&self, queue: &Queue) -> usize {
        let now = Instant::now();
        self.lines().get(queue).map_or(0, |line| line.waiting.iter().filter(|one| one.waits(now)).count())
    }

    /// Who waits for tasks of a queue by this message.
    pub(crate) fn waits_by(&self, queue: &Queue, agent: &AgentId, message: &str) -> Option<Arc<Waiter>> {
        let asked = |one: &&Arc<Waiter>| one.agent == *agent && one.message.as_deref() == Some(message);
        self.lines().get(queue)?.waiting.iter().find(asked).cloned()
    }

    /// Whoever waits in the name of an agent is gone.
    pub(crate) fn gone(&self, agent: &AgentId) {
        for line in self.lines().values() {
            line.waiting.iter().filter(|waiter| waiter.agent == *agent).for_each(|waiter| waiter.leave());
        }
    }

    /// Waits in these queues.
    pub(crate) fn wait(&self, waiter: &Arc<Waiter>, queues: &[Queue]) {
        for queue in queues {
            let mut lines = self.lines();
            let line = lines.entry(queue.clone()).or_default();
            line.waiting.push_back(Arc::clone(waiter));
            if !std::mem::replace(&mut line.is_asked_for, true) {
                tokio::spawn(self.clone().ask(queue.clone()));
            }
        }
    }

    /// Asks for tasks for as long as somebody waits.
    async fn ask(self, queue: Queue) {
        loop {
            let (patience, joined) = {
                let mut lines = self.lines();
                let Some(line) = lines.get_mut(&queue) else { return };
                let Some(patience) = line.patience() else {
                    line.is_asked_for = false;
                    if matches!(queue, Queue::Agent(_)) {
                        lines.remove(&queue);
                    }
                    return;
                };
                (patience, line.queue.clone())
            };
            match self.ask_once(&queue, joined, patience).await {
                Ok(None) => {}
                Ok(Some(task)) => self.give(&queue, task),
                Err(error) => {
                    tracing::warn!(%error, %queue, "no tasks can be taken; trying again");
                    if let Some(line) = self.lines().get_mut(&queue) {
                        line.queue = None;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn ask_once(
        &self,
        queue: &Queue,
        joined: Option<TaskQueue>,
        patience: Duration,
    ) -> Result<Option<TakenTask>, BusError> {
        let joined = match joined {
            Some(joined) => joined,
            None => {
                let joined = self.bus.tasks().join(queue).await?;
                if let Some(line) = self.lines().get_mut(queue) {
                    line.queue = Some(joined.clone());
                }
                joined
            }
        };
        Box::pin(joined.take(patience)).await
    }

    /// Gives a task to whoever waits longest; back to its queue when nobody does any more.
    fn give(&self, queue: &Queue, mut task: TakenTask) {
        loop {
            let next = self.lines().get_mut(queue).and_then(|line| line.waiting.pop_front());
            let Some(waiter) = next else {
                hand_back(task, Duration::ZERO);
                return;
            };
            let Some(give) = lock(&waiter.give).take() else { continue };
            match give.send(task) {
                Ok(()) => return,
                Err(left) => task = left,
            }
        }
    }
}

/// Gives a task back to its queue.
pub(crate) fn hand_back(task: TakenTask, after: Duration) {
    tokio::spawn(async move {
        if let Err(error) = task.hand_back(after).await {
            tracing::debug!(%error, "a task goes back when its time is up");
        }
    });
}
