//! What a run does next. Pure: no clock, no randomness, no I/O; whatever depends on those comes in as data and
//! stands in the record, so that every decision can be made again from it.

mod absence;
mod acceptance;
mod auction;
mod blueprint;
mod budget;
mod children;
mod conflicts;
mod control;
mod deadline;
mod delegate;
mod draft;
mod draft_review;
mod effect;
mod failure;
mod goal;
mod groups;
mod learnt;
mod lessons;
mod loss;
mod news;
mod nonce;
mod outcome;
mod partial;
mod peers;
mod place;
mod planning;
mod questions;
mod refine;
mod replan;
mod report;
mod response;
mod review;
mod schedule;
mod settle;
mod silence;
mod standing;
mod standstill;
mod stuck;
mod survey;
mod waits;
mod waits_for;
mod work;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use muster_shared::flow::{Placement, Specialty, TaskOffered};
use muster_shared::ids::{Queue, RunId};
use muster_shared::run::{ApplyError, Input, RunEvent, RunState, RunStatus};
use muster_shared::time::Millis;

pub(crate) use acceptance::promised;
pub use deadline::next_deadline;
pub use effect::Effect;
pub use loss::{hand_on_again, holders, last_chances};
pub(crate) use place::names_in;
pub use place::{Anybody, Place, Recorded, Substance, Wanted};
pub use response::{Tried, respond};
pub use schedule::next_review;
pub use silence::patience;
pub use survey::{in_hands, in_work};
pub use waits_for::{Crew, WaitsFor, waits_for};

use draft::Draft;
use loss::Loss;

/// What a decision takes into account besides the run's state and its inputs.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The run.
    pub id: RunId,
    /// The time that is taken for now.
    pub now: Millis,
    /// How many offers each queue takes. Its keys are also the roles that the fleet knows.
    pub capacity: &'a BTreeMap<Queue, u32>,
    /// What the roles are for that users defined.
    pub specialists: &'a [Specialty],
    /// Says to whom leaves go.
    pub placing: &'a dyn Place,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What changes in the run.
    pub events: Vec<RunEvent>,
    /// What is offered to agents.
    pub offers: Vec<TaskOffered>,
    /// What is to be done once events and offers stand in the record.
    pub effects: Vec<Effect>,
    /// How many more offers would have been made if the queues had room for them.
    pub wanted: BTreeMap<Queue, u32>,
    /// Whether more can be offered at once, by a decision of its own: a single offer is cheaper to write than a batch.
    pub more: bool,
    /// Whether nobody waits for it, so that its inputs may be decided upon together with the next ones.
    pub deferrable: bool,
    /// Whether it depends on what specialists say of themselves, which then has to stand in the record with it.
    pub told_of_specialists: bool,
    /// To whom tasks go, where not simply to whoever of their role is free. Has to stand in the record with it.
    pub placements: Vec<Placement>,
    /// The run as it stands after the decision, apart from positions in the record.
    pub after: Option<RunState>,
}

impl Decision {
    /// Whether there is nothing to write and nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.offers.is_empty() && self.effects.is_empty()
    }
}

/// Decides what follows from the inputs.
///
/// # Errors
/// When the inputs lead to an event that cannot follow the run's state. That is a fault of this build: nothing
/// must be written.
pub fn decide(
    run: Option<&RunState>,
    inputs: &[Input],
    situation: Situation<'_>,
) -> Result<Decision, ApplyError> {
    // The alarm of a new run is set with its first offer.
    let deadline_before = run.filter(|run| run.status != RunStatus::Created).and_then(next_deadline);
    let was_open = run.is_none_or(|run| !run.status.is_ended());
    let mut draft = Draft::new(run, situation);
    for input in inputs {
        take_in(&mut draft, input);
    }
    questions::enforce(&mut draft);
    deadline::enforce(&mut draft);
    absence::enforce(&mut draft);
    peers::enforce(&mut draft);
    response::let_go(&mut draft);
    waits::settle(&mut draft);
    groups::settle(&mut draft);
    conflicts::pursue(&mut draft);
    draft_review::enforce(&mut draft);
    blueprint::unfold(&mut draft);
    review::ask_again(&mut draft);
    standstill::end(&mut draft);
    settle::settle(&mut draft);
    schedule::offer_what_is_due(&mut draft, run.is_none());
    children::follow(&mut draft, run, inputs);
    news::tell(&mut draft);
    set_alarm(&mut draft, inputs, deadline_before, was_open);
    draft.finish(inputs)
}

