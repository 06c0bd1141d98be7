//! One behaviour each.

use muster_shared::flow::{
    Ending, Product, RefineOperation, RunLimits, TaskDraft, TaskOffered, TaskStatus, Work,
};
use muster_shared::ids::{Generation, Role, TaskId, TaskIndex};
use muster_shared::run::event::PlanAdopted;
use muster_shared::run::{AgentEvent, Input, Phase, RunEvent, RunStatus, StopReason};
use muster_shared::time::Millis;

use super::fleet::{
    Fleet, advising, cancel, done, failed, good, leaf, plan, queue, refinement, reflection, report, result,
};
use crate::decide::{Effect, next_deadline};

/// Two leaves side by side, and one that uses both.
pub(super) fn tasks() -> Vec<TaskDraft> {
    let mut last = leaf("the sum", &["1", "2"]);
    last.goal = "put together {{1.result}} and {{2.result}}".into();
    vec![leaf("apples", &[]), leaf("pears", &[]), last]
}

pub(super) fn planned() -> Fleet {
    planned_with(RunLimits::default())
}

pub(super) fn planned_with(limits: RunLimits) -> Fleet {
    Fleet::planned(limits, tasks())
}

pub(super) fn open(fleet: &Fleet) -> Vec<String> {
    fleet.open.iter().map(|offer| offer.task.to_string()).collect()
}

pub(super) fn status(fleet: &Fleet, task: &str) -> TaskStatus {
    fleet.run().tasks[&task.parse::<TaskId>().unwrap()].status
}

pub(super) fn do_task(fleet: &mut Fleet, task: &str) {
    let offer = fleet.begin_task(task);
    let outcome = good(&offer, &tasks());
    fleet.end(&offer, outcome);
}

#[test]
fn a_goal_becomes_a_run_and_its_plan_is_asked_for() {
    let fleet = Fleet::submitted(RunLimits::default());
    assert_eq!(fleet.status(), RunStatus::Processing);
    let offer = fleet.find("plan");
    assert_eq!(offer.queue, queue(Role::Planner));
    assert_eq!(offer.generation, Generation(1));
    assert_eq!(
        offer.work,
        Work::Plan {
            refused: Vec::new(),
            roles: vec!["researcher".into(), "worker".into()],
            lessons: Vec::new(),
            specialists: Vec::new(),
            tools: muster_shared::plan::tools::known(&[]),
            blueprints: Vec::new(),
            draft: None,
            replan: None,
            answers: Vec::new(),
            refused_plan: None,
            held_to: Box::default(),
        }
    );
    assert_eq!(offer.deadline, Millis(fleet.now.0 + fleet.run().limits.task_deadline_ms));
    assert_eq!(next_deadline(fleet.run()), Some(Millis(offer.deadline.0 + 2000)));
    assert_eq!(fleet.effects, []);
}

#[test]
fn a_goal_that_is_no_goal_fails_with_the_reason_on_record() {
    let mut fleet = Fleet::new();
    fleet.submit("  ", RunLimits::default());
    assert_eq!(fleet.status(), RunStatus::Failed);
    assert!(fleet.reason().contains("the goal is empty"), "{}", fleet.reason());
    assert_eq!(next_deadline(fleet.run()), None);
}

#[test]
fn a_goal_submitted_twice_is_one_run() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    let entries = fleet.record.len();
    fleet.submit("Something else?", RunLimits::default());
    assert_eq!(fleet.record.len(), entries);
    assert_eq!(fleet.run().goal.text, "Which limits are there?");
}

