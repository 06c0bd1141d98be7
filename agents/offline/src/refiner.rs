//! Refining by rule: a wider search for what stayed uncovered, or nothing.

use muster_shared::flow::{
    LeafRef, Plan, Product, RefineOperation, Reflection, RunLimits, SearchQuery, TaskDraft, TaskOffered,
    TaskQuery,
};
use muster_shared::ids::TaskIndex;

use super::planner::{CHECK_NAME, check, is_check};
use super::researcher::wider_words;
use super::subquestions::{asked_by, asked_in, goal_of, title_of};
use super::{OfflineMove, thought};

/// Most questions that are searched for again in one refinement.
const MAX_QUESTIONS: usize = 2;

pub(super) fn next(
    offer: &TaskOffered,
    plan: &Plan,
    reflections: &[(TaskIndex, Reflection)],
    results: &[LeafRef],
    operations_left: u32,
) -> OfflineMove {
    let open = open_questions(plan, reflections, results);
    let room = room(plan, &offer.limits);
    let last = plan.children(None).map(|(index, _)| index.clone()).max_by_key(TaskIndex::position);
    let operation = match last {
        None => exit("the plan is empty"),
        Some(_) if open.is_empty() => exit("every question was covered, or searched for twice"),
        Some(_) if room == 0 || operations_left == 0 => exit("the plan has no room for another task"),
        Some(after) => RefineOperation::Add { after, tasks: wider(plan, &open, room) },
    };
    let text = match &operation {
        RefineOperation::Add { tasks, .. } => format!("Search again, with other words: {}.", tasks[0].name),
        RefineOperation::Exit { reason } => format!("Leave the plan as it is: {reason}."),
        RefineOperation::Split { .. } | RefineOperation::Delete { .. } => String::new(),
    };
    OfflineMove::submit(
        thought(text, "Documents may say the same in other words.", "Submit the change."),
        &Product::Refinement(vec![operation]),
    )
}

fn exit(reason: &str) -> RefineOperation {
    RefineOperation::Exit { reason: reason.to_owned() }
}

/// The questions for which a reflection asked for more, and which were not searched for twice.
fn open_questions(plan: &Plan, reflections: &[(TaskIndex, Reflection)], results: &[LeafRef]) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    for (index, reflection) in reflections.iter().filter(|(_, reflection)| reflection.refine.is_some()) {
        let Some(task) = plan.tasks.get(index) else { continue };
        if reflection.uncovered.is_empty() {
            continue;
        }
        let asked = asked_in(task);
        let planned = plan.tasks.values().map(asked_in);
        let done = results.iter().map(|leaf| asked_by(&leaf.goal, leaf.query.as_ref()));
        let tried = planned.chain(done).any(|other| other.widened && other.question == asked.question);
        if !asked.widened && !tried && !open.contains(&asked.question) {
            open.push(asked.question);
        }
    }
    open.truncate(MAX_QUESTIONS);
    open
}

/// How many tasks may still be added beside those at the top.
pub(super) fn room(plan: &Plan, limits: &RunLimits) -> usize {
    let beside = usize::from(limits.max_width).saturating_sub(plan.children(None).count());
    beside.min(usize::from(limits.max_tasks).saturating_sub(plan.tasks.len()))
}

/// A search for each open question and, when there is room, a check of what they find.
pub(super) fn wider(plan: &Plan, open: &[String], room: usize) -> Vec<TaskDraft> {
    let searches = open.len().min(if room > 1 { room - 1 } else { 1 });
    let mut tasks: Vec<TaskDraft> =
        open.iter().take(searches).map(|subquestion| search(subquestion)).collect();
    if room > searches {
        let names = tasks.iter().map(|task| task.name.clone()).collect();
        let earlier = plan.tasks.values().filter(|task| is_check(task.query.as_ref())).count();
        tasks.push(TaskDraft {
            name: format!("{CHECK_NAME} again ({})", earlier + 1),
            // Two tasks with one goal would be taken for the same.
            goal: format!("Look up what the wider search found for: {}", open.join(" ")),
            ..check(names)
        });
    }
    tasks
}

pub(super) fn search(subquestion: &str) -> TaskDraft {
    let query =
        SearchQuery { question: subquestion.to_owned(), also: wider_words(subquestion), widened: true };
    TaskDraft {
        name: format!("Wider: {}", title_of(subquestion)),
        goal: goal_of(&query),
        query: Some(TaskQuery::Search(query)),
        role: Some("researcher".to_owned()),
        criticism: "More hits are not better hits.".to_owned(),
        milestones: vec!["other words tried".to_owned()],
        expected_output: "Statements that answer the question in other words, each with path and line."
            .to_owned(),
        needs: vec!["corpus.search".to_owned(), "corpus.read".to_owned()],
        ..TaskDraft::default()
    }
}
