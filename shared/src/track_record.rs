//! What agents and tools did in earlier runs: kept for each run when it ends, folded over the latest of them. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, RunId};
use crate::time::Millis;

/// What somebody's work came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Tally {
    /// Tasks that ended well.
    pub done: u64,
    /// Tasks that failed with it.
    pub failed: u64,
    /// Tasks whose time was up with it.
    pub late: u64,
    /// Tasks that it handed back for another to do.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub handed_back: u64,
    /// Contradictions in which its claim held.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub conflicts_won: u64,
    /// Contradictions in which its claim did not hold.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub conflicts_lost: u64,
    /// Bids that won and were kept to.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub bids_kept: u64,
    /// Bids that won and were not kept to.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub bids_broken: u64,
    /// Time of the steps of the tasks that ended, in milliseconds.
    pub ms: u64,
    /// What they cost, in millionths of a US dollar, where that is known.
    pub cost_micros: u64,
}

impl Tally {
    /// How many tasks ended with it.
    #[must_use]
    pub const fn ended(&self) -> u64 {
        self.done.saturating_add(self.failed).saturating_add(self.late)
    }

    /// What speaks for it.
    #[must_use]
    pub const fn good(&self) -> u64 {
        self.done.saturating_add(self.conflicts_won).saturating_add(self.bids_kept)
    }

    /// What speaks against it.
    #[must_use]
    pub const fn bad(&self) -> u64 {
        let late = self.failed.saturating_add(self.late).saturating_add(self.handed_back);
        late.saturating_add(self.conflicts_lost).saturating_add(self.bids_broken)
    }

    /// Time of a task on average, in milliseconds; nothing before one ended.
    #[must_use]
    pub const fn mean_ms(&self) -> Option<u64> {
        self.ms.checked_div(self.ended())
    }

    /// Cost of a task on average, in millionths of a US dollar; nothing before one ended.
    #[must_use]
    pub const fn mean_cost(&self) -> Option<u64> {
        self.cost_micros.checked_div(self.ended())
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        self.each(other, true)
    }

    /// This without the other.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        self.each(other, false)
    }

    const fn each(self, other: Self, add: bool) -> Self {
        const fn one(a: u64, b: u64, add: bool) -> u64 {
            if add { a.saturating_add(b) } else { a.saturating_sub(b) }
        }
        Self {
            done: one(self.done, other.done, add),
            failed: one(self.failed, other.failed, add),
            late: one(self.late, other.late, add),
            handed_back: one(self.handed_back, other.handed_back, add),
            conflicts_won: one(self.conflicts_won, other.conflicts_won, add),
            conflicts_lost: one(self.conflicts_lost, other.conflicts_lost, add),
            bids_kept: one(self.bids_kept, other.bids_kept, add),
            bids_broken: one(self.bids_broken, other.bids_broken, add),
            ms: one(self.ms, other.ms, add),
            cost_micros: one(self.cost_micros, other.cost_micros, add),
        }
    }

    /// In a few words: `9 of 10 tasks done, 1.2 s each`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let tasks = if self.ended() == 1 { "task" } else { "tasks" };
        let mut words = format!("{} of {} {tasks} done", self.done, self.ended());
        if let Some(ms) = self.mean_ms().filter(|ms| *ms > 0) {
            words.push_str(&format!(", {}.{} s each", ms / 1000, ms % 1000 / 100));
        }
        if self.handed_back > 0 {
            words.push_str(&format!(", {} handed back", self.handed_back));
        }
        if self.conflicts_lost > 0 {
            words.push_str(&format!(", wrong in {} contradictions", self.conflicts_lost));
        }
        if self.bids_broken > 0 {
            words.push_str(&format!(", {} bids not kept", self.bids_broken));
        }
        words
    }
}

/// What one agent did in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTrackRecord {
    /// The agent.
    pub agent: AgentId,
    /// Its role.
    #[serde(default)]
    pub role: String,
    /// Its model, as `provider/model`, where known.
    #[serde(default)]
    pub model: String,
    /// Its name on its host, which outlives the process; empty when it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// What its work came to.
    pub tally: Tally,
}

