//! Whom the steps of a policy ask, and what.

use std::collections::BTreeMap;

use muster_shared::conflict::{Position, Side, positions};
use muster_shared::flow::{
    About, Citation, Claim, ConflictStep, Plan, PlanTask, Question, RefineOperation, RunLimits, TaskDraft,
};
use muster_shared::ids::{Role, TaskIndex};
use muster_shared::plan::{self, Refined};
use muster_shared::run::event::{ConflictExamined, VerificationAdded};
use muster_shared::run::{ConflictState, RunState, Settling, SettlingFor};

use super::super::builder::DecisionBuilder;
use super::super::{questions, survey};
use super::{answers, compatible_claims, tolerance};

/// What a person answers who does not know either.
pub(super) const LEAVE_OPEN: &str = "leave it open";

/// Most steps of a small task.
const MOST_STEPS: u32 = 6;

/// Longest text of a claim that is told, in characters.
const LONGEST: usize = 300;

/// Takes a step that asks somebody; whether another may follow at once.
pub(super) fn ask(decision: &mut DecisionBuilder<'_>, id: u32, step: ConflictStep) -> bool {
    match step {
        ConflictStep::Methods => methods(decision, id),
        ConflictStep::Arbiter => arbiter(decision, id),
        ConflictStep::Verify => return verify(decision, id),
        ConflictStep::Person => return person(decision, id),
        // These ask nobody.
        ConflictStep::Majority | ConflictStep::Confidence | ConflictStep::Authority => {}
    }
    false
}

fn conflict<'a>(decision: &'a DecisionBuilder<'_>, id: u32) -> Option<(&'a RunState, &'a ConflictState)> {
    let run = decision.open()?;
    Some((run, run.conflicts.found.get(&id)?))
}

/// Has each side that has not told it show how it came to its value.
fn methods(decision: &mut DecisionBuilder<'_>, id: u32) {
    let Some((_, conflict)) = conflict(decision, id) else { return };
    let asked = conflict.sides.iter().filter(|side| side.claim.method.is_empty());
    let tasks =
        asked.map(|side| (SettlingFor::Method(side.task.clone()), method_of(conflict, side))).collect();
    begin(decision, id, ConflictStep::Methods, tasks);
}

fn method_of(conflict: &ConflictState, side: &Side) -> PlanTask {
    let others: Vec<Side> = conflict.sides.iter().filter(|other| other.task != side.task).cloned().collect();
    let task = &side.task;
    let goal = format!(
        "Results of this run contradict each other on {:?}.\nTask {task} claimed:\n{}\nOthers claimed:\n{}\nShow how \
         task {task} came to its value: from which source, over which range, by which calculation. Look at the source \
         once more. Submit one claim with exactly that subject and the value that holds by what you see now; say in \
         its `method` how the value is come by and, if task {task} was wrong, what was wrong.{}",
        conflict.subject,
        listed(std::slice::from_ref(side)),
        listed(&others),
        compatible_claims::TOLD,
    );
    small(&format!("show how {task} came to its value"), goal, side.role.clone().unwrap_or(Role::Worker))
}

fn arbiter(decision: &mut DecisionBuilder<'_>, id: u32) {
    let Some((run, conflict)) = conflict(decision, id) else { return };
    let goal = format!(
        "Results of this run contradict each other on {:?}:\n{}\nJudge which of these values holds, by sources and \
         methods. Submit one claim with exactly that subject and the value that holds, and say in its `method` why. \
         When it cannot be told, make no claim.{}",
        conflict.subject,
        listed(&with_methods(run, id, conflict)),
        compatible_claims::TOLD,
    );
    let task = small("judge which value holds", goal, Role::Worker);
    begin(decision, id, ConflictStep::Arbiter, vec![(SettlingFor::Arbiter, task)]);
}

/// The sides with the methods that they showed.
fn with_methods(run: &RunState, id: u32, conflict: &ConflictState) -> Vec<Side> {
    let mut sides = conflict.sides.clone();
    for (task, settling) in answers::settling(run, id) {
        let SettlingFor::Method(of) = &settling.purpose else { continue };
        let Some(result) = answers::given(run, &task) else { continue };
        for side in sides.iter_mut().filter(|side| side.task == *of) {
            side.claim.method = answers::method(answers::claim_on(conflict, result), result);
        }
    }
    sides
}

