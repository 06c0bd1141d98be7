//! An agent: takes tasks, journals each step, writes the outcome, and settles with its queue.

use std::collections::BTreeMap;
use std::rc::Rc;

use muster_shared::flow::{Ending, ObservationStatus, Outcome, Usage};
use muster_shared::ids::{AgentId, Queue, Role, Seq};
use muster_shared::run::{AgentEvent, AgentKey, Entry, EventKind, Released, ToolStarted, Unreadable};
use muster_shared::wire::{ControlMessage, Profile};

use crate::Sabotage;
use crate::agenda::Time;
use crate::io::{Io, Note};
use crate::job::{Interrupt, Job, Stage, ms, read};
use crate::journal::{Journal, Look, idempotency_key};
use crate::messages::{Answer, Item, Line, Request, Taken};
use crate::process::Process;
use crate::products;
use crate::queue::ACK_WAIT;

/// How often the queue is told that a task is worked on.
const PROGRESS: Time = ACK_WAIT / 3;
/// How long ago the record may have said that a task is ours, before a model is asked without looking again.
pub(crate) const LOOK_AFTER: Time = ACK_WAIT / 2;
/// How long a write is tried.
const PATIENCE: Time = 30_000;
/// How often a task is looked up anew when somebody wrote in between.
const OPENINGS: u32 = 3;
/// A task whose record could not be written goes back to its queue after this time.
const UNWRITTEN: Time = 2_000;
/// Until when those that are deaf take nothing that is offered to them by name: faults end about then too.
const DEAF: Time = 90_000;
/// Longest wait for a task before asking again.
const POLL: Time = 20_000;

/// One agent with its slots.
pub(crate) struct Agent {
    seed: u64,
    me: AgentId,
    role: Role,
    /// Whether it takes nothing that is offered to it by name for a while.
    is_deaf: bool,
    slots: Vec<Option<Job>>,
    /// Which slot an answer or an alarm is for.
    calls: BTreeMap<u64, usize>,
    stopping: bool,
}

impl Agent {
    pub(crate) fn new(seed: u64, me: AgentId, role: Role, slots: usize, is_deaf: bool) -> Self {
        let slots = (0..slots).map(|_| None).collect();
        Self { seed, me, role, is_deaf, slots, calls: BTreeMap::new(), stopping: false }
    }

    /// Its own queue comes first.
    fn lines(&self, now: Time) -> Vec<Line> {
        let own = (!self.is_deaf || now >= DEAF).then(|| Queue::Agent(self.me.clone()));
        own.into_iter().chain([Queue::Role(self.role.clone())]).map(Line::Tasks).collect()
    }

    fn take(&mut self, slot: usize, io: &mut Io<'_>) {
        if self.stopping {
            if self.slots.iter().all(Option::is_none) {
                io.exit();
            }
            return;
        }
        let call = io.ask(Request::Take { lines: self.lines(io.time), wait: POLL });
        self.calls.insert(call, slot);
    }

    fn took(&mut self, slot: usize, taken: Taken, io: &mut Io<'_>) {
        let Item::Task(offer) = taken.body else { return };
        let (task, generation) = (offer.task.clone(), offer.generation);
        let key = AgentKey { role: self.role.clone(), agent: self.me.clone(), task, generation };
        let beat = io.wake(PROGRESS);
        let deadline = io.wake(ms(offer.deadline.since(io.clock)));
        self.calls.extend([(beat, slot), (deadline, slot)]);
        self.slots[slot] = Some(Job {
            item: taken.item,
            taken: io.time,
            key,
            journal: Journal::default(),
            stage: Stage::Opening,
            awaited: 0,
            beat,
            deadline,
            openings: 0,
            confirmed: io.time,
            interrupt: None,
            offer,
        });
        // A task given out for the first time is taken for new; the fence tells when it is not.
        if taken.delivered <= 1 {
            self.start(slot, io);
        } else {
            self.open(slot, io);
        }
    }

    fn open(&mut self, slot: usize, io: &mut Io<'_>) {
        let Some(job) = self.slots[slot].as_mut() else { return };
        job.openings += 1;
        if job.openings > OPENINGS {
            return self.free(slot, io);
        }
        job.stage = Stage::Opening;
        job.awaited = io.ask(read(job, Seq(0)));
        self.calls.insert(job.awaited, slot);
    }

