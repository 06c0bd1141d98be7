//! Ordinary offers of every kind of work.

use muster_shared::flow::{CorpusRef, PlanTask, TaskOffered, Work};
use muster_shared::ids::{Role, TaskId, TaskIndex};

use super::hostile;
use crate::testing::{execute, leaf, offer};

/// A leaf that is the goal itself, with nothing beside it.
pub(super) fn simple() -> TaskOffered {
    const GOAL: &str = "What is 17.5 % of 2480?";
    let mut work = execute(Role::Worker);
    if let Work::Execute { task, parents, progress, lessons, .. } = &mut work {
        *task = PlanTask::new("the whole goal", GOAL, Role::Worker);
        *parents = Vec::new();
        *lessons = Vec::new();
        *progress = "[-] 1 the whole goal".into();
    }
    TaskOffered { goal: GOAL.into(), ..offer(TaskId::Leaf(TaskIndex::top(1)), Role::Worker, work) }
}

pub(super) fn offers() -> Vec<(&'static str, TaskOffered)> {
    let outline = "guide.md (412 lines): Muster; Delegation; Death\nlimits.md (88 lines): Limits".to_owned();
    let corpus = CorpusRef { id: "c".into(), files: 2, bytes: 21_000, outline };
    let with_documents = |offer: TaskOffered| TaskOffered { corpus: Some(corpus.clone()), ..offer };
    let mut all = vec![
        ("simple", simple()),
        ("worker", with_documents(leaf(Role::Worker))),
        ("researcher", with_documents(leaf(Role::Researcher))),
    ];
    let kinds = ["planner", "hostile_leaf", "reflector", "refiner", "writer", "draft_reviewer"];
    let works = kinds.into_iter().zip(hostile::offers());
    all.extend(works.filter(|(name, _)| *name != "hostile_leaf"));
    all
}
