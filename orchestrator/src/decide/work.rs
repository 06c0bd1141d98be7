//! What an agent is told of the run, by kind of work.

use std::collections::BTreeMap;

use muster_shared::contract::fields_named;
use muster_shared::flow::{
    HeldTo, LeafRef, PlanDraft, PlanTask, Product, RefineBrief, ReflectionLevel, Revision, Specialty,
    StepDigest, Work, specialist,
};
use muster_shared::ids::{Queue, Role, TaskId, TaskIndex};
use muster_shared::plan::{progress, reference, summary, tools, values};
use muster_shared::run::{RunState, TaskState};

use super::place::Substance;
use super::{conflicts, groups, guards, learnt, remarks, replan, survey, trials};

/// Most lessons that a task is given: the newest by plan order; more would crowd out the task itself.
const MOST_LESSONS: usize = 12;

/// Most tasks of which a prompt tells what they have come to.
const MOST_SUMMARIES: usize = 40;

/// Most levels above a task that it is told of.
const MOST_PARENTS: usize = 20;

/// The work of a task that is due; nothing when the run does not have what it is about.
pub(super) fn work(
    run: &RunState,
    task: &TaskId,
    capacity: &BTreeMap<Queue, u32>,
    specialists: &[Specialty],
) -> Option<Work> {
    match task {
        TaskId::Plan => Some(planning(run, capacity, specialists)),
        TaskId::Leaf(index) => execute(run, index),
        TaskId::Reflect(index) => reflect(run, index, capacity, specialists),
        TaskId::Refine(number) => refine(run, *number, capacity, specialists),
        TaskId::Settle(number) => settle(run, *number),
        TaskId::Write => Some(write(run)),
        TaskId::DraftReview(_) => draft_review(run),
    }
}

fn planning(run: &RunState, capacity: &BTreeMap<Queue, u32>, specialists: &[Specialty]) -> Work {
    let roles = survey::roles_for_planners(run, capacity, specialists);
    Work::Plan {
        refused: refused(run),
        roles: roles.iter().map(Role::to_string).collect(),
        lessons: survey::taught(run),
        specialists: nameable(run, specialists),
        tools: tools::known(specialists),
        blueprints: survey::blueprints(run).to_vec(),
        draft: run.planning.first_draft().cloned().map(Box::new),
        replan: replan::brief(run).map(Box::new),
        answers: survey::answers_about_goal(run),
        refused_plan: refused_plan(run).map(Box::new),
        held_to: Box::new(held_to(run)),
    }
}

/// The plan that was refused last, where it is known and nothing else was asked for since.
fn refused_plan(run: &RunState) -> Option<PlanDraft> {
    if refused(run).is_empty() {
        return None;
    }
    if let Product::Plan(draft) = run.tasks.get(&TaskId::Plan)?.outcome.as_ref()?.product.as_ref()? {
        Some(draft.clone())
    } else {
        None
    }
}

/// What a plan, or a change of one, is held against besides what an offer names.
fn held_to(run: &RunState) -> HeldTo {
    HeldTo { statuses: survey::statuses_to_refine(run), context: run.peers.context.keys().cloned().collect() }
}

/// Those that tasks may be given to by name: not whoever stands in for others in a trial, nor a role that only its name
/// tells anything of.
fn nameable(run: &RunState, specialists: &[Specialty]) -> Vec<Specialty> {
    let is_usual = |one: &&Specialty| {
        let is_described = !one.is_built_in() || !one.tools.is_empty();
        is_described && trials::only_tried(run).all(|role| *role != one.role)
    };
    specialists.iter().filter(is_usual).cloned().collect()
}

/// Why the last plan was refused, unless the planner has been asked for another thing since.
fn refused(run: &RunState) -> Vec<String> {
    let since = run.planning.refused.get(run.planning.refused_before..).unwrap_or_default();
    since.last().cloned().unwrap_or_default()
}

fn execute(run: &RunState, index: &TaskIndex) -> Option<Work> {
    if let Some(shadow) = &run.goal.shadow {
        return Some(shadow.offer.work.clone());
    }
    let member = groups::membership(run, index).map(Box::new);
    let failed_before = run.planned(index).and_then(|state| state.reasons.last().cloned());
    // A member does its task: it is told what whoever does that alone is told.
    let (own, index) = (index, &index.planned());
    let earlier = [own, index].into_iter().find_map(|index| run.planned(index)?.earlier.clone());
    Some(Work::Execute {
        task: resolved(run, index)?,
        inputs: survey::inputs(run, index),
        parents: parents(run, index),
        progress: progress_tree(run),
        lessons: lessons(run),
        failed_before,
        earlier,
        left_out: survey::left_out(run, index),
        may_plan: member.is_none() && replan::may_be_asked_for(run, index),
        member,
    })
}

