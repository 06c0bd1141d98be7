//! What a run does next. Pure: no clock, no randomness, no I/O; whatever depends on those comes in as data and
//! stands in the record, so that every decision can be made again from it.

mod acceptance;
mod approvals;
mod as_it_was;
mod auction;
mod blueprint;
mod budget;
mod builder;
mod children;
mod conflicts;
mod control;
mod deadline;
mod deadlock;
mod delegate;
mod draft_review;
mod effect;
mod failure;
mod goal;
mod groups;
mod guards;
mod learnt;
mod lessons;
mod loss;
mod missing_roles;
mod news;
mod nonce;
mod outcome;
mod partial;
mod peers;
mod place;
mod planning;
mod questions;
mod refine;
mod remarks;
mod replan;
mod report;
mod response;
mod review;
mod rights;
mod schedule;
mod settle;
mod silence;
mod single;
mod stuck;
mod survey;
mod traced;
mod track_record;
mod trials;
mod wait_reason;
mod waits;
mod waits_for;
mod work;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::flow::{Placement, Specialty, TaskOffered, TaskStatus};
use muster_shared::ids::{Queue, RunId};
use muster_shared::run::event::RunForked;
use muster_shared::run::{ApplyError, Input, RunEvent, RunState, TaskState};
use muster_shared::time::Millis;

pub(crate) use acceptance::promised;
pub use deadline::next_deadline;
pub use effect::Effect;
pub(crate) use guards::{asked_about, changed};
pub use loss::{hand_on_again, holder_against, holders, last_chances, say_again};
pub(crate) use place::names_in;
pub use place::{Place, Recorded, Substance, Wanted};
pub use response::{Tried, respond};
pub use schedule::next_review;
pub use silence::patience;
pub use survey::{in_hands, in_work};
pub use wait_reason::WaitsFor;
pub use waits_for::{AgentsByRole, waits_for, waits_for_within};

use as_it_was::AsItWas;
use builder::DecisionBuilder;
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
    /// How many offers each queue took, where the fleet was asked for room; else that is what the situation says.
    pub lent: Option<BTreeMap<Queue, u32>>,
    /// Whether more can be offered at once, by a decision of its own: a single offer is cheaper to write than a batch.
    pub more: bool,
    /// Whether nobody waits for it, so that its inputs may be decided upon together with the next ones.
    pub deferrable: bool,
    /// Whether it depends on what specialists say of themselves, which then has to stand in the record with it.
    pub told_of_specialists: bool,
    /// To whom tasks go, where not simply to whoever of their role is free. Has to stand in the record with it.
    pub placements: Vec<Placement>,
    /// The run as it stands after the decision, apart from positions in the record.
    pub after: Option<Box<RunState>>,
    /// The run as it stood before, where the decision can wait.
    before: Option<AsItWas>,
}

impl Decision {
    /// The run as it stands when a decision is not written that can wait.
    #[must_use]
    pub fn put_off(self) -> Option<Box<RunState>> {
        match (self.before, self.after) {
            (Some(before), Some(after)) => Some(before.restore(after)),
            (_, after) => after,
        }
    }

    /// Whether there is nothing to write and nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.offers.is_empty() && self.effects.is_empty()
    }
}

/// Decides what follows from the inputs, on a copy of the run: where a decision is made again to look at it.
///
/// # Errors
/// See [`decide_on`].
pub fn decide(
    run: Option<&RunState>,
    inputs: &[Input],
    situation: Situation<'_>,
) -> Result<Decision, ApplyError> {
    decide_on(run.cloned().map(Box::new), inputs, situation)
}

