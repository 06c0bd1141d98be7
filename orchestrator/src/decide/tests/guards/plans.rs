//! Guards are asked about plans that no planner gave: of blueprints, of people, of forks, and of tasks that hand work over.

use std::collections::BTreeMap;

use muster_shared::blueprint::{fill, parse};
use muster_shared::flow::{
    Goal, ObservationStatus, People, PlanDraft, ReviewPolicy, TaskDraft, TaskStatus, Wait,
};
use muster_shared::ids::{Seq, TaskIndex};
use muster_shared::run::{Inherited, Origin, RequestAction};

use super::*;
use crate::decide::tests::fleet::result;

const PLANS: [Hook; 1] = [Hook::BeforePlan];

/// Looks into two topics, then says what came of it.
const STEPS: &str = "name='b'\nversion='1'\ngoal='g'\n[params.topics]\ntype='list'\n\
    [[steps]]\nid='look'\ngoal='look into {{item}}'\nfor_each='params.topics'\n\
    [[steps]]\nid='sum'\ngoal='sum up {{look.result}}'\nif='look.result contains \"more\"'";

fn by_blueprint(limits: RunLimits) -> Fleet {
    let topics = BTreeMap::from([("topics".to_owned(), json!(["ants", "bees"]))]);
    let filled = fill(&parse(STEPS).unwrap(), &topics).unwrap();
    Fleet::with_goal(Goal { blueprint: Some(Box::new(filled.clone())), ..Goal::new(filled.goal()) }, limits)
}

/// The plan that guards are asked about.
fn shown(fleet: &Fleet) -> PlanDraft {
    match asked(fleet) {
        Some((_, Product::Plan(plan), _)) => plan,
        other => panic!("no plan is asked about: {other:?}"),
    }
}

fn is_asked(fleet: &Fleet) -> bool {
    !fleet.run().guarding.open.is_empty()
}

/// The guard says this plan with other words in it.
fn reword(fleet: &mut Fleet, from: &str, to: &str) {
    let text = serde_json::to_string(&shown(fleet)).unwrap();
    let plan: Value = serde_json::from_str(&text.replace(from, to)).unwrap();
    say(fleet, GuardReply::change(format!("{to} is better"), json!({ "plan": plan })));
}

fn goals(fleet: &Fleet) -> Vec<&str> {
    fleet.run().plan.as_ref().unwrap().leaves().map(|(_, task)| task.goal.as_str()).collect()
}

fn more(offer: &TaskOffered) -> Outcome {
    match &offer.work {
        Work::Execute { .. } => result("there is more"),
        _ => good(offer, &[]),
    }
}

#[test]
fn each_time_that_a_plan_grows_by_steps_of_a_blueprint_they_are_asked_about() {
    let mut fleet = by_blueprint(limits(&PLANS));
    assert!(fleet.open.is_empty() && goals(&fleet).is_empty(), "nothing is begun before");
    let looked = &shown(&fleet).tasks[0];
    assert_eq!((looked.name.as_str(), looked.subtasks.len()), ("look", 2));
    say(&mut fleet, GuardReply::allow());
    assert_eq!(goals(&fleet), ["look into ants", "look into bees"]);
    fleet.work(more);
    assert!(!fleet.status().is_ended(), "the next step is asked about");
    reword(&mut fleet, "sum up", "add up");
    assert_eq!(goals(&fleet)[2], "add up {{1.result}}");
    fleet.work(more);
    assert_eq!(body(&fleet), "# Report");
    assert_eq!(fleet.run().guarding.asked, 2);
}

