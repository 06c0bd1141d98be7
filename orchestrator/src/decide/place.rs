//! To whom a leaf goes. The fleet is asked when an offer is made, and what it says stands in the decision wherever it
//! makes a difference: a replay goes by that.

use std::collections::BTreeMap;
use std::fmt::Debug;

use muster_shared::flow::{Ending, Placement, TaskStatus};
use muster_shared::ids::{AgentId, Queue, Role, RunId, TaskId, TaskIndex};
use muster_shared::run::{Avoided, RunState, TaskState};
use serde_json::Value;

use super::builder::DecisionBuilder;
use super::{auction, survey, work};

/// Most words of a reason that are looked at for names.
const MOST_WORDS: usize = 200;

/// So many offers in a row that single agents did not take, then whoever of the role is free gets the task.
const MOST_UNTAKEN: u32 = 6;

/// Knows the fleet, and says to whom a task should go.
pub trait Place: Debug {
    /// To whom the task should go; nothing when anybody of its role will do.
    fn place(&self, wanted: &Wanted<'_>) -> Option<Placement>;

    /// Whether it is asked for room with [`lend`](Self::lend); else the situation says what each queue takes.
    fn lends(&self) -> bool {
        false
    }

    /// Room for what a run that stands so wants to offer: how many offers each queue takes.
    fn lend(&self, _stands: &RunState, _wanted: &BTreeMap<Queue, u32>) -> BTreeMap<Queue, u32> {
        BTreeMap::new()
    }

    /// Whether agents of the role differ in their contracts: [`Wanted::substance`] is looked up only then.
    fn weighs_contracts(&self, _role: &Role) -> bool {
        false
    }

    /// Whether some agents of the role get no tasks for now, and others do.
    fn has_excluded(&self, _role: &Role) -> bool {
        false
    }
}

/// What a task is given and has to give, as contracts are held against it.
#[derive(Debug, Clone, PartialEq)]
pub struct Substance {
    /// What it is given, see [`given`](muster_shared::flow::specialist::given).
    pub given: Value,
    /// Fields of data that its result is expected to hold.
    pub data: Vec<String>,
}

/// What an agent is looked for to do.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: &'a TaskId,
    /// Its role.
    pub role: &'a Role,
    /// What it takes, in a word or two each.
    pub needs: &'a [String],
    /// The tools that it names.
    pub tools: &'a [String],
    /// What contracts are held against, where agents of the role differ in theirs.
    pub substance: Option<Substance>,
    /// Who is to have it if that can be: its bid won.
    pub awarded: Option<AgentId>,
    /// The words of whoever handed it back, which may name who should do it.
    pub named: Option<&'a str>,
    /// Whether somebody is to be asked by name, though anybody of the role would do.
    pub by_name: bool,
    /// Whether whoever does it should have nothing else in hand.
    pub alone: bool,
    /// Who should rather not have it.
    pub avoid: Vec<Avoided>,
    /// The agent in whose queue it is. It is avoided, and may still take the task.
    pub asked: Option<&'a AgentId>,
    /// Who knows what it is about from what was done before, best first.
    pub knows: Vec<AgentId>,
    /// The documents that it works with, by their hash.
    pub corpus: Option<&'a str>,
    /// What this decision has given, or would have given, to each agent so far.
    pub given: &'a BTreeMap<AgentId, u32>,
    /// The run as it stands in this decision: what came in may have got agents free, or busy.
    pub stands: Option<&'a RunState>,
}

impl<'a> Wanted<'a> {
    /// Anybody of the role, for a task that asks for nothing special.
    #[must_use]
    pub const fn of_role(
        run: RunId,
        task: &'a TaskId,
        role: &'a Role,
        given: &'a BTreeMap<AgentId, u32>,
    ) -> Self {
        Self {
            run,
            task,
            role,
            needs: &[],
            tools: &[],
            substance: None,
            awarded: None,
            named: None,
            by_name: false,
            alone: false,
            avoid: Vec::new(),
            asked: None,
            knows: Vec::new(),
            corpus: None,
            given,
            stands: None,
        }
    }
}

/// What a decision in the record was told.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'a>(pub &'a [Placement]);

impl Place for Recorded<'_> {
    fn place(&self, wanted: &Wanted<'_>) -> Option<Placement> {
        self.0.iter().find(|placement| placement.task == *wanted.task).cloned()
    }

    fn has_excluded(&self, _role: &Role) -> bool {
        !self.0.is_empty()
    }
}

/// Where the offer of a task goes: its role's queue unless the fleet says otherwise. Only leaves are matched by what they
/// need; any other task keeps away from agents that failed it, and from those that get no tasks.
pub(super) fn place(decision: &DecisionBuilder<'_>, task: &TaskId, role: &Role) -> Option<Placement> {
    let run = decision.open()?;
    let state = run.tasks.get(task);
    if state.is_some_and(lies_untaken) {
        return None;
    }
    let placing = decision.situation().placing;
    let avoid = state.map(|state| avoided(asked(state), &state.avoid)).unwrap_or_default();
    let any = Wanted {
        by_name: is_by_name(run, task, state),
        alone: state.is_some_and(|state| state.is_suspect(&run.limits)),
        avoid,
        asked: state.and_then(asked),
        stands: Some(run),
        ..Wanted::of_role(run.id, task, role, decision.given())
    };
    let TaskId::Leaf(index) = task else {
        let matters = any.by_name || !any.avoid.is_empty() || placing.has_excluded(role);
        return matters.then(|| placing.place(&any)).flatten();
    };
    let planned = run.plan_task(&index.planned())?;
    placing.place(&Wanted {
        needs: &planned.needs,
        tools: &planned.tools,
        substance: placing.weighs_contracts(role).then(|| work::substance(run, index)).flatten(),
        awarded: auction::awarded(run, index, decision.now()),
        named: handed_back(run, task),
        avoid: any.avoid.into_iter().chain(fellows(run, index)).collect(),
        knows: knows(run, task),
        corpus: run.goal.corpus.as_ref().map(|corpus| corpus.id.as_str()),
        ..any
    })
}

