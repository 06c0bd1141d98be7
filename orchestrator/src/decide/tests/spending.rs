//! How a run's budget is shared out, and what follows when it is used up.

use muster_shared::flow::{
    Budget, Ending, Outcome, Rights, RunLimits, TaskDraft, TaskOffered, TaskStatus, Usage, Work,
};
use muster_shared::ids::TaskId;
use muster_shared::run::{RunStatus, StopReason};
use proptest::prelude::*;

use super::fleet::{Fleet, failed, good, leaf};

fn calls(most: u64) -> RunLimits {
    RunLimits { budget: Budget { model_calls: Some(most), ..Budget::UNLIMITED }, ..RunLimits::default() }
}

fn tasks(count: usize) -> Vec<TaskDraft> {
    (1..=count).map(|n| leaf(&format!("part {n}"), &[])).collect()
}

/// Does the task with this many calls, or with as many as it may.
fn spending(offer: &TaskOffered, tasks: &[TaskDraft], calls: u64) -> Outcome {
    let may = offer.budget.model_calls.unwrap_or(u64::MAX);
    let outcome = good(offer, tasks);
    if calls > may {
        let used = Usage { model_calls: may, ..Usage::default() };
        let product = outcome.product.filter(|_| matches!(offer.work, Work::Execute { .. }));
        return Outcome { usage: used, product, ..failed(Ending::BudgetExhausted, "no call is left") };
    }
    Outcome { usage: Usage { model_calls: calls, ..Usage::default() }, ..outcome }
}

fn finish(limits: RunLimits, tasks: &[TaskDraft], calls: u64) -> Fleet {
    let mut fleet = Fleet::submitted(limits);
    fleet.work(|offer| spending(offer, tasks, calls));
    fleet
}

fn body(fleet: &Fleet) -> &str {
    fleet.run().report.as_ref().map_or("", |report| report.body.as_str())
}

#[test]
fn without_a_budget_offers_are_not_limited() {
    let fleet = finish(RunLimits::default(), &tasks(3), 5);
    assert_eq!(fleet.status(), RunStatus::Completed);
    assert!(fleet.offered().iter().all(|offer| offer.budget.is_unlimited()));
    assert!(fleet.run().spending.allotted.is_empty());
}

#[test]
fn a_task_budget_holds_for_every_offer() {
    let each = Budget { steps: Some(7), cost_micros: Some(500), ..Budget::UNLIMITED };
    let limits =
        RunLimits { rights: Box::new(Rights { budget: each, ..Rights::default() }), ..RunLimits::default() };
    let fleet = finish(limits, &tasks(2), 1);
    assert!(fleet.offered().iter().all(|offer| offer.budget == each));
}

#[test]
fn enough_is_enough() {
    let fleet = finish(calls(100), &tasks(4), 3);
    assert_eq!(fleet.status(), RunStatus::Completed);
    assert_eq!(fleet.run().spending.used.model_calls, 3 * (1 + 4 + 4 + 1));
    assert!(!body(&fleet).contains("budget"), "{}", body(&fleet));
    assert!(
        fleet.run().spending.allotted.is_empty(),
        "all was given back: {:?}",
        fleet.run().spending.allotted
    );
}

#[test]
fn what_cannot_be_paid_for_is_left_out_and_the_report_says_so() {
    // One call is kept for the writer; plan and leaves want two each, and one is not enough for a fifth leaf.
    let parts = tasks(5);
    let mut fleet = Fleet::submitted(calls(10));
    fleet.work(|offer| spending(offer, &parts, if offer.task == TaskId::Write { 1 } else { 2 }));
    assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
    assert!(body(&fleet).contains("The budget did not suffice (10 model calls)"), "{}", body(&fleet));
    assert!(fleet.run().spending.used.model_calls <= 10);
    let work = fleet.offered().last().map(|offer| offer.work.clone());
    let Some(Work::Write { failed, .. }) = work else { panic!("{work:?}") };
    assert!(!failed.is_empty() || body(&fleet).contains("cut short"), "{}", body(&fleet));
}