#[test]
fn steps_of_a_blueprint_that_are_refused_end_the_run() {
    let mut fleet = by_blueprint(limits(&PLANS));
    say(&mut fleet, refuse("too bold"));
    assert_eq!(fleet.status(), RunStatus::Failed);
    let words = "the plan that was made from the blueprint b was refused by guard eye: too bold";
    assert_eq!(fleet.reason(), words);
    assert_eq!(fleet.run().planning.refused, [["refused by guard eye: too bold"]]);
    replay(ID, &fleet.record).unwrap();

    // Where something was done, it is told of.
    let mut fleet = by_blueprint(limits(&PLANS));
    say(&mut fleet, GuardReply::allow());
    fleet.work(more);
    say(&mut fleet, refuse("too bold"));
    assert_eq!(fleet.status(), RunStatus::Failed);
    let words = "what comes next in the blueprint b (sum) was refused by guard eye: too bold";
    assert!(fleet.reason().contains(words), "{}", fleet.reason());
    assert!(fleet.body().contains("there is more"));
    replay(ID, &fleet.record).unwrap();
}

#[test]
fn guards_change_the_words_of_steps_and_not_which_there_are() {
    type Change = fn(&mut PlanDraft);
    let fewer: Change = |plan| drop(plan.tasks[0].subtasks.pop());
    let another: Change = |plan| plan.tasks.push(leaf("more", &[]));
    let later: Change = |plan| plan.tasks[0].subtasks[1].depends_on = vec!["look: ants".into()];
    let nobody: Change = |plan| plan.tasks[0].subtasks[0].role = Some("astronaut".into());
    let empty: Change = |plan| plan.tasks[0].subtasks[0].goal = String::new();
    for (change, words) in [
        (fewer, "which tasks there are cannot be changed"),
        (another, "which tasks there are cannot be changed"),
        (later, "waits for cannot be changed"),
        (nobody, "astronaut"),
        (empty, "1-1"),
    ] {
        let mut fleet = by_blueprint(limits(&PLANS));
        let mut plan = shown(&fleet);
        change(&mut plan);
        say(&mut fleet, GuardReply::change("better".into(), json!({ "plan": plan })));
        assert_eq!(fleet.status(), RunStatus::Failed, "{words}");
        assert!(fleet.reason().contains(words), "{words}: {}", fleet.reason());
        replay(ID, &fleet.record).unwrap();
    }
}

/// Every plan that is held up before anything is done, by what it is.
fn held_up() -> Vec<(&'static str, Fleet)> {
    vec![("a blueprint", by_blueprint(limits(&PLANS))), ("a fork", forked())]
}

#[test]
fn a_guard_that_is_gone_is_waited_for_as_for_brought_plans() {
    for (what, mut fleet) in held_up() {
        for _ in 0..3 {
            nobody(&mut fleet);
            assert!(fleet.open.is_empty() && !fleet.status().is_ended(), "{what}: {}", fleet.reason());
            wake(&mut fleet);
        }
        say(&mut fleet, GuardReply::allow());
        fleet.work(|offer| good(offer, &[]));
        assert_eq!(fleet.status(), RunStatus::Completed, "{what}: {}", fleet.reason());
        replay(ID, &fleet.record).unwrap();
    }
    for (_, mut fleet) in held_up() {
        stays_away(&mut fleet);
    }
}

/// A run of two tasks, the second of which waits for the first, as far as its first offer.
fn executing(people: People) -> Fleet {
    let mut fleet = Fleet::submitted(RunLimits { people, ..limits(&PLANS) });
    let offer = fleet.find("plan");
    let outcome = good(&offer, &[leaf("one", &[]), leaf("two", &["one"])]);
    end(&mut fleet, "plan", outcome);
    say(&mut fleet, GuardReply::allow());
    fleet
}

fn edit(fleet: &mut Fleet, n: u128, task: &str, goal: &str) {
    fleet.ask(n, RequestAction::Edit { task: Some(task.parse().unwrap()), goal: goal.into() });
}

