//! The agents of one role, ordered so that the best of them is found at once.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use muster_shared::flow::ContractViolation;
use muster_shared::ids::{AgentId, Role};
use muster_shared::plan::tools;
use serde_json::Value;

use super::terms::Terms;
use super::{Candidate, Grade, Member, Roster, plain};
use crate::decide::Wanted;

/// Most agents of a kind that are looked at for one that is free and not to be avoided.
const MOST_LOOKED_AT: usize = 64;
/// A pool is made anew when it has more kinds than this that nobody is of, and these are most of them.
const MOST_EMPTY: usize = 32;

/// Where an agent stands among its kind: the free before the busy, then by grade, by load in thousandths of its slots,
/// and by name.
type RankWithNearness = (bool, Grade, u32, AgentId);

/// The agents of a role.
#[derive(Debug, Default)]
pub(super) struct RolePool {
    kinds: Vec<Kind>,
    by_kind: BTreeMap<Sort, usize>,
    /// The kinds that can do something, by its name.
    able: HashMap<String, Vec<usize>>,
    /// How many agents there are of each grade.
    grades: BTreeMap<Grade, usize>,
    /// How many agents run on each machine.
    hosts: BTreeMap<String, usize>,
    /// The contracts that agents have, or had, by their text; nothing for what cannot be judged by.
    by_text: HashMap<String, Option<usize>>,
    terms: Vec<Terms>,
    /// How many kinds that somebody is of have each contract, or none.
    contracts: BTreeMap<Option<usize>, usize>,
    /// How many kinds somebody is of.
    inhabited: usize,
}

/// What agents of a kind have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Sort {
    capabilities: Vec<String>,
    tools: Vec<String>,
    host: String,
    contract: String,
}

/// Agents that can do the same on the same machine.
#[derive(Debug)]
pub(super) struct Kind {
    sort: Sort,
    /// Which of the pool's contracts it has.
    contract: Option<usize>,
    members: BTreeSet<RankWithNearness>,
}

impl Kind {
    fn has_capability(&self, named: &String) -> bool {
        self.sort.capabilities.binary_search(named).is_ok()
    }

    fn has_tool(&self, named: &str) -> bool {
        self.sort.tools.iter().any(|own| tools::means(own, named) || tools::means(named, own))
    }

    /// All of it by standing.
    pub(super) fn agents(&self) -> impl Iterator<Item = &AgentId> {
        self.members.iter().map(|(_, _, _, agent)| agent)
    }
}

fn track_record(member: &Member) -> RankWithNearness {
    let (is_busy, load) = burden(member, member.taken);
    (is_busy, member.grade, load, member.candidate.agent.clone())
}

/// Whether an agent has no slot free when so many are taken, and its load in thousandths of its slots.
fn burden(member: &Member, taken: u32) -> (bool, u32) {
    let slots = member.candidate.slots;
    (taken >= slots, taken.saturating_mul(1_000).checked_div(slots).unwrap_or(1_000))
}

impl RolePool {
    pub(super) fn kind_of(&mut self, candidate: &Candidate) -> usize {
        let Candidate { capabilities, tools, host, contract, .. } = candidate;
        let sort = Sort {
            capabilities: capabilities.clone(),
            tools: tools.clone(),
            host: host.clone(),
            contract: contract.clone(),
        };
        if let Some(kind) = self.by_kind.get(&sort) {
            return *kind;
        }
        let kind = self.kinds.len();
        for capability in &sort.capabilities {
            self.able.entry(capability.clone()).or_default().push(kind);
        }
        let contract = self.contract_of(&sort.contract);
        self.by_kind.insert(sort.clone(), kind);
        self.kinds.push(Kind { sort, contract, members: BTreeSet::new() });
        kind
    }

    /// Which of the pool's contracts this is. Each is compiled once.
    fn contract_of(&mut self, text: &str) -> Option<usize> {
        if let Some(known) = self.by_text.get(text) {
            return *known;
        }
        let read = Terms::read(text).map(|terms| {
            self.terms.push(terms);
            self.terms.len() - 1
        });
        self.by_text.insert(text.to_owned(), read);
        read
    }

