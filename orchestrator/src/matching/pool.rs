//! The agents of one role, ordered so that the best of them is found at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use muster_shared::flow::ContractViolation;
use muster_shared::ids::AgentId;
use muster_shared::plan::tools;
use serde_json::Value;

use super::terms::Terms;
use super::{Candidate, Grade, Member};
use crate::decide::Wanted;

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
    pub(super) able: HashMap<String, Vec<usize>>,
    /// How many agents there are of each grade.
    pub(super) grades: BTreeMap<Grade, usize>,
    /// How many agents run on each machine.
    pub(super) hosts: BTreeMap<String, usize>,
    /// The contracts that agents have, or had, by their text; nothing for what cannot be judged by.
    by_text: HashMap<String, Option<usize>>,
    terms: Vec<Terms>,
    /// How many kinds that somebody is of have each contract, or none.
    contracts: BTreeMap<Option<usize>, usize>,
    /// How many kinds somebody is of.
    pub(super) inhabited: usize,
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
    pub(super) contract: Option<usize>,
    members: BTreeSet<RankWithNearness>,
}

impl Kind {
    pub(super) fn has_capability(&self, named: &String) -> bool {
        self.sort.capabilities.binary_search(named).is_ok()
    }

    pub(super) fn has_tool(&self, named: &str) -> bool {
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
pub(super) fn burden(member: &Member, taken: u32) -> (bool, u32) {
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
        let common =
            || if let [only] = self.contracts.keys().collect::<Vec<_>>().as_slice() { **only } else { None };
        let terms = own.unwrap_or_else(common).and_then(|at| self.terms.get(at));
        terms.map(|terms| terms.unkept(data)).unwrap_or_default()
    }

    /// Whether a kind's contract promises a field of data.
    pub(super) fn promises(&self, kind: &Kind, field: &str) -> bool {
        kind.contract.and_then(|at| self.terms.get(at)).is_some_and(|terms| terms.promises(field))
    }

    /// How much of what is needed a kind can do.
    pub(super) fn covers(&self, kind: &Kind, needs: &[String], tools: &[String], data: &[String]) -> usize {
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
        self.has_excluded() || self.grades.len() > 1 && self.grades.contains_key(&Grade::Poor)
    }

    /// Whether some of it are excluded and others are not.
    pub(super) fn has_excluded(&self) -> bool {
        self.grades.len() > 1 && self.grades.contains_key(&Grade::Excluded)
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