#[test]
fn a_goal_that_a_person_changes_is_asked_about() {
    let mut fleet = executing(People::default());
    edit(&mut fleet, 1, "2", "see how {{one.result}} ends");
    let plan = shown(&fleet);
    assert_eq!((plan.tasks.len(), plan.tasks[0].goal.as_str()), (1, "see how {{1.result}} ends"));
    assert_eq!(goals(&fleet)[1], "find out about two", "it stays as it was meanwhile");
    let Some((_, _, Effect::AskGuards { hook, role, .. })) = asked(&fleet) else { panic!() };
    assert_eq!((hook, role.as_str()), (Hook::BeforePlan, ""));
    // Which of two came last would be a matter of chance.
    edit(&mut fleet, 2, "2", "another one");
    assert!(fleet.refusals()[0].contains("by ann waits for guards"), "{:?}", fleet.refusals());
    // What was asked twice is one request.
    edit(&mut fleet, 1, "2", "see how {{one.result}} ends");
    assert_eq!((fleet.refusals().len(), fleet.run().guarding.asked), (1, 2));
    say(&mut fleet, GuardReply::allow());
    assert_eq!(goals(&fleet)[1], "see how {{1.result}} ends");

    edit(&mut fleet, 3, "2", "call ann");
    reword(&mut fleet, "ann", "nobody");
    assert_eq!(goals(&fleet)[1], "call nobody");

    edit(&mut fleet, 4, "2", "call bob");
    say(&mut fleet, refuse("leave him alone"));
    assert_eq!(
        fleet.refusals()[1],
        "the change was refused by guard eye: leave him alone; the plan stays as it was"
    );
    assert_eq!(goals(&fleet)[1], "call nobody");
    fleet.work(|offer| good(offer, &[]));
    assert_eq!(body(&fleet), "# Report");
}

#[test]
fn what_is_wrong_with_a_change_is_told_before_guards_are_asked_and_after() {
    let mut fleet = executing(People::default());
    edit(&mut fleet, 1, "7", "anything");
    edit(&mut fleet, 2, "2", " ");
    assert!(fleet.refusals().len() == 2 && !is_asked(&fleet), "{:?}", fleet.refusals());
    // Guards change no more than the goal, and that to what can be carried out.
    for (n, key, value, words) in [
        (3, "role", json!("researcher"), "only the goal"),
        (4, "goal", json!("see {{nobody.result}}"), "nobody"),
        (5, "subtasks", json!([leaf("more", &[])]), "which tasks"),
    ] {
        edit(&mut fleet, n, "2", "look again");
        let mut plan = json!(shown(&fleet));
        plan["tasks"][0][key] = value;
        say(&mut fleet, GuardReply::change("better".into(), json!({ "plan": plan })));
        let told = *fleet.refusals().last().unwrap();
        assert!(told.contains(words) && told.contains("cannot be carried out"), "{words}: {told}");
        assert_eq!(goals(&fleet)[1], "find out about two");
    }
    // The task is gone by the time that they have answered.
    edit(&mut fleet, 6, "2", "look again");
    let (number, outcome) = (*fleet.run().guarding.open.keys().next().unwrap(), None);
    let delete =
        muster_shared::flow::RefineOperation::Delete { task: TaskIndex::top(2), reason: "no".into() };
    fleet.ask_because(7, RequestAction::Edit { task: None, goal: "Only one.".into() }, "less");
    let first = fleet.find("1");
    end(&mut fleet, "1", good(&first, &[]));
    fleet.do_task("refine-1", refinement(vec![delete]));
    say(&mut fleet, GuardReply::allow());
    let said = Guarded { allowed: 1, ..Guarded::default() };
    fleet.turn(vec![Input::GuardsSaid { number, outcome, said }]);
    assert!(fleet.refusals().last().unwrap().contains('2'), "{:?}", fleet.refusals());
    assert_eq!(goals(&fleet), ["find out about one"]);
    replay(ID, &fleet.record).unwrap();
}

#[test]
fn a_run_does_not_wait_for_ever_for_a_change_that_nobody_looks_at() {
    let mut fleet = executing(People::default());
    fleet.work_in_order(|_| 0, |offer| good(offer, &[]));
    assert_eq!(body(&fleet), "# Report");

    let mut fleet = executing(People::default());
    edit(&mut fleet, 1, "2", "look again");
    fleet.work(|offer| good(offer, &[]));
    assert!(!fleet.status().is_ended() && is_asked(&fleet), "they have their time");
    nobody(&mut fleet);
    fleet.turn(vec![Input::Timer]);
    fleet.work(|offer| good(offer, &[]));
    assert_eq!(body(&fleet), "# Report");
    assert_eq!(goals(&fleet)[1], "find out about two");

    // What they let through late is done all the same.
    let mut fleet = executing(People::default());
    edit(&mut fleet, 1, "2", "look again");
    let first = fleet.find("1");
    end(&mut fleet, "1", good(&first, &[]));
    nobody(&mut fleet);
    wake(&mut fleet);
    say(&mut fleet, GuardReply::allow());
    fleet.work(|offer| good(offer, &[]));
    assert_eq!((body(&fleet), goals(&fleet)[1]), ("# Report", "look again"));
}

