//! A run that ended, as a turn of the conversation that follows it (R11).

use super::state::RunState;
use crate::flow::Turn;

/// What a later run is told of this one. Within the limits once it is taken into a conversation.
#[must_use]
pub fn turn(run: &RunState) -> Turn {
    let answered = match (&run.report, &run.reason) {
        (Some(report), None) => report.body.clone(),
        (Some(report), Some(reason)) => format!("(not the whole answer: {reason})\n{}", report.body),
        (None, Some(reason)) => format!("(no answer: {reason})"),
        (None, None) => "(no answer)".to_owned(),
    };
    let mut lessons: Vec<String> = Vec::new();
    for lesson in run.reflections().flat_map(|(_, reflection)| &reflection.on_plan) {
        if !lessons.contains(lesson) {
            lessons.push(lesson.clone());
        }
    }
    Turn { run: run.id, asked: run.goal.text.clone(), answered, lessons }
}
