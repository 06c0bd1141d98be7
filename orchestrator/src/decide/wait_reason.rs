//! The reasons for which a run waits, as people read them.

use std::fmt;

use muster_shared::ids::{QuestionId, Role, RunId, TaskId};
use serde::Serialize;

/// Maximum number of tasks named in a message.
const MOST_NAMED: usize = 4;

/// The event that a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum WaitsFor {
    /// An orchestrator: nothing is decided meanwhile.
    Orchestrator,
    /// A person who resumes it.
    Resume {
        /// Why it is paused.
        reason: String,
    },
    /// An answer of a person.
    Answer {
        /// The question.
        question: QuestionId,
        /// The question.
        text: String,
    },
    /// A process of a role without an agent.
    Role {
        /// The role.
        role: Role,
        /// The tasks that wait for it.
        tasks: Vec<TaskId>,
    },
    /// A free place: everybody of the role is busy, or about to begin.
    Place {
        /// The role.
        role: Role,
        /// The tasks that wait for it.
        tasks: Vec<TaskId>,
    },
    /// The end of a child run.
    Run {
        /// The run.
        run: RunId,
        /// The task that waits for it.
        task: TaskId,
    },
    /// The end of a child run, which itself waits.
    Within {
        /// The run.
        run: RunId,
        /// The task that waits for it.
        task: TaskId,
        /// The reason for which that run waits.
        waits: Box<WaitsFor>,
    },
}

impl WaitsFor {
    /// Whether nothing of it comes by itself: a person must start a process.
    #[must_use]
    pub fn is_lacking(&self) -> bool {
        matches!(self.innermost(), Self::Orchestrator | Self::Role { .. })
    }

    /// Whether a person has to answer.
    #[must_use]
    pub fn is_for_person(&self) -> bool {
        matches!(self.innermost(), Self::Answer { .. })
    }

    fn innermost(&self) -> &Self {
        if let Self::Within { waits, .. } = self { waits.innermost() } else { self }
    }
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Orchestrator => f.write_str(
                "an orchestrator, and none is in this fleet: start one with `muster orchestrator`",
            ),
            Self::Resume { reason } => write!(f, "`muster resume`: it is paused ({reason})"),
            Self::Answer { question, text } => write!(f, "the answer to question {question}: {text}"),
            Self::Role { role: role @ Role::Specialist(_), tasks } => write!(
                f,
                "a {role}, and none is in this fleet (for {}): start one with `muster agent {role}.agent.md`, or the \
                 program that it is",
                named(tasks)
            ),
            Self::Role { role, tasks } => write!(
                f,
                "a {role}, and none is in this fleet (for {}): start one with `muster agent {role}`",
                named(tasks)
            ),
            Self::Place { role, tasks } => write!(f, "a free {role} (for {})", named(tasks)),
            Self::Run { run, task } => write!(f, "run {} within it (for {task})", run.short()),
            Self::Within { run, task, waits } => write!(f, "{waits} (in run {}, for {task})", run.short()),
        }
    }
}

/// Tasks by their ids, the first few of many.
pub(super) fn named(tasks: &[TaskId]) -> String {
    let names: Vec<String> = tasks.iter().take(MOST_NAMED).map(TaskId::to_string).collect();
    let more = tasks.len().saturating_sub(MOST_NAMED);
    if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
}
