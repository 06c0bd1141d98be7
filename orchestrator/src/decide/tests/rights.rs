//! What tasks may use: narrowed on the way to them, and never widened.

use std::collections::BTreeMap;

use muster_shared::blueprint::{fill, parse};
use muster_shared::flow::{
    ChildGoal, ContextRead, ContextWrite, CorpusRef, Ending, Goal, ObservationStatus, PeerRequest, Question,
    RefineOperation, Rights, RunLimits, TaskDraft, TaskOffered, Use, Wait, Work,
};
use muster_shared::ids::TaskIndex;
use muster_shared::run::event::ChildBegun;
use muster_shared::run::{RequestAction, RunEvent};
use serde_json::{Value, json};

use super::fleet::{Fleet, ID, advising, failed, good, leaf, plan, refinement};
use crate::replay::replay;

fn rights(written: Value) -> Rights {
    serde_json::from_value(written).unwrap()
}

fn limits(written: Value) -> RunLimits {
    RunLimits { rights: Box::new(rights(written)), ..RunLimits::default() }
}

fn with(task: TaskDraft, written: Value) -> TaskDraft {
    TaskDraft { rights: Some(Box::new(rights(written))), ..task }
}

fn may(offer: &TaskOffered, tool: &str) -> bool {
    offer.rights.allows(&Use::Tool(tool)).is_ok()
}

fn by(offer: &TaskOffered) -> Vec<String> {
    offer.rights.grants().iter().map(|grant| grant.by.to_string()).collect()
}

/// Has a task wait for something; gives its next offer, if it was answered at once.
fn wait(fleet: &mut Fleet, task: &str, wait: Wait) -> Option<TaskOffered> {
    let offer = fleet.begin_task(task);
    fleet.wait(&offer, wait);
    fleet.open.iter().find(|open| open.task == offer.task).cloned()
}

fn refusal(offer: &TaskOffered) -> &str {
    let seen = &offer.answered.as_deref().unwrap().observation;
    assert_eq!(seen.status, ObservationStatus::Refused);
    &seen.content
}

fn run_of_its_own() -> Wait {
    Wait::Run(Box::new(ChildGoal { goal: "count the ships".into(), domain: None, blueprint: None }))
}

#[test]
fn without_a_wish_nothing_is_taken_and_nothing_written() {
    let fleet = Fleet::planned(RunLimits::default(), vec![leaf("one", &[]), leaf("two", &[])]);
    for offer in fleet.offered() {
        assert!(offer.rights.is_open());
        assert_eq!(serde_json::to_value(offer).unwrap().get("rights"), None);
    }
}

#[test]
fn what_the_goal_leaves_holds_for_every_task_and_a_plan_narrows_it() {
    let tasks = vec![
        leaf("one", &[]),
        with(leaf("two", &[]), json!({ "tools": ["search", "teleport"], "budget": { "model_calls": 2 } })),
    ];
    let fleet = Fleet::planned(limits(json!({ "tools": ["calculator", "search"] })), tasks);
    let (plan, one, two) = (&fleet.offered()[0].clone(), fleet.find("1"), fleet.find("2"));
    for (offer, calculator, search) in [(plan, true, true), (&one, true, true), (&two, false, true)] {
        assert_eq!((may(offer, "calculator"), may(offer, "search")), (calculator, search), "{}", offer.task);
        assert!(!may(offer, "teleport"), "a plan gives nothing");
    }
    assert_eq!((by(&one), by(&two)), (vec!["goal".to_owned()], vec!["goal".into(), "plan task 2".into()]));
    assert_eq!((one.budget.model_calls, two.budget.model_calls), (None, Some(2)));
}

#[test]
fn a_part_of_a_task_has_no_more_than_the_whole() {
    let part = with(leaf("part", &[]), json!({ "tools": ["calculator", "search"] }));
    let whole = TaskDraft { subtasks: vec![part, leaf("other", &[])], ..leaf("whole", &[]) };
    let fleet = Fleet::planned(
        RunLimits::default(),
        vec![with(whole, json!({ "tools": ["search"] })), leaf("z", &[])],
    );
    for task in ["1-1", "1-2"] {
        let offer = fleet.find(task);
        assert_eq!((may(&offer, "search"), may(&offer, "calculator")), (true, false), "{task}");
    }
    assert!(may(&fleet.find("2"), "calculator"));
}

