//! What came of asking: what the small tasks gave, what the plan's own task found, what a person said.

use std::collections::BTreeMap;

use muster_shared::conflict::{Answer, Word, read_value};
use muster_shared::flow::{About, Claim, ClaimValue, ConflictStep, TaskResult};
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::run::{ConflictState, QuestionEnd, RunState, Settling, SettlingFor};

use super::super::survey;
use super::ask::LEAVE_OPEN;
use super::{is_same_subject, tolerance};

/// What came of asking.
pub(super) enum AskedSides<T> {
    Not,
    Pending,
    Answered(T),
}

/// What came of the steps that ask somebody; nothing while an answer is still to come.
pub(super) fn answers(run: &RunState, id: u32) -> Option<BTreeMap<ConflictStep, Answer>> {
    let conflict = run.conflicts.found.get(&id)?;
    let asked = [
        (ConflictStep::Methods, methods(run, id, conflict)),
        (ConflictStep::Arbiter, judged(run, id, conflict)),
        (ConflictStep::Verify, verified(run, conflict)),
        (ConflictStep::Person, said(run, id, conflict)),
    ];
    let mut answers = BTreeMap::new();
    for (step, asked) in asked {
        match asked {
            AskedSides::Pending => return None,
            AskedSides::Answered(answer) => drop(answers.insert(step, answer)),
            AskedSides::Not => {}
        }
    }
    Some(answers)
}

/// The small tasks for a conflict.
pub(super) fn settling(run: &RunState, id: u32) -> impl Iterator<Item = (TaskId, &Settling)> {
    let mine = run.conflicts.settling.iter().filter(move |(_, settling)| settling.conflict == id);
    mine.map(|(number, settling)| (TaskId::Settle(*number), settling))
}

fn has_ended(run: &RunState, task: &TaskId) -> bool {
    run.tasks.get(task).is_none_or(|state| state.status.is_ended())
}

/// What a small task gave, if it did.
pub(super) fn given<'a>(run: &'a RunState, task: &TaskId) -> Option<&'a TaskResult> {
    survey::result(run.tasks.get(task)?)
}

/// What a result claims of the subject of a conflict; what it claims at all when that is one thing only.
pub(super) fn claim_on<'a>(conflict: &ConflictState, result: &'a TaskResult) -> Option<&'a Claim> {
    let same = |claim: &&Claim| is_same_subject(&conflict.subject, &claim.subject);
    result.claims.iter().find(same).or(match result.claims.as_slice() {
        [only] => Some(only),
        [] | [_, ..] => None,
    })
}

/// How a value was come by, by what is said of it.
pub(super) fn method(claim: Option<&Claim>, result: &TaskResult) -> String {
    let said = claim.map(|claim| claim.method.as_str()).filter(|method| !method.is_empty());
    said.unwrap_or(&result.conclusion).chars().take(Claim::MAX_TEXT).collect()
}

fn methods(run: &RunState, id: u32, conflict: &ConflictState) -> AskedSides<Answer> {
    if !conflict.steps.contains(&ConflictStep::Methods) {
        return AskedSides::Not;
    }
    let mut words: BTreeMap<TaskIndex, Word> = BTreeMap::new();
    for (task, settling) in settling(run, id) {
        let SettlingFor::Method(side) = &settling.purpose else { continue };
        if !has_ended(run, &task) {
            return AskedSides::Pending;
        }
        if let Some(result) = given(run, &task) {
            let claim = claim_on(conflict, result);
            let value = claim.map(|claim| claim.value.clone());
            words.insert(side.clone(), Word { value, method: method(claim, result) });
        }
    }
    AskedSides::Answered(Answer::Words(words))
}

fn judged(run: &RunState, id: u32, conflict: &ConflictState) -> AskedSides<Answer> {
    if !conflict.steps.contains(&ConflictStep::Arbiter) {
        return AskedSides::Not;
    }
    let asked = settling(run, id).find(|(_, settling)| settling.purpose == SettlingFor::Arbiter);
    let Some((task, _)) = asked else { return AskedSides::Answered(Answer::Value(None)) };
    if !has_ended(run, &task) {
        return AskedSides::Pending;
    }
    AskedSides::Answered(Answer::Value(given(run, &task).and_then(|result| value_in(conflict, result))))
}

fn verified(run: &RunState, conflict: &ConflictState) -> AskedSides<Answer> {
    if !conflict.steps.contains(&ConflictStep::Verify) {
        return AskedSides::Not;
    }
    let Some(task) = &conflict.verified_by else { return AskedSides::Answered(Answer::Value(None)) };
    let leaves = || run.plan.iter().flat_map(|plan| plan.leaves_of(task));
    let ended = |leaf: &TaskIndex| run.planned(leaf).is_none_or(|state| state.status.is_ended());
    if !leaves().all(ended) {
        return AskedSides::Pending;
    }
    let mut results = leaves().filter_map(|leaf| survey::result_of(run, leaf));
    AskedSides::Answered(Answer::Value(results.find_map(|result| value_in(conflict, result))))
}

fn value_in(conflict: &ConflictState, result: &TaskResult) -> Option<(ClaimValue, String)> {
    let claim = claim_on(conflict, result)?;
    Some((claim.value.clone(), method(Some(claim), result)))
}

fn said(run: &RunState, id: u32, conflict: &ConflictState) -> AskedSides<Answer> {
    let asked = run.questions.values().rev().find(|asked| asked.about == About::Conflict(id));
    let Some(asked) = asked else { return AskedSides::Not };
    let answer = match &asked.end {
        None => return AskedSides::Pending,
        Some(QuestionEnd::Withdrawn(_)) => None,
        Some(QuestionEnd::Answered(reply)) => reply.by.as_ref().zip(reply.text.as_deref()),
    };
    let value = answer.filter(|(_, text)| *text != LEAVE_OPEN).and_then(|(by, text)| {
        // The tasks that claim it stand behind it.
        let value = text.rsplit_once(" (").map_or(text, |(value, _)| value);
        let value = read_value(value, "")?;
        // Of prose, only words that a side claims are a value.
        let is_claimed = conflict.sides.iter().any(|side| tolerance(run).agrees(&side.claim.value, &value));
        (is_claimed || !matches!(value, ClaimValue::Text(_))).then(|| (value, format!("{by} says so")))
    });
    AskedSides::Answered(Answer::Value(value))
}
