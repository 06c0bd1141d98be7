//! The end of a run that is stopped or given up: guards are asked about what there is to report, and the run ends with what
//! they leave of it.

use muster_shared::flow::{Product, Report};
use muster_shared::run::event::{AskedAbout, GivingUp, RunAborted, RunFailed, Stopped};
use muster_shared::run::{Held, RunState};
use muster_shared::time::Millis;

use super::super::builder::DecisionBuilder;
use super::super::effect::Effect;
use super::super::{partial, replan};
use super::{Question, ask, has_guards};

/// Has guards asked about the report of a run that is stopped: the run ends with what they say of it. Work on it ends at
/// once. Tells whether it waits for them.
pub(in crate::decide) fn hold_stop(decision: &mut DecisionBuilder<'_>, stopped: Stopped) -> bool {
    let (report, reason) = (stopped.report.clone(), stopped.reason.clone());
    hold(decision, report, reason, AskedAbout::Stopped(Box::new(stopped)))
}

/// The same for a run that is given up.
pub(in crate::decide) fn hold_end(decision: &mut DecisionBuilder<'_>, given_up: GivingUp) -> bool {
    let Some(report) = given_up.given_up.report.as_deref().cloned() else { return false };
    let reason = given_up.reason.clone();
    hold(decision, report, reason, AskedAbout::GivenUp(Box::new(given_up)))
}

fn hold(decision: &mut DecisionBuilder<'_>, report: Report, reason: String, about: AskedAbout) -> bool {
    if !has_guards(decision) {
        return false;
    }
    if is_stopping(decision) {
        return true;
    }
    let is_held = ask(decision, Question::of_nobody(&Product::Report(report)), about);
    if is_held {
        decision.effect(Effect::CancelRun { reason });
    }
    is_held
}

/// Whether the run is being stopped or given up: nothing else becomes of it.
pub(in crate::decide) fn is_stopping(decision: &DecisionBuilder<'_>) -> bool {
    decision.open().is_some_and(|run| run.guarding.stopping().is_some())
}

/// When a run that is being stopped ends whatever guards say; nothing while it goes on.
pub(in crate::decide) fn stops_at(run: &RunState) -> Option<Millis> {
    run.guarding.stopping().map(|(_, held)| held.until)
}

/// What follows from what guards said of the report of a run that ends; nothing is left of it where they refused.
pub(super) fn answered(
    decision: &mut DecisionBuilder<'_>,
    held: &Held,
    left: Option<Product>,
    refused: bool,
) {
    let of = |whole: &Report| match left {
        Some(Product::Report(changed)) => Some(changed),
        Some(_) | None => Some(whole.clone()),
    };
    match held {
        Held::Stopped(stopped) => {
            let report = if refused { None } else { of(&stopped.report) };
            stop(decision, stopped, report);
        }
        Held::GivenUp(given_up) => {
            let report = given_up.given_up.report.as_deref().filter(|_| !refused).and_then(of);
            give_up(decision, given_up, report);
        }
        Held::Outcome { .. }
        | Held::Report(_)
        | Held::BroughtPlan
        | Held::TakenOver
        | Held::Steps(_)
        | Held::Edit(_)
        | Held::HandOver(_) => {}
    }
}

/// Ends a run that was to be stopped, with the report that guards left of it; else with no more than that, and why.
pub(super) fn stop(decision: &mut DecisionBuilder<'_>, stopped: &Stopped, report: Option<Report>) {
    let Stopped { why, reason, .. } = stopped;
    let report = report.or_else(|| decision.open().map(|run| partial::withheld(run, reason)));
    decision.emit(RunAborted { why: *why, reason: reason.clone(), report: report.map(Box::new) });
}

/// The same for one that was to be given up.
pub(super) fn give_up(decision: &mut DecisionBuilder<'_>, given_up: &GivingUp, report: Option<Report>) {
    let GivingUp { given_up, reason } = given_up.clone();
    let withheld = || decision.open().map(|run| replan::withheld(run, &given_up.simpler));
    let report = report.or_else(withheld).map(Box::new);
    decision.emit(muster_shared::run::event::RunGivenUp { report, ..given_up });
    decision.emit(RunFailed { reason });
}
