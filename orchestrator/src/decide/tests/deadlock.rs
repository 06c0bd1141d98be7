//! Tasks that wait for each other, or for what cannot come. The states are made by hand: the rules of plans leave few ways
//! into them, and the way out must not depend on how one came there.

use std::time::Duration;

use muster_shared::flow::{ObservationStatus, RunLimits, TaskDraft, TaskStatus, Wait};
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::run::event::DeadlockEnded;
use muster_shared::run::{Input, RunEvent, RunState, RunStatus, TaskState, Waiting, deadlock};
use muster_shared::time::Millis;
use proptest::prelude::*;

use super::fleet::{Fleet, good, leaf};
use crate::decide::{in_work, next_deadline};

/// A run with these tasks, each with what it depends on, none of them begun.
fn begun(needs: &[Vec<u16>]) -> (Fleet, Vec<TaskDraft>) {
    let names: Vec<String> = (1..=needs.len()).map(|number| number.to_string()).collect();
    let tasks: Vec<TaskDraft> = names.iter().map(|name| leaf(&format!("task {name}"), &[])).collect();
    let limits = RunLimits { max_width: 20, ..RunLimits::default() };
    let mut fleet = Fleet::planned(limits, tasks.clone());
    fleet.open.clear();
    let run = state(&mut fleet);
    for (number, needs) in (1..).zip(needs) {
        let task = run.plan.as_mut().unwrap().tasks.get_mut(&TaskIndex::top(number)).unwrap();
        task.depends_on = needs.iter().map(|needed| TaskIndex::top(*needed)).collect();
        *of(run, number) = TaskState::default();
    }
    (fleet, tasks)
}

fn state(fleet: &mut Fleet) -> &mut RunState {
    fleet.run.as_mut().unwrap()
}

fn of(run: &mut RunState, number: u16) -> &mut TaskState {
    run.tasks.get_mut(&TaskId::Leaf(TaskIndex::top(number))).unwrap()
}

fn let_wait(fleet: &mut Fleet, number: u16, part: u16, since: u64) {
    of(state(fleet), number).wait(Waiting {
        step: 1,
        wait: Wait::Task(Box::default()),
        since: Millis(since),
        for_run: None,
        for_task: Some(TaskIndex::top(part)),
    });
}

fn answer(fleet: &Fleet, number: u16) -> Option<(ObservationStatus, String)> {
    let answered = fleet.run().planned(&TaskIndex::top(number))?.answered.as_ref()?;
    Some((answered.observation.status, answered.observation.content.clone()))
}

fn ended(fleet: &Fleet) -> Vec<(String, Vec<String>)> {
    let events = fleet.events().into_iter().filter_map(|event| match event {
        RunEvent::DeadlockEnded(DeadlockEnded { task, circle, .. }) => {
            Some((task.to_string(), circle.iter().map(TaskIndex::to_string).collect()))
        }
        _ => None,
    });
    events.collect()
}

#[test]
fn of_tasks_that_wait_in_a_circle_the_youngest_wait_is_answered() {
    // 1 waits for 2, which depends on 3, which waits for 4, which depends on 1.
    let (mut fleet, tasks) = begun(&[vec![], vec![3], vec![], vec![1]]);
    let_wait(&mut fleet, 1, 2, 10);
    let_wait(&mut fleet, 3, 4, 20);
    fleet.turn(vec![Input::Timer]);
    assert_eq!(ended(&fleet), [("3".to_owned(), ["3", "4", "1", "2"].map(str::to_owned).to_vec())]);
    let (status, why) = answer(&fleet, 3).unwrap();
    assert_eq!(status, ObservationStatus::Error);
    assert!(why.contains("in a circle: 3 -> 4 -> 1 -> 2 -> 3"), "{why}");
    assert_eq!(answer(&fleet, 1), None, "it still waits");
    fleet.work(|offer| good(offer, &tasks));
    assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
}

#[test]
fn what_waits_for_a_task_that_cannot_begin_goes_on_without_it() {
    let (mut fleet, tasks) = begun(&[vec![], vec![3], vec![]]);
    let_wait(&mut fleet, 1, 2, 10);
    (of(state(&mut fleet), 3).status, of(state(&mut fleet), 3).generation.0) = (TaskStatus::Failed, 1);
    fleet.turn(vec![Input::Timer]);
    assert_eq!(ended(&fleet), [("1".to_owned(), vec![])]);
    let (_, why) = answer(&fleet, 1).unwrap();
    assert!(why.contains("2 cannot begin: what it needs gave no result: 3"), "{why}");
    assert_eq!(fleet.run().planned(&TaskIndex::top(2)).unwrap().status, TaskStatus::Skipped);
    fleet.work(|offer| good(offer, &tasks));
    assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
}

#[test]
fn who_waits_for_what_can_come_waits_on() {
    let (mut fleet, _) = begun(&[vec![], vec![3], vec![]]);
    let_wait(&mut fleet, 1, 2, 10);
    fleet.turn(vec![Input::Timer]);
    assert_eq!((ended(&fleet), answer(&fleet, 1)), (vec![], None));
    assert_eq!(deadlock::circle(fleet.run()), None);
    assert_eq!(deadlock::youngest(fleet.run()), Some(&TaskId::Leaf(TaskIndex::top(1))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever waits for whatever: the run comes to its end, well before its time is up.
    #[test]
    fn no_run_stands_still_for_ever(
        needs in proptest::collection::vec(proptest::collection::vec(any::<u16>(), 0..3), 1..8),
        waits in proptest::collection::vec((any::<u16>(), any::<u16>(), 0..5_u64), 0..8),
        failed in proptest::collection::vec(any::<u16>(), 0..3),
    ) {
        let count = u16::try_from(needs.len()).unwrap();
        // A plan has no circle by itself: each depends on earlier ones.
        let needs: Vec<Vec<u16>> = (1..).zip(needs)
            .map(|(number, wanted)| {
                let mut needs: Vec<u16> =
                    wanted.iter().filter(|_| number > 1).map(|needed| needed % (number - 1).max(1) + 1).collect();
                needs.sort_unstable();
                needs.dedup();
                needs
            })
            .collect();
        let (mut fleet, tasks) = begun(&needs);
        for number in failed {
            let found = of(state(&mut fleet), number % count + 1);
            (found.status, found.generation.0) = (TaskStatus::Failed, 1);
        }
        for (task, part, since) in waits {
            let (task, part) = (task % count + 1, part % count + 1);
            let begins = of(state(&mut fleet), task).status == TaskStatus::Created;
            if begins && task != part {
                let_wait(&mut fleet, task, part, since);
            }
        }
        fleet.turn(vec![Input::Timer]);
        fleet.work(|offer| good(offer, &tasks));
        let run = fleet.run();
        prop_assert!(run.status.is_ended(), "{:?} {:?} {:?}", in_work(run), next_deadline(run), run.tasks);
        prop_assert!(fleet.now.since(run.created_at) < Duration::from_secs(60));
        prop_assert_eq!(deadlock::circle(run), None);
    }
}
