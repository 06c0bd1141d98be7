//! The progress of a run while it is watched: a tree to be redrawn, or lines for what changed.

use std::collections::BTreeMap;

use muster_shared::flow::TaskStatus;
use muster_shared::ids::{AgentId, TaskId, TaskIndex};
use muster_shared::plan::progress::{self, Detail, Mark, ProgressLine};
use muster_shared::run::{RunState, TaskState, count, in_part, left_out_by_plans};
use muster_shared::time::Millis;

use super::figures;
use super::paint::Paint;
use super::runs;

/// Longest line of the tree, in characters, when the terminal does not say how wide it is.
pub(crate) const DEFAULT_WIDTH: usize = 100;

/// What agents say they are doing, by task. Lossy: for display only.
pub(crate) type Doing = BTreeMap<TaskId, String>;

/// The whole tree as it stands: a heading, a line for each task, the line of figures.
pub(crate) fn tree(state: &RunState, doing: &Doing, now: Millis, width: usize, paint: Paint) -> String {
    tree_with(state, doing, now, width, paint, |_| Vec::new())
}

/// The same, with lines below those of tasks.
pub(crate) fn tree_with(
    state: &RunState,
    doing: &Doing,
    now: Millis,
    width: usize,
    paint: Paint,
    below: impl Fn(&TaskIndex) -> Vec<String>,
) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in task_lines(state, doing) {
        lines.push(painted(&line, width, paint));
        let indent = line.depth * 2 + 4;
        let more = line.index.as_ref().map(&below).unwrap_or_default();
        let fits = |text: &String| figures::one_line(text, width.saturating_sub(indent).max(20));
        lines.extend(more.iter().map(|text| format!("{}{}", " ".repeat(indent), paint.dim(&fits(text)))));
    }
    lines.push(paint.dim(&figures::cut(&summary(state, now), width)));
    lines.join("\n")
}

/// One line of the tree: a leaf, a parent, or a phase of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeLine {
    /// What it is about.
    pub(crate) task: TaskId,
    index: Option<TaskIndex>,
    /// Levels above it.
    pub(crate) depth: usize,
    /// How far it is.
    pub(crate) mark: Mark,
    /// Whether it ended otherwise than well.
    pub(crate) failed: bool,
    /// What it is.
    pub(crate) text: String,
    /// A few words on its state, or what is being done.
    pub(crate) note: String,
}

/// The lines of the tree: planning, the plan, changes of plan, writing.
pub(crate) fn task_lines(state: &RunState, doing: &Doing) -> Vec<TreeLine> {
    let mut lines = Vec::new();
    lines.extend(phase(state, doing, &TaskId::Plan, "plan the work"));
    for line in progress::lines(state, Detail::Seen) {
        lines.push(leaf(state, doing, line));
    }
    for short in left_out_by_plans(state) {
        let Some(index) = short.task else { continue };
        lines.push(TreeLine {
            text: format!("{index} {}", figures::one_line(&short.name, DEFAULT_WIDTH)),
            task: TaskId::Leaf(index),
            index: None,
            depth: 0,
            mark: Mark::Partly,
            failed: false,
            note: format!("left out: {}", short.why),
        });
    }
    for (task, _) in state.tasks.iter().filter(|(task, _)| matches!(task, TaskId::Refine(_))) {
        lines.extend(phase(state, doing, task, "change the plan").map(|line| refinement(state, task, line)));
    }
    for (number, settling) in &state.conflicts.settling {
        lines.extend(phase(state, doing, &TaskId::Settle(*number), &settling.task.name));
    }
    if let Some(line) = phase(state, doing, &TaskId::Write, "write the report") {
        lines.push(line);
        for (task, _) in state.tasks.iter().filter(|(task, _)| matches!(task, TaskId::DraftReview(_))) {
            lines.extend(phase(state, doing, task, "review the draft"));
        }
    } else if state.plan.is_some() && state.only_task().is_none() {
        lines.push(TreeLine {
            task: TaskId::Write,
            index: None,
            depth: 0,
            mark: Mark::NotStarted,
            failed: false,
            text: "write the report".to_owned(),
            note: String::new(),
        });
    }
    lines
}

/// A change that was refused is none: whoever looks sees that the plan stayed as it was, and why.
fn refinement(state: &RunState, task: &TaskId, line: TreeLine) -> TreeLine {
    let TaskId::Refine(number) = task else { return line };
    match state.refinement(*number) {
        Some((changes, refused)) if changes.is_empty() && !refused.is_empty() => {
            let why: Vec<&str> = refused.iter().map(|no| no.reason.as_str()).collect();
            TreeLine {
                mark: Mark::Partly,
                failed: true,
                note: format!("refused: {}", why.join("; ")),
                ..line
            }
        }
        _ => line,
    }
}

fn leaf(state: &RunState, doing: &Doing, line: ProgressLine) -> TreeLine {
    let index = &line.index;
    let task = TaskId::Leaf(index.clone());
    let reflecting = TaskId::Reflect(index.clone());
    let in_work = |task: &TaskId| {
        let decided = state.tasks.get(task).map(|found| found.status);
        progress::seen(state, task).or(decided) == Some(TaskStatus::Processing)
    };
    let note = match (doing.get(&task), doing.get(&reflecting)) {
        (Some(doing), _) if in_work(&task) && !doing.is_empty() => format!("{}: {doing}", line.note),
        (_, _) if in_work(&reflecting) => "being reflected on".to_owned(),
        (_, _) => line.note,
    };
    let failed = state.planned(index).is_some_and(|task| task.status == TaskStatus::Failed);
    let note = match in_part(state, index) {
        Some(why) if note.is_empty() => part_note(why),
        Some(why) => format!("{note}; {}", part_note(why)),
        None => note,
    };
    let mark = if line.mark == Mark::Done && holds_a_part(state, index) { Mark::Partly } else { line.mark };
    let text = format!("{index} {}", line.name);
    TreeLine { task, index: Some(line.index), depth: line.depth, mark, failed, text, note }
}