/// Decides what follows from the inputs. Takes the run and gives it back as it stands then.
///
/// # Errors
/// When the inputs lead to an event that cannot follow the run's state. That is a fault of this build: nothing
/// must be written.
pub fn decide_on(
    run: Option<Box<RunState>>,
    inputs: &[Input],
    situation: Situation<'_>,
) -> Result<Decision, ApplyError> {
    let before = Before::of(run.as_deref());
    let mut decision = DecisionBuilder::new(run, situation);
    for input in inputs {
        take_in(&mut decision, input);
    }
    if guards::hold_all_up(&decision) {
        wait_for_guards(&mut decision);
    } else {
        go_on(&mut decision);
    }
    // Everything that is opened, ended or left out is known by now; an offer that is made cannot be taken back.
    if !guards::hold_all_up(&decision) {
        schedule::offer_what_is_due(&mut decision, before.is_new);
        missing_roles::note(&mut decision);
    }
    // Others are told last: of the run as it stands when all is decided, and of offers that were made.
    children::follow(&mut decision, &before, inputs);
    news::tell(&mut decision);
    // Before what takes longer: until then an offer may still be taken.
    take_back_what_is_left(&mut decision, &before);
    keep_what_it_taught(&mut decision, &before);
    if decision.may_wait() && brings_a_deadline_forward(&decision, &before) {
        decision.must_not_wait();
    }
    decision.finish(inputs)
}

/// Decides what follows from the run as it stands once the inputs are taken in.
///
/// Each pass sees what those before it decided, and none is gone through twice: the next decision sees what is left.
/// First comes what ends by the clock, then what follows from what has ended, then what the plan becomes by it, and last
/// whether there is anything left to do at all.
fn go_on(decision: &mut DecisionBuilder<'_>) {
    for pass in PASSES {
        pass(decision);
        // Nothing else becomes of it.
        if guards::is_stopping(decision) {
            return;
        }
    }
}

