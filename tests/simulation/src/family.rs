//! Rules about runs within runs, about questions, and about forks.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::flow::TaskStatus;
use muster_shared::ids::{QuestionId, RunId, TaskId};
use muster_shared::run::event::{AskedAbout, ChildEnded, GuardsAsked, QuestionAnswered, TaskReopened};
use muster_shared::run::{
    AgentEvent, ChildEnd, Entry, Inherited, Input, RecordEvent, RunEvent, RunState, RunStatus, TaskState,
};

use crate::agenda::Time;

/// How long after the end of what waited for it a run may go on, once there are no faults: word of it may be lost, and
/// then its own time ends it.
const OUTLIVES: Time = 200_000;

/// What was seen of children and questions.
#[derive(Debug, Default)]
pub(crate) struct Family {
    told: BTreeSet<(RunId, RunId)>,
    answered: BTreeSet<(RunId, QuestionId)>,
    ended: BTreeMap<RunId, Time>,
    /// Calls for generations that had been closed: in flight when they were, or begun by somebody who had not heard.
    in_flight: BTreeMap<RunId, u64>,
    /// How often there was what.
    pub(crate) seen: BTreeMap<&'static str, u64>,
}

impl Family {
    /// Looks at an entry with the state before it and after it.
    pub(crate) fn appended(
        &mut self,
        before: Option<&RunState>,
        entry: &Entry,
        after: &RunState,
        now: Time,
    ) -> Vec<String> {
        let mut broken = Vec::new();
        self.count_in_flight(before, entry);
        let in_flight = self.in_flight.get(&entry.run).copied().unwrap_or(0);
        let most = after.limits.budget.model_calls.map(|most| most + in_flight);
        if most.is_some_and(|most| after.spending.used.model_calls > most) {
            broken.push(format!(
                "no budget is exceeded by more than what was in flight: {} calls, {most:?} are the most",
                after.spending.used.model_calls
            ));
        }
        let mut waiting = after.tasks.iter().filter(|(_, task)| task.waiting.is_some());
        if let Some((task, _)) = waiting.find(|(_, task)| task.status != TaskStatus::Waiting) {
            broken.push(format!("a task that waits holds no slot: {task}"));
        }
        let RecordEvent::Decided(decided) = &entry.event else { return at(entry, broken) };
        for event in &decided.events {
            *self.seen.entry(event.name()).or_default() += 1;
            if let Some(about) = asked_about(event) {
                *self.seen.entry(about).or_default() += 1;
            }
            match event {
                RunEvent::ChildEnded(ChildEnded { run, .. }) if !self.told.insert((entry.run, *run)) => {
                    broken.push(format!("the end of a child is taken in once: {}", run.short()));
                }
                RunEvent::QuestionAnswered(QuestionAnswered { reply })
                    if !self.answered.insert((entry.run, reply.question)) =>
                {
                    broken.push(format!("a question is answered once: {}", reply.question));
                }
                RunEvent::RunCompleted(_) | RunEvent::WritingBegan(_)
                    if before.is_some_and(|run| run.status == RunStatus::Processing)
                        && after.tasks.values().any(|task| task.waiting.is_some()) =>
                {
                    broken.push("no report is written while a task waits".to_owned());
                }
                _ => {}
            }
        }
        if after.status.is_ended() {
            self.ended.entry(entry.run).or_insert(now);
        }
        for input in &decided.inputs {
            if let (None, Input::Fork { state, .. }) = (before, input) {
                broken.extend(differs(state, after, &decided.events));
            }
        }
        at(entry, broken)
    }

    fn count_in_flight(&mut self, before: Option<&RunState>, entry: &Entry) {
        let Some(before) = before else { return };
        let beyond = match &entry.event {
            RecordEvent::Agent(key, event) => {
                let is_open = before.tasks.get(&key.task).is_some_and(|task| {
                    task.generation == key.generation && task.status.is_in_work() && !before.status.is_ended()
                });
                match event {
                    AgentEvent::Outcome(outcome) if !is_open => outcome.usage.model_calls,
                    AgentEvent::Released(released) if !is_open => released.usage.model_calls,
                    _ => 0,
                }
            }
            RecordEvent::Decided(decided) => {
                decided.events.iter().map(|event| beyond_budget(before, event)).sum()
            }
            RecordEvent::Offered(_) => 0,
        };
        *self.in_flight.entry(entry.run).or_default() += beyond;
    }