/// Who an agent is, whenever it was started: its name and its host, or the process where it has no name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// An agent with a name, on a host.
    Named(String, String),
    /// A process.
    Process(AgentId),
}

impl Identity {
    /// Who an agent is by what it says of itself.
    #[must_use]
    pub fn of(agent: &AgentId, name: &str, host: &str) -> Self {
        if name.is_empty() {
            return Self::Process(agent.clone());
        }
        Self::Named(name.to_owned(), host.to_owned())
    }
}

/// How calls of a tool went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolTally {
    /// Calls.
    pub calls: u64,
    /// Those that failed or took too long.
    pub failed: u64,
    /// Their time, in milliseconds.
    pub ms: u64,
}

/// What agents and tools did in one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTrackRecord {
    /// The run.
    pub run: RunId,
    /// When it ended.
    pub ended_at: Millis,
    /// Its agents.
    #[serde(default)]
    pub agents: Vec<AgentTrackRecord>,
    /// Its tools, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, ToolTally>,
}

impl RunTrackRecord {
    /// Most agents that are kept of one run.
    pub const MOST_AGENTS: usize = 64;
    /// Most tools that are kept of one run.
    pub const MOST_TOOLS: usize = 32;

    /// The same within its limits: those that did most are kept.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.agents.sort_by(|one, other| {
            other.tally.ended().cmp(&one.tally.ended()).then_with(|| one.agent.cmp(&other.agent))
        });
        self.agents.truncate(Self::MOST_AGENTS);
        while self.tools.len() > Self::MOST_TOOLS {
            let least = self.tools.iter().min_by_key(|(_, tally)| tally.calls).map(|(name, _)| name.clone());
            let Some(least) = least else { break };
            self.tools.remove(&least);
        }
        self
    }
}

/// Fewest tasks of an agent from which something follows; with fewer, what its like did counts.
const ENOUGH: u64 = 3;
/// Fewest calls of a tool from which something follows.
const ENOUGH_CALLS: u64 = 4;

/// What all did in the latest runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrackRecords {
    runs: BTreeMap<RunId, RunTrackRecord>,
    oldest: BTreeSet<(Millis, RunId)>,
    agents: BTreeMap<Identity, Tally>,
    /// When the newest run ended in which somebody did something.
    latest: BTreeMap<Identity, Millis>,
    likes: BTreeMap<(String, String), Tally>,
    tools: BTreeMap<String, ToolTally>,
}

impl TrackRecords {
    /// Most runs that are held; the oldest go first, so that what somebody did badly is forgotten in the end.
    pub const MOST_RUNS: usize = 500;

    /// Takes in what was done in a run, in place of what was known of it.
    pub fn learn(&mut self, kept: RunTrackRecord) {
        let kept = kept.bounded();
        self.forget(kept.run);
        self.fold(&kept, Tally::plus, u64::saturating_add);
        for AgentTrackRecord { agent, name, host, .. } in &kept.agents {
            let latest = self.latest.entry(Identity::of(agent, name, host)).or_default();
            *latest = kept.ended_at.max(*latest);
        }
        self.oldest.insert((kept.ended_at, kept.run));
        self.runs.insert(kept.run, kept);
        while self.runs.len() > Self::MOST_RUNS {
            let Some((_, run)) = self.oldest.first().copied() else { return };
            self.forget(run);
        }
    }

    fn forget(&mut self, run: RunId) {
        if let Some(known) = self.runs.remove(&run) {
            self.oldest.remove(&(known.ended_at, run));
            self.fold(&known, Tally::minus, u64::saturating_sub);
            self.latest.retain(|identity, _| self.agents.contains_key(identity));
        }
    }

    fn fold(&mut self, kept: &RunTrackRecord, tally: fn(Tally, Tally) -> Tally, count: fn(u64, u64) -> u64) {
        for AgentTrackRecord { agent, role, model, name, host, tally: own } in &kept.agents {
            change(&mut self.agents, Identity::of(agent, name, host), |sum| tally(sum, *own));
            change(&mut self.likes, (role.clone(), model.clone()), |sum| tally(sum, *own));
        }
        for (tool, own) in &kept.tools {
            change(&mut self.tools, tool.clone(), |sum| ToolTally {
                calls: count(sum.calls, own.calls),
                failed: count(sum.failed, own.failed),
                ms: count(sum.ms, own.ms),
            });
        }
    }

