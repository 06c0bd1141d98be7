//! Doubts of a model about cited statements: when the model compares, the list for the author, and the answers. Pure.

use muster_shared::flow::{Doubt, DoubtKind, Note, Work, Writing};
use muster_shared::text::first_line;
use serde_json::{Map, Value};

use super::super::decide::{ChosenAction, StepContext};
use super::super::history::History;
use super::super::limits::Verification;
use super::super::lookup::Judged;
use super::brief;

/// Fewest cited statements of a report that are compared with their lines.
const FEWEST: usize = 3;
/// Longest reason of a doubt, in characters.
const LONGEST_REASON: usize = 200;
/// The answer that keeps a statement as it is.
const KEEP: &str = "keep";

/// Whether the statements of this result are compared with their lines: it is the report, or becomes the report.
pub(super) fn is_on(case: &StepContext<'_>) -> bool {
    let is_report = match &case.offer.work {
        Work::Write { .. } => true,
        Work::Execute { task, .. } => {
            case.offer.limits.writer == Writing::UnlessSingle && task.goal.trim() == case.offer.goal.trim()
        }
        _ => false,
    };
    is_report && case.has_model && case.limits.verification != Verification::Off
}

/// Whether the model is to compare the statements now: once per report.
pub(super) fn is_due(
    history: &History,
    chosen: &ChosenAction,
    places: &Judged,
    case: &StepContext<'_>,
) -> bool {
    let is_done = |notes: &[Note]| notes.iter().any(|note| matches!(note, Note::Doubted { .. }));
    is_on(case)
        && !is_done(&chosen.notes)
        && !history.steps().iter().any(|step| is_done(&step.notes))
        && places.statements().len() >= FEWEST
}

/// The notes that follow from the answer of the model, or from its silence.
pub(super) fn compared(said: Result<Value, String>, places: &Judged) -> Vec<Note> {
    let said = match said {
        Ok(said) => said,
        Err(why) => {
            let why = brief(&format!("the cited statements were not compared: {why}"));
            return vec![Note::NotChecked { why }, Note::Doubted { doubts: Vec::new() }];
        }
    };
    let statements = places.statements();
    let doubt = |found: &Value| {
        let kind = found["kind"].as_str()?;
        let item = usize::try_from(found["item"].as_u64()?).ok()?.checked_sub(1)?;
        Some(Doubt {
            statement: statements.get(item)?.text.clone(),
            kind: *DoubtKind::ALL.iter().find(|known| known.as_str() == kind)?,
            reason: first_line(found["reason"].as_str().unwrap_or_default(), LONGEST_REASON),
        })
    };
    let mut doubts: Vec<Doubt> = Vec::new();
    for doubt in said["doubts"].as_array().into_iter().flatten().filter_map(doubt) {
        if doubts.iter().all(|known| known.statement != doubt.statement) {
            doubts.push(doubt);
        }
    }
    vec![Note::Doubted { doubts }]
}

/// The doubts that these notes name.
pub(super) fn doubts_in(notes: &[Note]) -> &[Doubt] {
    let named = notes.iter().rev().find_map(|note| match note {
        Note::Doubted { doubts } => Some(doubts.as_slice()),
        _ => None,
    });
    named.unwrap_or_default()
}

/// The doubts for the author, item by item, each with the cited lines. Absent: none.
pub(super) fn listed(notes: &[Note], places: &Judged) -> Option<String> {
    let (doubts, statements) = (doubts_in(notes), places.statements());
    let item = |(number, doubt): (usize, &Doubt)| {
        let cited = statements.iter().find(|cited| cited.text == doubt.statement);
        let lines = cited.map(|cited| cited.lines.join("\n")).unwrap_or_default();
        format!("{number}. {doubt}\n{lines}\n")
    };
    let items: String = (1..).zip(doubts).map(item).collect();
    (!doubts.is_empty()).then(|| {
        format!(
            "A reader doubts these statements. Compare each with its lines, and submit `answers` with one entry per item: \
             `{KEEP}`, or the corrected statement without its citation. Everything else stays as submitted.\n{items}"
        )
    })
}

/// Applies the author's answers to the submission with the doubts: each edit replaces its statement.
pub(in crate::react) fn edit(arguments: &mut Map<String, Value>, answers: &Value, notes: &[Note]) {
    let doubts = doubts_in(notes);
    for answer in answers.as_array().into_iter().flatten() {
        let item = answer["item"].as_u64().and_then(|item| usize::try_from(item).ok());
        let doubt = item.and_then(|item| doubts.get(item.checked_sub(1)?));
        let text = answer["answer"].as_str().unwrap_or_default().trim();
        let Some(doubt) = doubt.filter(|_| !text.is_empty() && !text.eq_ignore_ascii_case(KEEP)) else {
            continue;
        };
        arguments.values_mut().for_each(|value| replace(value, &doubt.statement, text));
    }
}

fn replace(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) => *text = text.replace(from, to),
        Value::Array(all) => all.iter_mut().for_each(|value| replace(value, from, to)),
        Value::Object(fields) => fields.values_mut().for_each(|value| replace(value, from, to)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn contains(value: &Value, words: &str) -> bool {
    match value {
        Value::String(text) => text.contains(words),
        Value::Array(all) => all.iter().any(|value| contains(value, words)),
        Value::Object(fields) => fields.values().any(|value| contains(value, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The number of doubted statements that the submission still contains. Absent: none.
pub(super) fn disputed(history: &History, chosen: &ChosenAction) -> Option<Note> {
    let earlier = history.steps().iter().flat_map(|step| doubts_in(&step.notes));
    let doubts = earlier.chain(doubts_in(&chosen.notes));
    let kept = doubts.filter(|doubt| contains(&chosen.action.arguments, &doubt.statement)).count();
    let statements = u32::try_from(kept).unwrap_or(u32::MAX);
    (statements > 0).then_some(Note::Disputed { statements })
}
