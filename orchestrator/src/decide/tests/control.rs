//! What people ask of a run while it goes on.

use muster_shared::flow::{Ending, Goal, ReflectionLevel, RunLimits, TaskDraft, TaskStatus, Work};
use muster_shared::ids::{Generation, TaskId, TaskIndex};
use muster_shared::run::{AgentEvent, Input, Phase, Request, RequestAction, RunStatus};
use muster_shared::time::Millis;

use super::fleet::{Fleet, ID, cancel, failed, good, leaf, plan, started};
use super::replanning::GOAL;
use super::tables::{do_task, open, planned, status, tasks};
use crate::decide::{Effect, next_deadline};

const PAUSE: RequestAction = RequestAction::Pause;

const RESUME: RequestAction = RequestAction::Resume { deadline_ms: None };

fn skip(task: &str) -> RequestAction {
    let task = task.parse().unwrap();
    RequestAction::Skip { task }
}

fn redo(task: &str) -> RequestAction {
    let task = task.parse().unwrap();
    RequestAction::Redo { task }
}

fn edit(task: Option<&str>, goal: &str) -> RequestAction {
    let (task, goal) = (task.map(|task| task.parse().unwrap()), goal.to_owned());
    RequestAction::Edit { task, goal }
}

fn told_to_stop(fleet: &Fleet, task: &str, generation: u32) -> bool {
    let wanted: TaskId = task.parse().unwrap();
    fleet.effects.iter().any(|effect| {
        matches!(effect, Effect::CancelTask { task, generation: of, .. } if *task == wanted && of.0 == generation)
    })
}

#[test]
fn a_pause_closes_what_waits_and_has_what_is_in_hand_put_down() {
    let mut fleet = planned();
    let (one, two) = (fleet.find("1"), fleet.find("2"));
    fleet.start(&one);
    fleet.ask(1, PAUSE);
    assert!(fleet.effects.iter().any(|effect| matches!(effect, Effect::ParkRun { .. })));
    assert_eq!((status(&fleet, "1"), status(&fleet, "2")), (TaskStatus::Processing, TaskStatus::Created));
    fleet.park(&one);
    assert_eq!(status(&fleet, "1"), TaskStatus::Created);
    let offered = fleet.offered().len();
    fleet.turn(vec![Input::Capacity]);
    assert_eq!(fleet.offered().len(), offered, "nothing is offered meanwhile");

    fleet.now = Millis(fleet.now.0 + 60_000);
    fleet.ask(2, RESUME);
    let again = fleet.find("1");
    assert_eq!((again.generation, again.continues), (Generation(2), Some(Generation(1))));
    assert_eq!(again.nonce, one.nonce, "prompts in the record stay as they are");
    assert_eq!(again.deadline, Millis(one.deadline.0 + 60_000), "the pause does not count");
    assert_eq!(fleet.find("2").continues, Some(two.generation));
    assert!(fleet.run().planned(&TaskIndex::top(1)).unwrap().reasons.is_empty(), "a pause is no failure");
    fleet.finish(&tasks());
}

#[test]
fn a_new_goal_reaches_the_planner_that_works_on_a_new_plan() {
    let limits = RunLimits { reflection: ReflectionLevel::None, ..RunLimits::default() };
    let mut fleet = Fleet::with_goal(Goal::new(GOAL), limits);
    let critical = TaskDraft { critical: true, ..leaf("apples", &[]) };
    fleet.do_task("plan", plan(vec![critical, leaf("pears", &["apples"])]));
    fleet.do_task("1", failed(Ending::Escalate, "there are none"));
    fleet.begin_task("plan");
    fleet.ask(1, edit(None, "What of plums?"));
    assert!(told_to_stop(&fleet, "plan", 2));
    let Work::Plan { replan: Some(brief), .. } = fleet.find("plan").work else { panic!() };
    assert!(brief.reasons[1].contains("the goal of the run was changed"), "{:?}", brief.reasons);
}

#[test]
fn a_task_that_is_put_down_twice_goes_on_from_its_first_generation() {
    let mut fleet = planned();
    for n in 1..=2 {
        let offer = fleet.begin_task("1");
        fleet.ask(2 * n, PAUSE);
        fleet.park(&offer);
        fleet.ask(2 * n + 1, RESUME);
    }
    let offer = fleet.find("1");
    assert_eq!((offer.generation, offer.continues), (Generation(3), Some(Generation(1))));
    fleet.start(&offer);
    fleet.end(&offer, failed(Ending::AgentFailed, "crashed"));
    assert_eq!(fleet.find("1").continues, None, "another try begins anew");
    let offer = fleet.begin_task("1");
    fleet.ask(10, PAUSE);
    fleet.park(&offer);
    fleet.ask(11, redo("1"));
    assert_eq!(fleet.refusals(), Vec::<&str>::new());
    fleet.ask(12, RESUME);
    assert_eq!(fleet.find("1").continues, None, "it starts again");
}

