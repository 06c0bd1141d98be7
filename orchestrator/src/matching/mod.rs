//! Who should do a task (O1): by whose contract it fits, what it needs, who failed it before, what is known of everybody's
//! work, who holds what it builds on, and who is free, in this order. Pure, and the same in whatever order agents came.
//!
//! Agents of a role that can do the same stand together, in the order in which they would be asked, so that a task is
//! matched without looking at all of them. Where nothing tells the agents of a role apart, nobody is named: whoever is
//! free first takes the task from the queue of the role.

mod pool;
mod search;
mod terms;
mod why;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use muster_shared::flow::Placement;
use muster_shared::ids::{AgentId, Queue, Role};
use muster_shared::time::Millis;
use muster_shared::track_record::{Identity, Tally};
use muster_shared::wire::Profile;
use serde_json::Value;

use crate::decide::{Wanted, names_in};
use pool::RolePool;
pub(crate) use search::Look;
use search::Search;

/// An agent as far as matching goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The agent.
    pub agent: AgentId,
    /// Its role.
    pub role: Role,
    /// Tasks it does at the same time.
    pub slots: u32,
    /// What it says it can do, each in the form in which words are compared.
    pub capabilities: Vec<String>,
    /// Tools it may use, by name or pattern.
    pub tools: Vec<String>,
    /// Its model.
    pub model: String,
    /// The machine it runs on.
    pub host: String,
    /// Its contract as JSON; empty when it has none.
    pub contract: String,
    /// Its name on its host, which outlives the process; empty when it has none.
    pub name: String,
    /// How long it may have nothing to write about a task, in milliseconds; 0 when it does not say.
    pub quiet_ms: u64,
    /// When it was started.
    pub started_at: Millis,
}

impl Candidate {
    /// The agent that announced itself; nothing when it takes no tasks.
    #[must_use]
    pub fn of(profile: &Profile) -> Option<Self> {
        let role = profile.role.parse().ok()?;
        let said = profile.specialist.iter().flat_map(|said| &said.capabilities);
        let mut capabilities: Vec<String> = said.take(Self::MOST_SAID).map(|text| plain(text)).collect();
        capabilities.sort();
        capabilities.dedup();
        let mut tools: Vec<String> = profile.tools.iter().take(Self::MOST_SAID).cloned().collect();
        tools.sort();
        let contract = profile.specialist.as_ref().map(|said| terms::text_of(&said.contract));
        Some(Self {
            agent: profile.agent.clone(),
            role,
            slots: profile.slots,
            capabilities,
            tools,
            model: profile.model.clone(),
            host: profile.host.clone(),
            contract: contract.unwrap_or_default(),
            name: profile.name.clone(),
            quiet_ms: profile.quiet_ms,
            started_at: Millis(profile.started_at),
        })
    }

    /// Who it is, whenever it was started.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity::of(&self.agent, &self.name, &self.host)
    }

    /// Most capabilities, and most tools, that are heard of one agent.
    const MOST_SAID: usize = 64;
}

/// How words are compared: lower case, single spaces.
fn plain(text: &str) -> String {
    // Most words are plain already, and there may be many.
    let is_plain = |(at, byte): (usize, u8)| match byte {
        b' ' => at > 0 && !matches!(text.as_bytes().get(at + 1), Some(b' ') | None),
        other => other.is_ascii_graphic() && !other.is_ascii_uppercase(),
    };
    if text.bytes().enumerate().all(is_plain) {
        return text.to_owned();
    }
    text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// What is known of an agent's work, as far as it matters. The better comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Nothing speaks against it.
    #[default]
    Usual,
    /// It takes much longer, or costs much more, than others of its role.
    Dear,
    /// Half of what it did, or more, went wrong.
    Poor,
    /// It failed several tasks in a row, and gets none for now if others of its role are online.
    Excluded,
}

/// By how much somebody's tasks must take longer, or cost more, than the best of its role for it to count.
const MUCH: u64 = 3;
/// Times and costs below this do not count, in milliseconds and in millionths of a US dollar.
const LITTLE: u64 = 1_000;
/// Fewest tasks from which a grade follows.
const ENOUGH: u64 = 3;

impl Grade {
    fn of(tally: &Tally, best: Best) -> Self {
        if tally.good() + tally.bad() < ENOUGH {
            return Self::Usual;
        }
        if tally.bad() >= tally.good() {
            return Self::Poor;
        }
        let much = |own: Option<u64>, best: Option<u64>| match (own, best) {
            (Some(own), Some(best)) => own > LITTLE && own > best.saturating_mul(MUCH),
            (None, _) | (_, None) => false,
        };
        if much(tally.mean_ms(), best.ms) || much(tally.mean_cost(), best.cost) {
            Self::Dear
        } else {
            Self::Usual
        }
    }
}

