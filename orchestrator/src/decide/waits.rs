//! Tasks that wait: put down until what they wait for is there. They hold no slot meanwhile.

use muster_shared::flow::{
    About, Awaited, Ending, FailureKind, Observation, ObservationStatus, PeerAnswer, Wait,
};
use muster_shared::ids::{Generation, TaskId};
use muster_shared::run::{RunEvent, WAITS_SINCE};

use super::draft::Draft;
use super::failure::{self, Failure};
use super::{children, control, delegate, peers, questions};

/// An agent put a task down until what it waits for is there.
pub(super) fn begin(draft: &mut Draft<'_>, task: TaskId, generation: Generation, awaited: Awaited) {
    let Some(run) = draft.open() else { return };
    if run.event_version < WAITS_SINCE || !peers::is_known_to(run, &awaited.wait) {
        let reason =
            "tasks of this run cannot wait for this: it was begun while an older orchestrator was at work"
                .to_owned();
        let (kind, ending) = (FailureKind::Blocked, Ending::Blocked);
        let failure = Failure { kind, ending, outcome: None, part: None, reason };
        return failure::failed(draft, &task, failure);
    }
    let agent = run.tasks.get(&task).and_then(|state| state.agent.clone());
    control::put_down(draft, task.clone(), generation);
    let Awaited { step, wait } = awaited;
    draft.emit(RunEvent::TaskWaits { task: task.clone(), generation, step, wait: wait.clone() });
    match wait {
        Wait::Answer(question) => questions::ask(draft, About::Task(task), question),
        Wait::Task(part) => delegate::begin(draft, &task, &part, agent),
        Wait::Peer(request) => peers::begin(draft, &task, &request, agent),
        Wait::Run(wanted) => children::begin(draft, &task, (generation, step), &wanted),
    }
}

/// What a task waited for is there.
pub(super) fn answer(draft: &mut Draft<'_>, task: &TaskId, observation: Observation) {
    answer_with(draft, task, observation, None);
}

/// The same, with what programs are told.
pub(super) fn answer_with(
    draft: &mut Draft<'_>,
    task: &TaskId,
    observation: Observation,
    answer: Option<Box<PeerAnswer>>,
) {
    let now = draft.now();
    let waiting = draft.open().and_then(|run| run.tasks.get(task)?.waiting.as_ref());
    let Some((step, since)) = waiting.map(|waiting| (waiting.step, waiting.since)) else { return };
    let millis = u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX);
    let observation = Observation { millis, ..observation };
    draft.emit(RunEvent::TaskAnswered { task: task.clone(), step, observation, answer });
}

/// What a task waits for cannot be had: it is told so at once.
pub(super) fn refuse(draft: &mut Draft<'_>, task: &TaskId, why: &str) {
    let status = ObservationStatus::Refused;
    answer(draft, task, Observation { status, content: why.to_owned(), millis: 0, truncated: false });
}

/// Goes on with what has come to its end meanwhile.
pub(super) fn settle(draft: &mut Draft<'_>) {
    delegate::settle(draft);
    questions::withdraw(draft);
}
