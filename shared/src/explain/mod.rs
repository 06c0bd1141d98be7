//! Why a run came to what it came to: told from its record alone, by rule. Pure: no clock, no model, nothing from outside.
//!
//! [`explain`] goes through the record once ([`story`]) and puts together what the questions of people are about: why this
//! result ([`outcome`]), on what evidence ([`evidence`]), what else was considered, what went wrong and what was done about
//! it, and where the course changed ([`course`]), where time went ([`path`]) and money ([`cost`]). Everything that is told
//! names the entries that it rests on.

mod audit;
mod cost;
mod course;
mod evidence;
mod outcome;
mod path;
mod story;
mod task_time;
mod topics;
mod words;

use serde::Serialize;

pub use audit::{AuditTold, Voice};
pub use cost::{Cost, ModelCost, RoleCost, Spared, TaskCost, ToolCost};
pub use course::{Trouble, TroubleItem};
pub use evidence::{Evidence, EvidenceKind, FoundIn, Standing};
pub use outcome::{ConflictTold, ResultTold};
pub use path::{PathSegment, PhaseTime, SegmentKind, Time};
pub use task_time::TaskTime;

use crate::ids::{AgentId, RunId, Seq, TaskId};
use crate::run::{Entry, RunState};
use crate::time::Millis;

/// Something that is told, with what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Told {
    /// It in words; further lines tell what belongs to it.
    pub text: String,
    /// The task that it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// When, by the broker's stamp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Millis>,
    /// The entries of the record that it rests on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Seq>,
}

/// A run explained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The run.
    pub run: RunId,
    /// What was asked.
    pub goal: String,
    /// The task that alone is explained, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// When the first entry was stored: times are told from there.
    pub began_at: Millis,
    /// How many entries the record has.
    pub entries: usize,
    /// Why this result.
    pub result: ResultTold,
    /// What the result rests on.
    pub evidence: Vec<Evidence>,
    /// What else was considered.
    pub considered: Vec<Told>,
    /// What went wrong, by task, and what was done about it.
    pub troubles: Vec<Trouble>,
    /// Where time went.
    pub time: Time,
    /// Where money went.
    pub cost: Cost,
    /// Where the course changed, in order.
    pub turning_points: Vec<Told>,
    /// Who decided what, and what watched over it.
    pub audit: AuditTold,
    /// Steps in brief; of the task alone that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepTold>,
    /// Steps whose prompts are worth a look: of what went wrong, and the slowest.
    pub look_at: Vec<LookAt>,
}

/// One step of a task in brief.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepTold {
    /// Its task.
    pub task: TaskId,
    /// Its number.
    pub number: u32,
    /// Who took it.
    pub agent: AgentId,
    /// What was done.
    pub action: String,
    /// Whether what was done went well; nothing where nothing came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub well: Option<bool>,
    /// Time of models, in milliseconds.
    pub model_ms: u64,
    /// Time of tools, in milliseconds.
    pub tool_ms: u64,
    /// Whether a model was asked: then there is a prompt.
    pub has_prompt: bool,
    /// Where it stands.
    pub entry: Seq,
}

/// A step that is worth a look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LookAt {
    /// The task.
    pub task: TaskId,
    /// The step; the whole task when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Whether it has a prompt; else what was done is shown by its trace alone.
    pub has_prompt: bool,
    /// Why.
    pub why: String,
}

/// Most steps that are proposed for a look.
const MOST_LOOKS: usize = 8;

/// Explains a run, or one task of it, from its state and the record that it was folded from. A record that is still being
/// written, or that has lost entries, is explained as far as it goes.
#[must_use]
pub fn explain(state: &RunState, entries: &[Entry], of: Option<&TaskId>) -> Explanation {
    let story = story::Story::read(state, entries);
    let course = course::Course::of(&story);
    let is_wanted = |task: Option<&TaskId>| of.is_none_or(|of| task.is_some_and(|task| is_about(of, task)));
    let keep = |told: Vec<Told>| told.into_iter().filter(|one| is_wanted(one.task.as_ref())).collect();
    let troubles: Vec<Trouble> = course::troubles(state, &course, &story)
        .into_iter()
        .filter(|trouble| is_wanted(trouble.task.as_ref()))
        .collect();
    let mut time = path::time(state, &story);
    time.tasks.retain(|task| is_wanted(Some(&task.task)));
    let mut evidence = evidence::evidence(state, &story);
    evidence.retain(|one| is_wanted(Some(&one.task)));
    let look_at = look_at(&story, &troubles, &is_wanted);
    Explanation {
        run: state.id,
        goal: state.goal.text.clone(),
        task: of.cloned(),
        began_at: entries.first().map_or(state.created_at, |entry| entry.at),
        entries: entries.len(),
        result: outcome::result(state, &story, of),
        evidence,
        considered: keep(course.considered.clone()),
        troubles,
        time,
        cost: cost::cost(state, &story),
        turning_points: keep(course.turning_points.clone()),
        audit: audit::audit(&story, &course, of),
        steps: of.map(|of| steps_of(&story, of)).unwrap_or_default(),
        look_at,
    }
}

/// Whether something about `task` is about the task that is explained: the task itself, its members, the reflection on it,
/// and what lies below it.
fn is_about(of: &TaskId, task: &TaskId) -> bool {
    of == task
        || match (of.as_leaf(), task.leaf()) {
            (Some(of), Some(task)) => *of == task.planned() || task.is_below(of),
            (Some(_) | None, Some(_) | None) => false,
        }
}

fn steps_of(story: &story::Story<'_>, of: &TaskId) -> Vec<StepTold> {
    story.steps.iter().filter(|step| is_about(of, &step.task)).cloned().collect()
}

/// The last step of each task in which something went wrong, and the slowest steps of all.
fn look_at(
    story: &story::Story<'_>,
    troubles: &[Trouble],
    is_wanted: &impl Fn(Option<&TaskId>) -> bool,
) -> Vec<LookAt> {
    let mut looks: Vec<LookAt> = Vec::new();
    for task in troubles.iter().filter_map(|trouble| trouble.task.as_ref()) {
        let last = story.steps.iter().rev().find(|step| step.task == *task);
        looks.push(LookAt {
            task: task.clone(),
            step: last.map(|step| step.number),
            has_prompt: last.is_some_and(|step| step.has_prompt),
            why: "something went wrong in it".to_owned(),
        });
    }
    let mut slow: Vec<&StepTold> = story.steps.iter().filter(|step| is_wanted(Some(&step.task))).collect();
    slow.sort_by_key(|step| std::cmp::Reverse(step.model_ms.saturating_add(step.tool_ms)));
    for step in slow.into_iter().filter(|step| step.model_ms.saturating_add(step.tool_ms) > 0).take(2) {
        let is_told = looks.iter().any(|look| look.task == step.task && look.step == Some(step.number));
        if !is_told {
            looks.push(LookAt {
                task: step.task.clone(),
                step: Some(step.number),
                has_prompt: step.has_prompt,
                why: "one of the slowest steps".to_owned(),
            });
        }
    }
    looks.truncate(MOST_LOOKS);
    looks
}
