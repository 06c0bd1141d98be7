//! What a task may use: the rights of its run, less what its plan, its blueprint, the tasks that handed it over and the
//! task that its run was begun for take away. Found in the run's state alone, so that nobody can ask for more.

use muster_shared::flow::{Budget, CorpusRef, Grantor, Refusal, Rights, TaskRights, Use, Wait};
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::run::RunState;

use super::delegate;

/// What a task may use.
pub(super) fn of(run: &RunState, task: &TaskId) -> TaskRights {
    let mut rights = of_run(run);
    let Some(leaf) = task.as_leaf() else { return rights };
    let leaf = leaf.planned();
    for from in delegate::chain(run, &leaf) {
        for (_, own) in named_for(run, &from) {
            rights = rights.narrowed_by(Grantor::HandOver { from: from.clone() }, own);
        }
    }
    for (index, own) in named_for(run, &leaf) {
        rights = rights.narrowed_by(grantor(run, index), own);
    }
    rights
}

/// What the plan names for a task and for those that it is a part of, the highest first.
fn named_for<'a>(run: &'a RunState, leaf: &TaskIndex) -> Vec<(&'a TaskIndex, &'a Rights)> {
    let named = |index: TaskIndex| {
        let (index, task) = run.plan.as_ref()?.tasks.get_key_value(&index)?;
        Some((index, task.rights.as_deref()?))
    };
    let mut found: Vec<_> =
        std::iter::successors(Some(leaf.clone()), TaskIndex::parent).filter_map(named).collect();
    found.reverse();
    found
}

fn grantor(run: &RunState, task: &TaskIndex) -> Grantor {
    let task = task.clone();
    match &run.goal.blueprint {
        Some(filled) => Grantor::Blueprint { name: filled.blueprint.name.clone(), task },
        None => Grantor::Plan { task },
    }
}

/// What any task of the run may use at most.
pub(super) fn of_run(run: &RunState) -> TaskRights {
    let above = run.goal.parent.as_ref().map(|parent| parent.rights.clone()).unwrap_or_default();
    above.narrowed_by(Grantor::Goal, &run.limits.rights)
}

/// What a run may use that is begun for a task of this one.
pub(super) fn for_child(run: &RunState, task: &TaskId) -> TaskRights {
    of(run, task).of_run_above(run.id)
}

/// The most that a task may use by its rights.
pub(super) fn budget(run: &RunState, task: &TaskId) -> Budget {
    let rights = of(run, task);
    rights.grants().iter().fold(Budget::UNLIMITED, |most, grant| most.tighter(&grant.to.budget))
}

/// Why a task may not wait for this; nothing when it may.
pub(super) fn refused(run: &RunState, task: &TaskId, wait: &Wait) -> Option<Refusal> {
    of(run, task).allows(&Use::of_wait(wait)?).err()
}

/// The documents without those that may not be read, as far as they are named.
pub(super) fn readable(mut corpus: CorpusRef, rights: &TaskRights) -> CorpusRef {
    if rights.grants().iter().all(|grant| grant.to.documents.is_all()) {
        return corpus;
    }
    let may = |line: &&str| {
        let path = line.split_once(": ").map_or(*line, |(told, _)| told);
        let path = path.rsplit_once(" (").map(|(path, _)| path);
        path.is_some_and(|path| rights.allow(&Use::Document(path)))
    };
    corpus.outline = corpus.outline.lines().filter(may).collect::<Vec<_>>().join("\n");
    corpus
}
