//! Deadlines of runs and of their phases, and what is delivered when they pass.

use muster_shared::flow::{Ending, Goal, People, RunLimits, TaskStatus, Work};
use muster_shared::ids::{QuestionId, TaskId};
use muster_shared::run::{Input, Phase, RequestAction, RunEvent, RunStatus, StopReason};
use muster_shared::time::Millis;

use super::fleet::{Fleet, cancel, failed, good};
use super::tables::{do_task, open, planned, planned_with, status, tasks};
use crate::decide::{Effect, next_deadline};

const OUT_OF_TIME: RunStatus = RunStatus::Aborted(StopReason::DeadlinePassed);

/// Start of the time that is kept for writing.
pub(super) fn reserve(fleet: &Fleet) -> Millis {
    let run = fleet.run();
    Millis(run.deadline.0 - (run.deadline.0 - run.created_at.0) / 10)
}

#[test]
fn a_run_out_of_time_delivers_what_there_is_and_says_that_it_is_a_part() {
    let mut fleet = planned();
    do_task(&mut fleet, "1");
    fleet.at(fleet.run().deadline);
    assert_eq!(fleet.status(), OUT_OF_TIME);
    let report = fleet.run().report.clone().unwrap();
    assert!(report.partial && report.title.starts_with("Partial report: Which limits"), "{report:?}");
    for part in [
        "not the whole answer: its time of 1 h is up",
        "## 1 apples",
        "apples is so",
        "What is missing",
        "3 the sum",
    ] {
        assert!(report.body.contains(part), "{part} in {}", report.body);
    }
}

#[test]
fn an_agent_that_sees_the_deadline_pass_before_the_run_does_ends_it_the_same_way() {
    let mut fleet = planned();
    for task in ["1", "2", "reflect-1", "reflect-2", "3", "reflect-3"] {
        do_task(&mut fleet, task);
    }
    let write = fleet.find("write");
    fleet.run.as_mut().unwrap().deadline = write.deadline;
    fleet.start(&write);
    fleet.now = Millis(write.deadline.0 - 50);
    fleet.end(&write, failed(Ending::DeadlinePassed, "the task's time was up"));
    assert_eq!(fleet.status(), OUT_OF_TIME, "{}", fleet.reason());
    assert!(fleet.run().report.as_ref().is_some_and(|report| report.partial));
}

#[test]
fn a_run_out_of_time_without_a_result_has_no_report() {
    let mut fleet = planned();
    fleet.at(fleet.run().deadline);
    assert_eq!((fleet.status(), fleet.run().report.is_none()), (OUT_OF_TIME, true));
}

#[test]
fn who_cancels_gets_no_report() {
    let mut fleet = planned();
    do_task(&mut fleet, "1");
    fleet.turn(vec![cancel("ann", "")]);
    assert!(fleet.run().report.is_none());
}

#[test]
fn time_is_kept_for_writing_once_there_is_something_to_write() {
    let mut fleet = planned();
    let reserve = reserve(&fleet);
    let one = fleet.begin_task("1");
    assert_eq!(next_deadline(fleet.run()), Some(Millis(one.deadline.0 + 2000)));
    do_task(&mut fleet, "2");
    // The task would have longer; the agent is told when it has to be done.
    fleet.end(&one, failed(Ending::AgentFailed, "crashed"));
    fleet.now = Millis(reserve.0 - 1000);
    fleet.turn(vec![Input::Capacity]);
    fleet.end_task("reflect-2", failed(Ending::AgentFailed, "crashed"));
    assert_eq!(fleet.find("reflect-2").deadline, reserve);

    fleet.at(reserve);
    assert_eq!(fleet.run().phase, Phase::Executing, "agents have a moment to say what they have");
    fleet.effects.clear();
    fleet.at(Millis(reserve.0 + 2000));
    assert_eq!(fleet.run().phase, Phase::Writing);
    assert!(
        fleet.effects.iter().any(|effect| matches!(effect, Effect::CancelTask { .. })),
        "{:?}",
        fleet.effects
    );
    assert_eq!(
        (status(&fleet, "reflect-2"), status(&fleet, "3")),
        (TaskStatus::Aborted, TaskStatus::Aborted)
    );
    fleet.open.retain(|offer| offer.task == TaskId::Write);
    let Work::Write { results, failed, .. } = &fleet.find("write").work else { panic!() };
    assert_eq!((results.len(), failed.len()), (1, 2));
    fleet.finish(&tasks());
}

#[test]
fn once_all_have_concluded_nothing_is_waited_for() {
    let mut fleet = planned_with(RunLimits { run_deadline_ms: 600_000, ..RunLimits::default() });
    do_task(&mut fleet, "1");
    let two = fleet.begin_task("2");
    do_task(&mut fleet, "reflect-1");
    fleet.now = reserve(&fleet);
    fleet.end(&two, failed(Ending::DeadlinePassed, "the task's time was up"));
    assert_eq!(fleet.run().phase, Phase::Writing);
    assert_eq!(open(&fleet), ["write"]);
}

#[test]
fn a_question_that_comes_up_as_the_time_for_the_plan_ends_holds_nothing_up() {
    let people = People { pause_at: vec!["pears".into()], answer_within_ms: 60_000, ..People::default() };
    let mut fleet = planned_with(RunLimits { people, ..RunLimits::default() });
    do_task(&mut fleet, "1");
    let two = fleet.begin_task("2");
    do_task(&mut fleet, "reflect-1");
    fleet.now = reserve(&fleet);
    fleet.end(&two, good(&two, &tasks()));
    assert!(fleet.events().iter().any(|event| matches!(event, RunEvent::QuestionAsked(_))), "it is asked");
    assert_eq!((fleet.run().phase, fleet.run().open_questions().count()), (Phase::Writing, 0));
    assert_eq!(open(&fleet), ["write"]);
    fleet.ask(1, RequestAction::Answer { question: QuestionId(1), text: "leave out the sum".into() });
    fleet.finish(&tasks());
}

#[test]
fn a_goal_whose_time_was_up_before_anybody_took_it_up_ends_at_once_and_says_so() {
    let mut fleet = Fleet::new();
    fleet.begin(Goal { deadline_ms: Some(0), ..Goal::new("Too late?") }, RunLimits::default());
    assert_eq!(fleet.status(), OUT_OF_TIME);
    assert!(fleet.reason().contains("before an orchestrator took it up"), "{}", fleet.reason());
    assert!(fleet.open.is_empty(), "nothing is offered");
}