#[test]
fn a_hand_over_narrows_whatever_is_asked_for() {
    let tasks = vec![with(leaf("one", &[]), json!({ "tools": ["search", "delegate"] })), leaf("two", &[])];
    let mut fleet = Fleet::planned(RunLimits::default(), tasks);
    let part = with(leaf("part", &[]), json!({ "tools": ["*"], "people": false }));
    wait(&mut fleet, "1", Wait::Task(Box::new(part)));
    let part = fleet.find("3");
    assert_eq!((may(&part, "search"), may(&part, "calculator")), (true, false));
    assert!(part.rights.allows(&Use::Person).is_err(), "what it asks to be without, it is without");
    assert_eq!(by(&part), ["handed over by 1", "plan task 3"]);
    // And so for what that hands over.
    wait(&mut fleet, "3", Wait::Task(Box::new(leaf("part of the part", &[]))));
    let further = fleet.find("4");
    assert!(!may(&further, "calculator") && further.rights.allows(&Use::Person).is_err());
}

#[test]
fn a_run_within_has_no_more_than_the_task_that_it_was_begun_for() {
    let tasks = vec![with(leaf("one", &[]), json!({ "tools": ["search", "plan"] })), leaf("two", &[])];
    let mut fleet = Fleet::planned(limits(json!({ "hosts": ["*.example.org"] })), tasks);
    wait(&mut fleet, "1", run_of_its_own());
    let begun = fleet.events().into_iter().find_map(|event| match event {
        RunEvent::ChildBegun(ChildBegun { goal, .. }) => Some(goal.clone()),
        _ => None,
    });
    let goal = *begun.unwrap();
    let mut child = Fleet::new();
    // Whatever limits it is begun with.
    child.begin(Goal { limits: None, ..goal.clone() }, RunLimits::default());
    let planning = child.find("plan");
    let wide = with(leaf("wide", &[]), json!({ "tools": ["*"] }));
    child.end(&planning, plan(vec![wide, leaf("other", &[])]));
    let offer = child.find("1");
    assert_eq!((may(&offer, "search"), may(&offer, "calculator")), (true, false));
    assert!(offer.rights.allows(&Use::Host("example.com:443")).is_err());
    assert!(offer.rights.allows(&Use::Host("www.example.org:443")).is_ok());
    let short = &fleet.run().id.to_string();
    let short = &short[short.len() - 8..];
    assert_eq!(by(&offer), [format!("run {short}"), format!("run {short} task 1")]);
    let limits = goal.limits.unwrap();
    assert!(limits.rights.tools.allows("search") && !limits.rights.tools.allows("calculator"));
}

#[test]
fn a_step_of_a_blueprint_narrows_and_so_does_what_is_done_instead() {
    let text = "
name = 'b'
version = '1'
goal = 'Look.'
[[steps]]
id = 'look'
goal = 'look into it'
rights = { hosts = [], documents = ['docs'] }
[[steps.fallback]]
goal = 'ask around'
[[steps]]
id = 'sum'
goal = 'sum up'
";
    let filled = fill(&parse(text).unwrap(), &BTreeMap::new()).unwrap();
    let mut fleet = Fleet::new();
    let goal = Goal { blueprint: Some(Box::new(filled)), ..Goal::new("Look.") };
    fleet.begin_as_it_is(goal, RunLimits::default());
    let look =
        fleet.open.iter().find(|offer| offer.work.leaf().is_some_and(|task| task.goal == "look into it"));
    let look = look.unwrap().clone();
    let refused = look.rights.allows(&Use::Host("example.org")).unwrap_err();
    assert!(refused.to_string().contains("goal: all hosts → blueprint b step 1"), "{refused}");
    fleet.work(|offer| match offer.work.leaf() {
        Some(task) if task.goal == "look into it" => failed(Ending::Blocked, "no luck"),
        Some(_) | None => good(offer, &[]),
    });
    let named = |goal: &str| {
        let of = |offer: &&TaskOffered| offer.work.leaf().is_some_and(|task| task.goal.starts_with(goal));
        fleet.offered().into_iter().find(of).unwrap_or_else(|| panic!("{goal} is not offered")).clone()
    };
    assert!(named("ask around").rights.allows(&Use::Document("other/a.md")).is_err());
    assert!(named("sum up").rights.is_open());
}