/// A task of the plan, with what references in its goal stand for.
fn resolved(run: &RunState, index: &TaskIndex) -> Option<PlanTask> {
    let plan = run.plan.as_ref()?;
    let mut task = plan.tasks.get(index)?.clone();
    // The plan's check lets no reference through that cannot be resolved; if one is there all the same, the agent
    // reads it as it stands.
    if task.goal.contains("{{")
        && let Ok(goal) = reference::resolve(&task.goal, plan, &survey::results(run), &run.peers.context)
    {
        task.goal = goal;
    }
    // The plan may be older than a value.
    for (key, entry) in &run.peers.context {
        task.goal = task.goal.replace(&values::in_words(key), &entry.text());
    }
    Some(task)
}

/// What a leaf is given and has to give, as contracts are held against it.
pub(super) fn substance(run: &RunState, index: &TaskIndex) -> Option<Substance> {
    let index = &index.planned();
    let task = resolved(run, index)?;
    let inputs = survey::inputs(run, index);
    let given = specialist::given_with(&run.goal.text, &task, &inputs, run.goal.corpus.as_ref());
    Some(Substance { given, data: fields_named(&task.expected_output) })
}

pub(super) fn parents(run: &RunState, index: &TaskIndex) -> Vec<String> {
    let above = std::iter::successors(index.parent(), TaskIndex::parent).take(MOST_PARENTS);
    let goals = above.filter_map(|index| Some(run.plan_task(&index)?.goal.clone()));
    let mut goals: Vec<String> = goals.collect();
    goals.reverse();
    goals
}

pub(super) fn lessons(run: &RunState) -> Vec<String> {
    // What is nearest comes last: what was learnt in this run outlasts what others taught.
    let earlier = run.planning.lessons.iter().cloned();
    let of_plan = learnt::reflections(run).flat_map(|reflection| reflection.on_plan.iter().cloned());
    let notes = learnt::reflections(run).flat_map(|reflection| &reflection.on_tools);
    let of_tools = notes.map(|note| format!("{}: {}", note.tool, note.note));
    let mut lessons: Vec<String> = Vec::new();
    for lesson in earlier
        .chain(of_plan)
        .chain(of_tools)
        .chain(learnt::suggestions(run))
        .chain(remarks::decided_against(run))
        .chain(conflicts::told(run))
    {
        if !lessons.contains(&lesson) {
            lessons.push(lesson);
        }
    }
    let surplus = lessons.len().saturating_sub(MOST_LESSONS);
    lessons.split_off(surplus)
}

/// What whoever reflects is told to change the plan by, where no refiner is to be asked yet and there may be a change.
fn refine_brief(
    run: &RunState,
    capacity: &BTreeMap<Queue, u32>,
    specialists: &[Specialty],
) -> Option<RefineBrief> {
    let may_bring = run.limits.reflection == ReflectionLevel::WhenNeeded
        && !run.planning.is_replanning()
        && survey::open_refinement(run).is_none()
        && survey::next_refinement(run) <= run.limits.max_refinements;
    Some(RefineBrief {
        held_to: may_bring.then(|| held_to(run))?,
        plan: run.plan.clone()?,
        operations_left: run.limits.max_refine_operations,
        roles: survey::roles_for_planners(run, capacity, specialists).iter().map(Role::to_string).collect(),
        tools: tools::known(specialists),
        blueprints: survey::blueprints(run).to_vec(),
    })
}

fn reflect(
    run: &RunState,
    index: &TaskIndex,
    capacity: &BTreeMap<Queue, u32>,
    specialists: &[Specialty],
) -> Option<Work> {
    let task: PlanTask = run.plan_task(index)?.clone();
    let TaskState { outcome, .. } = run.planned(index)?;
    let outcome = outcome.as_ref()?;
    Some(Work::Reflect {
        index: index.clone(),
        task,
        ending: outcome.ending,
        reason: outcome.reason.clone(),
        result: outcome.result().cloned(),
        steps: outcome.steps.iter().map(without_more).collect(),
        progress: progress_tree(run),
        brief: run.limits.reflection == ReflectionLevel::Brief,
        refine: refine_brief(run, capacity, specialists).map(Box::new),
    })
}