    fn start(&mut self, slot: usize, io: &mut Io<'_>) {
        let Some(job) = &self.slots[slot] else { return };
        let started = job.journal.started(job.item, job.taken);
        self.write(slot, started, io);
    }

    fn write(&mut self, slot: usize, event: AgentEvent, io: &mut Io<'_>) {
        self.try_write(slot, event, io.time, io);
    }

    fn try_write(&mut self, slot: usize, event: AgentEvent, since: Time, io: &mut Io<'_>) {
        let Some(job) = self.slots[slot].as_mut() else { return };
        if io.time.saturating_sub(since) > PATIENCE {
            let back = Request::Back {
                line: Line::Tasks(job.offer.queue.clone()),
                item: job.item,
                after: UNWRITTEN,
            };
            io.ask(back);
            return self.free(slot, io);
        }
        let (run, key, after) = (job.offer.run, job.key.clone(), job.journal.last);
        job.awaited = io.ask(Request::Report { run, key, after, event: event.clone() });
        job.stage = Stage::Writing { event, since, sent: io.time, looking: false };
        self.calls.insert(job.awaited, slot);
    }

    fn heard_of_write(&mut self, slot: usize, answer: Option<Answer>, io: &mut Io<'_>) {
        let Some(job) = self.slots[slot].as_mut() else { return };
        let Stage::Writing { event, since, sent, looking } =
            std::mem::replace(&mut job.stage, Stage::Opening)
        else {
            return;
        };
        match answer {
            Some(Answer::Appended { last, .. }) => {
                job.journal.last = last;
                job.confirmed = sent;
                self.written(slot, &event, io);
            }
            Some(Answer::Entries(entries)) if looking => {
                match job.journal.look(&entries, &job.key, Some(&event)) {
                    Look::Landed => {
                        job.confirmed = sent;
                        self.written(slot, &event, io);
                    }
                    Look::Missing => self.try_write(slot, event, since, io),
                    Look::Lost if matches!(event, AgentEvent::Started(_)) => self.open(slot, io),
                    Look::Lost => self.free(slot, io),
                }
            }
            // A conflict, or nobody knows what became of it.
            _ => {
                job.awaited = io.ask(read(job, job.journal.last));
                job.stage = Stage::Writing { event, since, sent: io.time, looking: true };
                self.calls.insert(job.awaited, slot);
            }
        }
    }

    fn written(&mut self, slot: usize, event: &AgentEvent, io: &mut Io<'_>) {
        let Some(job) = self.slots[slot].as_mut() else { return };
        job.journal.note(event);
        match event {
            AgentEvent::Started(_) | AgentEvent::Step(_) => self.go_on(slot, io),
            AgentEvent::ToolStarted(tool) => {
                io.note(Note::ToolRan { key: tool.idempotency_key.clone() });
                self.act(slot, io);
            }
            AgentEvent::Released(Released { parked: true, .. }) => self.settle(slot, io),
            AgentEvent::Released(_) => {
                let line = Line::Tasks(job.offer.queue.clone());
                io.ask(Request::Back { line, item: job.item, after: 0 });
                self.free(slot, io);
            }
            AgentEvent::Outcome(_) | AgentEvent::Unreadable(_) => self.settle(slot, io),
        }
    }

    fn settle(&mut self, slot: usize, io: &mut Io<'_>) {
        let Some(job) = &self.slots[slot] else { return };
        io.ask(Request::Done { line: Line::Tasks(job.offer.queue.clone()), item: job.item });
        self.free(slot, io);
    }

    fn free(&mut self, slot: usize, io: &mut Io<'_>) {
        self.slots[slot] = None;
        self.calls.retain(|_, of| *of != slot);
        self.take(slot, io);
    }

    /// Takes the next step, or ends.
    fn go_on(&mut self, slot: usize, io: &mut Io<'_>) {
        let Some(job) = self.slots[slot].as_mut() else { return };
        if job.interrupt.is_some() {
            return self.conclude(slot, io);
        }
        if let Some(step) = job.journal.interrupted_step() {
            return self.write(slot, AgentEvent::Step(step), io);
        }
        if io.time.saturating_sub(job.confirmed) > LOOK_AFTER {
            job.stage = Stage::Checking { sent: io.time };
            job.awaited = io.ask(read(job, job.journal.last));
            self.calls.insert(job.awaited, slot);
            return;
        }
        let step = job.journal.steps + 1;
        // No call is made that the budget does not allow.
        if job.offer.budget.model_calls.is_some_and(|most| u64::from(step) > most) {
            let steps = job.journal.steps;
            let ended = products::ended(Ending::BudgetExhausted, None, steps, steps);
            return self.write(slot, AgentEvent::Outcome(ended), io);
        }
        let (run, task, generation) = (job.offer.run, job.offer.task.clone(), job.offer.generation);
        io.note(Note::Asked { run, task, generation, step, known: job.journal.last });
        job.stage = Stage::Thinking;
        let (least, most) = if io.random.chance(50) { (5_000, 40_000) } else { (50, 2_000) };
        let time = io.random.between(least, most);
        job.awaited = io.wake(time);
        self.calls.insert(job.awaited, slot);
    }