    /// Whether its agents differ in their contracts.
    pub(super) fn weighs_contracts(&self) -> bool {
        self.contracts.len() > 1
    }

    /// Which of its contracts would refuse a task, and why. None where all of them would: somebody has to be asked.
    pub(super) fn refusals(&self, wanted: &Wanted<'_>) -> HashMap<usize, ContractViolation> {
        let Some(substance) = wanted.substance.as_ref().filter(|_| self.weighs_contracts()) else {
            return HashMap::new();
        };
        let known = self.contracts.keys().flatten().filter_map(|at| Some((*at, self.terms.get(*at)?)));
        let refusing = known.filter_map(|(at, terms)| Some((at, terms.refuses(&substance.given)?)));
        let refusing: HashMap<usize, ContractViolation> = refusing.collect();
        if refusing.len() < self.contracts.len() { refusing } else { HashMap::new() }
    }

    /// What of the data of a result does not fit the contract of an agent of this kind. Of one that has left, only what
    /// all promise alike is asked.
    pub(super) fn unkept(&self, kind: Option<usize>, data: Option<&Value>) -> Vec<String> {
        let own = kind.and_then(|kind| self.kinds.get(kind)).map(|kind| kind.contract);
        let common = || match self.contracts.keys().collect::<Vec<_>>().as_slice() {
            [only] => **only,
            [] | [_, ..] => None,
        };
        let terms = own.unwrap_or_else(common).and_then(|at| self.terms.get(at));
        terms.map(|terms| terms.unkept(data)).unwrap_or_default()
    }

    /// Whether a kind's contract promises a field of data.
    fn promises(&self, kind: &Kind, field: &str) -> bool {
        kind.contract.and_then(|at| self.terms.get(at)).is_some_and(|terms| terms.promises(field))
    }

    /// How much of what is needed a kind can do.
    fn covers(&self, kind: &Kind, needs: &[String], tools: &[String], data: &[String]) -> usize {
        let needs = needs.iter().filter(|need| kind.has_capability(need)).count();
        let tools = tools.iter().filter(|tool| kind.has_tool(tool)).count();
        needs + tools + data.iter().filter(|field| self.promises(kind, field)).count()
    }

    pub(super) fn insert(&mut self, member: &Member) {
        if let Some(kind) = self.kinds.get_mut(member.kind)
            && kind.members.insert(track_record(member))
        {
            if kind.members.len() == 1 {
                self.inhabited += 1;
                count_up(&mut self.contracts, &kind.contract);
            }
            count_up(&mut self.grades, &member.grade);
            count_up(&mut self.hosts, &member.candidate.host);
        }
    }

    pub(super) fn remove(&mut self, member: &Member) {
        if let Some(kind) = self.kinds.get_mut(member.kind)
            && kind.members.remove(&track_record(member))
        {
            if kind.members.is_empty() {
                self.inhabited -= 1;
                count_down(&mut self.contracts, &kind.contract);
            }
            count_down(&mut self.grades, &member.grade);
            count_down(&mut self.hosts, &member.candidate.host);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.grades.is_empty()
    }

    /// Whether some of it do poorly and others do not.
    pub(super) fn has_poor(&self) -> bool {
        self.grades.len() > 1 && self.grades.contains_key(&Grade::Poor)
    }

    /// Whether most of its kinds are of nobody any more.
    pub(super) fn is_worn(&self) -> bool {
        if self.kinds.len() <= MOST_EMPTY {
            return false;
        }
        let empty = self.kinds.len() - self.inhabited;
        empty > MOST_EMPTY && empty * 2 > self.kinds.len()
    }

    /// The kinds that somebody is of.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (usize, &Kind)> {
        self.kinds.iter().enumerate().filter(|(_, kind)| !kind.members.is_empty())
    }

