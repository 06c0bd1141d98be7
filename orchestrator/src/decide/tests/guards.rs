//! Guards are asked about plans, changes of them and reports: what they allow goes on, what they change goes on so, what they
//! refuse goes back to whoever made it, and what nobody answers is asked again.

mod ends;
mod plans;

use muster_shared::flow::{
    GuardFailure, GuardReply, GuardRule, GuardVerdict, Guarded, Hook, OnFailure, Outcome, Planning, Product,
    ReflectionLevel, RunLimits, TaskOffered, Work, Writing,
};
use muster_shared::ids::{Generation, TaskId};
use muster_shared::run::{Input, RunStatus, StopReason};
use muster_shared::time::Millis;
use serde_json::{Value, json};

use super::draft_review::{body as report, end};
use super::fleet::{Fleet, ID, good, leaf, refinement};
use crate::decide::{Effect, changed, next_deadline};
use crate::replay::replay;

const HOOKS: [Hook; 2] = [Hook::BeforePlan, Hook::BeforeReport];

fn rule() -> GuardRule {
    let (hooks, on_failure) = (HOOKS.to_vec(), OnFailure::Refuse);
    let (name, tools, roles) = ("eye".to_owned(), Vec::new(), Vec::new());
    GuardRule { name, hooks, on_failure, timeout_ms: 1_000, tools, roles }
}

fn limits(hooks: &[Hook]) -> RunLimits {
    let guards = vec![GuardRule { hooks: hooks.to_vec(), ..rule() }];
    RunLimits { guards, reflection: ReflectionLevel::None, ..RunLimits::default() }
}

/// The question that is open.
fn asked(fleet: &Fleet) -> Option<(u32, Product, Effect)> {
    let open = *fleet.run().guarding.open.keys().next_back()?;
    let found = fleet.effects.iter().rev().find_map(|effect| match effect {
        Effect::AskGuards { number, product, .. } if *number == open => {
            Some((open, Product::clone(product), effect.clone()))
        }
        _ => None,
    });
    assert!(found.is_some(), "whoever is waited for was asked");
    found
}

/// Brings what the guard says, as whoever asked it does.
fn say(fleet: &mut Fleet, reply: GuardReply) {
    let Some((number, product, Effect::AskGuards { outcome, .. })) = asked(fleet) else {
        panic!("nothing is asked")
    };
    let mut said = Guarded::default();
    let (verdict, made) =
        GuardVerdict::of(&rule(), Ok(reply), |wanted: &Value| changed(&product, wanted).map(drop));
    said.push(verdict, made);
    fleet.now = Millis(fleet.now.0 + 20);
    fleet.turn(vec![Input::GuardsSaid { number, outcome, said }]);
}

fn planned(fleet: &mut Fleet) -> TaskOffered {
    let offer = fleet.find("plan");
    let outcome = good(&offer, &[leaf("one", &[])]);
    end(fleet, "plan", outcome)
}

/// A run whose writer gave a report that waits for its guard.
fn written() -> Fleet {
    let mut fleet = Fleet::submitted(limits(&[Hook::BeforeReport]));
    planned(&mut fleet);
    let offer = fleet.find("1");
    end(&mut fleet, "1", good(&offer, &[]));
    end(&mut fleet, "write", report("Call +49 30 901820."));
    assert!(!fleet.status().is_ended(), "{}", fleet.reason());
    fleet
}

/// A run that waits for the guard of a plan, or of a report.
fn asking(hook: Hook) -> Fleet {
    if hook != Hook::BeforePlan {
        return written();
    }
    let mut fleet = Fleet::submitted(limits(&[hook]));
    planned(&mut fleet);
    fleet
}

fn body(fleet: &Fleet) -> &str {
    assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
    replay(ID, &fleet.record).unwrap();
    fleet.body()
}

fn refuse(why: &str) -> GuardReply {
    GuardReply::refuse(why.to_owned())
}

#[test]
fn without_guards_nobody_is_asked() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    fleet.work(|offer| good(offer, &[leaf("one", &[])]));
    assert!(fleet.effects.iter().all(|effect| !matches!(effect, Effect::AskGuards { .. })));
    assert!(fleet.run().guarding.is_empty());
}

#[test]
fn a_plan_waits_for_its_guard_and_is_then_carried_out() {
    let mut fleet = Fleet::submitted(limits(&[Hook::BeforePlan]));
    planned(&mut fleet);
    assert!(fleet.open.is_empty() && fleet.run().plan.is_none(), "nothing is offered meanwhile");
    let (_, _, Effect::AskGuards { hook, role, rules, .. }) = asked(&fleet).unwrap() else { panic!() };
    assert_eq!((hook, role.as_str(), rules.len()), (Hook::BeforePlan, "planner", 1));
    say(&mut fleet, GuardReply::allow());
    assert_eq!(fleet.open[0].task, "1".parse().unwrap());
    fleet.work(|offer| good(offer, &[]));
    assert_eq!(body(&fleet), "# Report");
    assert_eq!((fleet.run().guarding.asked, fleet.run().guarding.allowed), (1, 1));
}

