//! Notices agents that have a task and write nothing about it, by the record: that they live shows nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_shared::ids::{AgentId, Generation, TaskId};
use muster_shared::run::{Input, RunState};
use muster_shared::time::{Millis, millis};

use crate::decide::patience;
use crate::drive::Capacity;

/// When anybody wrote last about a generation of a task, as far as it was looked up.
pub(super) type Heard = BTreeMap<(TaskId, Generation), Millis>;

/// A task in an agent's hands.
struct Held<'a> {
    task: &'a TaskId,
    generation: Generation,
    agent: &'a AgentId,
    /// When it was heard of last, as far as that is known.
    since: Millis,
    patience: Duration,
}

impl Held<'_> {
    fn due(&self) -> Millis {
        self.since.after(self.patience)
    }
}

fn held<'a>(
    fleet: &'a Capacity,
    run: &'a RunState,
    heard: &'a Heard,
) -> impl Iterator<Item = Held<'a>> + use<'a> {
    run.tasks.iter().filter_map(|(task, state)| {
        let (patience, agent) = (patience(run, state)?, state.agent.as_ref()?);
        let own = Duration::from_millis(fleet.quiet_ms(agent));
        let looked_up = heard.get(&(task.clone(), state.generation)).copied();
        let since = looked_up.or(state.offered_at)?;
        Some(Held { task, generation: state.generation, agent, since, patience: patience.max(own) })
    })
}

/// When somebody who says nothing has to be looked after next.
pub(super) fn next(fleet: &Capacity, run: &RunState, heard: &Heard) -> Option<Millis> {
    held(fleet, run, heard).map(|held| held.due()).min()
}

/// An agent that may have fallen silent: the record tells.
#[derive(Debug, Clone)]
pub(super) struct Overdue {
    pub(super) task: TaskId,
    pub(super) generation: Generation,
    agent: AgentId,
    since: Millis,
    patience: Duration,
}

/// Who has said nothing for too long, as far as is known without the record.
pub(super) fn overdue(fleet: &Capacity, run: &RunState, heard: &Heard, now: Millis) -> Vec<Overdue> {
    let overdue = held(fleet, run, heard).filter(|held| held.due() <= now);
    let looked_after = |held: Held<'_>| Overdue {
        task: held.task.clone(),
        generation: held.generation,
        agent: held.agent.clone(),
        since: held.since,
        patience: held.patience,
    };
    overdue.map(looked_after).collect()
}

/// What follows from the last word of somebody who is overdue. When it was heard after all, that is remembered.
pub(super) fn judge(
    overdue: Overdue,
    last_word: Option<Millis>,
    heard: &mut Heard,
    now: Millis,
) -> Option<Input> {
    let Overdue { task, generation, agent, since, patience } = overdue;
    let last = last_word.unwrap_or(since);
    if last.after(patience) <= now {
        let for_ms = millis(now.since(last));
        return Some(Input::Silent { task, generation, agent, for_ms });
    }
    heard.insert((task, generation), last);
    None
}

/// Forgets what is not in work any more.
pub(super) fn forget_the_ended(run: &RunState, heard: &mut Heard) {
    heard.retain(|(task, generation), _| {
        run.tasks.get(task).is_some_and(|state| state.generation == *generation && state.status.is_in_work())
    });
}