    /// What is known of an agent, or else of those with its role and model; nothing when that is too little. Whoever was
    /// started since the last run that it did something in gets its chance, and nobody is thought ill of because of its
    /// like.
    #[must_use]
    pub fn of(&self, who: &Identity, started_at: Millis, role: &str, model: &str) -> Option<Tally> {
        let enough = |tally: &&Tally| tally.good() + tally.bad() >= ENOUGH;
        let well = |tally: &&Tally| tally.good() > tally.bad();
        let is_new = self.latest.get(who).is_some_and(|latest| *latest < started_at);
        let own = self.agents.get(who).filter(enough).filter(|tally| !is_new || well(tally));
        let likes = || self.likes.get(&(role.to_owned(), model.to_owned())).filter(enough).filter(well);
        own.or_else(likes).copied()
    }

    /// What is known of an agent itself.
    #[must_use]
    pub fn of_agent(&self, who: &Identity) -> Option<Tally> {
        self.agents.get(who).copied()
    }

    /// What is known of tools.
    #[must_use]
    pub const fn tools(&self) -> &BTreeMap<String, ToolTally> {
        &self.tools
    }

    /// What to tell whoever plans and works about tools that failed more often than not, worst first.
    #[must_use]
    pub fn advice(&self, most: usize) -> Vec<String> {
        let poor = |tally: &ToolTally| tally.calls >= ENOUGH_CALLS && tally.failed * 2 > tally.calls;
        let mut poor: Vec<_> = self.tools.iter().filter(|(_, tally)| poor(tally)).collect();
        poor.sort_by(|(one, a), (other, b)| {
            (b.failed * a.calls).cmp(&(a.failed * b.calls)).then_with(|| one.cmp(other))
        });
        let line = |(tool, tally): (&String, &ToolTally)| {
            let ToolTally { calls, failed, .. } = tally;
            format!(
                "{tool} failed in {failed} of its last {calls} calls: use it only where nothing else will do"
            )
        };
        poor.into_iter().take(most).map(line).collect()
    }
}