#[test]
fn a_plan_that_cannot_be_paid_for_stops_the_run() {
    let fleet = finish(calls(0), &tasks(1), 1);
    assert_eq!(fleet.status(), RunStatus::Aborted(StopReason::BudgetExhausted));
    assert!(fleet.reason().contains("before there was a plan"), "{}", fleet.reason());
    let fleet = finish(calls(4), &tasks(1), 5);
    assert_eq!(fleet.status(), RunStatus::Aborted(StopReason::BudgetExhausted));
    assert!(fleet.run().spending.used.model_calls <= 4);
}

#[test]
fn a_report_that_cannot_be_paid_for_stops_the_run() {
    let limits = calls(40);
    let mut fleet = Fleet::submitted(limits);
    let parts = tasks(1);
    fleet.work(|offer| {
        let calls = if offer.task == TaskId::Write { 100 } else { 1 };
        spending(offer, &parts, calls)
    });
    assert_eq!(fleet.status(), RunStatus::Aborted(StopReason::BudgetExhausted));
    assert!(fleet.reason().contains("before the report was written"), "{}", fleet.reason());
}

#[test]
fn a_part_of_a_result_counts_when_the_budget_ran_out() {
    let each = Budget { model_calls: Some(2), ..Budget::UNLIMITED };
    let limits =
        RunLimits { rights: Box::new(Rights { budget: each, ..Rights::default() }), ..RunLimits::default() };
    let parts = tasks(2);
    let mut fleet = Fleet::submitted(limits);
    fleet.work(|offer| spending(offer, &parts, if offer.task.leaf().is_some() { 9 } else { 1 }));
    assert_eq!(fleet.status(), RunStatus::Completed);
    let leaf: TaskId = "1".parse().unwrap();
    assert_eq!(fleet.run().tasks[&leaf].status, TaskStatus::Completed);
    assert!(body(&fleet).contains("cut short"), "{}", body(&fleet));
}

#[test]
fn what_a_lost_agent_was_given_counts_as_used() {
    let mut fleet = Fleet::submitted(calls(20));
    let parts = tasks(2);
    let offer = fleet.begin_task("plan");
    fleet.end(&offer, spending(&offer, &parts, 1));
    let offer = fleet.begin_task("1");
    fleet.open.retain(|open| open.task != offer.task);
    fleet.now = offer.deadline.after(std::time::Duration::from_secs(10));
    fleet.turn(vec![muster_shared::run::Input::Timer]);
    let kept = fleet.run().spending.allotted.iter().filter(|kept| kept.task == offer.task);
    assert_eq!(kept.count(), 2, "the lost one's and the new one's: {:?}", fleet.run().spending.allotted);
}

/// All that is set aside for what may still spend it, and all that was used.
fn committed(fleet: &Fleet) -> u64 {
    let set_aside = fleet.run().spending.allotted.iter().filter_map(|kept| kept.budget.model_calls);
    fleet.run().spending.used.calls() + set_aside.sum::<u64>()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_used_and_set_aside_never_exceeds_the_budget(
        most in 0_u64..60,
        count in 1_usize..6,
        wanted in proptest::collection::vec(0_u64..8, 1..30),
        fails in proptest::collection::vec(any::<bool>(), 1..30),
        picks in proptest::collection::vec(any::<u8>(), 1..40),
    ) {
        let parts = tasks(count);
        let mut fleet = Fleet::submitted(calls(most));
        let mut at = 0;
        while !fleet.open.is_empty() {
            prop_assert!(committed(&fleet) <= most, "{:?}", fleet.run().spending.allotted);
            at += 1;
            prop_assert!(at < 500, "it does not come to an end");
            let offer = fleet.open[usize::from(picks[at % picks.len()]) % fleet.open.len()].clone();
            fleet.start(&offer);
            let mut outcome = spending(&offer, &parts, wanted[at % wanted.len()]);
            if fails[at % fails.len()] {
                outcome = Outcome { usage: outcome.usage, ..failed(Ending::AgentFailed, "it broke") };
            }
            fleet.end(&offer, outcome);
        }
        prop_assert!(fleet.status().is_ended());
        prop_assert!(fleet.run().spending.used.calls() <= most);
    }
}
