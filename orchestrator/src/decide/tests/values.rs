//! The shared context of a run: written with the version that was seen, resolved in goals, told to whom it concerns.

use muster_shared::flow::{
    ContextAuthor, ContextLimits, ContextRead, ContextWrite, Information, ObservationStatus, PeerAnswer,
    PeerRequest, RunLimits, TaskDraft, Work,
};
use muster_shared::ids::TaskIndex;
use muster_shared::run::event::{InformationShared, PlanAdopted, PlanRefused};
use muster_shared::run::{RequestAction, RunEvent, RunStatus};
use serde_json::{Value, json};

use super::fleet::{Fleet, good, leaf, plan, result};
use super::peers::Answer;
use crate::decide::Effect;

/// One that a second depends on; a third names a key; a fourth is by itself.
fn tasks() -> Vec<TaskDraft> {
    let names = TaskDraft { goal: "look within {{ context.limit }} hops".into(), ..leaf("names", &[]) };
    vec![leaf("one", &[]), leaf("after", &["1"]), names, leaf("apart", &[])]
}

fn begun(context: ContextLimits) -> Fleet {
    let mut fleet = Fleet::planned(RunLimits { context, max_width: 8, ..RunLimits::default() }, tasks());
    // The third does not depend on who writes it: the planner insists, and it becomes words.
    fleet.end_task("plan", plan(tasks()));
    fleet
}

fn ask(fleet: &mut Fleet, task: &str, request: PeerRequest) -> Answer {
    fleet.ask_peer(task, request);
    super::peers::answer(fleet, task)
}

fn write(key: &str, value: Value, version: u32) -> PeerRequest {
    PeerRequest::ContextWrite(ContextWrite { key: key.into(), value, version })
}

fn read(key: &str, prefix: bool) -> PeerRequest {
    PeerRequest::ContextRead(ContextRead { key: key.into(), prefix })
}

/// What a planner is told when its plan was refused.
fn refusals(fleet: &Fleet) -> Vec<String> {
    let refused = fleet.events().into_iter().filter_map(|event| match event {
        RunEvent::PlanRefused(PlanRefused { reasons }) => Some(reasons.clone()),
        _ => None,
    });
    refused.flatten().collect()
}

fn wants_limit(name: &str, needs: &[&str]) -> TaskDraft {
    TaskDraft { goal: "look within {{context.limit}} hops".into(), ..leaf(name, needs) }
}

#[test]
fn a_plan_that_uses_what_nobody_writes_is_refused_and_then_does_without() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    let wrong = vec![leaf("agree", &[]), wants_limit("look", &["1"])];
    fleet.end_task("plan", plan(wrong.clone()));
    let [reason] = &refusals(&fleet)[..] else { panic!("{:?}", refusals(&fleet)) };
    assert!(
        reason.contains("task 2 uses {{context.limit}}") && reason.contains("name limit in the goal"),
        "{reason}"
    );
    let again = fleet.find("plan");
    let Work::Plan { refused, .. } = &again.work else { panic!("{:?}", again.work) };
    assert_eq!(refused, &refusals(&fleet), "the planner is told");
    fleet.end(&again, plan(wrong));
    let adopted = fleet.run().plan.clone().unwrap();
    let goal = &adopted.tasks[&TaskIndex::top(2)].goal;
    assert_eq!(goal, "look within (context.limit is not there yet: you are told when it is written) hops");
    let repairs = fleet.events().into_iter().find_map(|event| match event {
        RunEvent::PlanAdopted(PlanAdopted { repairs, .. }) => Some(repairs.clone()),
        _ => None,
    });
    assert!(repairs.unwrap().iter().any(|note| note.contains("2 look does without {{context.limit}}")));
    ask(&mut fleet, "1", write("limit", json!(20), 0));
    assert_eq!(told(&fleet), ["2"]);
    fleet.end_task("1", result("so"));
    assert_eq!(
        fleet.find("2").work.leaf().unwrap().goal,
        "look within 20 hops",
        "it was written before the offer"
    );
    fleet.finish(&tasks());
}

