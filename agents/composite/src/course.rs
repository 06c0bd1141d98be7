//! The course of one call of a composite: which calls are made next, and what came of those that ended. Pure: what ended comes
//! in, calls to make come out.

mod ending;
mod state;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::file::{Calls, Composite, Step};
use crate::scope::StepScope;
use crate::template::{Template, size};
use crate::{MOST_AT_ONCE, MOST_ITERATIONS};

pub(crate) use state::{Call, CallId, CallState, Ended, Made, StepCourse, StepState};

/// Most bytes of results that one call of a composite keeps.
const MOST_KEPT: usize = 4 * 1024 * 1024;

/// Where the whole is.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Forward,
    /// Calls that run are waited for; then what was done is undone, or not.
    Failing {
        undo: bool,
    },
    /// What is left to undo, the next at the end.
    Undoing(Vec<CallId>),
    Over,
}

/// One call of a composite.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) composite: Arc<Composite>,
    pub(crate) args: Value,
    pub(crate) steps: Vec<StepCourse>,
    /// Why the whole fails.
    pub(crate) why: Option<String>,
    phase: Phase,
    /// The calls that were done, in the order in which they ended.
    done: Vec<CallId>,
    kept: usize,
}

impl Course {
    pub(crate) fn new(composite: Arc<Composite>, args: Value) -> Self {
        let waiting = |_: &Step| StepCourse {
            state: StepState::Waiting,
            made: Vec::new(),
            seen: json!({ "status": "waiting" }),
        };
        let steps = composite.steps.iter().map(waiting).collect();
        Self { composite, args, steps, why: None, phase: Phase::Forward, done: Vec::new(), kept: 0 }
    }

    /// Whether nothing more will be called.
    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Whether what was done is being undone.
    pub(crate) const fn is_undoing(&self) -> bool {
        matches!(self.phase, Phase::Undoing(_))
    }

    /// The calls to make now; from then on they run. With none, and none that runs, it is over.
    pub(crate) fn next(&mut self) -> Vec<Call> {
        let mut calls = Vec::new();
        loop {
            let is_calling = self.running() > 0;
            match &mut self.phase {
                Phase::Forward => {
                    calls.extend(self.forward());
                    let has_ended = self.steps.iter().all(StepCourse::has_ended);
                    if matches!(self.phase, Phase::Forward) {
                        if !has_ended {
                            return calls;
                        }
                        self.phase = Phase::Over;
                    }
                }
                Phase::Failing { .. } if is_calling => return calls,
                Phase::Failing { undo } => {
                    let undo = *undo;
                    self.close();
                    self.phase = if undo { Phase::Undoing(self.undoable()) } else { Phase::Over };
                }
                // One after the other: the last that was done is undone first.
                Phase::Undoing(_) if is_calling => return calls,
                Phase::Undoing(left) => match left.pop() {
                    Some(id) => calls.extend(self.undo(id)),
                    None => self.phase = Phase::Over,
                },
                Phase::Over => return calls,
            }
        }
    }

    /// Takes note of how a call ended.
    pub(crate) fn ended(&mut self, id: CallId, ended: Ended) {
        let Some(made) = self.steps.get_mut(id.step).and_then(|step| step.made.get_mut(id.index)) else {
            return;
        };
        if made.state != CallState::Running {
            return;
        }
        if id.undo {
            made.state = ended.failed.map_or(CallState::Compensated, CallState::NotCompensated);
            return;
        }
        let Ended { failed, content, data } = ended;
        if let Some(why) = failed {
            made.state = CallState::Failed;
            return self.fails(id.step, why);
        }
        self.kept = self.kept.saturating_add(content.len() + data.as_ref().map_or(0, size));
        made.state = CallState::Done;
        made.result = json!({ "status": "done", "content": content });
        if let Some(data) = data {
            made.result["data"] = data;
        }
        self.done.push(id);
        if self.kept > MOST_KEPT {
            self.fail(format!("the results have more than {} MiB together", MOST_KEPT / 1024 / 1024), true);
        }
        if let Err(why) = self.proceed(id) {
            self.fails(id.step, why);
        }
        self.settle(id.step);
    }

    fn running(&self) -> usize {
        self.steps.iter().map(StepCourse::running).sum()
    }

    /// Skips what cannot be done, opens what can, and gives the calls for which there is room.
    fn forward(&mut self) -> Vec<Call> {
        let mut calls = Vec::new();
        loop {
            let before = self.ended_steps();
            for at in 0..self.steps.len() {
                if self.steps[at].state == StepState::Waiting {
                    self.open(at);
                }
                while self.phase == Phase::Forward && self.running() < MOST_AT_ONCE {
                    let Some(index) = self.next_index(at) else { break };
                    calls.extend(self.begin(at, index));
                }
                self.settle(at);
            }
            // What ended without a call lets others begin.
            if self.ended_steps() == before || self.phase != Phase::Forward {
                return calls;
            }
        }
    }

    fn ended_steps(&self) -> usize {
        self.steps.iter().filter(|step| step.has_ended()).count()
    }

    /// Opens a step when all that it waits for has ended; or skips it.
    fn open(&mut self, at: usize) {
        let composite = Arc::clone(&self.composite);
        let step = &composite.steps[at];
        if self.phase != Phase::Forward
            || !step.needs.iter().chain(&step.after).all(|other| self.steps[*other].has_ended())
        {
            return;
        }
        if let Some(other) = step.needs.iter().find(|other| self.steps[**other].state != StepState::Done) {
            let name = &composite.steps[*other].name;
            return self.end(at, StepState::Skipped(format!("it needs `{name}`, which was not done")));
        }
        match self.items(step) {
            Ok(Some(items)) => self.steps[at].state = StepState::Open { items, failing: None },
            Ok(None) => self.end(at, StepState::Skipped("its condition does not hold".to_owned())),
            Err(why) => {
                self.steps[at].state = StepState::Open { items: Vec::new(), failing: None };
                self.fails(at, why);
            }
        }
    }

