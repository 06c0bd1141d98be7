//! What is known of a fleet. Pure: [`Model::take`] is all that changes it, and runs come about by the same fold as
//! everywhere else.

mod change;
mod fleet;
mod input;
mod run;
#[cfg(test)]
mod tests;
mod traffic;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_shared::ids::{QuestionId, RunId, Seq};
use muster_shared::run::event::RequestRefused;
use muster_shared::run::{
    Entry, Input as DecidedUpon, QuestionState, RecordEvent, RunEvent, RunState, note_waiting,
};
use muster_shared::time::Millis;
use uuid::Uuid;

pub(crate) use self::change::Change;
pub(crate) use self::fleet::{Fleet, Happened};
pub(crate) use self::input::{Input, Link};
pub(crate) use self::run::LiveRun;
pub(crate) use self::traffic::{Passed, Traffic};

/// Maximum depth of child runs.
const MOST_LEVELS: usize = 20;

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    /// Runs that nobody opened. Those that ended first go first.
    pub(crate) runs: usize,
    /// Entries of each run that is open, the newest.
    pub(crate) entries: usize,
    /// Messages that passed, the newest.
    pub(crate) messages: usize,
}

impl Default for Most {
    fn default() -> Self {
        Self { runs: 100, entries: 20_000, messages: 2_000 }
    }
}

/// What is known of a fleet.
#[derive(Debug)]
pub(crate) struct Model {
    most: Most,
    link: Link,
    /// Whether the newest runs are all there.
    caught_up: bool,
    fleet: Fleet,
    runs: BTreeMap<RunId, LiveRun>,
    opened: BTreeSet<RunId>,
    traffic: Traffic,
}

impl Model {
    /// Nothing is known yet.
    pub(crate) fn new(most: Most) -> Self {
        Self {
            most,
            link: Link::Connecting,
            caught_up: false,
            fleet: Fleet::default(),
            runs: BTreeMap::new(),
            opened: BTreeSet::new(),
            traffic: Traffic::new(most.messages),
        }
    }

    /// How the way to the fleet stands.
    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// Whether the newest runs are all there.
    pub(crate) fn is_caught_up(&self) -> bool {
        self.caught_up
    }

    /// Its processes.
    pub(crate) fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// The runs that are known, newest first by the event log.
    pub(crate) fn runs(&self) -> impl DoubleEndedIterator<Item = &LiveRun> {
        let mut runs: Vec<&LiveRun> = self.runs.values().collect();
        runs.sort_by_cached_key(|run| self.path(run));
        runs.into_iter()
    }

    /// Place of a run among others: its outermost run, newest first, then the runs on the way to it.
    fn path(&self, run: &LiveRun) -> Vec<Reverse<((Millis, Seq), RunId)>> {
        let outer = |run: &&LiveRun| self.runs.get(&run.outer()?);
        let way = std::iter::successors(Some(run), outer).take(MOST_LEVELS);
        let mut path: Vec<_> = way.map(|run| Reverse((run.created(), run.id()))).collect();
        path.reverse();
        path
    }

    /// The states of these, as far as their records can be followed.
    pub(crate) fn states(&self) -> impl Iterator<Item = &RunState> {
        self.runs().filter_map(LiveRun::state)
    }

    /// One run.
    pub(crate) fn run(&self, run: RunId) -> Option<&LiveRun> {
        self.runs.get(&run)
    }

    /// What waits for a person, of the newest run first.
    pub(crate) fn questions(&self) -> impl Iterator<Item = (&RunState, QuestionId, &QuestionState)> {
        let at_work = self.states().filter(|state| !state.status.is_ended());
        at_work.flat_map(|state| state.open_questions().map(move |(id, asked)| (state, id, asked)))
    }

    /// What passes.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Takes in what happened. Gives what changed by it; nothing where nothing did.
    pub(crate) fn take(&mut self, input: Input) -> Vec<Change> {
        match input {
            Input::Link(link) => self.take_link(link),
            Input::CaughtUp => {
                self.caught_up = true;
                vec![Change::Link]
            }
            Input::Processes { change, at } => changed(self.fleet.take(*change, at, self.caught_up)),
            Input::Around(around) => changed(self.fleet.learn(*around)),
            Input::Happened(happened) => {
                self.fleet.note(happened);
                vec![Change::Fleet]
            }
            Input::Opened(run) => {
                self.opened.insert(run);
                Vec::new()
            }
            Input::Closed(run) => {
                self.opened.remove(&run);
                if let Some(run) = self.runs.get_mut(&run) {
                    run.close();
                }
                self.make_room()
            }
            Input::Record { run, entries } => self.take_record(run, entries),
            Input::Entry(entry) => self.take_entry(&entry),
            Input::Damaged { run, why } => {
                self.runs.entry(run).or_insert_with(|| LiveRun::new(run)).damage(why);
                self.told(run, [Change::Brief(run)])
            }
            Input::Live(live) => {
                let (run, task) = (live.run, live.task.clone());
                let open = self.runs.get_mut(&run).filter(|_| self.opened.contains(&run));
                let Some(open) = open else { return Vec::new() };
                open.hear(live);
                vec![Change::Doing { run, task }]
            }
            Input::Tapped { tapped, dropped } => vec![Change::Tapped(self.traffic.take(*tapped, dropped))],
            Input::TapEnded => vec![Change::TapEnded],
        }
    }

