//! Handing over part of a task: the plan has a task more, done by whoever matches, and its end is what the one that
//! asked for it goes on with.

use muster_shared::flow::{
    Observation, ObservationStatus, PeerAnswer, Plan, PlanDraft, RefineOperation, RunLimits, TaskDraft,
    TaskResult, TaskStatus, Wait,
};
use muster_shared::ids::{AgentId, TaskId, TaskIndex};
use muster_shared::plan::{self, Refined};
use muster_shared::run::event::{HandOver, HandOverRefused, TaskDelegated};
use muster_shared::run::{RunEvent, RunState, TaskState};

use super::builder::DecisionBuilder;
use super::{guards, peers, survey, waits};

/// Most delegations of one task in a chain. After two, no further agent is likely to do it.
const MAX_DELEGATIONS: u32 = 2;

/// Why work cannot be handed over, and how it came to whoever wants to when it would go in a circle or too far.
pub(super) struct Refusal {
    pub(super) why: String,
    chain: Vec<TaskIndex>,
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self { why, chain: Vec::new() }
    }
}

impl From<&str> for Refusal {
    fn from(why: &str) -> Self {
        why.to_owned().into()
    }
}

/// Adds a task for part of what this one is to do, beside it in the plan.
pub(super) fn begin(
    decision: &mut DecisionBuilder<'_>,
    task: &TaskId,
    part: &TaskDraft,
    agent: Option<AgentId>,
) {
    let Some(run) = decision.open() else { return };
    let added = match task.as_leaf() {
        Some(by) => add(decision, run, by, part),
        None => Err("only a task of the plan can hand work over".into()),
    };
    match added {
        Ok(_) if guards::hold_hand_over(decision, task, part, agent.clone()) => {}
        Ok(event) => decision.emit(event),
        Err(refusal) => {
            place_anew(decision, task, agent, &refusal);
            turn_down(decision, task, &refusal.why);
        }
    }
}

/// Adds a task that guards had nothing against, or that they changed, where it is still waited for.
pub(super) fn let_through(
    decision: &mut DecisionBuilder<'_>,
    wanted: &HandOver,
    changed: Option<&PlanDraft>,
) {
    let Some(run) = decision.open().filter(|run| waits_still(run, wanted)) else { return };
    let Some(by) = wanted.task.as_leaf() else { return };
    let part = match changed.map(|plan| plan.tasks.as_slice()) {
        None => &wanted.part,
        Some([part]) => part,
        Some(_) => return turn_down(decision, &wanted.task, "guards made of it what is not one task"),
    };
    match add(decision, run, by, part) {
        Ok(event) => decision.emit(event),
        Err(refusal) => {
            place_anew(decision, &wanted.task, wanted.agent.clone(), &refusal);
            turn_down(decision, &wanted.task, &refusal.why);
        }
    }
}

/// Guards refused it.
pub(super) fn refused(decision: &mut DecisionBuilder<'_>, wanted: &HandOver, why: &str) {
    if decision.open().is_some_and(|run| waits_still(run, wanted)) {
        turn_down(decision, &wanted.task, &format!("it was {why}"));
    }
}

/// Whether the task waits for the verdict of guards: nothing of it was handed over since.
fn waits_still(run: &RunState, wanted: &HandOver) -> bool {
    let waits = |state: &TaskState| {
        state.generation == wanted.generation
            && state.waiting.as_ref().is_some_and(|waiting| waiting.for_task.is_none())
    };
    run.tasks.get(&wanted.task).is_some_and(waits)
}

/// Tells a task that it has to do without, in the words of what it asked for.
fn turn_down(decision: &mut DecisionBuilder<'_>, task: &TaskId, why: &str) {
    let waiting = decision.open().and_then(|run| run.tasks.get(task)?.waiting.as_ref());
    let told = if let Some(Wait::Peer(request)) = waiting.map(|waiting| &waiting.wait) {
        format!("The {} is refused: {why}.", request.name())
    } else {
        format!("It cannot be handed over: {why}. Do it within this task.")
    };
    waits::refuse(decision, task, &told);
}

/// What goes round in circles comes back to the orchestrator: the task is placed anew, with another agent if there is one.
pub(super) fn place_anew(
    decision: &mut DecisionBuilder<'_>,
    task: &TaskId,
    agent: Option<AgentId>,
    refusal: &Refusal,
) {
    if let (TaskId::Leaf(task), false) = (task, refusal.chain.is_empty()) {
        let (task, chain, reason) = (task.clone(), refusal.chain.clone(), refusal.why.clone());
        decision.emit(HandOverRefused { task, chain, agent, reason });
    }
}

/// The event by which the plan has this task more.
pub(super) fn add(
    decision: &DecisionBuilder<'_>,
    run: &RunState,
    by: &TaskIndex,
    part: &TaskDraft,
) -> Result<RunEvent, Refusal> {
    let plan = run.plan.as_ref().ok_or("there is no plan")?;
    check_chain(run, plan, &by.planned(), part)?;
    let roles = survey::leaf_roles(decision.capacity(), &[]);
    // What is added after a task has no more rights than it, whatever the part asks for.
    let operations = [RefineOperation::Add { after: by.planned(), tasks: vec![part.clone()] }];
    let limits = RunLimits { max_refine_operations: 1, ..run.limits.clone() };
    let values = survey::values(run);
    let Refined { plan: changed, refused, .. } =
        plan::refine(plan, &survey::statuses_to_refine(run), &operations, &limits, &roles, Some(&values));
    if let Some(refused) = refused.into_iter().next() {
        return Err(refused.reason.into());
    }
    let to = changed.tasks.keys().find(|index| !plan.tasks.contains_key(*index)).cloned();
    let to = to.ok_or("no task was added")?;
    if changed.tasks.get(&to).is_some_and(|new| !new.depends_on.is_empty()) {
        return Err("it depends on other tasks: give it all that it needs in its goal".into());
    }
    Ok(RunEvent::TaskDelegated(TaskDelegated { task: by.clone(), to, plan: changed }))
}