fn part_note(why: &str) -> String {
    if why.is_empty() { "done in part".to_owned() } else { format!("done in part: {why}") }
}

/// Whether a task, or one below it, was done in part.
fn holds_a_part(state: &RunState, index: &TaskIndex) -> bool {
    let plan = state.plan.as_ref();
    plan.is_some_and(|plan| plan.leaves_of(index).any(|leaf| in_part(state, leaf).is_some()))
}

fn phase(state: &RunState, doing: &Doing, task: &TaskId, name: &str) -> Option<TreeLine> {
    let found = state.tasks.get(task)?;
    let taken = state.seen_with(task);
    let status = progress::seen(state, task).unwrap_or(found.status);
    let mark = match status {
        TaskStatus::Created | TaskStatus::Waiting | TaskStatus::Queued => Mark::NotStarted,
        TaskStatus::Processing => Mark::InWork,
        TaskStatus::Completed | TaskStatus::Split => Mark::Done,
        TaskStatus::Failed | TaskStatus::Aborted | TaskStatus::Skipped | TaskStatus::Blocked => Mark::Partly,
    };
    let note =
        phase_note(found, status, taken.or(found.agent.as_ref()), doing.get(task).map_or("", String::as_str));
    Some(TreeLine {
        task: task.clone(),
        index: None,
        depth: 0,
        mark,
        failed: status == TaskStatus::Failed,
        text: name.to_owned(),
        note,
    })
}

fn phase_note(task: &TaskState, status: TaskStatus, agent: Option<&AgentId>, doing: &str) -> String {
    match (status, agent) {
        (TaskStatus::Processing | TaskStatus::Queued, Some(agent)) if doing.is_empty() => {
            format!("with {agent}")
        }
        (TaskStatus::Processing | TaskStatus::Queued, Some(agent)) => format!("with {agent}: {doing}"),
        (TaskStatus::Queued, _) => "waiting for an agent".to_owned(),
        (TaskStatus::Failed | TaskStatus::Aborted, _) => task.reasons.last().cloned().unwrap_or_default(),
        (_, _) => String::new(),
    }
}

fn painted(line: &TreeLine, width: usize, paint: Paint) -> String {
    let plain = plain(line, width);
    let (before, after) = plain.split_once(']').unwrap_or((&plain, ""));
    let mark = format!("{}]", before.trim_start());
    let mark = match (line.mark, line.failed) {
        (Mark::Done, _) => paint.good(&mark),
        (Mark::InWork, _) => paint.busy(&mark),
        (Mark::Partly, true) => paint.bad(&mark),
        (Mark::Partly, false) => paint.warn(&mark),
        (Mark::NotStarted, _) => paint.dim(&mark),
    };
    format!("{}{mark}{after}", " ".repeat(line.depth * 2))
}

fn plain(line: &TreeLine, width: usize) -> String {
    let TreeLine { depth, mark, text, note, .. } = line;
    let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
    let room = width.saturating_sub(depth * 2).max(20);
    format!("{}{}", " ".repeat(depth * 2), figures::one_line(&format!("{mark} {text}{note}"), room))
}

/// What is being done, in a line for a log.
pub(crate) fn still(state: &RunState, doing: &Doing) -> String {
    let at_work = state.tasks.iter().filter(|(task, found)| {
        progress::seen(state, task).unwrap_or(found.status) == TaskStatus::Processing
    });
    let told = at_work.map(|(task, _)| match doing.get(task).filter(|doing| !doing.is_empty()) {
        Some(doing) => format!("{task} {doing}"),
        None => task.to_string(),
    });
    let told: Vec<String> = told.collect();
    let what = if told.is_empty() { "waiting for an agent".to_owned() } else { told.join("; ") };
    figures::one_line(&format!("still at it: {what}"), 2 * DEFAULT_WIDTH)
}

/// State, time and usage in one line.
pub(crate) fn summary(state: &RunState, now: Millis) -> String {
    let took = state.ended_at.unwrap_or(now).since(state.created_at);
    let done = count(state).map(|count| format!(", {}", count.in_words()));
    format!(
        "run {} {}, {}{}, {}",
        state.id.short(),
        runs::word(state),
        figures::span(took),
        done.unwrap_or_default(),
        figures::usage(&state.used())
    )
}

/// What changed in the tree since it was last told, as lines for a log; remembers what it told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    lines: BTreeMap<String, Mark>,
    refinements: usize,
}

impl Told {
    /// The lines to print now.
    pub(crate) fn changes(&mut self, state: &RunState) -> Vec<String> {
        let mut changes = Vec::new();
        for line in task_lines(state, &Doing::new()) {
            let before = self.lines.insert(line.text.clone(), line.mark);
            let is_news = match before {
                None => line.mark != Mark::NotStarted || line.depth > 0 || state.plan.is_some(),
                Some(before) => before != line.mark,
            };
            if is_news {
                changes.push(plain(&line, DEFAULT_WIDTH));
            }
        }
        for (lines, refused) in state.refining.done.iter().skip(self.refinements) {
            changes.extend(lines.iter().map(|line| figures::one_line(&format!("plan changed: {line}"), 200)));
            let refused = refused.iter().map(|no| format!("{}: {}", no.operation.in_words(), no.reason));
            changes
                .extend(refused.map(|no| figures::one_line(&format!("change of plan refused: {no}"), 200)));
        }
        self.refinements = state.refining.done.len();
        changes
    }
}
