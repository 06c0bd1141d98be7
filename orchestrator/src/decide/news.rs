//! Telling whoever has been at work for a while how the run stands: an offer tells it once. A live word that stands in no
//! record; who misses it is told with the next change, or with its next offer.

use std::time::Duration;

use muster_shared::flow::TaskStatus;
use muster_shared::ids::TaskId;

use super::builder::DecisionBuilder;
use super::effect::Effect;
use super::work;

/// How long a task has been offered before it is told: what ends sooner is not worth a message.
const AFTER: Duration = Duration::from_secs(2);

/// Most tasks that are told of one change.
const MOST: usize = 32;

/// Longest tree that is told, in characters.
const LONGEST: usize = 8_000;

/// Tells of the progress where a task of the plan ends with this decision.
pub(super) fn tell(decision: &mut DecisionBuilder<'_>) {
    let now = decision.now();
    let Some(run) = decision.open().filter(|_| decision.ends_a_leaf()) else { return };
    let waited = |task: &TaskId| {
        let state = run.tasks.get(task).filter(|state| state.status == TaskStatus::Processing)?;
        let since = state.offered_at.filter(|at| at.after(AFTER) <= now)?;
        (since <= now).then_some((task.clone(), state.generation, state.agent.clone()?))
    };
    let leaves = run.tasks.keys().filter(|task| matches!(task, TaskId::Leaf(_)));
    let told: Vec<_> = leaves.filter_map(waited).take(MOST).collect();
    if told.is_empty() {
        return;
    }
    let progress: String = work::progress_tree(run).chars().take(LONGEST).collect();
    for (task, generation, agent) in told {
        let (information, progress) = (Vec::new(), progress.clone());
        decision.effect(Effect::Inform { task, generation, agent, information, progress });
    }
}
