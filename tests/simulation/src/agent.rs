//! An agent: takes tasks, journals each step, writes the outcome, and settles with its queue.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use muster_journal::{Begin, Journal, JournalFailure, JournalStep};
use muster_shared::flow::{Awaited, Ending, ObservationStatus, Outcome, Step, Usage};
use muster_shared::ids::{AgentId, Queue, Role};
use muster_shared::run::{AgentEvent, AgentKey, Entry, EventKind, Released, ToolStarted, Unreadable};
use muster_shared::wire::{ControlMessage, Profile};

use crate::agenda::Time;
use crate::fleet::Conduct;
use crate::io::{Io, Note};
use crate::job::{Course, Doing, Interrupt, Job, Stage, answered, idempotency_key, ms, request};
use crate::messages::{Answer, Item, Line, Request, Taken};
use crate::process::Process;
use crate::products;
use crate::queue::ACK_WAIT;

/// How often the queue is told that a task is worked on.
const PROGRESS: Time = ACK_WAIT / 3;
/// How long a bus that cannot be reached is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
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
    conduct: Conduct,
    slots: Vec<Option<Job>>,
    /// Which slot an answer or an alarm is for.
    calls: BTreeMap<u64, usize>,
    stopping: bool,
}

impl Agent {
    pub(crate) fn new(
        seed: u64,
        me: AgentId,
        role: Role,
        slots: usize,
        (is_deaf, conduct): (bool, Conduct),
    ) -> Self {
        let slots = (0..slots).map(|_| None).collect();
        Self { seed, me, role, is_deaf, conduct, slots, calls: BTreeMap::new(), stopping: false }
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
        let begin = Begin {
            continues: offer.continues,
            delivered: u64::from(taken.delivered),
            waited: Duration::from_millis(io.time.saturating_sub(taken.since)),
            ack: format!("$JS.ACK.TASKS.{}.{}.{}", offer.queue, taken.item, io.time),
            pid: 0,
            host: String::new(),
        };
        let mut journal = Journal::new(key.clone(), PATIENCE, io.moment());
        let step = journal.open(begin, io.moment());
        self.slots[slot] = Some(Job {
            item: taken.item,
            key,
            journal,
            course: Course::default(),
            stage: Stage::Acting,
            awaited: 0,
            beat,
            deadline,
            interrupt: None,
            offer,
        });
        self.carry_out(slot, Doing::Opening, step, io);
    }

    /// Asks what the journal needs, or goes on where it needs nothing more.
    fn carry_out(&mut self, slot: usize, doing: Doing, step: JournalStep<'static>, io: &mut Io<'_>) {
        let Some(job) = self.slots[slot].as_mut() else { return };
        job.awaited = match step {
            JournalStep::Done(done) => return self.done(slot, doing, &done, io),
            JournalStep::Wait(pause) => {
                let token = io.wake(ms(pause.time));
                job.stage = Stage::Journal { doing, step: JournalStep::Wait(pause) };
                token
            }
            step => {
                let Some(request) = request(job, &step) else { return };
                job.stage = Stage::Journal { doing, step };
                io.ask(request)
            }
        };
        self.calls.insert(job.awaited, slot);
    }

    /// What the journal waits for is there, or does not come in time.
    fn heard_for_journal(&mut self, slot: usize, answer: Option<Answer>, io: &mut Io<'_>) {
        let Some(job) = self.slots[slot].as_mut() else { return };
        match std::mem::replace(&mut job.stage, Stage::Acting) {
            Stage::Journal { doing, step } => {
                let step = answered(&mut job.journal, &doing, step, answer, io);
                self.carry_out(slot, doing, step, io);
            }
            other @ (Stage::Thinking | Stage::Acting) => job.stage = other,
        }
    }

    fn done(&mut self, slot: usize, doing: Doing, done: &Result<(), JournalFailure>, io: &mut Io<'_>) {
        let Some(job) = self.slots[slot].as_mut() else { return };
        match done {
            Ok(()) => match doing {
                Doing::Opening => {
                    job.course = Course::of(&job.journal.take_found());
                    self.begun(slot, io);
                }
                Doing::Writing(event) => self.written(slot, &event, io),
                Doing::Looking => self.ask(slot, io),
            },
            Err(JournalFailure::Closed | JournalFailure::OfferedAnew) => self.settle(slot, io),
            Err(JournalFailure::Lost | JournalFailure::LeftTo(_)) => self.free(slot, io),
            Err(JournalFailure::TooLarge { .. } | JournalFailure::Unreachable | JournalFailure::TimedOut) => {
                self.give_back(slot, UNWRITTEN, io)
            }
        }
    }