/// Whether offers to single agents were not taken over and over: those that could do it best are silent, and somebody
/// who can do less of it is better than nobody.
fn lies_untaken(state: &TaskState) -> bool {
    let in_a_row = state.continues.map_or(0, |first| state.generation.0.saturating_sub(first.0));
    let lies = state.status == TaskStatus::Queued && matches!(state.queue, Some(Queue::Agent(_)));
    lies && in_a_row >= MOST_UNTAKEN
}

/// Agents that should not get a task again: those that failed it, and the agent in whose queue it is.
fn avoided(asked: Option<&AgentId>, known: &[Avoided]) -> Vec<Avoided> {
    let mut avoid = known.to_vec();
    if let Some(agent) = asked
        && avoid.iter().all(|known| known.agent != *agent)
    {
        let reason = "it was asked and did not take it".to_owned();
        avoid.push(Avoided { agent: agent.clone(), reason, idle: true });
    }
    avoid
}

/// Who has, or had, another member of the same group: members are to be different agents.
fn fellows(run: &RunState, member: &TaskIndex) -> Vec<Avoided> {
    let group = run.group_in_work(&member.planned()).filter(|_| member.is_member());
    let others = group.into_iter().flat_map(|group| &group.members).filter(|other| *other != member);
    let states = others.filter_map(|other| run.planned(other));
    let agents = states.filter_map(|state| state.agent.as_ref().or(asked(state)).or(state.ended_by.as_ref()));
    let reason = "it has another member of the group".to_owned();
    agents.map(|agent| Avoided { agent: agent.clone(), reason: reason.clone(), idle: false }).collect()
}

/// Who was asked by name and has not started yet.
fn asked(state: &TaskState) -> Option<&AgentId> {
    if let Some(Queue::Agent(agent)) = &state.queue
        && state.status.is_in_work()
    {
        Some(agent)
    } else {
        None
    }
}

/// Whether somebody is to be asked by name. Members of a group would else come into the hands of one process; what was
/// taken from its role's queue by somebody who did not start it would be taken by the same one again.
fn is_by_name(run: &RunState, task: &TaskId, state: Option<&TaskState>) -> bool {
    let lay_there =
        |state: &TaskState| state.status == TaskStatus::Queued && matches!(state.queue, Some(Queue::Role(_)));
    let suspect = |state: &TaskState| state.is_suspect(&run.limits);
    task.leaf().is_some_and(TaskIndex::is_member)
        || state.is_some_and(|state| lay_there(state) || suspect(state))
}

/// What whoever had a task last said when it handed it back for another to do.
fn handed_back<'a>(run: &'a RunState, task: &TaskId) -> Option<&'a str> {
    let state = run.tasks.get(task)?;
    let last = state.outcome.as_ref().filter(|outcome| outcome.ending == Ending::Delegate)?;
    Some(&last.reason)
}

/// Words that may be names.
pub(crate) fn names_in(text: &str) -> impl Iterator<Item = String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let words = text.split(move |letter: char| !is_part(letter)).filter(|word| !word.is_empty());
    words.take(MOST_WORDS).map(str::to_ascii_lowercase)
}

/// The role that should do a task by the words of whoever handed it back, where the fleet has it and it is another.
pub(super) fn role_named(decision: &DecisionBuilder<'_>, task: &TaskId, own: &Role) -> Option<Role> {
    let run = decision.open()?;
    let leaf = task.as_leaf().filter(|index| !index.is_member())?;
    let words = handed_back(run, &leaf.to_task_id())?;
    let roles = survey::leaf_roles(decision.capacity(), &[]);
    let known = |word: &String| {
        let named = roles.iter().find(|role| role.to_string().eq_ignore_ascii_case(word));
        named.filter(|role| *role != own && decision.capacity().contains_key(&Queue::Role((*role).clone())))
    };
    names_in(words).find_map(|word| known(&word).cloned())
}

/// Who did what the task builds on: the task itself before, then what it depends on.
fn knows(run: &RunState, task: &TaskId) -> Vec<AgentId> {
    let Some(index) = task.leaf() else { return Vec::new() };
    let needed =
        run.plan.iter().filter_map(|plan| plan.tasks.get(&index.planned())).flat_map(|task| &task.depends_on);
    let itself = std::iter::once(index);
    let mut knows: Vec<AgentId> = Vec::new();
    for agent in itself.chain(needed).filter_map(|index| run.planned(index)?.ended_by.as_ref()) {
        if !knows.contains(agent) {
            knows.push(agent.clone());
        }
    }
    knows
}