    /// The first agent of each kind, in an order that does not depend on who came when.
    pub(super) fn firsts(&self) -> impl Iterator<Item = &AgentId> {
        self.by_kind.values().filter_map(|at| self.kind(*at)?.members.first()).map(|(_, _, _, agent)| agent)
    }

    /// A kind, if somebody is of it.
    pub(super) fn kind(&self, at: usize) -> Option<&Kind> {
        self.kinds.get(at).filter(|kind| !kind.members.is_empty())
    }
}

/// A field of data, in words.
fn in_data<'a>(field: &String) -> Cow<'a, str> {
    Cow::Owned(format!("data.{field}"))
}

fn count_up<K: Ord + Clone>(counts: &mut BTreeMap<K, usize>, key: &K) {
    // Agents change often, their machines seldom: the key is copied only when it is new.
    if let Some(count) = counts.get_mut(key) {
        *count += 1;
    } else {
        counts.insert(key.clone(), 1);
    }
}

fn count_down<K: Ord + Clone>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// Whom a task waits for: anybody of a role who can do as much of what it needs as those that can do most of it. Who
/// should rather not have it is not known ahead: members of a group are to be others than those that have the rest of it,
/// and these change places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Look {
    /// The role.
    pub(crate) role: Role,
    needs: Vec<String>,
    tools: Vec<String>,
    data: Vec<String>,
    covered: usize,
}

impl Look {
    /// Whether it may be this one.
    pub(super) fn fits(&self, pool: &RolePool, member: &Member) -> bool {
        let covers = |kind| pool.covers(kind, &self.needs, &self.tools, &self.data) >= self.covered;
        member.candidate.role == self.role && pool.kind(member.kind).is_some_and(covers)
    }
}

/// What is looked for in a pool, and what makes a difference.
pub(super) struct Search<'a> {
    roster: &'a Roster,
    pool: &'a RolePool,
    pub(super) wanted: &'a Wanted<'a>,
    /// Slots that are kept for the run that asks: taken for others, free for it.
    kept: &'a BTreeMap<AgentId, u32>,
    pub(super) needs: Vec<String>,
    pub(super) tools: &'a [String],
    /// Fields of data that its result is expected to hold.
    pub(super) data: &'a [String],
    /// The contracts of the pool that would refuse it, and why.
    refusals: HashMap<usize, ContractViolation>,
    /// The kinds that can do most of what is needed.
    able: Vec<usize>,
    /// How much of it they can do.
    pub(super) covered: usize,
    /// Whether others can do less of it.
    pub(super) is_choosy: bool,
    /// Those of the pool that should rather not have the task, and why.
    pub(super) avoid: BTreeMap<&'a AgentId, &'a str>,
}

/// An agent, by what decides: free, grade, nearness to what the task builds on, load, name.
pub(super) type Rank<'a> = (bool, Grade, u8, u32, &'a AgentId);

impl<'a> Search<'a> {
    pub(super) fn new(
        roster: &'a Roster,
        pool: &'a RolePool,
        wanted: &'a Wanted<'a>,
        kept: &'a BTreeMap<AgentId, u32>,
    ) -> Self {
        let mut needs: Vec<String> = wanted.needs.iter().map(|need| plain(need)).collect();
        needs.sort();
        needs.dedup();
        let of_pool = |agent: &AgentId| {
            roster.member(agent).is_some_and(|member| member.candidate.role == *wanted.role)
        };
        let avoid = wanted.avoid.iter().filter(|avoided| of_pool(&avoided.agent));
        let avoid = avoid.map(|avoided| (&avoided.agent, avoided.reason.as_str())).collect();
        let tools = wanted.tools;
        let mut search = Self {
            roster,
            pool,
            wanted,
            kept,
            needs,
            tools,
            data: wanted.substance.as_ref().map_or(&[], |substance| &substance.data),
            refusals: pool.refusals(wanted),
            able: Vec::new(),
            covered: 0,
            is_choosy: false,
            avoid,
        };
        search.find_able();
        search
    }