    /// What a step loops over; nothing where its condition does not hold.
    fn items(&self, step: &Step) -> Result<Option<Vec<Value>>, String> {
        let scope = StepScope::of(self);
        if let Some(when) = &step.when
            && !when.holds(&scope)?
        {
            return Ok(None);
        }
        match &step.calls {
            Calls::Once | Calls::Until { .. } => Ok(Some(vec![Value::Null])),
            Calls::Each { list, .. } => match list.fill(&scope)? {
                Some(Value::Array(all)) if all.len() <= MOST_ITERATIONS => Ok(Some(all)),
                Some(Value::Array(all)) => {
                    Err(format!("`for_each` has {} elements, {MOST_ITERATIONS} are the most", all.len()))
                }
                // A list that may be missing, and is.
                None => Ok(Some(Vec::new())),
                Some(_) => Err("`for_each` is no list".to_owned()),
            },
        }
    }

    /// The next call of a step that may be made now.
    fn next_index(&self, at: usize) -> Option<usize> {
        let step = &self.steps[at];
        let StepState::Open { items, failing: None } = &step.state else { return None };
        let (begun, running) = (step.made.len(), step.running());
        let (all, at_once) = match &self.composite.steps[at].calls {
            Calls::Once => (1, 1),
            Calls::Each { at_once, .. } => (items.len(), *at_once),
            // `proceed` closes it when its condition holds.
            Calls::Until { most, .. } => (*most, 1),
        };
        (begun < all && running < at_once).then_some(begun)
    }

    /// Begins a call. One whose arguments cannot be made up has failed.
    fn begin(&mut self, at: usize, index: usize) -> Option<Call> {
        let composite = Arc::clone(&self.composite);
        let step = &composite.steps[at];
        let StepState::Open { items, .. } = &self.steps[at].state else { return None };
        let item = items.get(index).cloned().unwrap_or_default();
        let index_value = json!(index);
        let scope = StepScope { item: Some(&item), index: Some(&index_value), ..StepScope::of(self) };
        let filled = filled(&step.arguments, &scope);
        let wait = match &step.calls {
            Calls::Until { wait, .. } if index > 0 => *wait,
            _ => Duration::ZERO,
        };
        let state = if filled.is_ok() { CallState::Running } else { CallState::Failed };
        self.steps[at].made.push(Made { state, item, result: Value::Null });
        match filled {
            Ok(arguments) => {
                let id = CallId { step: at, index, undo: false };
                Some(Call { id, tool: step.tool.name.clone(), arguments, wait })
            }
            Err(why) => {
                self.fails(at, why);
                None
            }
        }
    }

    /// What follows for a step that calls until a condition holds.
    fn proceed(&mut self, id: CallId) -> Result<(), String> {
        let composite = Arc::clone(&self.composite);
        let Calls::Until { condition, most, .. } = &composite.steps[id.step].calls else { return Ok(()) };
        let index = json!(id.index);
        let result = &self.steps[id.step].made[id.index].result;
        let scope = StepScope { index: Some(&index), result: Some(result), ..StepScope::of(self) };
        if condition.holds(&scope)? {
            self.finish(id.step);
        } else if id.index + 1 >= *most {
            return Err(format!("`until` did not hold after {most} calls"));
        }
        Ok(())
    }

    /// Ends a step when nothing of it runs, and nothing more is to be called.
    fn settle(&mut self, at: usize) {
        let step = &self.steps[at];
        let StepState::Open { items, failing } = &step.state else { return };
        if step.running() > 0 {
            return;
        }
        if let Some(why) = failing.clone() {
            return self.end(at, StepState::Failed(why));
        }
        let all_made = step.made.len() >= items.len();
        if all_made && !matches!(self.composite.steps[at].calls, Calls::Until { .. }) {
            self.finish(at);
        }
    }

    fn finish(&mut self, at: usize) {
        self.end(at, StepState::Done);
    }

    fn end(&mut self, at: usize, state: StepState) {
        let calls = &self.composite.steps[at].calls;
        let step = &mut self.steps[at];
        step.seen = match (&state, calls) {
            (StepState::Done, Calls::Each { .. }) => of_each(&step.made),
            (StepState::Done, Calls::Once | Calls::Until { .. }) => {
                step.made.last().map_or(Value::Null, |made| made.result.clone())
            }
            (StepState::Failed(_), _) => json!({ "status": "failed" }),
            (StepState::Skipped(_), _) => json!({ "status": "skipped" }),
            (StepState::Waiting | StepState::Open { .. }, _) => Value::Null,
        };
        step.state = state;
    }
}

fn filled(arguments: &Template, scope: &StepScope<'_>) -> Result<Value, String> {
    Ok(arguments.fill(scope)?.unwrap_or_else(|| json!({})))
}

/// What other steps see of a loop: the data of each call, in order, and their words below each other.
fn of_each(made: &[Made]) -> Value {
    let words: Vec<&str> = made.iter().filter_map(|made| made.result["content"].as_str()).collect();
    let data: Vec<&Value> = made.iter().map(|made| &made.result["data"]).collect();
    json!({ "status": "done", "content": words.join("\n"), "data": data })
}

#[cfg(test)]
#[path = "course_tests.rs"]
mod tests;
