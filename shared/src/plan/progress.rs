//! The progress tree as text (R8), for people and for prompts.

use std::fmt;

use crate::flow::{Plan, PlanTask, TaskStatus};
use crate::ids::TaskIndex;
use crate::run::{RunState, Statuses, TaskState};
use crate::text::one_line;

/// Most of a text in the tree, in characters: texts of models must not break it.
const SHOWN: usize = 100;

/// One line of the progress tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressLine {
    /// Levels above it; 0 at the top.
    pub depth: usize,
    /// How far it is.
    pub mark: Mark,
    /// The task.
    pub index: TaskIndex,
    /// Its name.
    pub name: String,
    /// A few words on its state; empty when the mark says it all.
    pub note: String,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum Mark {
    /// `[ ]`: not started.
    #[strum(to_string = "[ ]")]
    NotStarted,
    /// `[-]`: in work.
    #[strum(to_string = "[-]")]
    InWork,
    /// `[~]`: partly done, or ended otherwise than well.
    #[strum(to_string = "[~]")]
    Partly,
    /// `[x]`: done.
    #[strum(to_string = "[x]")]
    Done,
}

impl fmt::Display for ProgressLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { depth, mark, index, name, note } = self;
        write!(f, "{:width$}{mark} {index} {name}", "", width = depth * 2)?;
        if note.is_empty() { Ok(()) } else { write!(f, " ({note})") }
    }
}

/// How much the tree says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What was decided. For prompts: the same record always gives the same text.
    Decided,
    /// Also what agents were last seen doing. For people, of a run [as it is seen](RunState::as_seen).
    Seen,
}

/// The progress tree of a run; empty before there is a plan.
#[must_use]
pub fn lines(state: &RunState, detail: Detail) -> Vec<ProgressLine> {
    let Some(plan) = &state.plan else { return Vec::new() };
    let statuses = state.statuses();
    let line = |(index, task): (&TaskIndex, &PlanTask)| ProgressLine {
        depth: index.depth().saturating_sub(1),
        mark: mark(plan, &statuses, index),
        index: index.clone(),
        name: one_line(&task.name, SHOWN),
        note: if plan.is_leaf(index) { note(state, index, detail) } else { String::new() },
    };
    let with_members = |task| {
        let (index, _): (&TaskIndex, &PlanTask) = task;
        std::iter::once(line(task)).chain(members(state, index, detail))
    };
    plan.tasks.iter().flat_map(with_members).collect()
}

/// The members of a task, for people: what prompts tell of a run is its plan.
fn members(state: &RunState, index: &TaskIndex, detail: Detail) -> Vec<ProgressLine> {
    let group = state.groups.get(index).filter(|_| detail == Detail::Seen);
    let everybody = group.into_iter().flat_map(|group| &group.members);
    let line = |member: &TaskIndex| {
        let found = state.planned(member)?;
        let counts = group?.verdict.as_ref().is_some_and(|verdict| verdict.counts == *member);
        Some(ProgressLine {
            depth: index.depth(),
            mark: leaf_mark(found.status),
            index: member.clone(),
            name: "member".to_owned(),
            note: if counts { "its result counts".to_owned() } else { note(state, member, detail) },
        })
    };
    everybody.filter_map(line).collect()
}