#[test]
fn what_ends_while_the_run_is_paused_counts_and_nothing_follows_until_it_goes_on() {
    let mut fleet = planned();
    for task in ["1", "2"] {
        fleet.begin_task(task);
    }
    fleet.ask(1, PAUSE);
    do_task(&mut fleet, "1");
    do_task(&mut fleet, "2");
    assert_eq!(status(&fleet, "1"), TaskStatus::Completed);
    assert!(open(&fleet).is_empty(), "{:?}", open(&fleet));
    fleet.ask(2, RESUME);
    fleet.finish(&tasks());
}

#[test]
fn who_begins_a_task_of_a_paused_run_is_told_to_put_it_down() {
    let mut fleet = planned();
    let offer = fleet.begin_task("1");
    fleet.ask(1, PAUSE);
    let mut again = started();
    if let AgentEvent::Started(started) = &mut again {
        started.attempt = started.attempt.next();
    }
    fleet.report(&offer, again);
    assert!(fleet.effects.iter().any(|effect| matches!(effect, Effect::ParkTask { .. })));
}

#[test]
fn who_begins_what_is_closed_is_told_to_stop() {
    let mut fleet = planned();
    let offer = fleet.find("1");
    fleet.ask(1, PAUSE);
    fleet.report(&offer, started());
    assert!(told_to_stop(&fleet, "1", 1), "{:?}", fleet.effects);
    assert_eq!(status(&fleet, "1"), TaskStatus::Created);
}

#[test]
fn while_paused_only_the_deadline_of_the_run_goes_on() {
    let mut fleet = planned();
    let offer = fleet.begin_task("1");
    fleet.ask(1, PAUSE);
    assert_eq!(next_deadline(fleet.run()), Some(fleet.run().deadline));
    fleet.at(Millis(offer.deadline.0 + 60_000));
    assert_eq!(status(&fleet, "1"), TaskStatus::Processing);
    fleet.ask(2, RequestAction::Resume { deadline_ms: Some(7_200_000) });
    assert_eq!(fleet.run().deadline, Millis(fleet.now.0 + 7_200_000));
    fleet.ask(3, PAUSE);
    fleet.at(fleet.run().deadline);
    assert!(fleet.status().is_ended());
}

#[test]
fn a_skipped_task_is_cut_off_and_what_depends_on_it_is_told_why() {
    let mut fleet = planned();
    let offer = fleet.begin_task("1");
    fleet.ask(1, skip("1"));
    assert_eq!(status(&fleet, "1"), TaskStatus::Skipped);
    assert!(told_to_stop(&fleet, "1", 1));
    fleet.open.retain(|open| open.task != offer.task);
    do_task(&mut fleet, "2");
    do_task(&mut fleet, "reflect-2");
    let last = fleet.find("3");
    let Work::Execute { left_out, lessons, progress, .. } = &last.work else { panic!() };
    let [(index, name, why)] = left_out.as_slice() else { panic!("{left_out:?}") };
    assert_eq!((index, name.as_str()), (&TaskIndex::top(1), "apples"));
    assert!(why.contains("so be it") && why.contains("ann"), "{why}");
    assert!(lessons.iter().any(|lesson| lesson.contains("so be it")), "{lessons:?}");
    assert!(progress.contains("[~] 1 apples (skipped: so be it"), "{progress}");
    fleet.finish(&tasks());
    assert!(fleet.run().reflection(&TaskIndex::top(1)).is_none());
}

#[test]
fn skipping_a_failed_task_lets_go_on_what_it_would_have_blocked() {
    let mut fleet = planned();
    fleet.work(|offer| match &offer.task {
        TaskId::Leaf(index) if index.position() < 3 => failed(Ending::Escalate, "a person must decide"),
        TaskId::Reflect(index) if index.position() == 2 => failed(Ending::ModelFailed, "no answer"),
        _ => good(offer, &tasks()),
    });
    assert_eq!(fleet.status(), RunStatus::Failed, "nothing came of it");

    let mut fleet = planned();
    for task in ["1", "2"] {
        fleet.do_task(task, failed(Ending::Escalate, "a person must decide"));
    }
    fleet.ask(1, skip("1"));
    fleet.ask(2, skip("2"));
    fleet.open.retain(|offer| !matches!(offer.task, TaskId::Reflect(_)));
    for task in ["reflect-1", "reflect-2"] {
        let offered = fleet.offered().into_iter().find(|offer| offer.task.to_string() == task).cloned();
        if let Some(offer) = offered {
            fleet.end(&offer, good(&offer, &tasks()));
        }
    }
    assert_eq!(open(&fleet), ["3"], "it goes on without them");
    fleet.finish(&tasks());
}

