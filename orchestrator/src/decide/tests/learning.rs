//! What is learnt and what follows: levels of reflection, tasks that are done again, lessons for later runs.

use muster_shared::flow::{
    Ending, Outcome, Product, RefineOperation, Reflection, ReflectionLevel, RunLimits, TaskDraft,
    TaskOffered, TaskStatus, ToolNote, Work,
};
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::run::{Input, RequestAction, RunEvent, RunStatus};

use super::fleet::{Fleet, advising, cancel, done, failed, good, leaf, plan, refinement, reflection};
use super::tables::{do_task, planned, planned_with, tasks};
use super::transitions::{done_but_for_the_refiner, split};
use crate::decide::Effect;

fn limits(reflection: ReflectionLevel) -> RunLimits {
    RunLimits { reflection, ..RunLimits::default() }
}

#[test]
fn a_level_says_which_leaves_are_reflected_on_and_nothing_waits_for_the_others() {
    for (level, wanted) in [
        (ReflectionLevel::None, vec![]),
        (ReflectionLevel::Brief, vec!["1", "2", "3"]),
        (ReflectionLevel::Full, vec!["1", "2", "3"]),
        (ReflectionLevel::AfterFailure, vec!["2"]),
        (ReflectionLevel::WhenSpinning, vec![]),
    ] {
        let mut fleet = planned_with(limits(level));
        fleet.work(|offer| match &offer.task {
            TaskId::Leaf(index) if *index == TaskIndex::top(2) => {
                failed(Ending::Escalate, "somebody must say")
            }
            _ => good(offer, &tasks()),
        });
        assert_eq!(fleet.status(), RunStatus::Completed);
        let mut reflected: Vec<String> = fleet
            .offered()
            .into_iter()
            .filter_map(|offer| match &offer.work {
                Work::Reflect { index, brief, .. } => {
                    assert_eq!(*brief, level == ReflectionLevel::Brief);
                    Some(index.to_string())
                }
                _ => None,
            })
            .collect();
        reflected.sort();
        assert_eq!(reflected, wanted, "{level:?}");
    }
}

/// A leaf that fails, one that succeeds, and one that made do with the latter.
fn made_do() -> Vec<TaskDraft> {
    vec![leaf("apples", &[]), leaf("pears", &[]), leaf("the sum", &["1", "2"])]
}

fn split_later(offer: &TaskOffered) -> Outcome {
    match &offer.work {
        Work::Plan { .. } => plan(made_do()),
        Work::Execute { task, .. } if task.name == "apples" => failed(Ending::Escalate, "too many"),
        Work::Execute { task, .. } if task.name == "the sum" && offer.generation.0 == 1 => {
            advising("pears only", "the apples should be counted in two parts")
        }
        Work::Refine { .. } => {
            let into = vec![leaf("red apples", &[]), leaf("green apples", &[])];
            refinement(vec![RefineOperation::Split { task: TaskIndex::top(1), into }])
        }
        _ => good(offer, &made_do()),
    }
}

#[test]
fn a_task_that_made_do_is_done_again_once_the_plan_gives_it_more() {
    let mut fleet = Fleet::submitted(limits(ReflectionLevel::None));
    fleet.work(split_later);
    assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
    let (changes, refused) = &fleet.run().refining.done[0];
    assert!(refused.is_empty(), "{changes:?} {refused:?}");
    assert_eq!(fleet.run().tasks[&"3".parse().unwrap()].generation.0, 2);
    let again = fleet.offered().into_iter().rfind(|offer| offer.task.to_string() == "3").unwrap();
    let Work::Execute { inputs, .. } = &again.work else { panic!() };
    let used: Vec<String> = inputs.iter().map(|input| input.index.to_string()).collect();
    assert_eq!(used, ["1-1", "1-2", "2"]);
}

fn kept(fleet: &Fleet) -> Vec<&muster_shared::flow::RunLessons> {
    let kept = fleet.effects.iter().filter_map(|effect| match effect {
        Effect::KeepLessons { lessons } => Some(&**lessons),
        _ => None,
    });
    kept.collect()
}

#[test]
fn what_a_run_taught_is_kept_when_it_ends() {
    let mut fleet = planned();
    fleet.work(|offer| match &offer.work {
        Work::Reflect { index, .. } if *index == TaskIndex::top(1) => done(Product::Reflection(Reflection {
            on_plan: vec!["number the rows first".into()],
            on_tools: vec![ToolNote { tool: "calculator".into(), note: "exact".into() }],
            uncovered: vec!["plums".into()],
            ..Reflection::default()
        })),
        _ => good(offer, &tasks()),
    });
    let kept = kept(&fleet);
    assert_eq!(kept.len(), 1);
    assert!(kept[0].completed);
    assert_eq!(kept[0].lessons, ["number the rows first", "stayed uncovered: plums", "calculator: exact"]);
}