#[test]
fn independent_leaves_go_out_together_and_dependent_ones_with_their_results() {
    let mut fleet = planned();
    assert_eq!(open(&fleet), ["1", "2"]);
    do_task(&mut fleet, "1");
    assert_eq!(open(&fleet), ["2", "reflect-1"]);
    do_task(&mut fleet, "2");
    let offer = fleet.find("3");
    let Work::Execute { task, inputs, .. } = &offer.work else { panic!("{:?}", offer.work) };
    assert_eq!(task.goal, "put together apples is so and pears is so");
    let inputs: Vec<&str> = inputs.iter().map(|leaf| leaf.result.conclusion.as_str()).collect();
    assert_eq!(inputs, ["apples is so", "pears is so"]);
    fleet.finish(&tasks());
    assert_eq!(fleet.run().reflections().count(), 3);
    assert_eq!(fleet.run().report.as_ref().unwrap().title, "Report");
    let last = fleet.offered().last().copied().cloned().unwrap();
    let Work::Write { results, failed, .. } = last.work else { panic!("{:?}", last.work) };
    assert_eq!((results.len(), failed.len()), (3, 0));
    let [.., Effect::KeepTrackRecord { track_record }] = &fleet.effects[..] else { panic!() };
    let done: u64 = track_record.agents.iter().map(|agent| agent.tally.done).sum();
    assert_eq!(done, 8, "a plan, three leaves, as many reflections, and the report");
}

#[test]
fn every_ending_is_retried_as_often_as_it_deserves() {
    for (ending, tries) in [
        (Ending::ModelFailed, 3),
        (Ending::AgentFailed, 3),
        (Ending::Cancelled, 3),
        (Ending::GaveUp, 2),
        (Ending::Delegate, 2),
        (Ending::Blocked, 2),
        (Ending::DeadlinePassed, 2),
        (Ending::Escalate, 1),
    ] {
        let mut fleet = planned();
        for generation in 1..=tries {
            let offer = fleet.find("1");
            assert_eq!(offer.generation, Generation(generation), "{ending:?}");
            let Work::Execute { failed_before, .. } = &offer.work else { panic!() };
            assert_eq!(failed_before.is_some(), generation > 1, "{ending:?}");
            fleet.start(&offer);
            fleet.end(&offer, failed(ending, "it would not"));
        }
        assert_eq!(status(&fleet, "1"), TaskStatus::Failed, "{ending:?}");
        assert!(open(&fleet).contains(&"reflect-1".to_owned()), "{ending:?}: failures are reflected upon");
    }
}

#[test]
fn done_without_a_product_of_the_right_kind_counts_as_a_failed_try() {
    let mut fleet = planned();
    fleet.do_task("1", report());
    assert_eq!(fleet.find("1").generation, Generation(2));
    assert!(fleet.run().planned(&TaskIndex::top(1)).unwrap().reasons[0].contains("did not send"));
}

#[test]
fn a_leaf_that_fails_does_not_fail_the_run_and_the_writer_hears_of_it() {
    let mut fleet = planned();
    fleet.work(|offer| match &offer.task {
        TaskId::Leaf(index) if *index == TaskIndex::top(2) => failed(Ending::GaveUp, "no pears anywhere"),
        _ => good(offer, &tasks()),
    });
    assert_eq!(fleet.status(), RunStatus::Completed);
    let Work::Write { results, failed, .. } = &fleet.offered().last().unwrap().work else { panic!() };
    assert_eq!(results.len(), 2, "the third goes on with what the first gave");
    assert_eq!(failed, &[(TaskIndex::top(2), "pears".into(), "no pears anywhere".into())]);
}

#[test]
fn a_critical_leaf_that_fails_is_marked_in_the_report() {
    let mut all = tasks();
    all[0].critical = true;
    let mut fleet = Fleet::submitted(RunLimits::default());
    fleet.work(|offer| match &offer.task {
        TaskId::Leaf(index) if *index == TaskIndex::top(1) => failed(Ending::GaveUp, "no apples"),
        _ => good(offer, &all),
    });
    assert_eq!(fleet.status(), RunStatus::Completed);
    let unanswered = &fleet.run().report.as_ref().unwrap().unanswered;
    assert_eq!(unanswered.len(), 1);
    assert!(unanswered[0].contains("1 apples") && unanswered[0].contains("no apples"), "{unanswered:?}");
}

