//! Planning by rule: each question of the goal becomes a research task, arithmetic a computation, and a
//! worker checks every citation.

use muster_shared::flow::{
    PlanDraft, Product, RunLimits, SearchQuery, Specialty, TaskDraft, TaskOffered, TaskQuery, Thought, Work,
};

use super::arithmetic::expressions;
use super::question::question;
use super::subquestions::{subquestions, title_of};
use super::text::counted;
use super::{OfflineMove, thought};

/// The name of the task that looks every citation up.
pub(super) const CHECK_NAME: &str = "Check the citations";
/// Questions whose citations one check looks up; each look takes a step, and steps are few.
const QUESTIONS_PER_CHECK: usize = 3;

/// Whether a task looks citations up.
pub(super) const fn is_check(query: Option<&TaskQuery>) -> bool {
    matches!(query, Some(TaskQuery::CheckCitations))
}

/// What a task is to compute, if that is what it was planned for and nobody changed the words of its goal since.
pub(super) fn to_compute<'a>(goal: &str, query: Option<&'a TaskQuery>) -> Option<&'a [String]> {
    match query {
        Some(TaskQuery::Compute { expressions }) if compute_goal(expressions) == goal => Some(expressions),
        _ => None,
    }
}

fn compute_goal(expressions: &[String]) -> String {
    format!("Compute: {}", expressions.join("; "))
}

/// Whether the goal is more than one task as it is planned here.
pub(super) fn splits(offer: &TaskOffered) -> bool {
    let expressions = expressions(&offer.goal);
    let subquestions = questions(&offer.goal, &expressions);
    tasks_of(offer, &subquestions, &expressions).len() > 1
}

fn tasks_of(offer: &TaskOffered, subquestions: &[String], expressions: &[String]) -> Vec<TaskDraft> {
    if offer.corpus.is_some() {
        with_documents(subquestions, expressions, &offer.limits)
    } else {
        without_documents(&offer.goal, subquestions, expressions)
    }
}

/// The same where a task has ended already, so that indices mean others: tasks are called by their names.
pub(super) fn anew(offer: &TaskOffered) -> OfflineMove {
    let (thought, mut draft) = planned(offer);
    let mut names = Vec::new();
    name_all(&draft.tasks, "", &mut names);
    call_by_names(&mut draft.tasks, &names);
    OfflineMove::submit(thought, &Product::Plan(draft))
}

/// The index of each task, with its name.
fn name_all(tasks: &[TaskDraft], above: &str, names: &mut Vec<(String, String)>) {
    for (position, task) in (1..).zip(tasks) {
        let index = if above.is_empty() { position.to_string() } else { format!("{above}-{position}") };
        name_all(&task.subtasks, &index, names);
        names.push((index, task.name.clone()));
    }
}

fn call_by_names(tasks: &mut [TaskDraft], names: &[(String, String)]) {
    for task in tasks {
        for needed in &mut task.depends_on {
            if let Some((_, name)) = names.iter().find(|(index, _)| index == needed) {
                needed.clone_from(name);
            }
        }
        for (index, name) in names {
            task.goal = task.goal.replace(&format!("{{{{{index}."), &format!("{{{{{name}."));
        }
        call_by_names(&mut task.subtasks, names);
    }
}

pub(super) fn next(offer: &TaskOffered) -> OfflineMove {
    let (thought, draft) = planned(offer);
    OfflineMove::submit(thought, &Product::Plan(draft))
}

fn planned(offer: &TaskOffered) -> (Thought, PlanDraft) {
    let expressions = expressions(&offer.goal);
    let subquestions = questions(&offer.goal, &expressions);
    let mut tasks = tasks_of(offer, &subquestions, &expressions);
    if let Work::Plan { specialists, .. } = &offer.work {
        give_to_named(&mut tasks, specialists);
    }
    let text = format!(
        "The goal asks {} and {}.",
        counted(subquestions.len(), "question", "questions"),
        counted(expressions.len(), "computation", "computations"),
    );
    let reasoning = if offer.corpus.is_some() {
        "Each question is a search of its own; a second pair of eyes looks every citation up."
    } else {
        "There are no documents: only what can be computed can be answered."
    };
    let draft = PlanDraft { goal: offer.goal.clone(), tasks, ..PlanDraft::default() };
    (thought(text, reasoning, "Submit the plan."), draft)
}

/// Gives a question that names a specialist, or something that one can do, to that specialist.
fn give_to_named(tasks: &mut [TaskDraft], specialists: &[Specialty]) {
    for task in tasks {
        give_to_named(&mut task.subtasks, specialists);
        let goal = format!(" {} ", spoken(&task.goal));
        let is_named = |one: &&Specialty| {
            let names =
                one.capabilities.iter().map(|name| spoken(name)).chain([spoken(&one.role.to_string())]);
            names.into_iter().any(|name| !name.is_empty() && goal.contains(&format!(" {name} ")))
        };
        if let Some(named) = specialists.iter().find(is_named).filter(|_| task.depends_on.is_empty()) {
            task.role = Some(named.role.to_string());
        }
    }
}

