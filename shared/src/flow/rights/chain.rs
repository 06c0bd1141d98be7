//! The chain of grants by which a task came to its rights: who narrowed them, and to what.

use std::fmt;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Right, Rights, Use};
use crate::ids::{RunId, TaskId, TaskIndex};
use crate::text::beginning;

/// Most grants of a chain. More are joined, oldest first: less can be told then, and nothing more is allowed.
pub const MOST_GRANTS: usize = 16;

/// Most characters of what was wanted that a refusal keeps.
const MOST_TOLD: usize = 200;

/// Who narrowed the rights of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Grantor {
    /// Whoever asked, or the fleet: the limits of the run.
    Goal,
    /// The plan, where it names fewer for this task.
    Plan {
        /// The task, or one above it.
        task: TaskIndex,
    },
    /// A step of the run's blueprint.
    Blueprint {
        /// The blueprint.
        name: String,
        /// The task of the step, or one above it.
        task: TaskIndex,
    },
    /// The task that handed it over, which had no more.
    HandOver {
        /// That task.
        from: TaskIndex,
    },
    /// The run above, or its task that this run was begun for.
    Run {
        /// The run above.
        run: RunId,
        /// Its task; nothing where the run's own limits say so.
        #[serde(skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
    },
    /// Several of these, where a chain was too long to be told whole.
    Several,
}

/// `goal`, `blueprint research step 2`, `run 0193c2a1 task 1-2`.
impl fmt::Display for Grantor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Goal => f.write_str("goal"),
            Self::Plan { task } => write!(f, "plan task {task}"),
            Self::Blueprint { name, task } => write!(f, "blueprint {name} step {task}"),
            Self::HandOver { from } => write!(f, "handed over by {from}"),
            Self::Run { run, task } => {
                let run = run.to_string();
                let short = &run[run.len().saturating_sub(8)..];
                match task {
                    Some(task) => write!(f, "run {short} task {task}"),
                    None => write!(f, "run {short}"),
                }
            }
            Self::Several => f.write_str("several before"),
        }
    }
}

/// One link of the chain: who narrowed the rights, and to what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Grant {
    /// Who.
    pub by: Grantor,
    /// To no more than this.
    pub to: Rights,
}

/// What a task may use: what every grant of its chain allows. Without a grant, everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(transparent)]
pub struct TaskRights {
    grants: Vec<Grant>,
}

impl TaskRights {
    /// Whether nothing was taken away.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.grants.is_empty()
    }

    /// The grants, the first of them first.
    #[must_use]
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// These rights with one grant more. One that takes nothing leaves no mark.
    #[must_use]
    pub fn narrowed_by(mut self, by: Grantor, to: &Rights) -> Self {
        if to.is_open() {
            return self;
        }
        let before = self.effective();
        if before.narrowed_by(to) == before {
            return self;
        }
        self.grants.push(Grant { by, to: to.clone() });
        if self.grants.len() > MOST_GRANTS {
            let second = self.grants.remove(1);
            if let Some(first) = self.grants.first_mut() {
                *first = Grant { by: Grantor::Several, to: first.to.narrowed_by(&second.to) };
            }
        }
        self
    }

    /// The same where every grant is said to come from the run above.
    #[must_use]
    pub fn of_run_above(self, above: RunId) -> Self {
        let grants = self.grants.into_iter().map(|Grant { by, to }| {
            let by = match by {
                Grantor::Goal => Grantor::Run { run: above, task: None },
                Grantor::Plan { task }
                | Grantor::Blueprint { task, .. }
                | Grantor::HandOver { from: task } => {
                    Grantor::Run { run: above, task: Some(TaskId::Leaf(task)) }
                }
                Grantor::Run { .. } | Grantor::Several => by,
            };
            Grant { by, to }
        });
        Self { grants: grants.collect() }
    }

    /// What is left when all grants are taken together.
    #[must_use]
    pub fn effective(&self) -> Rights {
        self.grants.iter().fold(Rights::default(), |rights, grant| rights.narrowed_by(&grant.to))
    }

    /// Whether this use is allowed.
    #[must_use]
    pub fn allow(&self, wanted: &Use<'_>) -> bool {
        self.grants.iter().all(|grant| grant.to.allow(wanted))
    }

    /// The same, with what is missing.
    ///
    /// # Errors
    /// When it is not allowed: which right is missing, and who took it away.
    pub fn allows(&self, wanted: &Use<'_>) -> Result<(), Refusal> {
        if self.allow(wanted) { Ok(()) } else { Err(self.refusal(wanted)) }
    }

    /// Whether all of these are.
    ///
    /// # Errors
    /// With the first that is not.
    pub fn allow_all(&self, wanted: &[Use<'_>]) -> Result<(), Refusal> {
        wanted.iter().try_for_each(|wanted| self.allows(wanted))
    }

    fn refusal(&self, wanted: &Use<'_>) -> Refusal {
        let right = wanted.right();
        let said = self.grants.iter().filter(|grant| !grant.to.leaves_open(right));
        let link = |grant: &Grant| RefusalLink {
            by: grant.by.to_string(),
            may: grant.to.in_words(right),
            takes: !grant.to.allow(wanted),
        };
        let mut chain: Vec<RefusalLink> = said.map(link).collect();
        if self.grants.first().is_none_or(|first| first.by != Grantor::Goal || first.to.leaves_open(right)) {
            let may = Rights::default().in_words(right);
            chain.insert(0, RefusalLink { by: Grantor::Goal.to_string(), may, takes: false });
        }
        let nothing = self.effective().leaves_nothing(right);
        Refusal { right, wanted: beginning(&wanted.in_words(), MOST_TOLD), nothing, chain }
    }
}

/// What one grant of a chain says of the right that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RefusalLink {
    /// Who granted.
    pub by: String,
    /// What may be used by it.
    pub may: String,
    /// Whether what was wanted is not among it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes: bool,
}

/// A use that a task has no right to, with the chain of grants that say something of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Refusal {
    /// The right that is missing.
    pub right: Right,
    /// What was wanted.
    pub wanted: String,
    /// Whether nothing of the kind is left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing: bool,
    /// What each grant says, the first of them first.
    pub chain: Vec<RefusalLink>,
}

impl Refusal {
    /// What is missing, without who took it away.
    #[must_use]
    pub const fn what(&self) -> &'static str {
        match self.right {
            Right::Tools if self.nothing => "this task may call no tools",
            Right::Tools => "this task may not call it",
            Right::Documents if self.nothing => "this task may read no documents",
            Right::Documents => "this task may not read it",
            Right::ReadContext | Right::WriteContext => "this task has no right to it",
            Right::Hosts if self.nothing => "this task may fetch nothing",
            Right::Hosts => "this task may not fetch from there",
            Right::People => "this task may ask nobody",
            Right::HandOver => "this task may hand nothing over",
            Right::Runs => "this task may begin no run",
            Right::WriteFiles => "this task may write no files",
            Right::Effects => "this task may look and change nothing",
        }
    }
}

/// `fetch example.org: this task may fetch nothing (goal: all hosts → blueprint research step 2: no hosts)`.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chain: Vec<String> = self.chain.iter().map(|link| format!("{}: {}", link.by, link.may)).collect();
        write!(f, "{}: {} ({})", self.wanted, self.what(), chain.join(" → "))
    }
}