const PASSES: [fn(&mut DecisionBuilder<'_>); 14] = [
    // What people did not say in time is settled first: it may stop the run, or open and end tasks whose deadlines come
    // next.
    questions::enforce,
    // Time that is up ends the run, its phase or a try, before anything else is made of what has had its time.
    deadline::enforce,
    // After deadlines, so that a try whose time is up is told to have been late, whoever was away.
    missing_roles::enforce,
    // Help has a time of its own. Whoever waited too long for it is answered here, and no longer waits when it comes to
    // what tasks wait for.
    peers::enforce,
    // Tasks that wait go on with what has ended up to here, by inputs or by the clock.
    waits::settle,
    // Members have ended by now: their task ends with them, before anything looks at which tasks have ended.
    |decision| {
        groups::settle(decision);
    },
    // Results are all there, those of groups too. What loses is opened again, and tasks are added that verify: what comes
    // next must see both.
    conflicts::pursue,
    // After conflicts: a task that is opened again takes the draft with it, and there is nothing to review.
    draft_review::enforce,
    // Nothing else brings a verdict whose asker has died.
    guards::enforce,
    // Steps follow from what has ended, and add tasks. Before the last three, which look for what nothing follows from.
    |decision| {
        blueprint::expand(decision);
    },
    // The plan is as this decision leaves it, so that people are asked about what they would get.
    review::ask_again,
    // Only now is it certain that nothing moves by itself: any pass before may have ended a wait.
    deadlock::end,
    // All that counts for trials has ended by now, and nothing is offered yet.
    trials::enforce,
    // Last, since it is the end of all work: no pass before may have left anything to do. Goes over to the report.
    settle::settle,
];

/// Decides what follows by the clock alone.
fn wait_for_guards(decision: &mut DecisionBuilder<'_>) {
    if !guards::is_stopping(decision) {
        deadline::enforce(decision);
    }
    guards::enforce(decision);
}

/// What is told of a run by how it changed: it is changed in place.
struct Before {
    is_new: bool,
    was_open: bool,
    was_paused: bool,
    /// When it would have looked by itself.
    deadline: Option<Millis>,
    /// The runs that it waited for.
    children: BTreeSet<RunId>,
}

impl Before {
    fn of(run: Option<&RunState>) -> Self {
        Self {
            is_new: run.is_none(),
            was_open: run.is_none_or(|run| !run.status.is_ended()),
            was_paused: run.is_some_and(|run| run.control.paused.is_some()),
            deadline: run.and_then(next_deadline),
            children: run.into_iter().flat_map(children::awaited).collect(),
        }
    }
}

/// Whether an input stands in the record as what an agent wrote.
pub(crate) const fn is_of_agent(input: &Input) -> bool {
    matches!(input, Input::Agent { .. } | Input::Unreadable { .. })
}

fn take_in(decision: &mut DecisionBuilder<'_>, input: &Input) {
    // Of what agents still say of a run that is being stopped only what was used counts.
    if guards::is_stopping(decision) && !matches!(input, Input::GuardsSaid { .. } | Input::Request(_)) {
        return;
    }
    match input {
        Input::Goal { goal, limits, secret, lessons, signed: _ } => {
            if decision.run().is_none() {
                goal::create(decision, goal, limits, secret);
                goal::recall(decision, lessons);
                blueprint::begin(decision);
                planning::begin(decision);
            }
        }
        Input::Fork { from, state, goal, limits, secret, signed: _ } => {
            if decision.run().is_none() {
                goal::create(decision, goal, limits, secret);
                decision.emit(RunForked { from: *from, state: state.clone() });
                planning::go_on(decision);
            }
        }
        Input::Refuse { goal, limits, reason, busy } => goal::refuse(decision, goal, limits, (reason, *busy)),
        Input::Agent { seq } => outcome::take_in(decision, *seq),
        Input::Unreadable { seq, why } => outcome::take_in_unreadable(decision, *seq, why),
        Input::AgentLost { agent, reason, steps, elsewhere } => {
            loss::agent_lost(decision, &Loss { agent, reason, steps, elsewhere: *elsewhere });
        }
        Input::Silent { task, generation, agent, for_ms } => {
            silence::fell_silent(decision, task, *generation, (agent, *for_ms));
        }
        Input::Request(request) => control::take_in(decision, request),
        Input::ContractBroken { outcome, faults } => decision.broken(*outcome, faults),
        Input::Bids { task, number, bids, track_records } => {
            auction::close(decision, task, *number, auction::BidsIn { bids, track_records });
        }
        Input::GuardsSaid { number, said, .. } => guards::answered(decision, *number, said),
        Input::ChildEnded { child, end } => children::ended(decision, *child, end),
        Input::TrialWithdrawn { trial, reason } => trials::withdrawn(decision, trial, reason),
        // These say that the situation changed; what follows from it is decided below in any case.
        Input::Capacity | Input::Timer => {}
    }
}

/// Whether something is due sooner than before: then somebody waits for what was decided.
fn brings_a_deadline_forward(decision: &DecisionBuilder<'_>, before: &Before) -> bool {
    let next = decision.run().and_then(next_deadline);
    next.is_some_and(|next| before.deadline.is_none_or(|before| next < before))
}

/// Nothing of a run that has ended is given out any more, and whoever works for it is told: what he did would be in vain.
fn take_back_what_is_left(decision: &mut DecisionBuilder<'_>, before: &Before) {
    let ended = decision.run().filter(|run| run.status.is_ended() && before.was_open);
    let is_left = |task: &TaskState| task.status == TaskStatus::Aborted && task.queue.is_some();
    let Some(run) = ended.filter(|run| run.tasks.values().any(is_left)) else { return };
    let reason = run.reason.clone().unwrap_or_else(|| "the run has ended".to_owned());
    if !decision.cancels_run() {
        decision.effect(Effect::CancelRun { reason });
    }
    decision.effect(Effect::WithdrawOffers);
}

/// What a run taught, and what its agents and tools did, is kept for later runs when it ends.
fn keep_what_it_taught(decision: &mut DecisionBuilder<'_>, before: &Before) {
    let ended = decision.run().filter(|run| run.status.is_ended() && before.was_open);
    if ended.is_none() || !trials::keep(decision) {
        return;
    }
    let Some(run) = decision.run() else { return };
    let (taught, track_record) = (lessons::of_run(run), track_record::of_run(run));
    if let Some(lessons) = taught.map(Box::new) {
        decision.effect(Effect::KeepLessons { lessons });
    }
    if let Some(track_record) = track_record.map(Box::new) {
        decision.effect(Effect::KeepTrackRecord { track_record });
    }
}