fn approve(fleet: &mut Fleet, n: u128, tasks: Vec<TaskDraft>) {
    crate::decide::tests::review::approve(fleet, n, Some(tasks));
}

#[test]
fn a_plan_that_a_person_edits_before_approving_it_is_asked_about() {
    let people = || People { review: ReviewPolicy::Ask, answer_within_ms: 60_000, ..People::default() };
    let mut fleet = executing(people());
    assert!(fleet.run().is_held());
    approve(&mut fleet, 1, vec![leaf("one", &["nobody"])]);
    assert!(fleet.refusals()[0].contains("the edited plan cannot be used") && !is_asked(&fleet));
    approve(&mut fleet, 2, vec![leaf("three", &[])]);
    assert!(fleet.run().is_held() && fleet.open.is_empty() && goals(&fleet).len() == 2, "nothing is begun");
    say(&mut fleet, refuse("two are needed"));
    assert!(fleet.refusals()[1].contains("refused by guard eye: two are needed; the plan stays"));
    assert!(fleet.run().is_held() && goals(&fleet).len() == 2, "the question waits on");
    approve(&mut fleet, 3, vec![leaf("three", &[]), leaf("four", &[])]);
    reword(&mut fleet, "four", "five");
    assert!(!fleet.run().is_held());
    assert_eq!(goals(&fleet), ["find out about three", "find out about five"]);
    fleet.work(|offer| good(offer, &[]));
    assert_eq!(body(&fleet), "# Report");

    // What they make of it has to be as good as what a person gives.
    let mut fleet = executing(people());
    approve(&mut fleet, 1, vec![leaf("three", &[])]);
    let plan = PlanDraft { tasks: vec![leaf("three", &["nobody"])], ..PlanDraft::default() };
    say(&mut fleet, GuardReply::change("better".into(), json!({ "plan": plan })));
    assert!(fleet.refusals()[0].contains("the edited plan cannot be used"), "{:?}", fleet.refusals());
    assert!(fleet.run().is_held());
    // One who approves the plan as it is need not wait.
    approve(&mut fleet, 2, vec![leaf("three", &[])]);
    fleet.ask(3, RequestAction::Approve { question: None, arguments: None, plan: None });
    assert!(!fleet.run().is_held() && fleet.open.len() == 1);
    say(&mut fleet, GuardReply::allow());
    assert!(fleet.refusals()[1].contains("nothing waits to be approved"), "{:?}", fleet.refusals());
    replay(ID, &fleet.record).unwrap();
}

/// A fork of a run without guards, whose first task has ended.
fn forked() -> Fleet {
    let mut origin = Fleet::submitted(RunLimits { guards: Vec::new(), ..limits(&PLANS) });
    origin.do_well("plan", &[leaf("one", &[]), leaf("two", &["one"])]);
    origin.do_well("1", &[]);
    fork_of(&origin)
}

fn fork_of(origin: &Fleet) -> Fleet {
    let state = Box::new(Inherited::of(origin.run()).unwrap());
    let (goal, limits) = (Box::new(origin.run().goal.clone()), limits(&PLANS));
    let (from, secret) = (Origin::new(ID, Seq(1)), "cd".repeat(32));
    let mut fork = Fleet::new();
    fork.turn(vec![Input::Fork { from, state, goal, limits, secret, signed: None }]);
    fork
}