    /// Another fleet, or the same one come back, is not known yet: what it has to say comes anew.
    fn take_link(&mut self, link: Link) -> Vec<Change> {
        match link {
            Link::Anew(url) => {
                self.link = Link::Up(url);
                self.caught_up = false;
                self.fleet.forget();
                let gone = std::mem::take(&mut self.runs).into_keys().map(Change::Gone);
                [Change::Link, Change::Fleet, Change::Questions].into_iter().chain(gone).collect()
            }
            link if link == self.link => Vec::new(),
            link => {
                self.link = link;
                vec![Change::Link]
            }
        }
    }

    /// The whole record of a run, as it was read. What was heard of it since is kept.
    fn take_record(&mut self, run: RunId, entries: Vec<Arc<Entry>>) -> Vec<Change> {
        let is_open = self.opened.contains(&run);
        let known = self.runs.entry(run).or_insert_with(|| LiveRun::new(run));
        let asked = known.asked();
        let change = known.take_record(entries, is_open, self.most.entries);
        let mut changes = vec![Change::Brief(run)];
        if is_open {
            changes.push(Change::Run(Box::new(change)));
        }
        if known.asked() != asked {
            changes.push(Change::Questions);
        }
        changes.extend(self.note_waiting(run));
        self.told(run, changes)
    }

    /// Notes in the runs that a run was begun for whether it waits for a person. Gives those whose state changed.
    fn note_waiting(&mut self, run: RunId) -> Vec<Change> {
        if self.run(run).and_then(LiveRun::outer).is_none() {
            return Vec::new();
        }
        let mut runs: Vec<&mut RunState> = self.runs.values_mut().filter_map(LiveRun::state_mut).collect();
        note_waiting(&mut runs).into_iter().map(Change::Brief).collect()
    }

    fn take_entry(&mut self, entry: &Arc<Entry>) -> Vec<Change> {
        let run = entry.run;
        // One whose beginning is not known is none that is kept.
        if !self.runs.contains_key(&run) && !begins(entry) {
            return Vec::new();
        }
        let is_open = self.opened.contains(&run);
        let known = self.runs.entry(run).or_insert_with(|| LiveRun::new(run));
        let asked = known.asked();
        let decider = known.decided_by().cloned();
        let Some(change) = known.take(entry, is_open, self.most.entries) else { return Vec::new() };
        let mut changes = vec![Change::Brief(run)];
        changes.extend(requests(entry));
        if known.asked() != asked {
            changes.push(Change::Questions);
        }
        if is_open {
            changes.push(Change::Run(Box::new(change)));
        }
        let happened = fleet::told_by(entry, decider.as_ref());
        if !happened.is_empty() {
            happened.into_iter().for_each(|happened| self.fleet.note(happened));
            changes.push(Change::Fleet);
        }
        changes.extend(self.note_waiting(run));
        self.told(run, changes)
    }

    fn told(&mut self, run: RunId, changes: impl IntoIterator<Item = Change>) -> Vec<Change> {
        let mut changes: Vec<Change> = changes.into_iter().collect();
        let gone = self.make_room();
        // What went at once was never there.
        if gone.iter().any(|gone| matches!(gone, Change::Gone(gone) if *gone == run)) {
            changes.clear();
        }
        changes.extend(gone);
        changes
    }

    /// Lets go of what is more than is kept: first of all what has ended, the oldest of it first.
    fn make_room(&mut self) -> Vec<Change> {
        let mut gone = Vec::new();
        while self.runs.len() > self.most.runs.saturating_add(self.opened.len()) {
            let closed = || self.runs().rev().filter(|run| !self.opened.contains(&run.id()));
            let ended = closed().find(|run| !run.is_at_work());
            let Some(oldest) = ended.or_else(|| closed().next()).map(LiveRun::id) else { break };
            self.runs.remove(&oldest);
            gone.push(Change::Gone(oldest));
        }
        gone
    }
}

/// Whether a run begins with an entry.
pub(crate) fn begins(entry: &Entry) -> bool {
    entry.event.goal().is_some()
}

fn changed(is_changed: bool) -> Vec<Change> {
    if is_changed { vec![Change::Fleet] } else { Vec::new() }
}

/// What became of requests that a decision is made upon.
fn requests(entry: &Entry) -> Vec<Change> {
    let RecordEvent::Decided(decided) = &entry.event else { return Vec::new() };
    let refused = |wanted: Uuid| {
        decided.events.iter().find_map(|event| match event {
            RunEvent::RequestRefused(RequestRefused { id, reason }) if *id == wanted => Some(reason.clone()),
            _ => None,
        })
    };
    let asked = decided.inputs.iter().filter_map(DecidedUpon::request);
    asked.map(|id| Change::Request { id, refused: refused(id) }).collect()
}