    /// Finds who can do most of what is needed, without looking at kinds that can do none of it.
    fn find_able(&mut self) {
        // Each kind once for everything that it can do.
        let by_need = self.needs.iter().filter_map(|need| self.pool.able.get(need));
        let mut all: Vec<usize> = by_need.flatten().copied().collect();
        if !self.tools.is_empty() {
            for (at, kind) in self.pool.kinds() {
                let own = self.tools.iter().filter(|tool| kind.has_tool(tool)).count();
                all.extend(std::iter::repeat_n(at, own));
            }
        }
        if !self.data.is_empty() {
            for (at, kind) in self.pool.kinds() {
                let own = self.data.iter().filter(|field| self.pool.promises(kind, field)).count();
                all.extend(std::iter::repeat_n(at, own));
            }
        }
        all.retain(|at| self.pool.kind(*at).is_some_and(|kind| self.refusal(kind).is_none()));
        all.sort_unstable();
        let covered = || all.chunk_by(PartialEq::eq).map(|same| (same[0], same.len()));
        self.covered = covered().map(|(_, count)| count).max().unwrap_or(0);
        self.able = if self.covered == 0 {
            let suited = self.pool.kinds().filter(|(_, kind)| self.refusal(kind).is_none());
            suited.map(|(at, _)| at).collect()
        } else {
            covered().filter(|(_, count)| *count == self.covered).map(|(at, _)| at).collect()
        };
        self.is_choosy = self.able.len() < self.pool.inhabited;
    }

    /// Why agents of a kind would refuse the task by their contract, while others take it on.
    pub(super) fn refusal(&self, kind: &Kind) -> Option<&ContractViolation> {
        kind.contract.and_then(|at| self.refusals.get(&at))
    }

    /// Whether some would refuse the task by their contracts.
    pub(super) fn is_refused_by_some(&self) -> bool {
        !self.refusals.is_empty()
    }

    /// Whether an agent's contract takes the task on, as far as that makes a difference.
    pub(super) fn suits(&self, member: &Member) -> bool {
        let kind = self.pool.kind(member.kind).filter(|_| member.candidate.role == *self.wanted.role);
        kind.is_none_or(|kind| self.refusal(kind).is_none())
    }

    /// How much of what is needed a kind can do.
    pub(super) fn covers(&self, kind: &Kind) -> usize {
        self.pool.covers(kind, &self.needs, self.tools, self.data)
    }

    /// What of that which is needed a kind lacks.
    pub(super) fn lacks<'s>(&'s self, kind: &'s Kind) -> impl Iterator<Item = Cow<'s, str>> {
        let needs = self.needs.iter().filter(|need| !kind.has_capability(need));
        let tools = self.tools.iter().filter(|tool| !kind.has_tool(tool));
        let data = self.data.iter().filter(|field| !self.pool.promises(kind, field));
        needs.chain(tools).map(|need| Cow::Borrowed(need.as_str())).chain(data.map(in_data))
    }

    /// All that is needed, in words.
    pub(super) fn needed(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let needs = self.needs.iter().chain(self.tools);
        needs.map(|need| Cow::Borrowed(need.as_str())).chain(self.data.iter().map(in_data))
    }

    /// Whether the task works with documents that some machines of the pool hold and others do not.
    pub(super) fn is_bound_to_host(&self) -> bool {
        self.wanted.corpus.is_some() && self.pool.hosts.len() > 1 && !self.wanted.knows.is_empty()
    }

    /// Whether anything tells the agents apart.
    fn makes_a_difference(&self) -> bool {
        self.is_choosy || !self.avoid.is_empty() || self.pool.grades.len() > 1 || self.is_bound_to_host()
    }

    /// Whether one agent is asked, if one is free.
    fn may_name(&self) -> bool {
        self.makes_a_difference() || self.wanted.by_name
    }