    /// Looks at all runs when they have ended.
    pub(crate) fn finish(&self, states: &BTreeMap<RunId, Option<RunState>>) -> Vec<String> {
        let runs = || states.values().flatten();
        let children = runs().flat_map(|run| run.children.iter().map(move |(id, child)| (run, *id, child)));
        let mut broken = Vec::new();
        for (run, id, child) in children {
            let Some(state) = states.get(&id).and_then(Option::as_ref) else {
                // Nobody waited for it before it was begun.
                if child.end.is_some() {
                    broken.push(format!("only what was begun ends: {}", id.short()));
                }
                continue;
            };
            if let Some(end) = &child.end
                && !is_end_of(end, state)
            {
                broken.push(format!(
                    "what a parent is told of its child is so: {:?} became {:?}",
                    state.status, end.status
                ));
            }
            if let (Some(outer), Some(inner)) = (self.ended.get(&run.id), self.ended.get(&id))
                && *inner > outer + OUTLIVES
            {
                broken.push(format!(
                    "no child outlives its run for long: {} by {} ms",
                    id.short(),
                    inner - outer
                ));
            }
        }
        broken
    }
}

/// What a child used beyond what it was given: that was in flight there.
fn beyond_budget(run: &RunState, event: &RunEvent) -> u64 {
    let RunEvent::ChildEnded(ChildEnded { run: child, end }) = event else { return 0 };
    let given = run.children.get(child).and_then(|child| child.goal.budget.model_calls);
    given.map_or(0, |given| end.usage.model_calls.saturating_sub(given))
}

fn at(entry: &Entry, broken: Vec<String>) -> Vec<String> {
    broken.into_iter().map(|how| format!("at {}: {how}", entry.seq)).collect()
}

/// A report that is too long is cut, and calls in flight may be counted after the end.
fn is_end_of(end: &ChildEnd, state: &RunState) -> bool {
    end.status == state.status
        && end.usage.model_calls <= state.spending.used.model_calls
        && end.report.is_some() == state.report.is_some()
}

/// How a fork differs from what it was to begin with. It goes on in the decision that creates it: what that one opens
/// again, such as the task of who lost a conflict, differs rightly.
fn differs(inherited: &Inherited, fork: &RunState, decided: &[RunEvent]) -> Option<String> {
    let is_reopened = |id: &TaskId| {
        decided
            .iter()
            .any(|event| matches!(event, RunEvent::TaskReopened(TaskReopened { task, .. }) if task == id))
    };
    let is_kept = |id: &TaskId, task: &TaskState| {
        matches!(task.status, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Split)
            && !is_reopened(id)
    };
    let mut kept = inherited.tasks.iter().filter(|(id, task)| is_kept(id, task));
    let lost = kept.find(|(id, task)| {
        fork.tasks.get(*id).is_none_or(|now| (now.status, &now.outcome) != (task.status, &task.outcome))
    });
    match lost {
        Some((task, _)) => Some(format!("a fork equals its origin up to the entry: {task} is another")),
        None if inherited.plan.is_some() && fork.plan.is_none() => {
            Some("a fork equals its origin up to the entry: it has no plan".to_owned())
        }
        None => None,
    }
}

/// What guards are asked about, where no agent gave it.
fn asked_about(event: &RunEvent) -> Option<&'static str> {
    let RunEvent::GuardsAsked(GuardsAsked { about: Some(about), .. }) = event else { return None };
    match about {
        AskedAbout::Outcome { .. } => None,
        AskedAbout::Report(_) => Some("guards are asked about a report by rule"),
        AskedAbout::BroughtPlan => Some("guards are asked about a brought plan"),
        AskedAbout::TakenOver => Some("guards are asked about a plan that a fork took over"),
        AskedAbout::Steps(_) => Some("guards are asked about steps of a blueprint"),
        AskedAbout::Edit(_) => Some("guards are asked about a change by a person"),
        AskedAbout::HandOver(_) => Some("guards are asked about work handed over"),
        AskedAbout::Stopped(_) => Some("guards are asked about a run that is stopped"),
        AskedAbout::GivenUp(_) => Some("guards are asked about a run that is given up"),
    }
}