    /// An earlier generation may have come to a good end after it had been closed: nothing is left to be done.
    fn begun(&mut self, slot: usize, io: &mut Io<'_>) {
        let Some(job) = &self.slots[slot] else { return };
        match job.course.fold.ended().filter(|outcome| outcome.ending.is_success()).cloned() {
            Some(outcome) => {
                let outcome = Outcome { usage: Usage::default(), ..outcome };
                self.write(slot, AgentEvent::Outcome(outcome.into()), io);
            }
            None => self.go_on(slot, io),
        }
    }

    fn write(&mut self, slot: usize, event: AgentEvent, io: &mut Io<'_>) {
        let Some(job) = &self.slots[slot] else { return };
        let step = job.journal.append(Cow::Owned(event.clone()), io.moment());
        self.carry_out(slot, Doing::Writing(event), step, io);
    }

    fn written(&mut self, slot: usize, event: &AgentEvent, io: &mut Io<'_>) {
        let Some(job) = self.slots[slot].as_mut() else { return };
        job.course.fold.note(&job.key, job.journal.last(), event);
        match event {
            AgentEvent::Started(_) | AgentEvent::Step(_) => self.go_on(slot, io),
            AgentEvent::ToolStarted(tool) if tool.idempotency_key.is_empty() => self.chosen(slot, io),
            AgentEvent::ToolStarted(tool) => {
                io.note(Note::ToolRan { key: tool.idempotency_key.clone() });
                self.act(slot, io);
            }
            AgentEvent::Released(Released { parked: true, .. }) => self.settle(slot, io),
            AgentEvent::Released(_) => self.give_back(slot, 0, io),
            AgentEvent::Outcome(_) | AgentEvent::Unreadable(_) => self.settle(slot, io),
        }
    }

    fn settle(&mut self, slot: usize, io: &mut Io<'_>) {
        let Some(job) = &self.slots[slot] else { return };
        io.ask(Request::Done { line: Line::Tasks(job.offer.queue.clone()), item: job.item });
        self.free(slot, io);
    }

    fn give_back(&mut self, slot: usize, after: Time, io: &mut Io<'_>) {
        let Some(job) = &self.slots[slot] else { return };
        io.ask(Request::Back { line: Line::Tasks(job.offer.queue.clone()), item: job.item, after });
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
        if let Some(begun) = job.course.fold.begun().cloned() {
            return self.finish_begun(slot, begun, io);
        }
        let look = job.journal.look(io.moment());
        self.carry_out(slot, Doing::Looking, look, io);
    }

    /// What a tool did that was begun and not ended is not known, so it does not run again. An answer that was kept alone is
    /// gone on from.
    fn finish_begun(&mut self, slot: usize, begun: ToolStarted, io: &mut Io<'_>) {
        let Some(job) = &self.slots[slot] else { return };
        let ToolStarted { step, idempotency_key } = begun;
        let answered = job.offer.answered.as_ref().filter(|answered| answered.step == step.number);
        let status = match answered {
            Some(_) => ObservationStatus::Success,
            None if idempotency_key.is_empty() => return self.chosen(slot, io),
            None => ObservationStatus::Timeout,
        };
        let observation = products::step(step.number, Some(status)).observation;
        self.write(slot, AgentEvent::Step(Step { observation, ..step }), io);
    }

    fn ask(&mut self, slot: usize, io: &mut Io<'_>) {
        let Some(job) = self.slots[slot].as_mut() else { return };
        let (step, uncounted) = (job.course.fold.last_step() + 1, job.course.uncounted());
        // No call is made that the budget does not allow.
        if job.offer.budget.model_calls.is_some_and(|most| u64::from(uncounted) >= most) {
            let ended = products::ended(Ending::BudgetExhausted, None, uncounted, uncounted);
            return self.write(slot, AgentEvent::Outcome(ended.into()), io);
        }
        if self.conduct == Conduct::Broken {
            let failed = products::ended(Ending::AgentFailed, None, uncounted, uncounted);
            return self.write(slot, AgentEvent::Outcome(failed.into()), io);
        }
        let (run, task, generation) = (job.offer.run, job.offer.task.clone(), job.offer.generation);
        io.note(Note::Asked { run, task, generation, step, known: job.journal.last() });
        job.stage = Stage::Thinking;
        let (least, most) = match (io.random.chance(50), self.conduct) {
            (_, Conduct::Slow) => (12_000, 20_000),
            (true, _) => (5_000, 40_000),
            (false, _) => (50, 2_000),
        };
        let time = io.random.between(least, most);
        job.awaited = io.wake(time);
        self.calls.insert(job.awaited, slot);
    }