    /// Who could be asked; nothing when nobody is asked by name.
    pub(super) fn look(&self) -> Option<Look> {
        if !self.may_name() {
            return None;
        }
        Some(Look {
            role: self.wanted.role.clone(),
            needs: self.needs.clone(),
            tools: self.tools.to_vec(),
            data: self.data.to_vec(),
            covered: self.covered,
        })
    }

    /// The agent to ask; nothing when anybody of the role will do.
    pub(super) fn choose(&self) -> Option<AgentId> {
        if !self.may_name() {
            return None;
        }
        let best = self.best(true).or_else(|| self.is_choosy.then(|| self.best(false)).flatten());
        let (is_busy, _, _, _, agent) = best?;
        // Where others could do it as well, nobody is waited for; but who was asked and did nothing is free, and would take
        // whatever waits for its role.
        (!is_busy || self.is_choosy || self.avoids_idle()).then(|| agent.clone())
    }

    fn avoids_idle(&self) -> bool {
        self.wanted.avoid.iter().any(|avoided| avoided.idle && self.avoid.contains_key(&avoided.agent))
    }

    /// The best of those that can do it: of each kind its first, whoever knows what the task builds on, and those that
    /// are freer than they stand, since something is kept for the run.
    fn best(&self, avoiding: bool) -> Option<Rank<'a>> {
        let firsts = self.able.iter().filter_map(|at| self.first_of(self.pool.kind(*at)?, avoiding));
        let others = self.wanted.knows.iter().chain(self.kept.keys());
        let others = others.filter(|agent| self.may_have(agent, avoiding));
        firsts.chain(others.filter_map(|agent| self.rank(agent))).min()
    }

    fn may_have(&self, agent: &AgentId, avoiding: bool) -> bool {
        let able = |at: usize| self.able.binary_search(&at).is_ok();
        let member = self.roster.member(agent);
        member.is_some_and(|member| member.candidate.role == *self.wanted.role && able(member.kind))
            && !(avoiding && self.avoid.contains_key(agent))
    }

    fn first_of(&self, kind: &Kind, avoiding: bool) -> Option<Rank<'a>> {
        let mut best: Option<Rank<'a>> = None;
        let left = kind.agents().filter(|agent| !(avoiding && self.avoid.contains_key(*agent)));
        for agent in left.take(MOST_LOOKED_AT) {
            let Some(rank) = self.rank(agent) else { continue };
            let is_as_it_stands = !self.wanted.given.contains_key(agent);
            if best.as_ref().is_none_or(|best| rank < *best) {
                best = Some(rank);
            }
            // Those behind it stand no better, unless this decision gave it something.
            if is_as_it_stands {
                break;
            }
        }
        best
    }

    pub(super) fn rank(&self, agent: &AgentId) -> Option<Rank<'a>> {
        let member = self.roster.member(agent)?;
        let given = self.wanted.given.get(agent).copied().unwrap_or(0);
        let (is_full, load) = burden(member, self.taken(member).saturating_add(given));
        let is_busy = is_full || self.wanted.alone && load > 0;
        Some((is_busy, member.grade, self.nearness(member), load, &member.candidate.agent))
    }

    /// How many of an agent's slots others have taken, or the run itself for good.
    pub(super) fn taken(&self, member: &Member) -> u32 {
        let kept = self.kept.get(&member.candidate.agent).copied().unwrap_or(0);
        member.taken.saturating_sub(kept)
    }

    /// 0 for who did what the task builds on, 1 for the same machine, 2 for anybody else.
    pub(super) fn nearness(&self, member: &Member) -> u8 {
        let knows = &self.wanted.knows;
        if knows.contains(&member.candidate.agent) {
            return 0;
        }
        let same_host = |agent: &AgentId| {
            self.roster.member(agent).is_some_and(|other| other.candidate.host == member.candidate.host)
        };
        if self.is_bound_to_host() && knows.iter().any(same_host) { 1 } else { 2 }
    }
}
