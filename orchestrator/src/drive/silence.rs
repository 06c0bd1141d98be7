//! Notices agents that have a task and write nothing about it, by the record: that they live shows nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_bus::BusError;
use muster_shared::ids::{AgentId, Generation, TaskId};
use muster_shared::run::{Input, RunState};
use muster_shared::time::Millis;

use super::context::OrchestratorContext;
use crate::decide::patience;

/// When anybody wrote last about a generation of a task, as far as it was looked up.
pub(super) type Heard = BTreeMap<(TaskId, Generation), Millis>;

/// A task in an agent's hands.
struct HeldTask<'a> {
    task: &'a TaskId,
    generation: Generation,
    agent: &'a AgentId,
    /// When it was heard of last, as far as that is known.
    since: Millis,
    patience: Duration,
}

impl HeldTask<'_> {
    fn due(&self) -> Millis {
        self.since.after(self.patience)
    }
}

fn held<'a>(
    context: &'a OrchestratorContext,
    run: &'a RunState,
    heard: &'a Heard,
) -> impl Iterator<Item = HeldTask<'a>> + use<'a> {
    run.tasks.iter().filter_map(|(task, state)| {
        let (patience, agent) = (patience(run, state)?, state.agent.as_ref()?);
        let own = Duration::from_millis(context.capacity.quiet_ms(agent));
        let looked_up = heard.get(&(task.clone(), state.generation)).copied();
        let since = looked_up.or(state.offered_at)?;
        Some(HeldTask { task, generation: state.generation, agent, since, patience: patience.max(own) })
    })
}

/// When somebody who says nothing has to be looked after next.
pub(super) fn next(context: &OrchestratorContext, run: &RunState, heard: &Heard) -> Option<Millis> {
    held(context, run, heard).map(|held| held.due()).min()
}

/// Looks up who has said nothing for too long. What was heard is remembered.
///
/// # Errors
/// When the bus fails.
pub(super) async fn look(
    context: &OrchestratorContext,
    run: &RunState,
    heard: &mut Heard,
) -> Result<Vec<Input>, BusError> {
    let now = context.now();
    let overdue = held(context, run, heard).filter(|held| held.due() <= now);
    let overdue: Vec<(TaskId, Generation, AgentId, Millis, Duration)> = overdue
        .map(|held| (held.task.clone(), held.generation, held.agent.clone(), held.since, held.patience))
        .collect();
    let mut silent = Vec::new();
    for (task, generation, agent, since, patience) in overdue {
        let last = context.bus.record().last_word(run.id, &task, generation).await?.unwrap_or(since);
        if last.after(patience) <= now {
            let for_ms = u64::try_from(now.since(last).as_millis()).unwrap_or(u64::MAX);
            silent.push(Input::Silent { task, generation, agent, for_ms });
        } else {
            heard.insert((task, generation), last);
        }
    }
    heard.retain(|(task, generation), _| {
        run.tasks.get(task).is_some_and(|state| state.generation == *generation && state.status.is_in_work())
    });
    Ok(silent)
}