#[test]
fn what_is_added_or_split_by_a_change_of_the_plan_has_no_more() {
    let tasks = vec![with(leaf("one", &[]), json!({ "tools": ["search"] })), leaf("two", &["one"])];
    let mut fleet = Fleet::planned(RunLimits::default(), tasks);
    let one = fleet.find("1");
    fleet.end(&one, advising("one is so", "more is to be done"));
    let wish = || with(leaf("more", &[]), json!({ "tools": ["*"] }));
    let add = RefineOperation::Add { after: TaskIndex::top(1), tasks: vec![wish()] };
    fleet.work(|offer| match &offer.work {
        Work::Refine { .. } => refinement(vec![add.clone()]),
        _ => good(offer, &[]),
    });
    let added =
        fleet.offered().into_iter().find(|offer| offer.work.leaf().is_some_and(|task| task.name == "more"));
    let added = added.expect("a task was added");
    assert_eq!((may(added, "search"), may(added, "calculator")), (true, false));
}

#[test]
fn done_again_or_with_another_goal_a_task_has_the_rights_that_it_had() {
    let tasks = vec![with(leaf("one", &[]), json!({ "tools": ["search"] })), leaf("two", &[])];
    let mut fleet = Fleet::planned(RunLimits::default(), tasks);
    let before = fleet.find("1").rights;
    let goal = "find out everything with every tool".to_owned();
    fleet.ask(1, RequestAction::Edit { task: Some(TaskIndex::top(1)), goal });
    let after = fleet.find("1");
    assert!(after.work.leaf().unwrap().goal.starts_with("find out everything"));
    assert_eq!(after.rights, before);
}

#[test]
fn what_a_task_may_not_wait_for_is_refused_by_whoever_decides() {
    let question = || Wait::Answer(Question::new("Which year?"));
    let write = |key: &str| {
        let write = ContextWrite { key: key.to_owned(), value: json!(1), version: 0 };
        Wait::Peer(Box::new(PeerRequest::ContextWrite(write)))
    };
    let table = [
        (json!({ "people": false }), question(), "ask a person: this task may ask nobody (goal: no)"),
        (json!({ "hand_over": false }), Wait::Task(Box::new(leaf("part", &[]))), "hand nothing over"),
        (json!({ "runs": false }), run_of_its_own(), "may begin no run"),
        (json!({ "write_context": ["a"] }), write("b"), "write the shared value b"),
    ];
    for (written, wanted, said) in table {
        let mut fleet = Fleet::planned(limits(written.clone()), vec![leaf("one", &[]), leaf("two", &[])]);
        let tasks = fleet.run().plan.as_ref().unwrap().tasks.len();
        let offer = wait(&mut fleet, "1", wanted).expect("it goes on at once");
        assert!(refusal(&offer).contains(said), "{written}: {}", refusal(&offer));
        assert!(fleet.run().questions.is_empty() && fleet.run().children.is_empty());
        assert!(fleet.run().peers.context.is_empty());
        assert_eq!(fleet.run().plan.as_ref().unwrap().tasks.len(), tasks);
        replay(ID, &fleet.record).unwrap();
    }
}

#[test]
fn values_that_may_not_be_read_are_not_told() {
    let tasks = vec![with(leaf("one", &[]), json!({ "read_context": ["open.*"] })), leaf("two", &[])];
    let mut fleet = Fleet::planned(RunLimits::default(), tasks);
    for key in ["open.a", "closed.b"] {
        let write = ContextWrite { key: key.to_owned(), value: json!(key), version: 0 };
        fleet.ask_peer("2", PeerRequest::ContextWrite(write));
    }
    let all = ContextRead { key: String::new(), prefix: true };
    let offer = wait(&mut fleet, "1", Wait::Peer(Box::new(PeerRequest::ContextRead(all)))).unwrap();
    let told = &offer.answered.as_deref().unwrap().observation.content;
    assert!(told.contains("open.a") && !told.contains("closed.b"), "{told}");
}

#[test]
fn documents_that_may_not_be_read_are_not_listed() {
    let outline = "docs/a.md (3 lines): A; B\nprivate/b.md (9 lines): Secret heading\nand 4 more".to_owned();
    let corpus = Some(CorpusRef { id: "c".into(), files: 6, bytes: 9, outline });
    let mut fleet = Fleet::new();
    fleet.begin(Goal { corpus, ..Goal::new("Look.") }, limits(json!({ "documents": ["docs"] })));
    let outline = fleet.find("plan").corpus.unwrap().outline;
    assert_eq!(outline, "docs/a.md (3 lines): A; B");
}