#[test]
fn what_is_left_of_a_plan_that_a_fork_took_over_is_asked_about() {
    let mut fork = forked();
    assert!(fork.open.is_empty(), "nothing is begun before");
    let names: Vec<_> = shown(&fork).tasks.into_iter().map(|task| task.name).collect();
    assert_eq!(names, ["two"], "what has ended is done");
    edit(&mut fork, 1, "2", "look again");
    assert!(fork.refusals()[0].contains("waits for guards"), "{:?}", fork.refusals());
    reword(&mut fork, "about two", "about three");
    assert_eq!(goals(&fork), ["find out about one", "find out about three"]);
    fork.work(|offer| good(offer, &[]));
    assert_eq!(body(&fork), "# Report");

    let mut fork = forked();
    say(&mut fork, refuse("no more of it"));
    assert_eq!(fork.status(), RunStatus::Failed);
    assert_eq!(fork.reason(), "the plan that was taken over was refused by guard eye: no more of it");
    replay(ID, &fork.record).unwrap();
}

#[test]
fn a_fork_of_a_run_whose_brought_plan_waits_asks_about_it_itself() {
    let plan = PlanDraft { tasks: vec![leaf("one", &[])], ..PlanDraft::default() };
    let goal = Goal { plan: Some(Box::new(plan)), ..Goal::new("Which limits are there?") };
    let origin = Fleet::with_goal(goal, limits(&PLANS));
    let mut fork = fork_of(&origin);
    assert!(fork.open.is_empty(), "no planner is asked");
    assert_eq!(shown(&fork).tasks[0].name, "one");
    say(&mut fork, GuardReply::allow());
    fork.work(|offer| good(offer, &[]));
    assert_eq!(body(&fork), "# Report");
}

/// The first of two tasks wants to hand work over.
fn handing_over() -> Fleet {
    let mut fleet = executing(People::default());
    let offer = fleet.begin_task("1");
    let part = TaskDraft { role: Some("researcher".into()), ..leaf("part", &[]) };
    fleet.wait(&offer, Wait::Task(Box::new(part)));
    assert!(fleet.open.is_empty() && goals(&fleet).len() == 2, "it waits");
    fleet
}

#[test]
fn work_that_a_task_hands_over_is_asked_about() {
    let mut fleet = handing_over();
    let Some((_, _, Effect::AskGuards { role, .. })) = asked(&fleet) else { panic!() };
    assert_eq!((shown(&fleet).tasks[0].name.as_str(), role.as_str()), ("part", "worker"));
    reword(&mut fleet, "about part", "about pears");
    assert_eq!(goals(&fleet)[2], "find out about pears");
    fleet.work(|offer| good(offer, &[]));
    assert_eq!(body(&fleet), "# Report");

    // Whoever is refused does it by itself, as does whoever nobody answers.
    let told = |fleet: &Fleet| {
        let offer = fleet.find("1");
        let answered = offer.answered.as_ref().unwrap();
        assert_eq!(answered.observation.status, ObservationStatus::Refused);
        answered.observation.content.clone()
    };
    let mut fleet = handing_over();
    say(&mut fleet, refuse("keep it"));
    assert_eq!(
        told(&fleet),
        "It cannot be handed over: it was refused by guard eye: keep it. Do it within this task."
    );
    fleet.work(|offer| good(offer, &[]));
    assert_eq!(body(&fleet), "# Report");
    let mut fleet = handing_over();
    nobody(&mut fleet);
    assert!(told(&fleet).contains("guard eye is gone"));
    let mut fleet = handing_over();
    let plan = PlanDraft { tasks: vec![leaf("a", &[]), leaf("b", &[])], ..PlanDraft::default() };
    say(&mut fleet, GuardReply::change("more".into(), json!({ "plan": plan })));
    assert!(told(&fleet).contains("not one task"));

    // What is not waited for any more is not added.
    let mut fleet = handing_over();
    fleet.ask(1, RequestAction::Skip { task: TaskIndex::top(1) });
    say(&mut fleet, GuardReply::allow());
    assert_eq!(goals(&fleet).len(), 2);
    assert_eq!(fleet.run().planned(&TaskIndex::top(1)).unwrap().status, TaskStatus::Skipped);
    replay(ID, &fleet.record).unwrap();
}