    fn answered(&mut self, slot: usize, io: &mut Io<'_>) {
        let Some(job) = &self.slots[slot] else { return };
        let step = job.journal.steps + 1;
        if let Some(awaited) = products::wait(self.seed, &job.offer).filter(|awaited| awaited.step == step) {
            let Outcome { usage, .. } = products::ended(Ending::Cancelled, None, job.journal.steps, step);
            let wait = Some(Box::new(awaited));
            let waits = Released { reason: "it waits".to_owned(), parked: true, usage, wait };
            return self.write(slot, AgentEvent::Released(waits), io);
        }
        if step > products::steps(self.seed, &job.offer) {
            if products::is_nonsense(self.seed, &job.offer) {
                let nonsense = Unreadable { kind: EventKind::Outcome, why: "it is nonsense".to_owned() };
                return self.write(slot, AgentEvent::Unreadable(nonsense), io);
            }
            let outcome = products::outcome(self.seed, &job.offer, job.journal.steps);
            return self.write(slot, AgentEvent::Outcome(outcome), io);
        }
        if products::is_lasting(self.seed, &job.offer, step) {
            let idempotency_key = idempotency_key(&job.offer, step);
            let begun = ToolStarted { step: products::step(step, None), idempotency_key };
            return self.write(slot, AgentEvent::ToolStarted(begun), io);
        }
        self.act(slot, io);
    }

    fn act(&mut self, slot: usize, io: &mut Io<'_>) {
        let Some(job) = self.slots[slot].as_mut() else { return };
        if job.interrupt.is_some() {
            return self.conclude(slot, io);
        }
        job.stage = Stage::Acting;
        let time = io.random.between(5, 500);
        job.awaited = io.wake(time);
        self.calls.insert(job.awaited, slot);
    }

    fn acted(&mut self, slot: usize, io: &mut Io<'_>) {
        let Some(job) = &self.slots[slot] else { return };
        let step = products::step(job.journal.steps + 1, Some(ObservationStatus::Success));
        self.write(slot, AgentEvent::Step(step), io);
    }

    fn checked(&mut self, slot: usize, sent: Time, answer: Option<Answer>, io: &mut Io<'_>) {
        let Some(job) = self.slots[slot].as_mut() else { return };
        match answer {
            Some(Answer::Entries(entries)) => match job.journal.look(&entries, &job.key, None) {
                Look::Lost => self.free(slot, io),
                Look::Landed | Look::Missing => {
                    job.confirmed = sent;
                    self.go_on(slot, io);
                }
            },
            _ => self.go_on(slot, io),
        }
    }

    /// Ends a task before its time. What is being written is left: the fence sorts out whether it lands.
    fn interrupt(&mut self, slot: usize, why: Interrupt, io: &mut Io<'_>) {
        let Some(job) = self.slots[slot].as_mut() else { return };
        if job.interrupt.is_some() {
            return;
        }
        let concludes = match &job.stage {
            Stage::Opening => true,
            Stage::Writing { event, .. } => match event {
                // These are written to the end, and end the task themselves.
                AgentEvent::Outcome(_) | AgentEvent::Unreadable(_) | AgentEvent::Released(_) => return,
                AgentEvent::Started(_) => true,
                AgentEvent::ToolStarted(_) | AgentEvent::Step(_) => false,
            },
            Stage::Checking { .. } | Stage::Thinking | Stage::Acting => false,
        };
        job.interrupt = Some(why);
        if !concludes {
            self.conclude(slot, io);
        }
    }