/// The least that a task takes, and costs, with anybody of a role of whom enough is known.
#[derive(Debug, Clone, Copy, Default)]
struct Best {
    ms: Option<u64>,
    cost: Option<u64>,
}

impl Best {
    fn and(self, tally: &Tally) -> Self {
        if tally.ended() < ENOUGH || tally.bad() >= tally.good() {
            return self;
        }
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self { ms: least(self.ms, tally.mean_ms()), cost: least(self.cost, tally.mean_cost()) }
    }
}

/// An agent with what is known of it.
#[derive(Debug)]
struct Member {
    candidate: Candidate,
    kind: usize,
    grade: Grade,
    tally: Option<Tally>,
    /// Slots that are taken, or promised.
    taken: u32,
}

/// The fleet as matching sees it.
#[derive(Debug, Default)]
pub struct Roster {
    members: HashMap<AgentId, Member>,
    pools: BTreeMap<Role, RolePool>,
}

impl Roster {
    /// Takes note of an agent, or of what it says of itself now.
    pub fn admit(&mut self, candidate: Candidate) {
        let agent = candidate.agent.clone();
        let before = self.members.get(&agent);
        if before.is_some_and(|member| member.candidate == candidate) {
            return;
        }
        let (tally, taken) = before.map_or((None, 0), |member| (member.tally, member.taken));
        let grade = before.map_or(Grade::Usual, |member| member.grade);
        self.dismiss(&agent);
        let pool = self.pools.entry(candidate.role.clone()).or_default();
        let kind = pool.kind_of(&candidate);
        let member = Member { candidate, kind, grade, tally, taken };
        pool.insert(&member);
        self.members.insert(agent, member);
    }

    /// Forgets an agent.
    pub fn dismiss(&mut self, agent: &AgentId) {
        let Some(member) = self.members.remove(agent) else { return };
        let role = member.candidate.role.clone();
        let Some(pool) = self.pools.get_mut(&role) else { return };
        pool.remove(&member);
        if pool.is_empty() {
            self.pools.remove(&role);
        } else if pool.is_worn() {
            self.renew(&role);
        }
    }

    /// Makes a pool anew, without the kinds that nobody is of any more.
    fn renew(&mut self, role: &Role) {
        let mut pool = RolePool::default();
        for member in self.members.values_mut().filter(|member| member.candidate.role == *role) {
            member.kind = pool.kind_of(&member.candidate);
            pool.insert(member);
        }
        self.pools.insert(role.clone(), pool);
    }

    /// How many of an agent's slots are taken.
    pub fn take(&mut self, agent: &AgentId, taken: u32) {
        let Some(member) = self.members.get_mut(agent).filter(|member| member.taken != taken) else { return };
        let Some(pool) = self.pools.get_mut(&member.candidate.role) else { return };
        pool.remove(member);
        member.taken = taken;
        pool.insert(member);
    }

    /// No slot is taken.
    pub fn free_all(&mut self) {
        let busy = self.members.iter().filter(|(_, member)| member.taken > 0);
        for agent in busy.map(|(agent, _)| agent.clone()).collect::<Vec<_>>() {
            self.take(&agent, 0);
        }
    }

    /// Judges everybody by what is known of their work.
    pub fn judge(&mut self, of: impl Fn(&Candidate) -> Option<Tally>) {
        let mut best: BTreeMap<Role, Best> = BTreeMap::new();
        for member in self.members.values_mut() {
            member.tally = of(&member.candidate);
            let entry = best.entry(member.candidate.role.clone()).or_default();
            *entry = member.tally.map_or(*entry, |tally| entry.and(&tally));
        }
        for member in self.members.values_mut() {
            let best = best.get(&member.candidate.role).copied().unwrap_or_default();
            let grade = member.tally.map_or(Grade::Usual, |tally| Grade::of(&tally, best));
            if member.grade != Grade::Excluded {
                regrade(&mut self.pools, member, grade);
            }
        }
    }

    /// Gives an agent no more tasks if others of its role are online, or gives it tasks again. Returns whether that is new.
    pub fn exclude(&mut self, agent: &AgentId, excluded: bool) -> bool {
        let member = self.members.get_mut(agent);
        let Some(member) = member.filter(|member| excluded != (member.grade == Grade::Excluded)) else {
            return false;
        };
        regrade(&mut self.pools, member, if excluded { Grade::Excluded } else { Grade::Usual });
        true
    }

    /// Whether some agents of a role are excluded and others are not.
    #[must_use]
    pub fn has_excluded(&self, role: &Role) -> bool {
        self.pools.get(role).is_some_and(RolePool::has_excluded)
    }

    /// An agent of the roster.
    #[must_use]
    pub fn candidate(&self, agent: &AgentId) -> Option<&Candidate> {
        self.members.get(agent).map(|member| &member.candidate)
    }