/// The progress tree as plain text, one line per task, each ended by a line feed.
#[must_use]
pub fn render(lines: &[ProgressLine]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// How far a task is, by the leaves it stands for.
#[must_use]
pub fn mark(plan: &Plan, statuses: &Statuses, index: &TaskIndex) -> Mark {
    let marks: Vec<Mark> = plan
        .leaves_of(index)
        .map(|leaf| leaf_mark(statuses.get(leaf).copied().unwrap_or(TaskStatus::Created)))
        .collect();
    let all = |wanted: Mark| marks.iter().all(|mark| *mark == wanted);
    if marks.contains(&Mark::InWork) {
        Mark::InWork
    } else if all(Mark::NotStarted) {
        Mark::NotStarted
    } else if all(Mark::Done) {
        Mark::Done
    } else if marks.iter().all(|mark| matches!(mark, Mark::Done | Mark::Partly)) {
        Mark::Partly
    } else {
        // Some of it has ended, and the rest is to come.
        Mark::InWork
    }
}

/// How many leaves ended, and how many there are.
#[must_use]
pub fn count(plan: &Plan, statuses: &Statuses) -> (usize, usize) {
    let ended = |leaf: &&TaskIndex| statuses.get(*leaf).is_some_and(|status| status.is_ended());
    let leaves: Vec<&TaskIndex> = plan.leaves().map(|(leaf, _)| leaf).collect();
    (leaves.iter().filter(|leaf| ended(leaf)).count(), leaves.len())
}

const fn leaf_mark(status: TaskStatus) -> Mark {
    match status {
        TaskStatus::Created | TaskStatus::Queued => Mark::NotStarted,
        TaskStatus::Waiting | TaskStatus::Processing => Mark::InWork,
        TaskStatus::Completed | TaskStatus::Split => Mark::Done,
        TaskStatus::Failed | TaskStatus::Aborted | TaskStatus::Skipped | TaskStatus::Blocked => Mark::Partly,
    }
}

fn note(state: &RunState, index: &TaskIndex, detail: Detail) -> String {
    let Some(task) = state.planned(index) else { return String::new() };
    let why = |word: &str| match task.reasons.last() {
        Some(reason) => format!("{word}: {}", one_line(reason, SHOWN)),
        None => word.to_owned(),
    };
    let seen = state.seen.get(&index.to_task_id());
    let is_failed = seen.is_some_and(|seen| seen.generation == task.generation && seen.ended && !seen.well);
    if is_failed && task.status == TaskStatus::Processing && detail == Detail::Seen {
        return "not done: what follows is not decided yet".to_owned();
    }
    let waiting = task.waiting.as_ref().filter(|_| task.status == TaskStatus::Waiting);
    if let Some(waiting) = waiting.filter(|_| detail == Detail::Seen) {
        return format!("waits for {}", one_line(&waiting.wait.in_words(), SHOWN));
    }
    match task.status {
        TaskStatus::Created | TaskStatus::Waiting if task.continues.is_some() => {
            "put down, to go on later".to_owned()
        }
        TaskStatus::Created | TaskStatus::Waiting => {
            if task.reasons.is_empty() {
                String::new()
            } else {
                why("to be tried again")
            }
        }
        TaskStatus::Queued => "waiting for an agent".to_owned(),
        TaskStatus::Processing if state.group_in_work(index).is_some() => shared(state, index),
        TaskStatus::Processing => {
            let agent = task.agent.as_ref().map_or("an agent", |agent| agent.as_str());
            in_work(state, index, task, agent, detail)
        }
        TaskStatus::Completed => verdict(state, index),
        TaskStatus::Split => String::new(),
        TaskStatus::Failed => why("failed"),
        TaskStatus::Aborted => why("stopped"),
        TaskStatus::Skipped => why("skipped"),
        TaskStatus::Blocked => why("blocked"),
    }
}

/// How far the members of a task are.
fn shared(state: &RunState, index: &TaskIndex) -> String {
    let Some(group) = state.groups.get(index) else { return String::new() };
    let ended = |member: &&TaskIndex| state.planned(member).is_some_and(|found| found.status.is_ended());
    let round =
        if group.round > 0 { format!(", round {} of discussion", group.round) } else { String::new() };
    let (ended, all) = (group.members.iter().filter(ended).count(), group.members.len());
    format!("{}, {ended} of {all} done{round}", group.pattern)
}

/// How the members of a task came to its result; empty when it had none.
fn verdict(state: &RunState, index: &TaskIndex) -> String {
    let Some(verdict) = state.groups.get(index).and_then(|group| group.verdict.as_ref()) else {
        return String::new();
    };
    let agree = verdict.agree.len();
    match verdict.dissent.len() {
        0 => format!("{}: {}", verdict.counts, verdict.by.in_words()),
        against => {
            format!("{}: {agree} of {} agree, {}", verdict.counts, agree + against, verdict.by.in_words())
        }
    }
}

fn in_work(state: &RunState, index: &TaskIndex, task: &TaskState, agent: &str, detail: Detail) -> String {
    let mut note = format!("with {agent}");
    if task.generation.0 > 1 {
        note.push_str(&format!(", try {}", task.generation));
    }
    let seen = state.seen.get(&index.to_task_id()).filter(|seen| seen.generation == task.generation);
    match (detail, seen) {
        (Detail::Seen, Some(seen)) if seen.step > 0 => {
            note.push_str(&format!(", step {} {}", seen.step, one_line(&seen.doing, SHOWN)));
        }
        (Detail::Seen | Detail::Decided, _) => {}
    }
    note
}