#[test]
fn a_plan_may_use_what_is_there_or_will_be() {
    let names = TaskDraft { goal: "write limit".into(), ..leaf("agree", &[]) };
    for (there, drafts) in
        [(true, vec![wants_limit("look", &[])]), (false, vec![names, wants_limit("look", &["1"])])]
    {
        let mut fleet = Fleet::submitted(RunLimits::default());
        if there {
            person_writes(&mut fleet, 1, "limit", json!(20), 0);
        }
        fleet.end_task("plan", plan(drafts));
        assert_eq!(refusals(&fleet), Vec::<String>::new());
        fleet.finish(&tasks());
    }
}

#[test]
fn nobody_edits_a_goal_to_use_what_nobody_writes() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    let names = TaskDraft { goal: "write limit".into(), ..leaf("agree", &[]) };
    fleet.end_task("plan", plan(vec![names, wants_limit("look", &["1"])]));
    let mut edit = |n, task: u16, goal: &str| {
        let (task, goal) = (Some(TaskIndex::top(task)), goal.to_owned());
        fleet.ask(n, RequestAction::Edit { task, goal });
        fleet.refusals().last().map(|reason| (*reason).to_owned())
    };
    assert_eq!(edit(1, 1, "write limit, and nothing else"), None);
    let said = edit(2, 2, "paint it {{context.colour}}").unwrap();
    assert!(said.contains("task 2 uses {{context.colour}}") && said.contains("--write KEY=VALUE"), "{said}");
    let said = edit(3, 1, "write nothing").unwrap();
    assert!(said.contains("task 2 uses {{context.limit}}"), "{said}");
}

#[test]
fn a_write_that_saw_an_older_version_is_refused_with_what_there_is() {
    let mut fleet = begun(ContextLimits::USUAL);
    let (status, _, answer) = ask(&mut fleet, "1", write("limit", json!(20), 0));
    let written = |version| Some(PeerAnswer::ContextWritten { key: "limit".into(), version });
    assert_eq!((status, answer), (ObservationStatus::Success, written(1)));
    let (status, why, answer) = ask(&mut fleet, "4", write("limit", json!(30), 0));
    assert_eq!((status, answer), (ObservationStatus::Refused, None));
    assert!(why.contains("limit has version 1 now, not 0: 20 (written by task 1"), "{why}");
    let (_, _, answer) = ask(&mut fleet, "4", write("limit", json!(30), 1));
    assert_eq!(answer, written(2));
    let entry = &fleet.run().peers.context["limit"];
    assert_eq!((&entry.value, entry.version, entry.at), (&json!(30), 2, fleet.now));
    let ContextAuthor::Task { task, agent: Some(_) } = &entry.by else { panic!("{:?}", entry.by) };
    assert_eq!(*task, TaskIndex::top(4));
    fleet.finish(&tasks());
}

#[test]
fn what_cannot_be_written_is_refused_with_the_reason() {
    let mut fleet = begun(ContextLimits { max_entries: 1, max_bytes: 10 });
    for (request, expected) in [
        (write("1x", json!(1), 0), "\"1x\" is no key"),
        (write("a b", json!(1), 0), "is no key"),
        (write("a", json!("much too long"), 0), "the value has 15 bytes, 10 is the most"),
        (write("a", Value::Null, 0), "there is no value"),
        (write("a", json!(1), 3), "a is not there, and has no version 3"),
    ] {
        let (status, why, _) = ask(&mut fleet, "1", request);
        assert!(status == ObservationStatus::Refused && why.contains(expected), "{why}");
    }
    ask(&mut fleet, "1", write("a", json!(1), 0));
    let (_, why, _) = ask(&mut fleet, "1", write("a", json!("x"), 1));
    assert!(why.contains("a is a number and stays one; the value is a text"), "{why}");
    let (_, why, _) = ask(&mut fleet, "1", write("b", json!(1), 0));
    assert!(why.contains("1 values already, which is the most"), "{why}");
    fleet.finish(&tasks());
}

/// Whom the newest of all that was told is for.
fn told(fleet: &Fleet) -> Vec<String> {
    let mut events = fleet.events().into_iter().filter_map(|event| match event {
        RunEvent::InformationShared(InformationShared { to, .. }) => {
            Some(to.iter().map(TaskIndex::to_string).collect())
        }
        _ => None,
    });
    events.next_back().unwrap_or_default()
}

/// A person writes a value.
fn person_writes(fleet: &mut Fleet, at: u128, key: &str, value: Value, version: u32) {
    let key = key.to_owned();
    fleet.ask(at, RequestAction::SetContext { key, value, version });
}