/// Changes a sum; one that has become nothing goes.
fn change<K: Ord, V: Default + PartialEq + Copy>(sums: &mut BTreeMap<K, V>, key: K, with: impl Fn(V) -> V) {
    let sum = with(sums.get(&key).copied().unwrap_or_default());
    if sum == V::default() {
        sums.remove(&key);
    } else {
        sums.insert(key, sum);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn agent(n: u32) -> AgentId {
        AgentId::new("worker", n)
    }

    fn process(n: u32) -> Identity {
        Identity::of(&agent(n), "", "here")
    }

    fn run(n: u128, agents: &[(u32, u64, u64)], tools: &[(&str, u64, u64)]) -> RunTrackRecord {
        let agents = agents.iter().map(|(number, done, failed)| AgentTrackRecord {
            agent: agent(*number),
            role: "worker".into(),
            model: "m".into(),
            name: String::new(),
            host: "here".into(),
            tally: Tally { done: *done, failed: *failed, ms: 100 * (done + failed), ..Tally::default() },
        });
        let tools = tools.iter().map(|(name, calls, failed)| {
            ((*name).to_owned(), ToolTally { calls: *calls, failed: *failed, ms: 1 })
        });
        RunTrackRecord {
            run: RunId::from_uuid(Uuid::from_u128(n)),
            ended_at: Millis(u64::try_from(n).unwrap_or(0)),
            agents: agents.collect(),
            tools: tools.collect(),
        }
    }

    #[test]
    fn a_run_counts_once_however_often_it_is_learnt() {
        let mut track_records = TrackRecords::default();
        track_records.learn(run(1, &[(1, 5, 1)], &[]));
        track_records.learn(run(1, &[(1, 2, 2)], &[]));
        track_records.learn(run(2, &[(1, 1, 0)], &[]));
        let known = track_records.of(&process(1), Millis(0), "worker", "m");
        assert_eq!(known.map(|tally| (tally.done, tally.failed, tally.mean_ms())), Some((3, 2, Some(100))));
    }

    #[test]
    fn who_did_little_is_judged_by_its_like() {
        let mut track_records = TrackRecords::default();
        track_records.learn(run(1, &[(1, 4, 0), (2, 1, 0)], &[]));
        let done = |number, model| {
            track_records.of(&process(number), Millis(0), "worker", model).map(|tally| tally.done)
        };
        assert_eq!(
            (done(1, "m"), done(2, "m"), done(3, "m"), done(3, "n")),
            (Some(4), Some(5), Some(5), None)
        );
    }

    #[test]
    fn the_oldest_runs_are_forgotten() {
        let mut track_records = TrackRecords::default();
        for n in 1..=(TrackRecords::MOST_RUNS as u128 + 2) {
            track_records.learn(run(n, &[(u32::try_from(n).unwrap_or(0), 3, 0)], &[("t", 1, 1)]));
        }
        assert_eq!(
            (track_records.of_agent(&process(2)), track_records.of_agent(&process(3)).is_some()),
            (None, true)
        );
        assert!(track_records.latest.len() <= TrackRecords::MOST_RUNS, "{}", track_records.latest.len());
        assert_eq!(track_records.tools()["t"].calls, TrackRecords::MOST_RUNS as u64);
    }

    #[test]
    fn tools_that_mostly_fail_are_advised_against_worst_first() {
        let mut track_records = TrackRecords::default();
        track_records.learn(run(1, &[], &[("a", 10, 6), ("b", 10, 9), ("c", 10, 5), ("d", 2, 2)]));
        let advice = track_records.advice(5);
        assert_eq!(advice.len(), 2, "{advice:?}");
        assert!(advice[0].starts_with("b failed in 9 of its last 10 calls"), "{advice:?}");
        assert_eq!(track_records.advice(1).len(), 1);
    }

    /// What the process `number` of an agent with this name did in a run.
    fn named(n: u128, number: u32, name: &str, done: u64, failed: u64) -> RunTrackRecord {
        let mut kept = run(n, &[(number, done, failed)], &[]);
        kept.agents[0].name = name.into();
        kept
    }

    #[test]
    fn an_agent_stays_who_it_is_when_it_is_started_again() {
        let mut track_records = TrackRecords::default();
        track_records.learn(named(1, 1, "worker-1", 2, 0));
        track_records.learn(named(2, 2, "worker-1", 2, 0));
        track_records.learn(named(3, 3, "worker-2", 0, 9));
        let who = |name: &str, host: &str| Identity::of(&agent(9), name, host);
        assert_eq!(track_records.of_agent(&who("worker-1", "here")).map(|tally| tally.done), Some(4));
        assert_eq!(track_records.of_agent(&who("worker-1", "there")), None, "that is another machine");
    }

    #[test]
    fn who_is_new_or_started_again_is_not_held_to_what_went_wrong_before() {
        let mut track_records = TrackRecords::default();
        track_records.learn(named(7, 1, "worker-1", 0, 9));
        let bad = |number: u32, name: &str, started: u64| {
            let who = Identity::of(&agent(number), name, "here");
            track_records.of(&who, Millis(started), "worker", "m").map(|tally| tally.failed)
        };
        assert_eq!(bad(1, "worker-1", 3), Some(9), "it was there when it went wrong");
        assert_eq!(bad(2, "worker-1", 8), None, "it was started again since");
        assert_eq!(bad(3, "worker-3", 3), None, "its like did poorly, and it has done nothing");
        track_records.learn(named(9, 2, "worker-1", 0, 1));
        let who = Identity::of(&agent(2), "worker-1", "here");
        let again = track_records.of(&who, Millis(8), "worker", "m").map(|tally| tally.failed);
        assert_eq!(again, Some(10), "it had its chance");
    }

    #[test]
    fn what_was_handed_back_speaks_against_it_and_is_said() {
        let tally = Tally { done: 1, handed_back: 2, ..Tally::default() };
        assert_eq!((tally.good(), tally.bad()), (1, 2));
        assert_eq!(tally.in_words(), "1 of 1 task done, 2 handed back");
    }
}