    /// To whom a task goes, with the reasons; nothing when anybody of its role will do.
    #[must_use]
    pub fn place(&self, wanted: &Wanted<'_>) -> Option<Placement> {
        self.place_with(wanted, &BTreeMap::new())
    }

    /// The same for a run for which slots are kept that count as taken: these are free for it.
    #[must_use]
    pub fn place_with(&self, wanted: &Wanted<'_>, kept: &BTreeMap<AgentId, u32>) -> Option<Placement> {
        let pool = self.pools.get(wanted.role);
        let search = pool.map(|pool| Search::new(self, pool, wanted, kept));
        let takes_it_on = |agent: &AgentId| {
            let member = self.members.get(agent);
            member.is_some_and(|member| search.as_ref().is_none_or(|search| search.suits(member)))
        };
        let awarded = wanted.awarded.as_ref().filter(|agent| takes_it_on(agent));
        let named = || self.named(wanted, kept).filter(|agent| takes_it_on(agent));
        let chosen = awarded
            .map(|agent| (agent, "its bid was the best"))
            .or_else(|| Some((named()?, "whoever handed the task back named it")));
        if let Some((agent, reason)) = chosen {
            let (task, to) = (wanted.task.clone(), Queue::Agent(agent.clone()));
            return Some(Placement { task, to, reasons: vec![reason.to_owned()], passed_over: Vec::new() });
        }
        let (pool, search) = (pool?, search?);
        let chosen = search.choose()?;
        Some(why::placement(self, pool, &search, &chosen))
    }

    /// Who could be asked for a task once it is free; nothing when nobody is asked by name.
    pub(crate) fn look(&self, wanted: &Wanted<'_>) -> Option<Look> {
        let kept = BTreeMap::new();
        let pool = self.pools.get(wanted.role)?;
        Search::new(self, pool, wanted, &kept).look()
    }

    /// Whether an agent is one that is looked for.
    pub(crate) fn is_looked_for(&self, agent: &AgentId, look: &Look) -> bool {
        let Some(member) = self.members.get(agent) else { return false };
        let pool = self.pools.get(&member.candidate.role);
        pool.is_some_and(|pool| look.fits(pool, member))
    }

    /// The agent that whoever handed the task back names, if it is there, has room and did not have the task before.
    fn named(&self, wanted: &Wanted<'_>, kept: &BTreeMap<AgentId, u32>) -> Option<&AgentId> {
        let words: BTreeSet<String> = names_in(wanted.named?).collect();
        let is_named = |member: &&Member| {
            let Candidate { agent, name, .. } = &member.candidate;
            words.contains(&agent.as_str().to_ascii_lowercase()) || words.contains(&name.to_ascii_lowercase())
        };
        let may = |member: &&Member| {
            let of =
                |counts: &BTreeMap<AgentId, u32>| counts.get(&member.candidate.agent).copied().unwrap_or(0);
            let taken = member.taken.saturating_sub(of(kept)).saturating_add(of(wanted.given));
            member.candidate.role.does_leaves()
                && taken < member.candidate.slots
                && wanted.avoid.iter().all(|avoided| avoided.agent != member.candidate.agent)
        };
        let named = self.members.values().filter(is_named).filter(may);
        named.map(|member| &member.candidate.agent).min()
    }

    /// Whether some of a role do poorly and others do not.
    #[must_use]
    pub fn has_poor(&self, role: &Role) -> bool {
        self.pools.get(role).is_some_and(RolePool::has_poor)
    }

    /// Whether agents of the role differ in their contracts: only then are these held against a task.
    #[must_use]
    pub fn weighs_contracts(&self, role: &Role) -> bool {
        self.pools.get(role).is_some_and(RolePool::weighs_contracts)
    }

    /// What of the data of a result does not fit what its agent promises, one line each.
    #[must_use]
    pub fn unkept(&self, role: &Role, agent: &AgentId, data: Option<&Value>) -> Vec<String> {
        let kind =
            self.members.get(agent).filter(|member| member.candidate.role == *role).map(|member| member.kind);
        self.pools.get(role).map(|pool| pool.unkept(kind, data)).unwrap_or_default()
    }

    /// Whether some of the role would refuse the task by their contracts, and others take it on.
    #[must_use]
    pub fn is_refused_by_some(&self, wanted: &Wanted<'_>) -> bool {
        let pool = self.pools.get(wanted.role).filter(|_| wanted.substance.is_some());
        pool.is_some_and(|pool| !pool.refusals(wanted).is_empty())
    }

    fn member(&self, agent: &AgentId) -> Option<&Member> {
        self.members.get(agent)
    }
}

fn regrade(pools: &mut BTreeMap<Role, RolePool>, member: &mut Member, grade: Grade) {
    if grade != member.grade
        && let Some(pool) = pools.get_mut(&member.candidate.role)
    {
        pool.remove(member);
        member.grade = grade;
        pool.insert(member);
    }
}
