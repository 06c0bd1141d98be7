//! Where time and money went.

use muster_shared::explain::{Cost, PathSegment, SegmentKind, TaskCost, TaskTime};
use muster_shared::run::Phase;

use super::{Line, Section, Teller, figures, one_line, words};

pub(super) fn sections(teller: &Teller<'_>) -> Vec<Section> {
    let explained = teller.explained;
    if !teller.is_deep() {
        return vec![Section { title: "What it took", lines: in_short(teller) }];
    }
    let slow: Vec<&TaskTime> = explained.time.tasks.iter().filter(|one| took(one) > 0).collect();
    let mut path = teller.section("Critical path", &explained.time.critical_path, |part| vec![segment(part)]);
    let sums = explained.time.path_by_kind.iter();
    let sums: Vec<String> =
        sums.map(|(kind, millis)| format!("{} {}", kind_in_words(*kind), figures::millis(*millis))).collect();
    if !sums.is_empty() {
        path.lines.insert(0, words(format!("in all: {}", sums.join(", "))));
    }
    vec![
        Section { title: "Where time went", lines: phases(teller) },
        path,
        teller.section("Tasks by time", &slow, |one| vec![task_time(one)]),
        Section { title: "Where money went", lines: totals(&explained.cost) },
        teller.section("Cost by task", &explained.cost.by_task, |row| vec![task_cost(row)]),
        teller.section("Cost by role", &explained.cost.by_role, |row| {
            let role = row.role.as_ref().map_or_else(|| "without a role".to_owned(), ToString::to_string);
            vec![words(format!("{role}: {}", figures::usage(&row.usage)))]
        }),
        teller.section("Models", &explained.cost.by_model, |row| {
            let (model, calls) = (one_line(&row.model), figures::plural(row.calls, "answer"));
            let (took, used) = (figures::millis(row.millis), figures::usage(&row.usage));
            vec![words(format!("{model}: {calls} in {took}; {used}"))]
        }),
        teller.section("Tools", &explained.cost.tools, |row| {
            let (tool, calls) = (one_line(&row.tool), figures::plural(row.calls, "call"));
            let counted = [(row.failed, "failed"), (row.timed_out, "timed out"), (row.refused, "refused")];
            let bad = counted.iter().filter(|(count, _)| *count > 0);
            let bad: String = bad.map(|(count, what)| format!(", {count} {what}")).collect();
            let mean =
                row.mean_ms.map(|mean| format!(", {} each", figures::millis(mean))).unwrap_or_default();
            vec![words(format!("{tool}: {calls}{bad}{mean}"))]
        }),
    ]
}

fn in_short(teller: &Teller<'_>) -> Vec<Line> {
    let explained = teller.explained;
    let took = format!("it took {}", figures::millis(explained.time.total_ms));
    std::iter::once(words(took)).chain(totals(&explained.cost)).collect()
}

fn totals(cost: &Cost) -> Vec<Line> {
    let mut lines = vec![words(figures::usage(&cost.total))];
    if let Some(budget) = &cost.budget {
        lines.push(words(format!("of the budget: {}", figures::spent(budget, &cost.total))));
    }
    if cost.spared.tool_calls > 0 {
        let calls = figures::plural(cost.spared.tool_calls, "call");
        let saved = figures::millis(cost.spared.tool_ms);
        lines.push(words(format!("{calls} of tools answered by what others were answered, {saved} spared")));
    }
    lines
}

fn phases(teller: &Teller<'_>) -> Vec<Line> {
    let time = &teller.explained.time;
    let phases = time.phases.iter().map(|one| {
        let paused = if one.paused { ", paused" } else { "" };
        format!("{}{paused} {}", phase(one.phase), figures::millis(one.millis))
    });
    let phases: Vec<String> = phases.take(teller.most()).collect();
    let of = if phases.is_empty() { String::new() } else { format!(": {}", phases.join(", ")) };
    vec![words(format!("{} in all{of}", figures::millis(time.total_ms)))]
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Planning => "planning",
        Phase::Executing => "executing",
        Phase::Writing => "writing",
        Phase::Ended => "after the end",
    }
}

const fn kind_in_words(kind: SegmentKind) -> &'static str {
    match kind {
        SegmentKind::Work => "work",
        SegmentKind::Lost => "work that was lost or given back",
        SegmentKind::Agent => "waiting for an agent",
        SegmentKind::Decision => "waiting for an orchestrator",
        SegmentKind::Person => "waiting for a person",
        SegmentKind::Pause => "paused",
        SegmentKind::ChildRun => "waiting for a run within",
        SegmentKind::Guards => "waiting for guards",
        SegmentKind::Bids => "waiting for bids",
        SegmentKind::Room => "waiting for room in the queue",
        SegmentKind::Clock => "waiting for a time to pass",
    }
}

fn segment(part: &PathSegment) -> Line {
    let task = part.task.as_ref().map(|task| format!(" {task}")).unwrap_or_default();
    let agent = part.agent.as_ref().map(|agent| format!(" with {agent}")).unwrap_or_default();
    let of = match part.kind {
        SegmentKind::Work | SegmentKind::Lost => split(part.model_ms, part.tool_ms),
        SegmentKind::Agent
        | SegmentKind::Decision
        | SegmentKind::Person
        | SegmentKind::Pause
        | SegmentKind::ChildRun
        | SegmentKind::Guards
        | SegmentKind::Bids
        | SegmentKind::Room
        | SegmentKind::Clock => String::new(),
    };
    let (from, took) = (figures::millis(part.from_ms), figures::millis(part.millis));
    let [first, last] = part.entries;
    words(format!(
        "+{from} {}{task}{agent}: {took}{of} [entries {first} to {last}]",
        kind_in_words(part.kind)
    ))
}

/// How much of it models and tools took.
fn split(model_ms: u64, tool_ms: u64) -> String {
    if model_ms == 0 && tool_ms == 0 {
        return String::new();
    }
    format!(" (model {}, tools {})", figures::millis(model_ms), figures::millis(tool_ms))
}

const fn took(one: &TaskTime) -> u64 {
    one.worked_ms.saturating_add(one.lost_ms).saturating_add(one.queued_ms).saturating_add(one.held_ms)
}

fn task_time(one: &TaskTime) -> Line {
    let what = one_line(format!("{} {}", one.task, one.name).trim_end());
    let worked = format!("worked {}{}", figures::millis(one.worked_ms), split(one.model_ms, one.tool_ms));
    let others = [
        (one.lost_ms, "lost or given back"),
        (one.queued_ms, "waiting for an agent"),
        (one.held_ms, "between its offers"),
        (one.on_path_ms, "on the critical path"),
    ];
    let others = others.iter().filter(|(millis, _)| *millis > 0);
    let others: String =
        others.map(|(millis, what)| format!(", {} {what}", figures::millis(*millis))).collect();
    let offers = if one.offers > 1 { format!(", offered {} times", one.offers) } else { String::new() };
    words(format!("{what}: {worked}{others}{offers}"))
}

fn task_cost(row: &TaskCost) -> Line {
    let task = row.task.as_ref().map_or_else(|| "of no task that is known".to_owned(), ToString::to_string);
    let within = row.run.map(|run| format!(" (run {} within)", run.short())).unwrap_or_default();
    words(format!("{task}{within}: {}", figures::usage(&row.usage)))
}
