//! Plans that are not flat and simple: tasks below tasks, and tasks that were tried before the plan changes.

use muster_shared::flow::{Ending, RefineOperation, RunLimits, TaskDraft, TaskOffered};
use muster_shared::ids::{Generation, TaskIndex};
use muster_shared::run::{RunEvent, RunStatus};

use super::fleet::{Fleet, advising, failed, good, leaf, refinement};

/// A parent of two leaves, the second of which uses the first.
fn nested() -> Vec<TaskDraft> {
    let mut parent = leaf("fruit", &[]);
    parent.subtasks = vec![leaf("apples", &[]), leaf("pears", &["1-1"])];
    vec![parent, leaf("bread", &[])]
}

fn planned() -> Fleet {
    Fleet::planned(RunLimits::default(), nested())
}

#[test]
fn a_refinement_is_offered_though_a_parent_has_leaves_left() {
    let mut fleet = planned();
    let mut refined = false;
    fleet.work(|offer: &TaskOffered| {
        refined |= offer.task.to_string() == "refine-1";
        match offer.task.to_string().as_str() {
            "1-1" => advising("there are apples", "there may be more"),
            _ => good(offer, &nested()),
        }
    });
    assert!(refined);
    assert_eq!(fleet.status(), RunStatus::Completed);
}

#[test]
fn a_leaf_below_a_parent_that_cannot_start_does_not_keep_the_run_open() {
    let mut fleet = planned();
    fleet.work(|offer: &TaskOffered| match offer.task.to_string().as_str() {
        "1-1" => failed(Ending::Escalate, "somebody must decide"),
        _ => good(offer, &nested()),
    });
    assert_eq!(fleet.status(), RunStatus::Completed);
    assert!(fleet.events().iter().any(|event| matches!(event, RunEvent::TaskBlocked(_))));
}

/// What agents wrote about a generation stays in the record: were its task taken out and another put in its place, it
/// would be read as that one's.
#[test]
fn a_task_that_was_tried_before_is_not_taken_out() {
    let tasks = vec![leaf("apples", &[]), leaf("bread", &[]), leaf("pears", &["1"])];
    let mut fleet = Fleet::planned(RunLimits::default(), tasks.clone());
    fleet.do_well("1", &tasks);
    let (pears, bread) = (fleet.find("3"), fleet.find("2"));
    fleet.start(&pears);
    fleet.end(&bread, advising("there is bread", "there may be more"));
    fleet.end(&pears, failed(Ending::AgentFailed, "crashed"));
    fleet.work(|offer| match offer.task.to_string().as_str() {
        "refine-1" => refinement(vec![
            RefineOperation::Delete { task: TaskIndex::top(3), reason: "it crashed".into() },
            RefineOperation::Add { after: TaskIndex::top(2), tasks: vec![leaf("plums", &[])] },
        ]),
        _ => good(offer, &tasks),
    });
    let (_, refused) = &fleet.run().refining.done[0];
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(fleet.run().tasks[&"3".parse().unwrap()].generation, Generation(2));
    assert_eq!(fleet.status(), RunStatus::Completed);
}