    fn conclude(&mut self, slot: usize, io: &mut Io<'_>) {
        let Some(job) = &self.slots[slot] else { return };
        let ended =
            |ending| -> Outcome { products::ended(ending, None, job.journal.steps, job.journal.steps) };
        let event = match job.interrupt {
            Some(Interrupt::Release) => released("the agent stops", false, Usage::default()),
            // What a generation used that ends without an outcome is told with this.
            Some(Interrupt::Park) => {
                let Outcome { usage, .. } = ended(Ending::Cancelled);
                released("it is put down", true, usage)
            }
            Some(Interrupt::Deadline) => AgentEvent::Outcome(ended(Ending::DeadlinePassed)),
            Some(Interrupt::Cancel) | None => AgentEvent::Outcome(ended(Ending::Cancelled)),
        };
        self.write(slot, event, io);
    }
}

fn released(reason: &str, parked: bool, usage: Usage) -> AgentEvent {
    AgentEvent::Released(Released { reason: reason.to_owned(), parked, usage, wait: None })
}

impl Process for Agent {
    fn begin(&mut self, io: &mut Io<'_>) {
        for slot in 0..self.slots.len() {
            self.take(slot, io);
        }
    }

    fn heard(&mut self, call: u64, answer: Option<Answer>, io: &mut Io<'_>) {
        let Some(slot) = self.calls.remove(&call) else { return };
        let Some(job) = self.slots[slot].as_mut() else {
            return match answer {
                Some(Answer::Taken(taken)) => self.took(slot, taken, io),
                _ => self.take(slot, io),
            };
        };
        if job.awaited != call {
            return;
        }
        match &job.stage {
            Stage::Opening => match answer {
                Some(Answer::Entries(entries)) => {
                    job.journal = Journal::fold(&entries);
                    if io.is_sabotaged(Sabotage::HistoryUnread) {
                        job.journal.forget_steps();
                    }
                    if job.journal.is_closed() { self.settle(slot, io) } else { self.start(slot, io) }
                }
                _ => self.open(slot, io),
            },
            Stage::Writing { .. } => self.heard_of_write(slot, answer, io),
            Stage::Checking { sent } => {
                let sent = *sent;
                self.checked(slot, sent, answer, io);
            }
            Stage::Thinking | Stage::Acting => {}
        }
    }

    fn woke(&mut self, token: u64, io: &mut Io<'_>) {
        let Some(slot) = self.calls.remove(&token) else { return };
        let Some(job) = self.slots[slot].as_mut() else { return };
        if token == job.beat {
            io.ask(Request::Progress { line: Line::Tasks(job.offer.queue.clone()), item: job.item });
            job.beat = io.wake(PROGRESS);
            self.calls.insert(job.beat, slot);
        } else if token == job.deadline {
            self.interrupt(slot, Interrupt::Deadline, io);
        } else if token == job.awaited {
            match job.stage {
                Stage::Thinking => self.answered(slot, io),
                Stage::Acting => self.acted(slot, io),
                Stage::Opening | Stage::Writing { .. } | Stage::Checking { .. } => {}
            }
        }
    }

    fn told(&mut self, message: &ControlMessage, io: &mut Io<'_>) {
        for slot in 0..self.slots.len() {
            let Some(job) = &self.slots[slot] else { continue };
            match message {
                ControlMessage::CancelRun { run, .. } if *run == job.offer.run => {
                    self.interrupt(slot, Interrupt::Cancel, io);
                }
                ControlMessage::CancelTask { run, task, generation, .. }
                    if (*run, task, *generation)
                        == (job.offer.run, &job.offer.task, job.offer.generation) =>
                {
                    self.interrupt(slot, Interrupt::Cancel, io);
                }
                ControlMessage::ParkRun { run, .. } if *run == job.offer.run => {
                    self.interrupt(slot, Interrupt::Park, io);
                }
                ControlMessage::ParkTask { run, task, generation, .. }
                    if (*run, task, *generation)
                        == (job.offer.run, &job.offer.task, job.offer.generation) =>
                {
                    self.interrupt(slot, Interrupt::Park, io);
                }
                ControlMessage::Shutdown => self.interrupt(slot, Interrupt::Release, io),
                _ => {}
            }
        }
        if matches!(message, ControlMessage::Shutdown) {
            self.stopping = true;
            if self.slots.iter().all(Option::is_none) {
                io.exit();
            }
        }
    }

    fn came(&mut self, _: &Profile, _: &mut Io<'_>) {}

    fn left(&mut self, _: &AgentId, _: &mut Io<'_>) {}

    fn lost(&mut self, _: &AgentId, _: &mut Io<'_>) {}

    fn follow(&mut self, _: &[Rc<Entry>], _: &mut Io<'_>) {}
}
