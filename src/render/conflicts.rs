//! Results that contradict each other: in `muster show`.

use muster_shared::run::RunState;

use super::figures;

/// Every conflict of a run with its sides, what was done about it, and how it ended.
pub(crate) fn of_run(state: &RunState) -> String {
    let mut lines = Vec::new();
    for (id, conflict) in &state.conflicts.found {
        lines.push(format!("{id}. {}", figures::one_line(&conflict.subject, 200)));
        lines.extend(
            conflict.sides.iter().map(|side| format!("   {}", figures::one_line(&side.in_full(), 300))),
        );
        let asked = state.conflicts.settling.iter().filter(|(_, settling)| settling.conflict == *id);
        for (number, settling) in asked {
            lines.push(format!("   settle-{number}: {}", figures::one_line(&settling.task.name, 200)));
        }
        if let Some(task) = &conflict.verified_by {
            lines.push(format!("   {task} finds out what holds"));
        }
        let end = conflict.end.as_ref().map_or_else(
            || "   it is being settled".to_owned(),
            |end| format!("   {}", figures::one_line(&end.in_full(&conflict.redone), 600)),
        );
        lines.push(end);
    }
    lines.join("\n")
}
