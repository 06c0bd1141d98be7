//! Results that contradict each other: in `muster show` and in `muster trace`.

use muster_shared::conflict::{ConflictVerdict, Side};
use muster_shared::flow::Citation;
use muster_shared::ids::TaskIndex;
use muster_shared::run::{ConflictEnd, RunEvent, RunState, SettlingFor};

use super::figures;

/// Every conflict of a run with its sides, what was done about it, and how it ended.
pub(crate) fn of_run(state: &RunState) -> String {
    let mut lines = Vec::new();
    for (id, conflict) in &state.conflicts {
        lines.push(format!("{id}. {}", figures::one_line(&conflict.subject, 200)));
        lines.extend(conflict.sides.iter().map(|side| format!("   {}", figures::one_line(&told(side), 300))));
        let asked = state.settling.iter().filter(|(_, settling)| settling.conflict == *id);
        for (number, settling) in asked {
            lines.push(format!("   settle-{number}: {}", figures::one_line(&settling.task.name, 200)));
        }
        if let Some(task) = &conflict.verified_by {
            lines.push(format!("   {task} finds out what holds"));
        }
        let end = conflict.end.as_ref().map_or_else(
            || "   it is being settled".to_owned(),
            |end| format!("   {}", figures::one_line(&ended(end, &conflict.redone), 600)),
        );
        lines.push(end);
    }
    lines.join("\n")
}

fn told(side: &Side) -> String {
    let sure = match side.claim.confidence {
        0 => String::new(),
        percent => format!(", {percent} % sure"),
    };
    let method =
        if side.claim.method.is_empty() { String::new() } else { format!(" ({})", side.claim.method) };
    format!("{side}{sure}{}{method}", places(&side.claim.evidence))
}

fn places(evidence: &[Citation]) -> String {
    let places: Vec<String> = evidence.iter().map(|place| format!("{}:{}", place.path, place.line)).collect();
    if places.is_empty() { String::new() } else { format!(" [{}]", places.join(", ")) }
}

fn ended(end: &ConflictEnd, redone: &[TaskIndex]) -> String {
    match end {
        ConflictEnd::Settled(ConflictVerdict { value, by, why, losers, evidence, .. }) => {
            let again =
                if redone.is_empty() { String::new() } else { format!("; {} is done again", list(redone)) };
            format!(
                "{value} holds, by {by}: {why}{}; not what {} claims{again}",
                places(evidence),
                list(losers)
            )
        }
        ConflictEnd::Unsettled(why) => format!("not settled: {why}"),
        ConflictEnd::Gone(why) => format!("no conflict: {why}"),
    }
}

fn list(tasks: &[TaskIndex]) -> String {
    tasks.iter().map(TaskIndex::to_string).collect::<Vec<_>>().join(", ")
}

/// An event about a conflict as the trace shows it.
pub(crate) fn event(event: &RunEvent, brief: impl Fn(&str) -> String) -> String {
    match event {
        RunEvent::ConflictFound { id, subject, sides, certain, .. } => {
            let sides = sides.iter().map(|side| format!("\n  {}", brief(&told(side))));
            let what = if *certain { "contradict each other" } else { "may contradict each other" };
            format!("conflict {id}: results {what} on {}{}", brief(subject), sides.collect::<String>())
        }
        RunEvent::ConflictExamined { id, step, tasks } => {
            let asked = tasks.iter().map(|(number, settling)| {
                let what = match &settling.purpose {
                    SettlingFor::Compare => "whether there is a contradiction".to_owned(),
                    SettlingFor::Method(task) => format!("how {task} came to its value"),
                    SettlingFor::Near(all) => {
                        format!("whether claims in other words contradict each other ({})", all.len())
                    }
                    SettlingFor::Arbiter => "which side is right".to_owned(),
                };
                format!("\n  settle-{number}: {what}")
            });
            let step = step.map_or_else(|| "compared".to_owned(), |step| step.to_string());
            let asked: String =
                if tasks.is_empty() { "\n  nobody can be asked".to_owned() } else { asked.collect() };
            format!("conflict {id} is looked into: {step}{asked}")
        }
        RunEvent::VerificationAdded { id, task, .. } => {
            format!("conflict {id}: {task} is to find out what holds")
        }
        RunEvent::ConflictResolved { id, end, redone } => {
            format!("conflict {id}: {}", brief(&ended(end, redone)))
        }
        other => other.name().to_owned(),
    }
}
