//! Priorities: among what is ready, the higher ones are begun first.

use muster_shared::flow::{Goal, PlanDraft, RunLimits, TaskDraft, Work};
use muster_shared::ids::Role;

use super::fleet::{Fleet, leaf, queue};

fn with(name: &str, priority: i8, needs: &[&str]) -> TaskDraft {
    TaskDraft { priority, ..leaf(name, needs) }
}

/// The leaves in the order in which they were offered, with one place for each after the other.
fn order(tasks: Vec<TaskDraft>) -> Vec<String> {
    let mut fleet = Fleet::new();
    fleet.slots.insert(queue(Role::Worker), 0);
    let plan = Some(Box::new(PlanDraft { tasks, ..PlanDraft::default() }));
    fleet.begin_as_it_is(Goal { plan, ..Goal::new("Do it all.") }, RunLimits::default());
    fleet.turn(vec![muster_shared::run::Input::Capacity]);
    fleet.finish(&[]);
    let leaves = fleet.offered().into_iter().filter(|offer| matches!(offer.work, Work::Execute { .. }));
    leaves.map(|offer| offer.task.to_string()).collect()
}

#[test]
fn what_is_ready_is_begun_by_priority_and_then_by_place() {
    let cases: Vec<(Vec<TaskDraft>, &[&str])> = vec![
        (vec![with("a", 0, &[]), with("b", 0, &[]), with("c", 0, &[])], &["1", "2", "3"]),
        (vec![with("a", -1, &[]), with("b", 0, &[]), with("c", 7, &[])], &["3", "2", "1"]),
        // What is not ready waits, whatever its priority.
        (vec![with("a", 0, &[]), with("b", 0, &[]), with("c", 7, &["b"])], &["1", "2", "3"]),
        (vec![with("a", 0, &[]), with("b", 3, &[]), with("c", 7, &["b"])], &["2", "3", "1"]),
    ];
    for (tasks, expected) in cases {
        assert_eq!(order(tasks.clone()), expected, "{tasks:?}");
    }
}

#[test]
fn what_lies_below_has_the_priority_of_what_is_above() {
    let parts = vec![with("b1", 0, &[]), with("b2", 9, &[])];
    let whole = TaskDraft { subtasks: parts, role: None, ..with("b", 5, &[]) };
    assert_eq!(order(vec![with("a", 0, &[]), whole, with("c", 6, &[])]), ["2-2", "3", "2-1", "1"]);
}