/// As whoever reflects is told of a step: an offer is the same, whether its further calls are known or not.
fn without_more(step: &StepDigest) -> StepDigest {
    StepDigest {
        number: step.number,
        action: step.action.clone(),
        status: step.status,
        millis: step.millis,
        more: Vec::new(),
    }
}

fn refine(
    run: &RunState,
    number: u32,
    capacity: &BTreeMap<Queue, u32>,
    specialists: &[Specialty],
) -> Option<Work> {
    let roles = survey::roles_for_planners(run, capacity, specialists);
    Some(Work::Refine {
        plan: run.plan.clone()?,
        progress: progress_tree(run),
        reasons: run
            .refining
            .wanted
            .get(&number)
            .into_iter()
            .flatten()
            .cloned()
            .chain(learnt::suggestions(run))
            .collect(),
        reflections: run.reflections().map(|(index, lesson)| (index.clone(), lesson.clone())).collect(),
        results: survey::results(run),
        operations_left: run.limits.max_refine_operations,
        roles: roles.iter().map(Role::to_string).collect(),
        specialists: nameable(run, specialists),
        tools: tools::known(specialists),
        blueprints: survey::blueprints(run).to_vec(),
        held_to: Box::new(held_to(run)),
    })
}

/// A small task that helps to settle a conflict: told what its sides gave, as they gave it.
fn settle(run: &RunState, number: u32) -> Option<Work> {
    let settling = run.conflicts.settling.get(&number)?;
    let conflict = run.conflicts.found.get(&settling.conflict)?;
    let mut inputs = survey::results(run);
    inputs.retain(|leaf| conflict.side(&leaf.index).is_some());
    let state = run.tasks.get(&TaskId::Settle(number));
    Some(Work::Execute {
        member: None,
        task: PlanTask::clone(&settling.task),
        inputs,
        parents: Vec::new(),
        progress: progress_tree(run),
        lessons: Vec::new(),
        failed_before: state.and_then(|state| state.reasons.last().cloned()),
        earlier: None,
        left_out: Vec::new(),
        may_plan: false,
    })
}

/// What tasks gave, without those that found nothing and only asked for a plan.
fn results_to_report(run: &RunState) -> Vec<LeafRef> {
    survey::results(run).into_iter().filter(|leaf| !leaf.result.is_only_a_wish()).collect()
}

fn write(run: &RunState) -> Work {
    Work::Write {
        results: results_to_report(run),
        failed: survey::not_replaced(run),
        uncovered: survey::uncovered(run),
        conflicts: conflicts::brief(run),
        revision: revision(run).map(Box::new),
    }
}

/// The draft that is to be written again, and what was said of it last.
fn revision(run: &RunState) -> Option<Revision> {
    if let Some(refused) = guards::revision(run) {
        return Some(refused);
    }
    let draft = run.drafts.kept.as_ref()?.body.clone();
    Some(Revision { draft, review: run.drafts.last_said()?.clone() })
}

fn draft_review(run: &RunState) -> Option<Work> {
    Some(Work::DraftReview {
        draft: run.drafts.kept.clone()?,
        results: results_to_report(run),
        failed: survey::not_replaced(run),
        uncovered: survey::uncovered(run),
        conflicts: conflicts::brief(run),
        earlier: run.drafts.last_said().cloned().map(Box::new),
    })
}

/// The progress tree, with what the newest tasks that ended have come to in a line.
pub(super) fn progress_tree(run: &RunState) -> String {
    let lines = progress::lines(run, progress::Detail::Decided);
    let ended = |index: &&TaskIndex| run.planned(index).and_then(survey::result).is_some();
    let told: Vec<&TaskIndex> = lines.iter().map(|line| &line.index).filter(ended).collect();
    let told = told.get(told.len().saturating_sub(MOST_SUMMARIES)..).unwrap_or_default();
    let line = |line: &progress::ProgressLine| {
        let summary =
            told.contains(&&line.index).then(|| summary::of(run, &line.index, progress::Detail::Decided));
        match summary.flatten() {
            Some(summary) => format!("{line}: {}\n", summary.short),
            None => format!("{line}\n"),
        }
    };
    lines.iter().map(line).collect()
}