    /// What the task waits for in the step being taken, if it does.
    fn waits(&self, slot: usize) -> Option<Awaited> {
        let job = self.slots[slot].as_ref()?;
        let step = job.course.fold.last_step() + 1;
        products::wait(self.seed, &job.offer).filter(|awaited| awaited.step == step)
    }

    fn answered(&mut self, slot: usize, io: &mut Io<'_>) {
        let waits = self.waits(slot);
        let Some(job) = &self.slots[slot] else { return };
        let (step, uncounted) = (job.course.fold.last_step() + 1, job.course.uncounted());
        if waits.is_some() {
            // So that whoever goes on need not ask the model again.
            let kept = ToolStarted { step: products::step(step, None), idempotency_key: String::new() };
            return self.write(slot, AgentEvent::ToolStarted(kept), io);
        }
        if step > products::steps(self.seed, &job.offer) {
            if products::is_nonsense(self.seed, &job.offer) {
                let nonsense = Unreadable { kind: EventKind::Outcome, why: "it is nonsense".to_owned() };
                return self.write(slot, AgentEvent::Unreadable(nonsense), io);
            }
            let outcome = match self.conduct {
                Conduct::Lying => products::ended(Ending::Done, None, uncounted, uncounted + 1),
                Conduct::Sound | Conduct::Slow | Conduct::Broken => {
                    products::outcome(self.seed, &job.offer, uncounted)
                }
            };
            return self.write(slot, AgentEvent::Outcome(outcome.into()), io);
        }
        if products::is_lasting(self.seed, &job.offer, step) {
            let idempotency_key = idempotency_key(&job.offer, step);
            let begun = ToolStarted { step: products::step(step, None), idempotency_key };
            return self.write(slot, AgentEvent::ToolStarted(begun), io);
        }
        self.act(slot, io);
    }

    /// The model's answer is in the record, and nothing of it is done.
    fn chosen(&mut self, slot: usize, io: &mut Io<'_>) {
        let waits = self.waits(slot);
        let Some(job) = &self.slots[slot] else { return };
        match waits {
            Some(awaited) if job.interrupt.is_none() => {
                let uncounted = job.course.uncounted();
                let Outcome { usage, .. } =
                    products::ended(Ending::Cancelled, None, uncounted, uncounted + 1);
                let wait = Some(Box::new(awaited));
                let waits = Released { reason: "it waits".to_owned(), parked: true, usage, wait };
                self.write(slot, AgentEvent::Released(waits), io);
            }
            Some(_) | None => self.act(slot, io),
        }
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
        let step = products::step(job.course.fold.last_step() + 1, Some(ObservationStatus::Success));
        self.write(slot, AgentEvent::Step(step), io);
    }

    /// Ends a task before its time. What is being written is left: the fence sorts out whether it lands.
    fn interrupt(&mut self, slot: usize, why: Interrupt, io: &mut Io<'_>) {
        let Some(job) = self.slots[slot].as_mut() else { return };
        if job.interrupt.is_some() {
            return;
        }
        let concludes = match &job.stage {
            Stage::Journal { doing: Doing::Opening, .. } => true,
            Stage::Journal { doing: Doing::Writing(event), .. } => match event {
                // These are written to the end, and end the task themselves.
                AgentEvent::Outcome(_) | AgentEvent::Unreadable(_) | AgentEvent::Released(_) => return,
                AgentEvent::Started(_) => true,
                AgentEvent::ToolStarted(_) | AgentEvent::Step(_) => false,
            },
            Stage::Journal { doing: Doing::Looking, .. } | Stage::Thinking | Stage::Acting => false,
        };
        job.interrupt = Some(why);
        if !concludes {
            self.conclude(slot, io);
        }
    }

    fn conclude(&mut self, slot: usize, io: &mut Io<'_>) {
        let Some(job) = &self.slots[slot] else { return };
        let uncounted = job.course.uncounted();
        let ended = |ending| -> Outcome { products::ended(ending, None, uncounted, uncounted) };
        let event = match job.interrupt {
            Some(Interrupt::Release) => released("the agent stops", false, Usage::default()),
            // What a generation used that ends without an outcome is told with this.
            Some(Interrupt::Park) => {
                let Outcome { usage, .. } = ended(Ending::Cancelled);
                released("it is put down", true, usage)
            }
            Some(Interrupt::Deadline) => AgentEvent::Outcome(ended(Ending::DeadlinePassed).into()),
            Some(Interrupt::Cancel) | None => AgentEvent::Outcome(ended(Ending::Cancelled).into()),
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
        self.heard_for_journal(slot, answer, io);
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
                Stage::Journal { .. } => self.heard_for_journal(slot, None, io),
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
