//! The rules that are looked at after every entry of the record, and at the end of a history.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use muster_orchestrator::decide::{Recorded, Situation, decide};
use muster_shared::flow::{TaskOffered, TaskStatus};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::chain::{Link, Read, verify};
use muster_shared::run::{
    AgentKey, Decided, Entry, Input, RecordEvent, RunEvent, RunState, apply, gaps, invariants,
};

use crate::accord::Accord;
use crate::agenda::Time;
use crate::asks::Asks;
use crate::claims::unsupported_claims;
use crate::explained;
use crate::family::Family;
use crate::folds;
use crate::hostile::{self, Forgeries};
use crate::io::Note;
use crate::random::Random;
use crate::trials;

/// In so many turns after the last fault every run has ended. While something is overdue that cannot be helped, a run is
/// looked at once a second.
const MOST_LATE_TURNS: u64 = 3_000;

/// The rules, and what they need to know.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    states: BTreeMap<RunId, Option<RunState>>,
    ended: BTreeSet<RunId>,
    asks: Asks,
    family: Family,
    accord: Accord,
    forgeries: Forgeries,
    acknowledged: BTreeMap<Seq, Rc<Entry>>,
    /// When each run had its newest entry.
    newest: BTreeMap<RunId, Time>,
    /// How many turns orchestrators took.
    turns: u64,
    /// How many turns they took of each run after the last fault.
    late_turns: BTreeMap<RunId, u64>,
    broken: Vec<String>,
}

impl Checks {
    pub(crate) fn broken(&self) -> &[String] {
        &self.broken
    }

    pub(crate) fn break_rule(&mut self, how: String) {
        self.broken.push(how);
    }

    /// Whether the run has ended.
    pub(crate) fn has_ended(&self, run: RunId) -> bool {
        self.ended.contains(&run)
    }

