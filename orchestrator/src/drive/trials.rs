//! How trials stand, as orchestrators count it and hear of it. Nothing of this is done in a fleet without trials.

use std::sync::Arc;

use futures::StreamExt;
use muster_bus::BusError;
use muster_shared::flow::{TrialCounts, TrialRule, Usage};
use muster_shared::ids::RunId;
use muster_shared::run::Input;
use muster_shared::trial_state::TrialState;
use muster_shared::wire::{Command, Encoding};

use super::context::OrchestratorContext;
use super::repeat;
use super::run_actor::RunMessage;

/// The trials that a run takes part in which begins now: those that were not withdrawn, with what is known of them. Where
/// that cannot be read the run takes part in none.
pub(super) async fn standing(context: &OrchestratorContext, rules: &[TrialRule]) -> Vec<TrialRule> {
    if rules.is_empty() {
        return Vec::new();
    }
    let known = match context.bus.trials().all().await {
        Ok(known) => known,
        Err(error) => {
            tracing::warn!(%error, "how trials stand cannot be read; the run takes part in none");
            return Vec::new();
        }
    };
    let now = context.now();
    let standing = |rule: &TrialRule| {
        let state = known.iter().find(|state| state.name == rule.name).cloned();
        TrialState::of(state, rule, now).standing(rule)
    };
    rules.iter().filter_map(standing).collect()
}

/// Counts what trials came to in a run.
pub(super) async fn count(
    context: &OrchestratorContext,
    run: RunId,
    counts: &[(TrialRule, TrialCounts)],
) -> Result<(), BusError> {
    let now = context.now();
    for (rule, counts) in counts {
        let change = |known| {
            let mut state = TrialState::of(known, rule, now);
            state.count(run, *counts);
            (state, ())
        };
        context.bus.trials().change(&rule.name, change).await?;
    }
    Ok(())
}

/// Withdraws a trial in the whole fleet.
pub(super) async fn withdraw(
    context: &OrchestratorContext,
    run: RunId,
    rule: &TrialRule,
    reason: &str,
) -> Result<(), BusError> {
    let (now, by) = (context.now(), format!("rule, in run {}", run.short()));
    let change = |known| {
        let mut state = TrialState::of(known, rule, now);
        state.withdraw(now, &by, reason);
        (state, ())
    };
    tracing::warn!(trial = %rule.name, %run, reason, "a trial is withdrawn");
    context.bus.trials().change(&rule.name, change).await
}

/// Begins a shadow, if the budget of its trial suffices. What is set aside first is never used by another.
pub(super) async fn begin_shadow(
    context: &OrchestratorContext,
    rule: &TrialRule,
    command: &Command,
) -> Result<(), BusError> {
    let (now, run) = (context.now(), command.run());
    let change = |known| {
        let mut state = TrialState::of(known, rule, now);
        let enough = state.reserve(run, rule);
        (state, enough)
    };
    if !context.bus.trials().change(&rule.name, change).await? {
        tracing::debug!(trial = %rule.name, %run, "no shadow is begun: the budget of its trial does not suffice now");
        return Ok(());
    }
    context.bus.commands().send(command, Encoding::default()).await.map(|_| ())
}

/// Counts what a shadow used.
pub(super) async fn settle(
    context: &OrchestratorContext,
    shadow: RunId,
    trial: &str,
    used: Usage,
) -> Result<(), BusError> {
    let change = |known: Option<TrialState>| {
        let mut state = known.unwrap_or_default();
        state.settle(shadow, used);
        (state, ())
    };
    // Nothing was set aside in a trial of which nothing is known.
    match context.bus.trials().of(trial).await? {
        Some(_) => context.bus.trials().change(trial, change).await,
        None => Ok(()),
    }
}

/// Tells the runs here of trials that are withdrawn, for as long as it is polled.
pub(super) async fn follow(context: Arc<OrchestratorContext>) {
    if context.settings.limits.trials.is_empty() {
        return std::future::pending().await;
    }
    repeat("how trials stand cannot be followed", || read(&context)).await;
}

async fn read(context: &OrchestratorContext) -> Result<(), BusError> {
    let mut states = context.bus.trials().watch().await?;
    while let Some(TrialState { name, withdrawn, .. }) = states.next().await {
        let Some(withdrawal) = withdrawn else { continue };
        let tell = || {
            let (trial, reason) = (name.clone(), format!("{} ({})", withdrawal.reason, withdrawal.by));
            RunMessage::Wake(Input::TrialWithdrawn { trial, reason })
        };
        context.registry.tell_all(tell);
    }
    Ok(())
}