#[test]
fn a_run_in_which_nothing_came_out_fails_and_says_why() {
    let mut fleet = planned();
    fleet.work(|offer| match &offer.task {
        TaskId::Leaf(_) => failed(Ending::GaveUp, "nothing there"),
        _ => good(offer, &tasks()),
    });
    assert_eq!(fleet.status(), RunStatus::Failed);
    assert!(fleet.reason().contains("1 apples: nothing there"), "{}", fleet.reason());
    assert!(fleet.reason().contains("3 the sum: what it needs gave no result"), "{}", fleet.reason());
    assert_eq!(status(&fleet, "3"), TaskStatus::Blocked);
}

#[test]
fn a_planner_that_fails_fails_the_run_after_all_tries() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    fleet.work(|_| failed(Ending::ModelFailed, "401 from the model"));
    assert_eq!(fleet.status(), RunStatus::Failed);
    assert_eq!(fleet.offered().len(), 3);
    assert!(fleet.reason().contains("in 3 tries: 401 from the model"), "{}", fleet.reason());
    assert!(fleet.reason().contains("muster doctor"), "{}", fleet.reason());
}

#[test]
fn a_bad_plan_is_asked_for_again_with_the_reasons_and_then_repaired() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    let circular = vec![leaf("apples", &["2"]), leaf("pears", &["1"])];
    fleet.do_task("plan", plan(circular.clone()));
    let offer = fleet.find("plan");
    assert_eq!(offer.generation, Generation(2));
    let Work::Plan { refused, .. } = &offer.work else { panic!() };
    assert_eq!(refused.len(), fleet.run().planning.refused[0].len());
    assert!(!refused.is_empty());
    fleet.start(&offer);
    fleet.end(&offer, plan(circular));
    let adopted = fleet.events().into_iter().find_map(|event| match event {
        RunEvent::PlanAdopted(PlanAdopted { repairs, .. }) => Some(repairs.clone()),
        _ => None,
    });
    assert!(!adopted.unwrap().is_empty(), "it says what was repaired");
    fleet.finish(&[]);
}

#[test]
fn a_plan_without_tasks_is_asked_for_once_more_and_then_one_task_does_the_whole() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    fleet.work(|offer| match offer.task {
        TaskId::Plan => plan(Vec::new()),
        _ => good(offer, &[]),
    });
    assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
    assert_eq!(fleet.run().plan.as_ref().unwrap().tasks.len(), 1);
    assert_eq!(fleet.run().planning.refused.len(), 1);
}

#[test]
fn a_writer_that_fails_fails_the_run_and_keeps_the_results() {
    let mut fleet = planned();
    fleet.work(|offer| match offer.task {
        TaskId::Write => failed(Ending::ModelFailed, "overloaded"),
        _ => good(offer, &tasks()),
    });
    assert_eq!(fleet.status(), RunStatus::Failed);
    assert!(
        fleet.reason().contains("overloaded") && fleet.reason().contains("muster show"),
        "{}",
        fleet.reason()
    );
    assert_eq!(fleet.run().tasks.values().filter(|task| task.status == TaskStatus::Completed).count(), 7);
}

#[test]
fn reflections_and_refinements_that_fail_do_not_fail_the_run() {
    let mut fleet = planned();
    fleet.work(|offer| match &offer.task {
        TaskId::Reflect(_) | TaskId::Refine(_) => failed(Ending::ModelFailed, "no answer"),
        TaskId::Leaf(_) => advising("so", "look for plums too"),
        _ => good(offer, &tasks()),
    });
    assert_eq!(fleet.status(), RunStatus::Completed);
    assert_eq!(status(&fleet, "reflect-1"), TaskStatus::Failed);
    assert_eq!(status(&fleet, "refine-1"), TaskStatus::Failed);
}