    /// How often each kind of event was decided.
    pub(crate) fn seen(&self) -> BTreeMap<&'static str, u64> {
        self.family.seen.iter().chain(&self.accord.seen).map(|(name, count)| (*name, *count)).collect()
    }

    /// Whether all runs have ended that were begun.
    pub(crate) fn all_ended(&self) -> bool {
        self.states.keys().all(|run| self.ended.contains(run))
    }

    /// These runs, and all that were begun besides.
    pub(crate) fn runs(&self, asked: &[RunId]) -> Vec<RunId> {
        let all: BTreeSet<RunId> = asked.iter().chain(self.states.keys()).copied().collect();
        all.into_iter().collect()
    }

    /// The run as it stands, with all that is in the record.
    pub(crate) fn state(&self, run: RunId) -> Option<&RunState> {
        self.states.get(&run)?.as_ref()
    }

    /// The runs that have not ended, each with the time of its newest entry.
    pub(crate) fn open_runs(&self) -> impl Iterator<Item = (&RunState, Time)> {
        let open = self.states.values().flatten().filter(|run| !run.status.is_ended());
        open.map(|run| (run, self.newest.get(&run.id).copied().unwrap_or(0)))
    }

    /// Looks at what one request appended.
    pub(crate) fn appended(&mut self, batch: &[Rc<Entry>], now: Time) {
        if let Some(head) = batch.first()
            && let RecordEvent::Decided(decided) = &head.event
        {
            self.decided_alike(head, decided, batch);
        }
        for entry in batch {
            self.newest.insert(entry.run, now);
            self.fold(entry, now);
            self.broken.extend(self.forgeries.wrote(entry));
            match &entry.event {
                RecordEvent::Decided(decided) => self.ends_once(entry, decided),
                RecordEvent::Agent(key, _) if self.is_hostile(entry.run, key) => {}
                RecordEvent::Agent(key, event) => {
                    self.broken.extend(self.asks.wrote(entry, key, event, now));
                }
                RecordEvent::Offered(_) => {}
            }
            self.asks.offered(entry);
        }
    }

    /// Whether rules for agents do not hold of what is written there: somebody hostile wrote it, or had the task by right.
    fn is_hostile(&self, run: RunId, key: &AgentKey) -> bool {
        hostile::is_hostile(key) || self.forgeries.had(run, &key.task)
    }

    /// An author was told that these are stored.
    pub(crate) fn acknowledged(&mut self, log: &[Rc<Entry>], first: Seq, last: Seq) {
        for seq in first.0..=last.0 {
            let entry = usize::try_from(seq).ok().and_then(|at| log.get(at.checked_sub(1)?));
            match entry {
                Some(entry) => drop(self.acknowledged.insert(Seq(seq), Rc::clone(entry))),
                None => self.break_rule(format!("no acknowledged event is missing: {seq}")),
            }
        }
    }

    pub(crate) fn noted(&mut self, note: &Note, now: Time, is_rough: bool) {
        let broken = match note {
            Note::Decides(run) => self.decides(*run, is_rough),
            Note::Circles(run) => {
                Some(format!("no orchestrator decides more often than inputs arrive: {run}"))
            }
            Note::Asked { run, task, .. } if self.forgeries.had(*run, task) => None,
            Note::Asked { run, task, generation, step, known } => {
                self.asks.asked(&(*run, task.clone(), *generation), *step, *known, now)
            }
            Note::ToolRan { key } => self.asks.ran(key),
            Note::Refused(how) => Some(format!("what is in the record can be decided upon: {how}")),
        };
        self.broken.extend(broken);
    }

    /// How many turns orchestrators took, and how many at most about one run after the last fault.
    pub(crate) fn turns(&self) -> (u64, u64) {
        (self.turns, self.late_turns.values().copied().max().unwrap_or(0))
    }

    fn decides(&mut self, run: RunId, is_rough: bool) -> Option<String> {
        self.turns += 1;
        if is_rough {
            return None;
        }
        let late = self.late_turns.entry(run).or_default();
        *late += 1;
        (*late > MOST_LATE_TURNS)
            .then(|| format!("every run ends within {MOST_LATE_TURNS} turns of the last fault: {run}"))
    }

    /// Looks at the whole history.
    pub(crate) fn finish(&mut self, log: &[Rc<Entry>], runs: &[RunId], random: &mut Random, fleets: bool) {
        for (seq, entry) in &self.acknowledged {
            let at = usize::try_from(seq.0).ok().and_then(|at| log.get(at.checked_sub(1)?));
            if !at.is_some_and(|found| Rc::ptr_eq(found, entry)) {
                self.broken.push(format!("no acknowledged event is missing: {seq}"));
            }
        }
        self.broken.extend(self.family.finish(&self.states));
        for run in runs {
            if !self.ended.contains(run) {
                let how = self.state(*run).map_or_else(|| "was never created".to_owned(), how_it_stands);
                self.broken.push(format!("every run ends once faults stop: {run} {how}"));
            }
            let entries: Vec<Rc<Entry>> = log.iter().filter(|entry| entry.run == *run).cloned().collect();
            if let Some(state) = self.state(*run).filter(|_| fleets) {
                let claims = unsupported_claims(state, entries.iter().map(|entry| &**entry));
                self.broken.extend(claims);
            }
            self.is_whole(*run, &entries);
            self.folds_agree(*run, &entries, random);
            self.explains(*run, &entries, random);
        }
    }

    /// Every entry that a decision was made upon, and some others, is covered by the run's hash chain. What was written last
    /// may wait for a link.
    pub(crate) fn chain_fits(&mut self, run: RunId, entries: &[Read], log: &[Rc<Entry>]) {
        let mut through = Seq(0);
        let links: BTreeMap<Seq, &Link> = entries
            .iter()
            .filter_map(|entry| Some((entry.seq, entry.link.as_ref()?.as_ref().ok()?)))
            .collect();
        for entry in log.iter().filter(|entry| entry.run == run) {
            let RecordEvent::Decided(decided) = &entry.event else { continue };
            through = through.max(links.get(&entry.seq).and_then(|link| link.through()).unwrap_or_default());
            let named = decided.inputs.iter().filter_map(|input| match input {
                Input::Agent { seq } | Input::Unreadable { seq, .. } => Some(*seq),
                _ => None,
            });
            if let Some(seq) = named.max().filter(|seq| *seq > through) {
                self.break_rule(format!("a link covers what is decided upon: {run}: {seq} at {}", entry.seq));
            }
        }
        let decisions = entries.iter().filter(|entry| entry.link.is_some()).count() as u64;
        match verify(run, entries) {
            Ok(found) if found.links == decisions => {}
            Ok(found) => self.break_rule(format!("the hash chain fits: {run}: {found:?}")),
            Err(misfit) => self.break_rule(format!("the hash chain fits: {run}: {misfit:?}")),
        }
    }

    /// What entries name is there.
    fn is_whole(&mut self, run: RunId, entries: &[Rc<Entry>]) {
        for gap in gaps(entries.iter().map(|entry| &**entry)) {
            self.break_rule(format!("nothing is missing from a record: {run}: {gap}"));
        }
    }

    /// The record, or a part of it from its beginning, is explained.
    fn explains(&mut self, run: RunId, entries: &[Rc<Entry>], random: &mut Random) {
        let some = usize::try_from(random.below(entries.len() as u64 + 1)).unwrap_or(0);
        let cut = if random.chance(500) { entries.len() } else { some };
        for how in explained::broken(&entries[..cut]) {
            self.break_rule(format!("{run} after {cut} entries: {how}"));
        }
    }

    fn folds_agree(&mut self, run: RunId, entries: &[Rc<Entry>], random: &mut Random) {
        let live = self.states.get(&run).cloned().flatten();
        let folds = [folds::whole(entries), folds::in_parts(entries, random), folds::late(entries)];
        for (how, fold) in ["from the start", "in parts", "late"].into_iter().zip(folds) {
            match fold {
                Ok(state) if is_same(state.as_ref(), live.as_ref(), how == "late") => {}
                Ok(_) => self.break_rule(format!("all folds agree: {run} folded {how} is another")),
                Err(error) => self.break_rule(format!("all folds agree: {run} folded {how}: {error}")),
            }
        }
        let (used, counted) = (folds::used(entries), live.map(|run| run.spending.used).unwrap_or_default());
        // What somebody hostile had by right it may have said something of that was not for it to say.
        if used != counted && !self.forgeries.had_any(run) {
            self.break_rule(format!("what was used counts once: {used:?} in outcomes, {counted:?} in {run}"));
        }
    }

    fn fold(&mut self, entry: &Entry, now: Time) {
        let state = self.states.entry(entry.run).or_default();
        let before = state.clone();
        if let Err(error) = apply(state, entry) {
            self.broken.push(format!("at {}: the record folds: {error}", entry.seq));
            return;
        }
        if let (Some(before), Some(after)) = (&before, &*state)
            && let Err(broken) = invariants::check_all(before, entry, after)
        {
            self.broken.extend(broken);
        }
        if let Some(after) = &*state {
            self.broken.extend(self.family.appended(before.as_ref(), entry, after, now));
            self.broken.extend(self.accord.appended(before.as_ref(), entry, after));
            self.broken.extend(trials::broken(entry, after, &mut self.family.seen));
        }
    }

    fn ends_once(&mut self, entry: &Entry, decided: &Decided) {
        if decided.events.iter().any(RunEvent::ends_run) && !self.ended.insert(entry.run) {
            self.broken.push(format!("at {}: every run ends once", entry.seq));
        }
    }

    /// A decision made again from the record alone is the same.
    fn decided_alike(&mut self, head: &Entry, decided: &Decided, batch: &[Rc<Entry>]) {
        let state = self.states.get(&head.run).and_then(Option::as_ref);
        let placing = Recorded(&decided.placements);
        let situation = Situation {
            id: head.run,
            now: decided.now,
            capacity: &decided.capacity,
            specialists: &decided.specialists,
            placing: &placing,
        };
        let offers = batch.iter().filter_map(|entry| match &entry.event {
            RecordEvent::Offered(offer) => Some(offer),
            RecordEvent::Decided(decided) => decided.offer.as_deref(),
            RecordEvent::Agent(..) => None,
        });
        let offers: Vec<&TaskOffered> = offers.collect();
        let how = match decide(state, &decided.inputs, situation) {
            Ok(again)
                if again.events == decided.events && again.offers.iter().collect::<Vec<_>>() == offers =>
            {
                return;
            }
            Ok(again) => {
                let names = |events: &[muster_shared::run::RunEvent]| {
                    events.iter().map(muster_shared::run::RunEvent::name).collect::<Vec<_>>()
                };
                if again.events == decided.events {
                    format!("offers {offers:?} became {:?}", again.offers)
                } else {
                    format!("{:?} became {:?}", names(&decided.events), names(&again.events))
                }
            }
            Err(error) => error.to_string(),
        };
        self.broken.push(format!("at {}: a decision made again is the same: {how}", head.seq));
    }
}

/// What a run that does not end is waiting for.
pub(crate) fn how_it_stands(run: &RunState) -> String {
    let tasks: Vec<String> = run
        .tasks
        .iter()
        .map(|(task, state)| {
            let queue = state.queue.as_ref().filter(|_| state.status == TaskStatus::Queued);
            format!(
                "{task}@{} {:?}{}",
                state.generation,
                state.status,
                queue.map(|it| format!(" for {it}")).unwrap_or_default()
            )
        })
        .collect();
    let wanted: Vec<u32> = run.refining.wanted.keys().copied().collect();
    format!("is {:?}, {:?}: {}; refinements wanted: {wanted:?}", run.status, run.phase, tasks.join(", "))
}

/// Whether two folds came to the same. What agents were seen doing is for people, and depends on when it was seen.
fn is_same(one: Option<&RunState>, other: Option<&RunState>, but_for_seen: bool) -> bool {
    if !but_for_seen {
        return one == other;
    }
    let unseen = |run: Option<&RunState>| run.map(|run| RunState { seen: BTreeMap::new(), ..run.clone() });
    unseen(one) == unseen(other)
}