#[test]
fn a_plan_that_is_changed_is_adopted_as_changed() {
    let mut fleet = Fleet::submitted(limits(&[Hook::BeforePlan]));
    planned(&mut fleet);
    let (_, Product::Plan(mut plan), _) = asked(&fleet).unwrap() else { panic!() };
    plan.tasks[0].name = "other".to_owned();
    say(&mut fleet, GuardReply::change("named anew".into(), json!({ "plan": plan })));
    let plan = fleet.run().plan.as_ref().unwrap();
    assert_eq!(plan.tasks.values().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["other"]);
    assert_eq!(fleet.run().guarding.verdicts[0].1.to_string(), "changed by guard eye: named anew");
}

#[test]
fn a_plan_that_is_refused_goes_back_to_the_planner_and_the_run_fails_in_the_end() {
    let mut fleet = Fleet::submitted(limits(&[Hook::BeforePlan]));
    for generation in 1..=3 {
        let offer = planned(&mut fleet);
        assert_eq!(offer.generation, Generation(generation));
        if generation > 1 {
            let Work::Plan { refused, .. } = &offer.work else { panic!() };
            assert!(refused.iter().any(|why| why.contains("refused by guard eye: too bold")), "{refused:?}");
        }
        say(&mut fleet, refuse("too bold"));
    }
    assert_eq!(fleet.status(), RunStatus::Failed);
    assert!(fleet.reason().contains("refused by guard eye: too bold"), "{}", fleet.reason());
    assert!(!fleet.reason().contains("muster doctor"), "no model is to blame: {}", fleet.reason());
    replay(ID, &fleet.record).unwrap();
}

#[test]
fn a_change_of_the_plan_that_is_refused_is_not_made_and_the_run_goes_on() {
    let limits = RunLimits { reflection: ReflectionLevel::Full, ..limits(&[Hook::BeforePlan]) };
    let mut fleet = Fleet::submitted(limits);
    planned(&mut fleet);
    say(&mut fleet, GuardReply::allow());
    let mut asked_for = false;
    let mut rounds = 0;
    while !fleet.status().is_ended() {
        rounds += 1;
        assert!(rounds < 50, "the run comes to no end");
        if asked(&fleet).is_some() {
            say(&mut fleet, refuse("not now"));
            continue;
        }
        let offer = fleet.open[0].clone();
        let outcome = match (&offer.task, asked_for) {
            (TaskId::Reflect(_), false) => {
                asked_for = true;
                super::fleet::reflection(Some("more is needed"))
            }
            (TaskId::Refine(_), _) => refinement(vec![muster_shared::flow::RefineOperation::Delete {
                task: "1".parse().unwrap(),
                reason: "not wanted".into(),
            }]),
            _ => good(&offer, &[]),
        };
        fleet.start(&offer);
        fleet.end(&offer, outcome);
    }
    assert_eq!(body(&fleet).lines().next(), Some("# Report"));
    assert_eq!(fleet.run().plan.as_ref().unwrap().tasks.len(), 1, "nothing was deleted");
    assert!(fleet.run().guarding.verdicts.len() >= 2, "{:?}", fleet.run().guarding);
}

#[test]
fn a_report_is_delivered_as_its_guard_allows_or_changes_it() {
    let mut fleet = written();
    say(&mut fleet, GuardReply::allow());
    assert_eq!(body(&fleet), "Call +49 30 901820.");
    let mut fleet = written();
    let changed = json!({ "report": { "title": "Report", "body": "Call [nobody].", "partial": true } });
    say(&mut fleet, GuardReply::change("a number".into(), changed));
    assert_eq!(body(&fleet), "Call [nobody].");
    assert!(!fleet.run().report.as_ref().unwrap().partial, "only its words are the guard's");
}

#[test]
fn a_report_that_is_refused_goes_back_to_the_writer_with_the_reason() {
    let mut fleet = written();
    say(&mut fleet, refuse("it names a number"));
    let offer = fleet.find("write");
    let Work::Write { revision: Some(revision), .. } = &offer.work else { panic!("{:?}", offer.work) };
    assert_eq!(revision.draft, "Call +49 30 901820.");
    assert!(revision.review.lines()[0].contains("refused by guard eye: it names a number"));
    end(&mut fleet, "write", report("Call us."));
    say(&mut fleet, GuardReply::allow());
    assert_eq!(body(&fleet), "Call us.");
}