#[test]
fn wishes_for_a_refinement_are_collected_and_dependent_leaves_wait_for_it() {
    let mut fleet = planned();
    fleet.do_task("1", advising("apples are so", "there are plums too"));
    do_task(&mut fleet, "2");
    assert!(!open(&fleet).contains(&"3".to_owned()), "{:?}", open(&fleet));
    fleet.do_task("reflect-1", reflection(Some("plums were not covered")));
    assert_eq!(open(&fleet), ["reflect-2"], "the refinement waits for the last reflection");
    do_task(&mut fleet, "reflect-2");
    let offer = fleet.find("refine-1");
    let Work::Refine { reasons, operations_left, .. } = &offer.work else { panic!() };
    assert_eq!(reasons, &["1: there are plums too", "1: plums were not covered"]);
    assert_eq!(*operations_left, 4);
    fleet.start(&offer);
    let add = RefineOperation::Add { after: TaskIndex::top(2), tasks: vec![leaf("plums", &[])] };
    let wrong = RefineOperation::Delete { task: TaskIndex::top(1), reason: String::new() };
    fleet.end(&offer, refinement(vec![add, wrong]));
    let (changes, refused) = &fleet.run().refining.done[0];
    assert!(changes.iter().any(|change| change.contains("plums")), "{changes:?}");
    assert_eq!(refused.len(), 1, "what has ended stays");
    fleet.finish(&tasks());
    let Work::Write { results, .. } = &fleet.offered().last().unwrap().work else { panic!() };
    assert_eq!(results.len(), 4);
}

#[test]
fn refinements_are_limited() {
    let mut fleet = planned_with(RunLimits { max_refinements: 2, ..RunLimits::default() });
    let mut refinements = 0;
    fleet.work(|offer| match &offer.work {
        Work::Reflect { .. } => reflection(Some("more is needed")),
        Work::Refine { plan, .. } => {
            refinements += 1;
            let after = plan.tasks.keys().last().unwrap().clone();
            let more = leaf(&format!("more {refinements}"), &[]);
            refinement(vec![RefineOperation::Add { after, tasks: vec![more] }])
        }
        _ => good(offer, &tasks()),
    });
    assert_eq!(fleet.status(), RunStatus::Completed);
    assert_eq!(refinements, 2);
    assert_eq!(fleet.run().refining.wanted.len(), 2);
}

#[test]
fn offers_stay_within_what_the_queue_has_room_for() {
    let mut fleet = Fleet::new();
    fleet.slots.insert(queue(Role::Worker), 1);
    fleet.submit("many", RunLimits::default());
    let many: Vec<TaskDraft> = (1..=5).map(|n| leaf(&format!("part {n}"), &[])).collect();
    fleet.do_task("plan", plan(many.clone()));
    assert_eq!(open(&fleet), ["1", "2"], "one slot and one more");
    fleet.slots.insert(queue(Role::Worker), 3);
    fleet.turn(vec![Input::Capacity]);
    assert_eq!(open(&fleet), ["1", "2", "3", "4"]);
    fleet.finish(&many);
}

#[test]
fn cancelling_stops_the_run_and_whoever_works_for_it() {
    let mut fleet = planned();
    let offer = fleet.begin_task("1");
    fleet.turn(vec![cancel("ann", "enough")]);
    assert_eq!(fleet.status(), RunStatus::Aborted(StopReason::Cancelled));
    assert_eq!(fleet.reason(), "cancelled by ann: enough");
    assert!(fleet.effects.iter().any(|effect| matches!(effect, Effect::CancelRun { .. })));
    assert_eq!(status(&fleet, "1"), TaskStatus::Aborted);
    let entries = fleet.record.len();
    fleet.turn(vec![cancel("bob", "again")]);
    assert_eq!(fleet.record.len(), entries, "what has ended stays as it is");
    fleet.end(&offer, result("too late"));
    assert_eq!(fleet.status(), RunStatus::Aborted(StopReason::Cancelled));
}

#[test]
fn the_deadline_of_the_run_stops_it() {
    let mut fleet = planned();
    fleet.at(fleet.run().deadline);
    assert_eq!(fleet.status(), RunStatus::Aborted(StopReason::DeadlinePassed));
    assert!(fleet.reason().contains("its time of 1 h is up"), "{}", fleet.reason());
}

#[test]
fn an_alarm_that_rings_early_changes_nothing() {
    let mut fleet = planned();
    let (before, at) = (fleet.positionless(fleet.run.as_ref()), next_deadline(fleet.run()));
    fleet.effects.clear();
    fleet.turn(vec![Input::Timer]);
    assert_eq!(fleet.positionless(fleet.run.as_ref()), before);
    assert_eq!(fleet.effects, []);
    assert_eq!(next_deadline(fleet.run()), at);
}

