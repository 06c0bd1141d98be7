//! Tasks that their agents cannot go on with: going in circles, declined by every model, at their limit. Where somebody
//! can be asked, a person says what to do, and the task begins anew with what they said; else it ends.

use muster_shared::flow::{About, Ending, Question, Reply, Use, Wait};
use muster_shared::ids::{Seq, TaskId};
use muster_shared::run::event::{TaskBlocked, TaskReopened, TaskRetried, TaskWaits};
use muster_shared::run::{QuestionState, RunState};

use super::builder::DecisionBuilder;
use super::{questions, replan, rights, survey};

/// How often people are asked about one task.
const MOST_TIMES: usize = 2;

/// Asks a person what to do with a task whose agent gave it up to people. Tells whether anybody is asked.
pub(super) fn ask(
    decision: &mut DecisionBuilder<'_>,
    task: &TaskId,
    outcome: Option<Seq>,
    reason: &str,
) -> bool {
    let Some(run) = decision.open() else { return false };
    let Some(text) = question(run, task) else { return false };
    if !can_ask(run, task) {
        return false;
    }
    let about = About::Task(task.clone());
    let Some(generation) = run.tasks.get(task).map(|state| state.generation) else { return false };
    let question = Question { reason: reason.to_owned(), ..Question::new(text) };
    let reason = reason.to_owned();
    decision.emit(TaskRetried { task: task.clone(), generation, outcome, reason, keeps_steps: false });
    let wait = Wait::Answer(question.clone());
    decision.emit(TaskWaits { task: task.clone(), generation, step: 0, wait });
    questions::ask(decision, about, question);
    true
}

/// Whether a person can be asked about a task, and was not asked often enough.
pub(super) fn can_ask(run: &RunState, task: &TaskId) -> bool {
    let Some(text) = question(run, task) else { return false };
    let people = &run.limits.people;
    let most = usize::try_from(people.max_questions).unwrap_or(usize::MAX);
    let same =
        |asked: &&QuestionState| asked.about == About::Task(task.clone()) && asked.question.text == text;
    let times = run.questions.values().filter(same).count();
    let somebody = survey::somebody_is_there(run) && run.questions.len() < most;
    let may = rights::of(run, task).allow(&Use::Person);
    somebody && may && times < MOST_TIMES
}

/// What is asked about a leaf; nothing is about other tasks.
fn question(run: &RunState, task: &TaskId) -> Option<String> {
    let TaskId::Leaf(index) = task else { return None };
    let planned = run.plan_task(index)?;
    Some(format!("{index} {} cannot be gone on with. How is it to be done?", planned.name))
}

/// Whether a task waits for a person to say how it is to be done.
pub(super) fn is_stuck(run: &RunState, task: &TaskId) -> bool {
    let waiting = run.tasks.get(task).and_then(|state| state.waiting.as_ref());
    waiting.is_some_and(|waiting| waiting.step == 0)
}

/// Begins the task anew with what somebody said, or ends it when nobody said anything.
pub(super) fn answered(decision: &mut DecisionBuilder<'_>, task: &TaskId, reply: &Reply) {
    let TaskId::Leaf(index) = task else { return };
    let why =
        decision.open().and_then(|run| run.tasks.get(task)?.reasons.last().cloned()).unwrap_or_default();
    let said = reply.text.as_deref().unwrap_or_default();
    match &reply.by {
        Some(by) => {
            let reason =
                format!("it could not be gone on with ({why}); {by} was asked how it is to be done: {said}");
            decision.emit(TaskReopened { task: task.clone(), reason, shows_result: false });
        }
        None => {
            let reason = format!("{why}; nobody said in time how it is to be done");
            decision.emit(TaskBlocked { task: index.clone(), reason: reason.clone() });
            replan::after_failure(decision, index, Ending::Escalate, &reason);
        }
    }
}
