//! What is looked for among the agents of a role, and who is found.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use muster_shared::flow::ContractViolation;
use muster_shared::ids::{AgentId, Role};

use super::pool::{Kind, RolePool, burden};
use super::{Grade, Member, Roster, plain};
use crate::decide::Wanted;

/// Most agents of a kind that are looked at for one that is free and not to be avoided.
const MOST_LOOKED_AT: usize = 64;

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

/// Which of the agents that should rather not have the task are left out.
#[derive(Debug, Clone, Copy)]
enum LeftOut {
    All,
    /// Those that failed the task or did not start it, but not those that have another member of its group.
    Failed,
    None,
}

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
        !self.is_excluded(member) && kind.is_none_or(|kind| self.refusal(kind).is_none())
    }

    /// Whether an agent gets no tasks for now, and others of its role do.
    fn is_excluded(&self, member: &Member) -> bool {
        member.grade == Grade::Excluded && self.pool.has_excluded()
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

    /// Whether one agent is asked, if one is free.
    fn may_name(&self) -> bool {
        self.is_choosy
            || !self.avoid.is_empty()
            || self.pool.grades.len() > 1
            || self.is_bound_to_host()
            || self.wanted.by_name
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
        let is_single = self.is_choosy || self.pool.has_excluded();
        let best = self.best(LeftOut::All);
        let best = best.or_else(|| self.has_idle(true).then(|| self.best(LeftOut::Failed)).flatten());
        let best = best.or_else(|| is_single.then(|| self.best(LeftOut::None)).flatten());
        // Agents that can do less come before those that get no tasks.
        let best = best.or_else(|| {
            let kinds = self.pool.has_excluded().then(|| self.pool.kinds());
            kinds?.filter_map(|(_, kind)| self.first_of(kind, LeftOut::None)).min()
        });
        let (is_busy, _, _, _, agent) = best?;
        // Where others could do it as well, nobody is waited for; but who failed the task or did not start it, and who gets
        // no tasks, is free, and would take whatever waits for its role.
        (!is_busy || is_single || self.has_idle(false)).then(|| agent.clone())
    }

    /// Whether an agent of the role failed the task or, unless only failures count, did not start it.
    fn has_idle(&self, only_failed: bool) -> bool {
        self.wanted.avoid.iter().any(|avoided| {
            avoided.idle
                && self.avoid.contains_key(&avoided.agent)
                && !(only_failed && self.wanted.asked == Some(&avoided.agent))
        })
    }

    fn leaves_out(&self, agent: &AgentId, left_out: LeftOut) -> bool {
        match left_out {
            LeftOut::All => self.avoid.contains_key(agent),
            LeftOut::Failed => {
                self.wanted.avoid.iter().any(|avoided| avoided.idle && avoided.agent == *agent)
            }
            LeftOut::None => false,
        }
    }

    /// The best of those that can do it: of each kind its first, whoever knows what the task builds on, and those that
    /// are freer than they stand, since something is kept for the run.
    fn best(&self, left_out: LeftOut) -> Option<Rank<'a>> {
        let firsts = self.able.iter().filter_map(|at| self.first_of(self.pool.kind(*at)?, left_out));
        let others = self.wanted.knows.iter().chain(self.kept.keys());
        let others = others.filter(|agent| self.may_have(agent, left_out));
        firsts.chain(others.filter_map(|agent| self.rank(agent))).min()
    }

    fn may_have(&self, agent: &AgentId, left_out: LeftOut) -> bool {
        let able = |at: usize| self.able.binary_search(&at).is_ok();
        let suits = |member: &Member| {
            member.candidate.role == *self.wanted.role && able(member.kind) && !self.is_excluded(member)
        };
        self.roster.member(agent).is_some_and(suits) && !self.leaves_out(agent, left_out)
    }

    fn first_of(&self, kind: &Kind, left_out: LeftOut) -> Option<Rank<'a>> {
        let mut best: Option<Rank<'a>> = None;
        let is_excluded = |agent| self.roster.member(agent).is_some_and(|member| self.is_excluded(member));
        let left = kind.agents().filter(|agent| !self.leaves_out(agent, left_out));
        let left = left.filter(|agent| !is_excluded(agent));
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

/// A field of data, in words.
fn in_data<'a>(field: &String) -> Cow<'a, str> {
    Cow::Owned(format!("data.{field}"))
}