#[test]
fn whom_a_value_concerns_is_told_and_nobody_else() {
    let mut fleet = begun(ContextLimits::USUAL);
    ask(&mut fleet, "1", write("limit", json!(20), 0));
    assert_eq!(told(&fleet), ["2", "3"], "who depends on the writer, and who names the key");
    let (_, words, found) = ask(&mut fleet, "4", read("colour.", true));
    assert!(words.contains("nothing of it yet"), "{words}");
    assert_eq!(found, Some(PeerAnswer::ContextFound { entries: std::collections::BTreeMap::new() }));
    ask(&mut fleet, "1", write("colour.door", json!("red"), 0));
    assert_eq!(told(&fleet), ["2", "4"], "who asked for it");
    let (_, words, _) = ask(&mut fleet, "4", read("", true));
    assert!(
        words.contains("colour.door (version 1, by task 1") && words.contains("limit (version 1"),
        "{words}"
    );
    fleet.finish(&tasks());
}

#[test]
fn what_a_person_writes_is_told_to_the_tasks_at_work_that_it_concerns() {
    let mut fleet = begun(ContextLimits::USUAL);
    ask(&mut fleet, "4", write("limit", json!(10), 0));
    fleet.begin_task("3");
    fleet.effects.clear();
    person_writes(&mut fleet, 1, "limit", json!(20), 1);
    assert_eq!(told(&fleet), ["3", "4"], "who names the key, and who wrote it");
    let informed = fleet.effects.iter().filter_map(|effect| match effect {
        Effect::Inform { task, information, .. } => Some((task.to_string(), information.clone())),
        _ => None,
    });
    let informed: Vec<_> = informed.collect();
    let [(task, information)] = &informed[..] else { panic!("{informed:?}") };
    assert_eq!((task.as_str(), information.len()), ("3", 1), "4 is not at work: its offer tells it");
    let Information { from, name, text, .. } = &information[0];
    assert_eq!((from, name.as_str(), text.as_str()), (&None, "ann", "context.limit is now (version 2): 20"));
    person_writes(&mut fleet, 2, "limit", json!(30), 1);
    person_writes(&mut fleet, 3, "of_nobody", json!(1), 0);
    assert_eq!(told(&fleet), ["3", "4"], "neither what is stale nor what concerns nobody is told");
    assert!(fleet.run().peers.shared.values().all(|told| told.text.ends_with("20")), "only the newest of it");
    fleet.finish(&tasks());
}

#[test]
fn of_a_value_that_is_written_often_only_the_newest_is_kept_to_be_told() {
    let mut fleet = begun(ContextLimits::USUAL);
    for version in 0..100 {
        person_writes(&mut fleet, u128::from(version) + 1, "limit", json!(version), version);
    }
    let shared = &fleet.run().peers.shared;
    assert_eq!(shared.keys().collect::<Vec<_>>(), [&100], "its number goes on, so that it is heard");
    assert!(shared[&100].text.contains("(version 100): 99"), "{:?}", shared[&100]);
    fleet.finish(&tasks());
}

#[test]
fn people_write_too_and_goals_have_what_there_is_when_they_are_offered() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    let planning = fleet.find("plan");
    let needs = |name: &str, goal: &str| TaskDraft { goal: goal.into(), ..leaf(name, &["1"]) };
    let one = TaskDraft { milestones: vec!["limit".into(), "colour".into()], ..leaf("one", &[]) };
    let tasks = vec![one, needs("two", "within {{context.limit}} hops, {{context.colour}}")];
    fleet.end(&planning, plan(tasks.clone()));
    let (key, value) = ("limit".to_owned(), json!(20));
    fleet.ask(1, RequestAction::SetContext { key: key.clone(), value: value.clone(), version: 0 });
    assert_eq!(fleet.run().peers.context["limit"].by, ContextAuthor::Person("ann".into()));
    fleet.ask(2, RequestAction::SetContext { key, value, version: 0 });
    assert_eq!(fleet.refusals().len(), 1, "the second saw no version 1");
    fleet.end_task("1", result("so"));
    fleet.work(|offer| {
        if let Work::Execute { task, .. } = &offer.work {
            let missing = "(context.colour is not there yet: nobody has written it)";
            assert_eq!(task.goal, format!("within 20 hops, {missing}"));
        }
        good(offer, &tasks)
    });
    assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
}
