//! Who has a say in what is done, where certain people have to approve, or several.

use muster_shared::ids::TaskIndex;
use muster_shared::run::RequestAction;
use serde_json::json;

use super::fleet::Fleet;
use super::review::{YES, by, person, signed, waiting};

fn edit(task: Option<u16>, goal: &str) -> RequestAction {
    RequestAction::Edit { task: task.map(TaskIndex::top), goal: goal.to_owned() }
}

fn skip(task: u16) -> RequestAction {
    RequestAction::Skip { task: TaskIndex::top(task) }
}

fn redo(task: u16) -> RequestAction {
    RequestAction::Redo { task: TaskIndex::top(task) }
}

fn value(version: u32) -> RequestAction {
    RequestAction::SetContext { key: "limit".to_owned(), value: json!(20), version }
}

/// How often the plan was approved so far.
fn approvals(fleet: &Fleet) -> Option<usize> {
    fleet.run().open_questions().next().map(|(_, asked)| asked.approvals.len())
}

#[test]
fn whoever_may_not_approve_changes_nothing_of_what_is_approved() {
    let mut fleet = waiting(by(&["ann", "ben"], 2));
    signed(&mut fleet, 1, person("ann"), YES);
    let plan = fleet.run().plan.clone();
    let changes = [edit(Some(1), "another goal"), edit(None, "another goal"), skip(2), redo(1), value(0)];
    for (n, action) in (10..).zip(changes) {
        let before = fleet.refusals().len();
        signed(&mut fleet, n, person("cy"), action.clone());
        let refused = fleet.refusals();
        assert_eq!(refused.len(), before + 1, "{action:?}");
        assert!(refused[before].contains("cy has no say in this"), "{refused:?}");
    }
    assert_eq!((fleet.run().plan.clone(), approvals(&fleet)), (plan, Some(1)));
    signed(&mut fleet, 20, person("ben"), YES);
    assert!(!fleet.run().is_held());
    // Nor later; what runs know in common, they may tell.
    signed(&mut fleet, 21, person("cy"), edit(Some(1), "another goal"));
    assert!(fleet.refusals().pop().unwrap().contains("cy has no say in this"));
    let before = fleet.refusals().len();
    signed(&mut fleet, 22, person("cy"), value(0));
    signed(&mut fleet, 23, person("ann"), edit(Some(1), "what ann wants"));
    assert_eq!(fleet.refusals().len(), before, "{:?}", fleet.refusals());
    for (n, action) in
        (30..).zip([RequestAction::Pause, RequestAction::Resume { deadline_ms: None }, RequestAction::Cancel])
    {
        signed(&mut fleet, n, person("cy"), action);
    }
    assert_eq!(fleet.refusals().len(), before, "to stop it is everybody's: {:?}", fleet.refusals());
}

#[test]
fn whoever_changes_what_is_under_review_has_it_approved_anew() {
    for change in [edit(Some(1), "another goal"), edit(None, "another goal"), skip(2), value(0)] {
        let mut fleet = waiting(by(&[], 2));
        signed(&mut fleet, 1, person("ann"), YES);
        assert_eq!(approvals(&fleet), Some(1));
        signed(&mut fleet, 2, person("cy"), change.clone());
        assert_eq!(fleet.refusals(), Vec::<&str>::new(), "{change:?}");
        assert_eq!(approvals(&fleet), Some(0), "{change:?}: ann approved something else");
        signed(&mut fleet, 3, person("ben"), YES);
        assert!(fleet.run().is_held(), "{change:?}");
        signed(&mut fleet, 4, person("ann"), YES);
        assert!(!fleet.run().is_held(), "{change:?}");
    }
}
