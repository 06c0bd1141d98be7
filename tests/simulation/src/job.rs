//! A task in an agent's hands.

use std::rc::Rc;
use std::time::Duration;

use muster_journal::{AppendEvent, Appended, Found, Journal, JournalStep, TaskFold, Unanswered};
use muster_shared::flow::TaskOffered;
use muster_shared::run::{AgentEvent, AgentKey, Entry, EventKind, RecordEvent, Unreadable};

use crate::Sabotage;
use crate::agenda::Time;
use crate::hostile::is_hostile;
use crate::io::Io;
use crate::messages::{Answer, Request};

/// A task in hand.
pub(crate) struct Job {
    pub(crate) offer: Rc<TaskOffered>,
    pub(crate) item: u64,
    pub(crate) key: AgentKey,
    pub(crate) journal: Journal<Rc<Entry>>,
    pub(crate) course: Course,
    pub(crate) stage: Stage,
    /// The call or alarm that the stage waits for.
    pub(crate) awaited: u64,
    pub(crate) beat: u64,
    pub(crate) deadline: u64,
    pub(crate) interrupt: Option<Interrupt>,
}

/// What was done of a task.
#[derive(Debug, Default)]
pub(crate) struct Course {
    pub(crate) fold: TaskFold,
    /// How many of its steps the run has counted.
    counted: u32,
}

impl Course {
    pub(crate) fn of(found: &Found<Rc<Entry>>) -> Self {
        let mut course = Self::default();
        for entries in &found.before {
            course.fold = course.fold.and_then(entries).before_the_next();
            if entries.iter().any(|entry| is_counted(entry)) {
                course.counted = course.fold.last_step();
            }
        }
        Self { fold: course.fold.and_then(&found.entries), ..course }
    }

    /// The steps that nobody has counted.
    pub(crate) const fn uncounted(&self) -> u32 {
        self.fold.last_step().saturating_sub(self.counted)
    }
}

/// Whether it says what was used until then.
fn is_counted(entry: &Entry) -> bool {
    match &entry.event {
        RecordEvent::Agent(_, AgentEvent::Released(released)) => released.parked,
        RecordEvent::Agent(_, AgentEvent::Outcome(_)) => true,
        RecordEvent::Agent(..) | RecordEvent::Decided(_) | RecordEvent::Offered(_) => false,
    }
}

/// Why a task ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    Cancel,
    Release,
    Park,
    Deadline,
}

/// What a task in hand waits for.
#[expect(clippy::large_enum_variant, reason = "moved once or twice, and few at a time")]
pub(crate) enum Stage {
    /// What its journal asked for.
    Journal {
        doing: Doing,
        step: JournalStep<'static>,
    },
    Thinking,
    Acting,
}

/// What its journal is about.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "moved once or twice, and few at a time")]
pub(crate) enum Doing {
    Opening,
    Writing(AgentEvent),
    /// Looking whether the task is still ours before a model is asked.
    Looking,
}

/// What the broker is asked for the journal; for a pause, and at the end, nothing.
pub(crate) fn request(job: &Job, step: &JournalStep<'_>) -> Option<Request> {
    let TaskOffered { run, task, generation, .. } = &*job.offer;
    let (run, task, generation) = (*run, task.clone(), *generation);
    match step {
        JournalStep::Read(step) => {
            let (after, decisions) = (step.after, step.decisions());
            Some(Request::ReadTask { run, task, generation: step.generation, after, decisions })
        }
        JournalStep::Append(step) => Some(report(job, step)),
        JournalStep::AskWhoHolds(step) => {
            Some(Request::WasTaken { run, task, agent: step.agent.clone(), since: step.since })
        }
        JournalStep::AskNewest(_) => Some(Request::Newest { run, task, generation }),
        JournalStep::Wait(_) | JournalStep::Done(_) => None,
    }
}