#[test]
fn what_one_task_gave_is_asked_about_before_it_is_the_report() {
    let single = || {
        let limits = RunLimits { planning: Planning::Never, writer: Writing::UnlessSingle, ..limits(&HOOKS) };
        let mut fleet = Fleet::with_goal(muster_shared::flow::Goal::new("Which limits are there?"), limits);
        fleet.turn(vec![Input::Capacity]);
        let offer = fleet.find("1");
        end(&mut fleet, "1", good(&offer, &[]));
        assert!(!fleet.status().is_ended(), "{}", fleet.reason());
        fleet
    };
    let mut fleet = single();
    say(&mut fleet, GuardReply::allow());
    assert!(body(&fleet).contains("is so"));
    let mut fleet = single();
    say(&mut fleet, refuse("say it otherwise"));
    end(&mut fleet, "write", report("Otherwise."));
    say(&mut fleet, GuardReply::allow());
    assert_eq!(body(&fleet), "Otherwise.");
}

#[test]
fn guards_are_asked_again_when_nobody_brings_what_they_said() {
    let mut fleet = written();
    let before = fleet.effects.len();
    let due = next_deadline(fleet.run()).unwrap();
    fleet.at(Millis(due.0 - 1));
    assert_eq!(fleet.effects.len(), before, "they have their time");
    fleet.at(due);
    assert!(matches!(fleet.effects.last(), Some(Effect::AskGuards { number: 1, .. })), "{:?}", fleet.effects);
    assert!(next_deadline(fleet.run()).unwrap() > due);
    say(&mut fleet, GuardReply::allow());
    assert_eq!(body(&fleet), "Call +49 30 901820.");
    // The first who asked was only slow.
    let late = Input::GuardsSaid { number: 1, outcome: None, said: Guarded::default() };
    fleet.turn(vec![late]);
    assert_eq!(fleet.status(), RunStatus::Completed);
}

/// The guard gives no verdict, and its setting refuses.
fn nobody(fleet: &mut Fleet) {
    let Some((number, _, Effect::AskGuards { outcome, .. })) = asked(fleet) else {
        panic!("nothing is asked")
    };
    let (verdict, _) = GuardVerdict::of(&rule(), Err(GuardFailure::Gone), |_: &Value| Ok(()));
    let said = Guarded { verdicts: vec![verdict], ..Guarded::default() };
    fleet.now = Millis(fleet.now.0 + 1_000);
    fleet.turn(vec![Input::GuardsSaid { number, outcome, said }]);
}

/// The guard gives no verdict until the run has failed for it.
fn stays_away(fleet: &mut Fleet) {
    let mut rounds = 0;
    while !fleet.status().is_ended() {
        rounds += 1;
        assert!(rounds < 500, "the run comes to no end");
        nobody(fleet);
        if !fleet.status().is_ended() {
            wake(fleet);
        }
    }
    assert_eq!(fleet.status(), RunStatus::Failed, "{}", fleet.reason());
    assert!(fleet.reason().contains("guard eye is gone"), "{}", fleet.reason());
    replay(ID, &fleet.record).unwrap();
}

/// Lets time pass until somebody is to look.
fn wake(fleet: &mut Fleet) {
    fleet.at(next_deadline(fleet.run()).unwrap());
}

#[test]
fn a_guard_that_is_gone_is_waited_for_and_nobody_is_blamed() {
    for hook in HOOKS {
        let mut fleet = asking(hook);
        let questions = |fleet: &Fleet| {
            fleet.effects.iter().filter(|effect| matches!(effect, Effect::AskGuards { .. })).count()
        };
        let mut pauses = Vec::new();
        for _ in 0..3 {
            let before = questions(&fleet);
            nobody(&mut fleet);
            assert_eq!(questions(&fleet), before, "not at once");
            assert!(fleet.open.is_empty(), "nobody has to make it anew");
            let since = fleet.now.0;
            wake(&mut fleet);
            assert_eq!(questions(&fleet), before + 1, "it is asked again");
            pauses.push(fleet.now.0 - since);
        }
        assert!(pauses.is_sorted() && pauses[0] == 1_000 && pauses[2] > 2_000, "{pauses:?}");
        say(&mut fleet, GuardReply::allow());
        fleet.finish(&[]);
    }
}

#[test]
fn a_guard_that_stays_away_ends_the_run_with_what_is_wrong_with_it() {
    for hook in HOOKS {
        let mut fleet = asking(hook);
        stays_away(&mut fleet);
        assert!(!fleet.reason().contains("muster doctor"), "{}", fleet.reason());
        assert!(fleet.run().report.is_none(), "{}", fleet.reason());
    }
}

#[test]
fn a_report_has_three_tries() {
    let mut fleet = written();
    for _ in 0..2 {
        say(&mut fleet, refuse("no"));
        assert!(!fleet.status().is_ended(), "{}", fleet.reason());
        end(&mut fleet, "write", report("Call +49 30 901820."));
    }
    say(&mut fleet, refuse("no"));
    assert_eq!(fleet.status(), RunStatus::Failed);
    for words in ["refused 3 times", "refused by guard eye: no"] {
        assert!(fleet.reason().contains(words), "{}", fleet.reason());
    }
    assert!(fleet.run().report.is_none(), "what was refused is not delivered");
    replay(ID, &fleet.record).unwrap();
}