/// Adds a task to the plan. Where the plan takes no more, nothing comes of the step, and the next follows.
fn verify(decision: &mut DecisionBuilder<'_>, id: u32) -> bool {
    let Some((run, conflict)) = conflict(decision, id) else { return false };
    let added = add(decision, run, (id, conflict));
    let is_full = added.is_none();
    match added {
        Some((task, plan)) => decision.emit(VerificationAdded { id, task, plan }),
        None => begin(decision, id, ConflictStep::Verify, Vec::new()),
    }
    is_full
}

fn add(
    decision: &DecisionBuilder<'_>,
    run: &RunState,
    (id, conflict): (u32, &ConflictState),
) -> Option<(TaskIndex, Plan)> {
    let before = run.plan.as_ref()?;
    let last = conflict.sides.last()?;
    let new = TaskDraft {
        name: format!("verify: {}", cut(&conflict.subject, 60)),
        goal: format!(
            "Results of this run contradict each other on {:?}:\n{}\nFind out by yourself which value holds, from the \
             sources and not from these claims. Submit one claim with exactly that subject and the value that holds, \
             and say in its `method` how you came to it.{}",
            conflict.subject,
            // A plan's goals may refer to results; what is claimed never does.
            listed(&with_methods(run, id, conflict)).replace("{{", "{ {"),
            compatible_claims::TOLD,
        ),
        role: Some(last.role.as_ref().unwrap_or(&Role::Worker).to_string()),
        expected_output: "one claim with the value that holds".to_owned(),
        ..TaskDraft::default()
    };
    let operations = [RefineOperation::Add { after: last.task.clone(), tasks: vec![new] }];
    let limits = RunLimits { max_refine_operations: 1, ..run.limits.clone() };
    let roles = survey::leaf_roles(decision.capacity(), &[]);
    let Refined { plan, refused, .. } =
        plan::refine(before, &survey::statuses_to_refine(run), &operations, &limits, &roles, None);
    let task = plan.tasks.keys().find(|index| !before.tasks.contains_key(*index)).cloned();
    refused.is_empty().then_some((task?, plan))
}

/// Asks a person; whether that was answered at once, because no more questions are allowed.
fn person(decision: &mut DecisionBuilder<'_>, id: u32) -> bool {
    let Some((run, conflict)) = conflict(decision, id) else { return false };
    let choice = |position: &Position| {
        let tasks: Vec<String> = position.tasks().iter().map(TaskIndex::to_string).collect();
        format!("{} ({})", position.value, tasks.join(", "))
    };
    let found = positions(&conflict.sides, tolerance(run));
    let question = Question {
        reason: listed(&with_methods(run, id, conflict)),
        choices: found
            .iter()
            .map(choice)
            .chain([LEAVE_OPEN.to_owned(), compatible_claims::BOTH_HOLD.to_owned()])
            .collect(),
        default: Some(LEAVE_OPEN.to_owned()),
        ..Question::new(format!("Results contradict each other. What holds of {:?}?", conflict.subject))
    };
    questions::ask(decision, About::Conflict(id), question);
    decision.open().is_some_and(|run| {
        run.questions.values().any(|asked| asked.about == About::Conflict(id) && !asked.is_open())
    })
}

fn begin(
    decision: &mut DecisionBuilder<'_>,
    id: u32,
    step: ConflictStep,
    tasks: Vec<(SettlingFor, PlanTask)>,
) {
    let Some(run) = decision.open() else { return };
    let first = run.conflicts.settling.last_key_value().map_or(0, |(number, _)| *number).saturating_add(1);
    let settling = |(purpose, task)| Settling { conflict: id, purpose, task: Box::new(task) };
    let tasks: BTreeMap<u32, Settling> = (first..).zip(tasks.into_iter().map(settling)).collect();
    decision.emit(ConflictExamined { id, step, tasks });
}

fn small(name: &str, goal: String, role: Role) -> PlanTask {
    PlanTask {
        expected_output: "one claim".to_owned(),
        max_steps: Some(MOST_STEPS),
        ..PlanTask::new(name, goal, role)
    }
}

/// The sides, one line each.
fn listed(sides: &[Side]) -> String {
    let line = |side: &Side| {
        let Claim { value, confidence, evidence, method, .. } = &side.claim;
        let sure = if *confidence == 0 { String::new() } else { format!(", {confidence} % sure") };
        let places = Citation::places(evidence.get(..4).unwrap_or(evidence));
        let method =
            if method.is_empty() { String::new() } else { format!("; method: {}", cut(method, LONGEST)) };
        format!("- {}: {}{sure}{places}{method}", side.task, cut(&value.to_string(), LONGEST))
    };
    sides.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