/// The tasks that handed a task over, one to the next, the first of them first.
pub(super) fn chain(run: &RunState, task: &TaskIndex) -> Vec<TaskIndex> {
    let way = std::iter::successors(run.handed_over_by(task), |index| run.handed_over_by(index));
    let mut chain: Vec<TaskIndex> = way.cloned().collect();
    chain.reverse();
    chain
}

/// Work that is handed over and over gets nowhere: there is a limit, and nothing comes back to where it has been.
fn check_chain(run: &RunState, plan: &Plan, by: &TaskIndex, part: &TaskDraft) -> Result<(), Refusal> {
    let chain: Vec<TaskIndex> = chain(run, by).into_iter().chain([by.clone()]).collect();
    let wanted = part.role.as_deref().map_or("worker", str::trim);
    match circle(plan, &chain, (wanted, part)) {
        None => Ok(()),
        Some(why) => {
            let way = in_words(plan, &chain, wanted);
            Err(Refusal { why: format!("{why}. It would have gone {way}"), chain })
        }
    }
}

/// Why a chain of tasks that handed work over must not go on with this part.
fn circle(plan: &Plan, chain: &[TaskIndex], (wanted, part): (&str, &TaskDraft)) -> Option<String> {
    let most = usize::try_from(MAX_DELEGATIONS).unwrap_or(usize::MAX);
    if chain.len() > most {
        return Some(format!("it was handed over {} times already, which is the most", chain.len() - 1));
    }
    let planned = || chain.iter().rev().filter_map(|index| Some((index, plan.tasks.get(index)?)));
    let goal = in_short(&part.goal);
    if let Some((index, _)) = planned().find(|(_, task)| in_short(&task.goal) == goal) {
        return Some(format!("it is what {index} is to do, which waits for it"));
    }
    let mut roles = planned().map(|(_, task)| task.role.to_string());
    let own = roles.next().is_some_and(|role| role == wanted);
    let before = !own && roles.any(|role| role == wanted);
    before.then(|| format!("role {wanted} handed it over before: it would come back to where it was"))
}

/// The way that work took: `1 (worker) -> 5 (auditor) -> worker`.
fn in_words(plan: &Plan, chain: &[TaskIndex], to: &str) -> String {
    let role = |index: &TaskIndex| plan.tasks.get(index).map(|task| format!("{index} ({})", task.role));
    let way = chain.iter().filter_map(role).chain(std::iter::once(to.to_owned()));
    way.collect::<Vec<_>>().join(" -> ")
}

fn in_short(text: &str) -> String {
    muster_shared::text::normalise_space(text).to_lowercase()
}

/// Tells tasks whose part has ended what came of it.
pub(super) fn settle(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open() else { return };
    let ended: Vec<(TaskId, Observation, Option<Box<PeerAnswer>>)> = run
        .tasks
        .iter()
        .filter_map(|(task, state)| {
            let waiting = state.waiting.as_ref()?;
            let part = waiting.for_task.as_ref()?;
            let observation = came_of(run, part)?;
            let answer = peers::given(run, &waiting.wait, part, observation.status);
            Some((task.clone(), observation, answer))
        })
        .collect();
    for (task, observation, answer) in ended {
        waits::answer_with(decision, &task, observation, answer);
    }
}

/// What came of a task that was handed over; nothing while it goes on. One that was split has ended when all of its
/// parts have.
fn came_of(run: &RunState, part: &TaskIndex) -> Option<Observation> {
    let plan = run.plan.as_ref()?;
    let statuses = run.statuses();
    let leaves: Vec<&TaskIndex> = plan.leaves_of(part).collect();
    let has_ended = |leaf: &&TaskIndex| statuses.get(*leaf).is_some_and(|status| status.is_ended());
    if !leaves.iter().all(has_ended) {
        return None;
    }
    let results: Vec<&TaskResult> = leaves.iter().filter_map(|leaf| survey::result_of(run, leaf)).collect();
    let (status, content) = if results.is_empty() {
        let why = leaves.iter().filter_map(|leaf| run.planned(leaf)?.reasons.last());
        let why: Vec<&str> = why.map(String::as_str).collect();
        let how = leaves.first().and_then(|leaf| statuses.get(*leaf)).copied().unwrap_or(TaskStatus::Failed);
        let content = format!(
            "The task that this was handed over to ({part}) gave nothing: it is {how:?}. {} Do it in another way, or \
             go on without it.",
            why.join("; ")
        );
        (ObservationStatus::Error, content)
    } else {
        let texts: Vec<String> = results.into_iter().map(result_in_words).collect();
        (ObservationStatus::Success, format!("Task {part} gives: {}", texts.join("\n\n")))
    };
    Some(Observation::new(status, content))
}

fn result_in_words(result: &TaskResult) -> String {
    let findings = result.findings.iter().map(|found| format!("\n- {}", found.text));
    format!("{}{}", result.conclusion, findings.collect::<String>())
}