#[test]
fn a_run_that_taught_nothing_or_was_called_off_keeps_nothing() {
    let mut fleet = planned();
    fleet.work(|offer| good(offer, &tasks()));
    assert!(kept(&fleet).is_empty(), "{:?}", kept(&fleet));
    let mut fleet = planned();
    fleet.turn(vec![cancel("ann", "")]);
    assert!(kept(&fleet).is_empty());
    let mut fleet = planned();
    fleet.work(|offer| match &offer.work {
        Work::Execute { .. } => failed(Ending::GaveUp, "no scales"),
        Work::Reflect { .. } => reflection(None),
        _ => good(offer, &tasks()),
    });
    assert_eq!(fleet.status(), RunStatus::Failed);
    let kept = kept(&fleet);
    assert!(kept[0].lessons[0].contains("no scales") && !kept[0].completed, "{kept:?}");
}

/// An offer tells the progress once; who is at work for a while is told of changes by a live word.
#[test]
fn whoever_is_at_work_for_a_while_is_told_of_the_progress() {
    let shown = |fleet: &Fleet| -> Vec<String> {
        let shown = fleet.effects.iter().filter_map(|effect| match effect {
            Effect::Inform { task, progress, .. } if !progress.is_empty() => {
                Some(format!("{task}: {progress}"))
            }
            _ => None,
        });
        shown.collect()
    };
    for (millis, told) in [(100, 0), (5_000, 1)] {
        let mut fleet = Fleet::submitted(limits(ReflectionLevel::None));
        do_task(&mut fleet, "plan");
        fleet.begin_task("2");
        fleet.now = fleet.now.after(std::time::Duration::from_millis(millis));
        do_task(&mut fleet, "1");
        let shown = shown(&fleet);
        assert_eq!(shown.len(), told, "{shown:?}");
        assert!(shown.iter().all(|line| line.starts_with("2: ") && line.contains("[x] 1")), "{shown:?}");
    }
}

/// What failed because the provider or the fleet was away teaches nothing about the goal.
#[test]
fn an_outage_is_no_lesson() {
    let refused = "the provider refuses the key";
    for (ending, why, taught) in [
        (Ending::ModelFailed, refused, false),
        (Ending::AgentFailed, "it broke", false),
        (Ending::GaveUp, "no scales", true),
    ] {
        let mut fleet = planned();
        fleet.work(|offer| match &offer.work {
            Work::Execute { .. } => failed(ending, why),
            Work::Reflect { .. } => done(Product::Reflection(Reflection {
                on_plan: vec![format!("mind this: {why}")],
                ..Reflection::default()
            })),
            _ => good(offer, &tasks()),
        });
        let lessons: Vec<String> = kept(&fleet).into_iter().flat_map(|run| run.lessons.clone()).collect();
        assert_eq!(!lessons.is_empty(), taught, "{why}: {lessons:?}");
        assert_eq!(lessons.iter().any(|lesson| lesson.contains("mind this")), taught, "{why}: {lessons:?}");
    }
}

#[test]
fn a_new_run_is_given_what_earlier_ones_taught() {
    let mut fleet = Fleet::new();
    let goal = Box::new(muster_shared::flow::Goal::new("count fruit"));
    let (secret, lessons) = ("ab".repeat(32), vec!["number the rows first".to_owned()]);
    fleet.turn(vec![Input::Goal {
        goal,
        limits: RunLimits::default(),
        secret,
        lessons: lessons.clone(),
        signed: None,
    }]);
    assert!(fleet.events().iter().any(|event| matches!(event, RunEvent::LessonsRecalled(_))));
    let Work::Plan { lessons: told, .. } = fleet.find("plan").work else { panic!() };
    assert_eq!(told, lessons);
    do_task(&mut fleet, "plan");
    assert!(matches!(fleet.find("plan").work, Work::Plan { draft: Some(_), .. }), "it is improved first");
    do_task(&mut fleet, "plan");
    assert!(fleet.events().iter().any(|event| matches!(event, RunEvent::PlanIterated(_))));
    let Work::Execute { lessons: told, .. } = fleet.find("1").work else { panic!() };
    assert_eq!(told, lessons);
}

#[test]
fn whoever_works_on_a_task_that_is_split_is_told_to_stop() {
    let mut fleet = done_but_for_the_refiner();
    fleet.ask(1, RequestAction::Redo { task: TaskIndex::top(1) });
    let again = fleet.begin_task("1");
    fleet.effects.clear();
    split(&mut fleet, "1");
    let told = fleet.effects.iter().any(|effect| match effect {
        Effect::CancelTask { task, generation, .. } => *task == again.task && *generation == again.generation,
        _ => false,
    });
    assert!(told, "{:?}", fleet.effects);
    assert_eq!(fleet.run().tasks[&again.task].status, TaskStatus::Split);
}