/// A run that is stopped by its time, with a result and a guard of reports.
fn stopped() -> Fleet {
    let mut fleet = Fleet::submitted(limits(&[Hook::BeforeReport]));
    planned(&mut fleet);
    let offer = fleet.find("1");
    end(&mut fleet, "1", good(&offer, &[]));
    fleet.at(fleet.run().deadline);
    assert!(!fleet.status().is_ended(), "its guard is asked first");
    fleet
}

#[test]
fn what_is_left_of_a_run_that_is_stopped_is_asked_about() {
    let body = |fleet: &Fleet| {
        assert_eq!(fleet.status(), RunStatus::Aborted(StopReason::DeadlinePassed), "{}", fleet.reason());
        replay(ID, &fleet.record).unwrap();
        fleet.body().to_owned()
    };
    let mut fleet = stopped();
    let due = next_deadline(fleet.run()).unwrap();
    assert!(due > fleet.now, "nobody looks all the time");
    let offer = fleet.find("write");
    end(&mut fleet, "write", report("In the last moment."));
    assert!(!fleet.status().is_ended() && fleet.open.iter().all(|open| *open == offer), "nothing is begun");
    say(&mut fleet, GuardReply::allow());
    assert!(body(&fleet).contains("is so"), "{}", body(&fleet));

    let mut fleet = stopped();
    let (_, Product::Report(mut made), _) = asked(&fleet).unwrap() else { panic!() };
    made.body = "Other words.".to_owned();
    say(&mut fleet, GuardReply::change("better".into(), json!({ "report": made })));
    assert_eq!(body(&fleet), "Other words.");

    let mut refused = stopped();
    say(&mut refused, refuse("no"));
    let mut gone = stopped();
    nobody(&mut gone);
    let mut forgotten = stopped();
    wake(&mut forgotten);
    for fleet in [refused, gone, forgotten] {
        let body = body(&fleet);
        assert!(!body.contains("is so") && body.contains("withheld") && body.contains("its time"), "{body}");
    }

    let mut fleet = stopped();
    fleet.turn(vec![super::fleet::cancel("ann", "enough")]);
    assert_eq!(fleet.status(), RunStatus::Aborted(StopReason::Cancelled));
}

#[test]
fn a_plan_that_a_person_brings_is_asked_about() {
    let begun = |tasks: Vec<muster_shared::flow::TaskDraft>| {
        let goal = muster_shared::flow::Goal {
            plan: Some(Box::new(muster_shared::flow::PlanDraft {
                tasks,
                ..muster_shared::flow::PlanDraft::default()
            })),
            ..muster_shared::flow::Goal::new("Which limits are there?")
        };
        let mut fleet = Fleet::with_goal(goal, limits(&[Hook::BeforePlan]));
        fleet.turn(vec![Input::Capacity]);
        fleet
    };
    assert!(begun(Vec::new()).status().is_ended(), "nobody is asked about nothing");
    let brought = |name: &str| {
        let fleet = begun(vec![leaf(name, &[])]);
        assert!(fleet.open.is_empty() && fleet.run().plan.is_none(), "nothing is begun before");
        fleet
    };
    let mut fleet = brought("one");
    say(&mut fleet, GuardReply::allow());
    fleet.work(|offer| good(offer, &[]));
    assert_eq!(body(&fleet), "# Report");
    let mut fleet = brought("one");
    let (_, Product::Plan(mut plan), _) = asked(&fleet).unwrap() else { panic!() };
    plan.tasks[0].name = "other".to_owned();
    say(&mut fleet, GuardReply::change("named anew".into(), json!({ "plan": plan })));
    assert!(fleet.run().plan.as_ref().unwrap().tasks.values().all(|task| task.name == "other"));
    let mut fleet = brought("one");
    say(&mut fleet, refuse("too bold"));
    assert_eq!(fleet.status(), RunStatus::Failed);
    assert!(fleet.reason().contains("refused by guard eye: too bold"), "{}", fleet.reason());
    replay(ID, &fleet.record).unwrap();
}

#[test]
fn what_is_cancelled_meanwhile_waits_for_nobody() {
    let mut fleet = written();
    fleet.turn(vec![super::fleet::cancel("ann", "enough")]);
    assert!(fleet.status().is_ended() && fleet.run().guarding.open.is_empty());
    assert!(
        fleet.run().spending.used.model_calls >= 3,
        "what was used counts: {:?}",
        fleet.run().spending.used
    );
    replay(ID, &fleet.record).unwrap();
}