fn take_in(draft: &mut Draft<'_>, input: &Input) {
    match input {
        Input::Goal { goal, limits, secret, event_version, lessons } => {
            if draft.run().is_none() {
                goal::create(draft, goal, limits, secret, *event_version);
                goal::recall(draft, lessons);
                blueprint::begin(draft);
                planning::begin(draft);
            }
        }
        Input::Fork { from, state, goal, limits, secret, event_version } => {
            if draft.run().is_none() {
                goal::create(draft, goal, limits, secret, *event_version);
                draft.emit(RunEvent::RunForked { from: *from, state: state.clone() });
            }
        }
        Input::Refuse { goal, limits, reason, busy } => goal::refuse(draft, goal, limits, (reason, *busy)),
        Input::Agent { seq } => outcome::take_in(draft, *seq),
        Input::Unreadable { seq, why } => outcome::take_in_unreadable(draft, *seq, why),
        Input::AgentLost { agent, reason, steps, elsewhere } => {
            loss::agent_lost(draft, &Loss { agent, reason, steps, elsewhere: *elsewhere });
        }
        Input::Silent { task, generation, agent, for_ms } => {
            silence::fell_silent(draft, task, *generation, (agent, *for_ms));
        }
        Input::Cancel { reason, by, id: _ } => control::cancel(draft, reason, by),
        Input::Pause { request } => control::obey(draft, request, control::pause),
        Input::Resume { request, deadline_ms } => {
            control::obey(draft, request, |draft, request| control::resume(draft, request, *deadline_ms));
        }
        Input::Skip { task, request } => {
            control::obey(draft, request, |draft, request| control::skip(draft, request, task));
        }
        Input::Redo { task, request } => {
            control::obey(draft, request, |draft, request| control::redo(draft, request, task));
        }
        Input::Edit { task, goal, request } => {
            control::obey(draft, request, |draft, request| {
                control::edit(draft, request, task.as_ref(), goal)
            });
        }
        Input::Approve { plan, request } => {
            control::obey(draft, request, |draft, request| review::approve(draft, request, plan.as_deref()));
        }
        Input::Reject { request } => control::obey(draft, request, review::reject),
        Input::Answer { question, text, request } => {
            control::obey(draft, request, |draft, request| {
                questions::answer(draft, request, *question, text)
            });
        }
        Input::ContractBroken { outcome, faults } => draft.broken(*outcome, faults),
        Input::Bids { task, number, bids, standings } => {
            auction::close(draft, task, *number, (bids, standings));
        }
        Input::SetContext { key, value, version, request } => {
            control::obey(draft, request, |draft, request| {
                peers::set(draft, request, (key, value, *version))
            });
        }
        Input::ChildEnded { child, end } => children::ended(draft, *child, end),
        // These say that the situation changed; what follows from it is decided below in any case.
        Input::Capacity | Input::Timer => {}
    }
}

/// By how much the broker's alarm is set later than what it is for, where it rang too early: the clock here is behind that
/// of the broker, and nobody knows by how much. Whoever drives the run has an alarm of its own by this clock; the
/// broker's is for whoever has the run after it.
const WHERE_TOO_EARLY: Duration = Duration::from_secs(60);

/// Keeps the run's alarm at its next deadline. One that rings early does no harm, so it is only moved to an
/// earlier time, or when it has rung.
fn set_alarm(draft: &mut Draft<'_>, inputs: &[Input], before: Option<Millis>, was_open: bool) {
    let Some(run) = draft.run() else { return };
    if run.status.is_ended() {
        if was_open {
            let taught = lessons::of_run(run).map(Box::new);
            draft.effect(Effect::ClearTimer);
            if let Some(lessons) = taught {
                draft.effect(Effect::KeepLessons { lessons });
            }
            if let Some(standing) = draft.run().and_then(standing::of_run).map(Box::new) {
                draft.effect(Effect::KeepStanding { standing });
            }
        }
        return;
    }
    if run.status == RunStatus::Created && draft.has_more() {
        return;
    }
    let Some(at) = next_deadline(run) else { return };
    let rang = inputs.contains(&Input::Timer);
    // It rang for this, which is not due yet. Set to the same time, it would ring at once, over and over until the clocks
    // agree.
    let too_early = rang && before == Some(at) && at > draft.now();
    let at_alarm = if too_early { at.after(WHERE_TOO_EARLY) } else { at };
    if rang || before.is_none_or(|before| at < before) {
        draft.effect(Effect::SetTimer { at: at_alarm });
    }
}