#[test]
fn what_cannot_be_done_is_refused_with_the_reason_on_record() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    fleet.ask(1, skip("1"));
    fleet.ask(2, redo("1"));
    assert!(fleet.refusals().iter().all(|reason| reason.contains("no plan yet")), "{:?}", fleet.refusals());
    let mut fleet = planned();
    let cases = [
        (skip("7"), "there is no task 7; nearest to it: 3 (the sum), 2 (pears), 1 (apples)"),
        (redo("2-9"), "nearest to it: 2 (pears)"),
        (redo("3"), "3 has not begun"),
        (edit(Some("4"), "x"), "there is no task 4"),
        (edit(Some("1"), "  "), "the goal is empty"),
        (edit(Some("1"), "use {{9.result}}"), "{{9.result}} refers to a task that is not in the plan"),
        (edit(None, " "), "the goal is empty"),
        (RESUME, "it is not paused"),
    ];
    for (n, (action, why)) in (10..).zip(cases) {
        let before = fleet.run().tasks.clone();
        fleet.ask(n, action);
        let refusals = fleet.refusals();
        assert!(refusals.last().unwrap().contains(why), "{why}: {refusals:?}");
        assert_eq!(fleet.run().tasks, before);
    }
    do_task(&mut fleet, "1");
    fleet.ask(30, skip("1"));
    assert!(fleet.refusals().last().unwrap().contains("has ended with a result"), "{:?}", fleet.refusals());
    fleet.ask(31, PAUSE);
    fleet.ask(32, PAUSE);
    assert!(fleet.refusals().last().unwrap().contains("paused already"), "{:?}", fleet.refusals());
}

#[test]
fn a_request_that_is_given_out_twice_is_carried_out_once() {
    let mut fleet = planned();
    do_task(&mut fleet, "1");
    fleet.ask(1, redo("1"));
    assert_eq!(fleet.find("1").generation, Generation(2));
    do_task(&mut fleet, "1");
    let entries = fleet.record.len();
    fleet.ask(1, redo("1"));
    assert_eq!(fleet.record.len(), entries, "nothing follows from it");
    assert_eq!(status(&fleet, "1"), TaskStatus::Completed);
    let request = Request::new(ID, redo("1")).with_id(uuid::Uuid::from_u128(9));
    fleet.turn(vec![Input::Request(request.clone()), Input::Request(request)]);
    let again = fleet.find("1");
    assert_eq!(again.generation, Generation(3));
    assert!(matches!(again.work, Work::Execute { earlier: None, .. }), "it was given no reason");
    let refused = fleet.refusals();
    assert!(refused.is_empty(), "{refused:?}");
}

#[test]
fn a_task_done_again_opens_what_used_it_its_reflection_and_the_report() {
    let mut fleet = planned();
    for task in ["1", "2", "reflect-1", "reflect-2", "3", "reflect-3"] {
        do_task(&mut fleet, task);
    }
    fleet.begin_task("write");
    fleet.ask(1, redo("1"));
    assert_eq!(fleet.run().phase, Phase::Executing);
    assert!(told_to_stop(&fleet, "write", 1));
    fleet.open.retain(|offer| offer.task != TaskId::Write);
    assert_eq!(open(&fleet), ["1"]);
    assert_eq!(status(&fleet, "2"), TaskStatus::Completed, "it used nothing of it");
    assert_eq!(status(&fleet, "3"), TaskStatus::Created);
    assert_eq!(fleet.run().reflections().map(|(index, _)| index).collect::<Vec<_>>(), [&TaskIndex::top(2)]);
    let again = fleet.find("1");
    let Work::Execute { failed_before: Some(why), earlier: Some(earlier), .. } = &again.work else {
        panic!()
    };
    assert!(why.contains("done again") && why.contains("so be it"), "{why}");
    assert_eq!(earlier.conclusion, "apples is so", "it was given a reason");
    do_task(&mut fleet, "1");
    do_task(&mut fleet, "reflect-1");
    let Work::Execute { failed_before: Some(why), .. } = &fleet.find("3").work else { panic!() };
    assert!(why.contains("what it used is done again (1)"), "{why}");
    fleet.finish(&tasks());
    assert_eq!(fleet.run().tasks[&TaskId::Write].generation, Generation(2));
}