#[test]
fn a_task_past_its_deadline_is_tried_again_and_then_fails() {
    let mut fleet = planned();
    let offer = fleet.begin_task("1");
    do_task(&mut fleet, "2");
    do_task(&mut fleet, "reflect-2");
    fleet.at(Millis(offer.deadline.0 + 1000));
    assert_eq!(fleet.find("1").generation, Generation(1), "the agent is given a moment to conclude");
    fleet.at(Millis(offer.deadline.0 + 2000));
    let again = fleet.find("1");
    assert_eq!(again.generation, Generation(2));
    let cancelled = |effect: &Effect| {
        matches!(effect, Effect::CancelTask { task, generation, agent: Some(_), .. }
        if *task == again.task && *generation == Generation(1))
    };
    assert!(fleet.effects.iter().any(cancelled));
    fleet.at(Millis(again.deadline.0 + 2000));
    assert_eq!(status(&fleet, "1"), TaskStatus::Failed);
    let reasons = &fleet.run().planned(&TaskIndex::top(1)).unwrap().reasons;
    assert!(reasons[1].contains("no worker took it"), "{reasons:?}");
}

#[test]
fn an_offer_that_nobody_starts_is_made_again_when_slots_are_free() {
    let mut fleet = planned();
    fleet.pass(4999);
    assert_eq!(fleet.find("1").generation, Generation(1));
    fleet.now = Millis(fleet.now.0 + 1);
    fleet.begin_task("2");
    fleet.turn(vec![Input::Timer]);
    assert_eq!(fleet.find("1").generation, Generation(2));
    assert_eq!(fleet.find("2").generation, Generation(1), "what was started is not");
    fleet.slots.insert(queue(Role::Worker), 1);
    fleet.pass(60_000);
    assert_eq!(fleet.find("1").generation, Generation(2), "no slot is free");
}

#[test]
fn reports_about_closed_generations_change_nothing() {
    let mut fleet = planned();
    let old = fleet.do_task("1", failed(Ending::AgentFailed, "crashed"));
    let before = fleet.run().tasks.clone();
    fleet.report(&old, AgentEvent::Outcome(result("late").into()));
    fleet.report(&old, super::fleet::started());
    fleet.turn(vec![Input::Timer]);
    assert_eq!(fleet.run().tasks, before);
}

#[test]
fn nonces_differ_by_task_and_generation() {
    let mut fleet = planned();
    fleet.work(|offer| match (&offer.task, offer.generation) {
        (TaskId::Leaf(_), Generation(1)) => failed(Ending::AgentFailed, "crashed"),
        _ => good(offer, &tasks()),
    });
    let mut nonces: Vec<&str> = fleet.offered().into_iter().map(|offer| offer.nonce.as_str()).collect();
    let all = nonces.len();
    nonces.sort_unstable();
    nonces.dedup();
    assert_eq!(nonces.len(), all);
}

#[test]
fn the_phases_follow_each_other() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    let mut phases = Vec::new();
    while let Some(offer) = fleet.open.first().cloned() {
        let phase = fleet.run().phase;
        if phases.last() != Some(&phase) {
            phases.push(phase);
        }
        fleet.start(&offer);
        let outcome = good(&offer, &tasks());
        fleet.end(&offer, outcome);
    }
    assert_eq!(phases, [Phase::Planning, Phase::Executing, Phase::Writing]);
    assert_eq!(fleet.run().phase, Phase::Ended);
}

#[test]
fn what_one_agent_claims_for_another_kind_of_work_is_not_taken() {
    let wrong = |offer: &TaskOffered| match &offer.work {
        Work::Plan { .. } => done(Product::Reflection(muster_shared::flow::Reflection::default())),
        _ => good(offer, &tasks()),
    };
    let mut fleet = Fleet::submitted(RunLimits::default());
    fleet.work(wrong);
    assert_eq!(fleet.status(), RunStatus::Failed);
}