fn report(job: &Job, step: &AppendEvent<'_>) -> Request {
    let (run, key) = (job.offer.run, job.key.clone());
    Request::Report { run, key, after: step.after, event: step.event().clone() }
}

/// Goes on with the broker's answer; nothing when none came in time, or a pause is over.
pub(crate) fn answered(
    journal: &mut Journal<Rc<Entry>>,
    doing: &Doing,
    step: JournalStep<'static>,
    answer: Option<Answer>,
    io: &Io<'_>,
) -> JournalStep<'static> {
    let (now, unanswered) = (io.moment(), Unanswered { is_transient: true });
    match step {
        JournalStep::Read(step) => {
            let entries = match answer {
                Some(Answer::Entries(entries)) => Ok(as_read(entries, doing, io)),
                _ => Err(unanswered),
            };
            step.read(journal, entries, now)
        }
        JournalStep::Append(step) => {
            let appended = match answer {
                Some(Answer::Appended { last, .. }) => Appended::Stored(last),
                Some(_) => Appended::Conflict,
                None => Appended::Ambiguous,
            };
            step.went(journal, appended, now)
        }
        JournalStep::AskWhoHolds(step) => {
            let was_taken = match answer {
                Some(Answer::WasTaken(was_taken)) => Ok(was_taken),
                _ => Err(unanswered),
            };
            step.told(journal, was_taken, now)
        }
        JournalStep::AskNewest(step) => {
            let newest = match answer {
                Some(Answer::Newest(mut newest)) => {
                    newest.offered = newest.offered.filter(|_| !io.is_sabotaged(Sabotage::NewerOffersUnseen));
                    Ok(newest)
                }
                _ => Err(unanswered),
            };
            step.told(journal, newest, now)
        }
        JournalStep::Wait(pause) => pause.over(now),
        done @ JournalStep::Done(_) => done,
    }
}

/// One that begins anew takes the steps of others for what cannot be read.
fn as_read(entries: Vec<Rc<Entry>>, doing: &Doing, io: &Io<'_>) -> Vec<Rc<Entry>> {
    if io.is_sabotaged(Sabotage::OthersBelieved) {
        return believed(entries);
    }
    if !io.is_sabotaged(Sabotage::HistoryUnread) || !matches!(doing, Doing::Opening) {
        return entries;
    }
    let unread = |entry: Rc<Entry>| match &entry.event {
        RecordEvent::Agent(key, AgentEvent::Step(_) | AgentEvent::ToolStarted(_)) => {
            let unread = Unreadable { kind: EventKind::Step, why: String::new() };
            let event = RecordEvent::Agent(key.clone(), AgentEvent::Unreadable(unread));
            Rc::new(Entry { event, ..Entry::clone(&entry) })
        }
        RecordEvent::Agent(..) | RecordEvent::Decided(_) | RecordEvent::Offered(_) => entry,
    };
    entries.into_iter().map(unread).collect()
}

/// As if all that was written about the task were of whoever began it first.
fn believed(entries: Vec<Rc<Entry>>) -> Vec<Rc<Entry>> {
    let first = entries.iter().find_map(|entry| match &entry.event {
        RecordEvent::Agent(key, _) => Some(key.clone()),
        RecordEvent::Decided(_) | RecordEvent::Offered(_) => None,
    });
    let believe = |entry: Rc<Entry>| match (&entry.event, &first) {
        (RecordEvent::Agent(key, event), Some(first)) if is_hostile(key) => {
            let event = RecordEvent::Agent(first.clone(), event.clone());
            Rc::new(Entry { event, ..Entry::clone(&entry) })
        }
        _ => entry,
    };
    entries.into_iter().map(believe).collect()
}

pub(crate) fn ms(span: Duration) -> Time {
    Time::try_from(span.as_millis()).unwrap_or(Time::MAX)
}

/// The name of one use of a tool.
pub(crate) fn idempotency_key(offer: &TaskOffered, step: u32) -> String {
    format!("{}/{}/{}/{step}", offer.run, offer.task, offer.generation)
}