/// The words of a text and nothing else.
fn spoken(text: &str) -> String {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// The questions of a goal that are not mere arithmetic.
fn questions(goal: &str, expressions: &[String]) -> Vec<String> {
    let is_arithmetic = |subquestion: &String| {
        !super::arithmetic::expressions(subquestion).is_empty()
            && question(subquestion, &[]).terms.iter().all(|term| term.light || !is_a_subject(&term.word))
    };
    let all = subquestions(goal);
    if expressions.is_empty() {
        all
    } else {
        all.into_iter().filter(|subquestion| !is_arithmetic(subquestion)).collect()
    }
}

/// Whether a word is about something other than the arithmetic itself.
fn is_a_subject(word: &str) -> bool {
    let arithmetic = [
        "compute",
        "calculate",
        "evaluate",
        "sum",
        "product",
        "average",
        "mean",
        "square",
        "root",
        "percent",
        "plus",
        "minus",
        "times",
        "divided",
        "multiplied",
        "power",
        "result",
        "multiply",
        "divide",
        "subtract",
        "add",
    ];
    !arithmetic.contains(&word.to_lowercase().as_str()) && !word.chars().all(|letter| !letter.is_alphabetic())
}

fn with_documents(subquestions: &[String], expressions: &[String], limits: &RunLimits) -> Vec<TaskDraft> {
    let others = 1 + usize::from(!expressions.is_empty());
    let width = usize::from(limits.max_width).max(2);
    let room = width.saturating_sub(others).max(1);
    let most = usize::from(limits.max_tasks).saturating_sub(others).max(1);
    let subquestions = at_most(subquestions, most.min(room * width));
    // Two places are left free, for a wider search and the check of what it finds.
    let mut tasks = if subquestions.is_empty()
        || subquestions.len() + 2 <= room
        || (limits.max_depth < 2 && subquestions.len() <= room)
    {
        subquestions.iter().map(|subquestion| research(subquestion)).collect()
    } else if limits.max_depth >= 2 {
        grouped(&subquestions, room, width)
    } else {
        at_most(&subquestions, room).iter().map(|subquestion| research(subquestion)).collect::<Vec<_>>()
    };
    if subquestions.is_empty() {
        return vec![compute(expressions)];
    }
    let found_by = leaf_indices(&tasks);
    if !expressions.is_empty() {
        tasks.push(compute(expressions));
    }
    tasks.push(checks(&found_by, limits));
    tasks
}

/// One check, or several side by side when there is more to look up than one can.
fn checks(found_by: &[String], limits: &RunLimits) -> TaskDraft {
    let groups = found_by.len().div_ceil(QUESTIONS_PER_CHECK).min(usize::from(limits.max_width));
    if groups < 2 || limits.max_depth < 2 || found_by.len() + groups + 4 > usize::from(limits.max_tasks) {
        return check(found_by.to_vec());
    }
    let below = found_by.chunks(found_by.len().div_ceil(groups)).enumerate().map(|(number, group)| {
        TaskDraft {
            name: format!("{CHECK_NAME} ({})", number + 1), // Two tasks with one goal would be taken for the same.
            goal: format!("Look up in the documents every citation that {} gave.", group.join(", ")),
            ..check(group.to_vec())
        }
    });
    TaskDraft {
        name: format!("{CHECK_NAME} of all"),
        query: Some(TaskQuery::CheckCitations),
        goal: "Have every citation looked up, in parts.".to_owned(),
        expected_output: "The findings whose quotation stands at the place given.".to_owned(),
        subtasks: below.collect(),
        ..TaskDraft::default()
    }
}

fn without_documents(goal: &str, subquestions: &[String], expressions: &[String]) -> Vec<TaskDraft> {
    let mut tasks = Vec::new();
    if !expressions.is_empty() {
        tasks.push(compute(expressions));
    }
    if !subquestions.is_empty() {
        tasks.push(TaskDraft {
            name: "Say what cannot be answered".to_owned(),
            goal: goal.to_owned(),
            role: Some("worker".to_owned()),
            criticism: "Nothing may be made up.".to_owned(),
            expected_output: "The questions that stay open, and what would answer them.".to_owned(),
            ..TaskDraft::default()
        });
    }
    tasks
}

/// At most `most` questions; the last one takes in those that are too many.
fn at_most(subquestions: &[String], most: usize) -> Vec<String> {
    if subquestions.len() <= most {
        return subquestions.to_vec();
    }
    let (kept, surplus) = subquestions.split_at(most.saturating_sub(1));
    let mut kept = kept.to_vec();
    kept.push(surplus.join(" "));
    kept
}

/// More questions than fit side by side, in groups one level deeper.
fn grouped(subquestions: &[String], room: usize, width: usize) -> Vec<TaskDraft> {
    let groups = subquestions.len().div_ceil(width).clamp(1, room);
    let size = subquestions.len().div_ceil(groups).min(width);
    subquestions
        .chunks(size)
        .enumerate()
        .map(|(number, group)| TaskDraft {
            name: if groups == 1 { "Research".to_owned() } else { format!("Research, part {}", number + 1) },
            goal: group.join(" "),
            expected_output: "What the documents say to each question.".to_owned(),
            subtasks: group.iter().map(|subquestion| research(subquestion)).collect(),
            ..TaskDraft::default()
        })
        .collect()
}

fn leaf_indices(tasks: &[TaskDraft]) -> Vec<String> {
    let mut indices = Vec::new();
    for (number, task) in (1..).zip(tasks) {
        if task.subtasks.is_empty() {
            indices.push(format!("{number}"));
        }
        indices.extend((1..).zip(&task.subtasks).map(|(below, _): (u16, _)| format!("{number}-{below}")));
    }
    indices
}

fn research(subquestion: &str) -> TaskDraft {
    TaskDraft {
        name: title_of(subquestion),
        goal: subquestion.to_owned(),
        query: Some(TaskQuery::Search(SearchQuery {
            question: subquestion.to_owned(),
            ..SearchQuery::default()
        })),
        role: Some("researcher".to_owned()),
        criticism: "Words that match need not answer; every statement must stand where it is said to stand."
            .to_owned(),
        milestones: vec!["passages found".to_owned(), "statements cited".to_owned()],
        expected_output: "Statements of the documents that answer the question, each with path and line."
            .to_owned(),
        needs: vec!["corpus.search".to_owned(), "corpus.read".to_owned()],
        ..TaskDraft::default()
    }
}

fn compute(expressions: &[String]) -> TaskDraft {
    TaskDraft {
        name: "Compute".to_owned(),
        goal: compute_goal(expressions),
        query: Some(TaskQuery::Compute { expressions: expressions.to_vec() }),
        role: Some("worker".to_owned()),
        criticism: "The expression must be the one that was asked.".to_owned(),
        milestones: vec!["value computed".to_owned()],
        expected_output: "The value of each expression.".to_owned(),
        needs: vec!["calculator".to_owned()],
        ..TaskDraft::default()
    }
}

/// The task that looks up the citations of others.
pub(super) fn check(depends_on: Vec<String>) -> TaskDraft {
    TaskDraft {
        name: CHECK_NAME.to_owned(),
        query: Some(TaskQuery::CheckCitations),
        goal: "Look every citation up in its document, and drop the findings whose words do not stand there."
            .to_owned(),
        role: Some("worker".to_owned()),
        criticism: "A quotation that is nearly right is wrong.".to_owned(),
        milestones: vec!["citations looked up".to_owned()],
        expected_output: "The findings whose quotation stands at the place given.".to_owned(),
        needs: vec!["corpus.read".to_owned()],
        depends_on,
        ..TaskDraft::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{offer, plan_of};

    fn shape(goal: &str) -> Vec<(String, usize, usize)> {
        plan_of(&offer(goal))
            .tasks
            .iter()
            .map(|task| (task.role.clone().unwrap_or_default(), task.subtasks.len(), task.depends_on.len()))
            .collect()
    }

    #[test]
    fn a_small_goal_makes_one_search_and_one_check() {
        assert_eq!(shape("What is a run?"), [("researcher".to_owned(), 0, 0), ("worker".to_owned(), 0, 1)]);
    }

    #[test]
    fn questions_too_many_for_one_level_are_grouped() {
        let goal = "What is A1? What is B2? What is C3? What is D4? What is E5? What is F6?";
        let plan = plan_of(&offer(goal));
        assert!(plan.tasks.len() <= 5);
        let (checks, searches) = plan.tasks.split_last().unwrap();
        assert_eq!(searches.iter().map(|task| task.subtasks.len()).sum::<usize>(), 6);
        let checks = &checks.subtasks;
        assert_eq!(checks.iter().map(|check| check.depends_on.len()).collect::<Vec<_>>(), [3, 3]);
    }

    #[test]
    fn mere_arithmetic_is_computed_and_not_searched() {
        let plan = plan_of(&offer("What is 12 % of 3400?"));
        assert_eq!(plan.tasks.len(), 1);
        assert_eq!(plan.tasks[0].goal, "Compute: 12% of 3400");
    }

    #[test]
    fn without_documents_the_plan_is_honest() {
        let mut offer = offer("What is a run?");
        offer.corpus = None;
        let plan = plan_of(&offer);
        assert_eq!(plan.tasks.len(), 1);
        assert_eq!(plan.tasks[0].role.as_deref(), Some("worker"));
    }

    proptest! {
        #[test]
        fn plans_keep_to_the_limits(
            goal in "([\\PC]{0,20}|what is [a-z]{3,5}\\? |2 \\+ 2|\n){0,20}",
            max_width in 2u16..6, max_depth in 1u16..4, max_tasks in 3u16..20,
        ) {
            let mut offer = offer(&goal);
            offer.limits.max_width = max_width;
            offer.limits.max_depth = max_depth;
            offer.limits.max_tasks = max_tasks;
            let plan = plan_of(&offer);
            prop_assert!(!plan.tasks.is_empty());
            prop_assert!(plan.tasks.len() <= max_width.max(3) as usize);
            for task in &plan.tasks {
                prop_assert!(task.subtasks.is_empty() || max_depth >= 2);
                prop_assert!(task.subtasks.len() <= max_width as usize);
            }
        }
    }
}