#[test]
fn failed_skipped_and_blocked_tasks_can_be_done_again_with_all_their_tries() {
    let mut fleet = planned();
    fleet.do_task("1", failed(Ending::Escalate, "a person must decide"));
    fleet.ask(1, skip("2"));
    fleet.ask(2, redo("1"));
    fleet.ask(3, redo("2"));
    assert_eq!((status(&fleet, "1"), status(&fleet, "2")), (TaskStatus::Queued, TaskStatus::Queued));
    for generation in 2..=4 {
        let offer = fleet.find("1");
        assert_eq!(offer.generation, Generation(generation));
        fleet.start(&offer);
        fleet.end(&offer, failed(Ending::AgentFailed, "crashed"));
    }
    assert_eq!(status(&fleet, "1"), TaskStatus::Failed);
    fleet.ask(4, redo("1"));
    fleet.finish(&tasks());
}

#[test]
fn a_new_goal_for_a_task_is_what_it_is_done_by() {
    let mut fleet = planned();
    do_task(&mut fleet, "1");
    fleet.ask(1, edit(Some("1"), "find out about green apples"));
    fleet.ask(2, edit(Some("3"), "multiply {{1.result}}"));
    let goal = |fleet: &Fleet, task: &str| match fleet.find(task).work {
        Work::Execute { task, failed_before, .. } => (task.goal, failed_before.unwrap_or_default()),
        other => panic!("{other:?}"),
    };
    let (of_one, why) = goal(&fleet, "1");
    assert_eq!(of_one, "find out about green apples");
    assert!(why.contains("the goal of 1 was changed"), "{why}");
    for task in ["1", "2", "reflect-1", "reflect-2"] {
        do_task(&mut fleet, task);
    }
    let (of_three, why) = goal(&fleet, "3");
    assert_eq!((of_three.as_str(), why.as_str()), ("multiply apples is so", ""), "it had not begun");
    fleet.finish(&tasks());
}

#[test]
fn a_new_goal_for_the_run_has_the_plan_made_or_refined_for_it() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    fleet.begin_task("plan");
    fleet.ask(1, edit(None, "What of plums?"));
    assert!(told_to_stop(&fleet, "plan", 1));
    let offer = fleet.find("plan");
    assert_eq!((offer.generation, offer.goal.as_str()), (Generation(2), "What of plums?"));

    let mut fleet = planned();
    for task in ["1", "2", "reflect-1", "reflect-2", "3", "reflect-3"] {
        do_task(&mut fleet, task);
    }
    fleet.ask(2, edit(None, "What of cherries?"));
    fleet.open.retain(|offer| offer.task != TaskId::Write);
    let offer = fleet.find("refine-1");
    let Work::Refine { reasons, .. } = &offer.work else { panic!() };
    assert!(reasons[0].contains("the goal of the run was changed"), "{reasons:?}");
    assert_eq!(offer.goal, "What of cherries?");
    fleet.finish(&tasks());
}

#[test]
fn nothing_is_asked_of_a_run_that_has_ended() {
    let mut fleet = planned();
    fleet.finish(&tasks());
    let (entries, before) = (fleet.record.len(), fleet.run().tasks.clone());
    fleet.ask(1, PAUSE);
    fleet.ask(2, redo("1"));
    fleet.ask(3, edit(None, "something else"));
    assert_eq!(fleet.run().tasks, before);
    assert!(fleet.record.len() <= entries + 3 && fleet.refusals().is_empty());
}

/// What is offered and not taken would be given out, and done in vain.
#[test]
fn offers_of_a_run_that_ends_are_taken_back() {
    let withdrawn = |fleet: &Fleet| {
        fleet.effects.iter().filter(|effect| matches!(effect, Effect::WithdrawOffers)).count()
    };
    let mut fleet = Fleet::submitted(RunLimits::default());
    assert!(!fleet.open.is_empty());
    fleet.turn(vec![cancel("ann", "enough")]);
    assert!(fleet.status().is_ended());
    assert_eq!(withdrawn(&fleet), 1);
    assert!(fleet.effects.iter().any(|effect| matches!(effect, Effect::CancelRun { .. })));
    // Nothing is left of one that comes to its end.
    let mut fleet = Fleet::submitted(RunLimits::default());
    fleet.work(|offer| good(offer, &[leaf("one", &[])]));
    assert!(fleet.status().is_ended());
    assert_eq!(withdrawn(&fleet), 0);
}
