//! What a goal means is asked before there is a plan (P8), and plans that people bring or that nobody makes are held
//! for them too.

use muster_shared::flow::{About, Goal, People, PlanDraft, Product, ReviewPolicy, RunLimits, Work};
use muster_shared::ids::QuestionId;
use muster_shared::run::event::QuestionAsked;
use muster_shared::run::{RequestAction, RunEvent};

use super::fleet::{Fleet, done, leaf, plan};

const QUESTION: &str = "Do you mean the limits of a run or those of a task?";

fn asking(people: People) -> Fleet {
    let people = People { answer_within_ms: 60_000, ..people };
    let mut fleet = Fleet::submitted(RunLimits { people, ..RunLimits::default() });
    let offer = fleet.find("plan");
    let questions = vec![QUESTION.to_owned()];
    let asks = PlanDraft { goal: "limits".into(), questions, ..PlanDraft::default() };
    fleet.end(&offer, done(Product::Plan(asks)));
    fleet
}

fn told(fleet: &Fleet) -> (Vec<(String, String)>, Vec<String>) {
    let Work::Plan { answers, refused, .. } = fleet.find("plan").work else { panic!("nothing is planned") };
    (answers, refused)
}

#[test]
fn the_planner_asks_once_what_the_goal_means_and_is_told_the_answer() {
    let mut fleet = asking(People { ask_about_goal: true, ..People::default() });
    assert!(fleet.open.is_empty() && fleet.run().is_held(), "nothing is offered until it is answered");
    let asked: Vec<_> = fleet.run().open_questions().map(|(id, asked)| (id, asked.about.clone())).collect();
    assert_eq!(asked, [(QuestionId(1), About::Goal)]);
    let text = "of a run".to_owned();
    fleet.ask(1, RequestAction::Answer { question: QuestionId(1), text });
    assert_eq!(told(&fleet).0, [(QUESTION.to_owned(), "of a run".to_owned())]);
    let offer = fleet.find("plan");
    let asks = PlanDraft { questions: vec!["And which?".into()], ..PlanDraft::default() };
    fleet.end(&offer, done(Product::Plan(asks)));
    assert!(fleet.run().open_questions().next().is_none(), "people are asked once");
    assert!(told(&fleet).1[0].contains("most likely meant"), "{:?}", told(&fleet));
    fleet.end_task("plan", plan(vec![leaf("limits", &[])]));
    fleet.finish(&[leaf("limits", &[])]);
}

#[test]
fn when_nobody_answers_the_planner_goes_on_with_what_is_most_likely() {
    let mut fleet = asking(People { ask_about_goal: true, ..People::default() });
    fleet.pass(60_000);
    assert!(told(&fleet).0[0].1.contains("nobody answered"), "{:?}", told(&fleet));
}

#[test]
fn nobody_is_asked_where_that_is_not_wanted() {
    let fleet = asking(People::default());
    assert!(fleet.run().questions.is_empty());
    assert!(told(&fleet).1[0].contains("say in the goals"), "{:?}", told(&fleet));
}

#[test]
fn whoever_reviews_plans_sees_that_of_a_small_goal_and_the_one_that_was_brought() {
    let people = People { review: ReviewPolicy::Ask, ..People::default() };
    let limits = RunLimits { people, planning: muster_shared::flow::Planning::Auto, ..RunLimits::default() };
    let fleet = Fleet::with_goal(Goal::new("What is a run?"), limits.clone());
    assert_eq!(fleet.find("plan").task.to_string(), "plan");
    let brought = PlanDraft { goal: "runs".into(), tasks: vec![leaf("runs", &[])], ..PlanDraft::default() };
    let fleet =
        Fleet::with_goal(Goal { plan: Some(Box::new(brought)), ..Goal::new("What is a run?") }, limits);
    assert!(fleet.run().is_held() && fleet.open.is_empty());
    assert!(
        fleet
            .events()
            .iter()
            .any(|event| matches!(event, RunEvent::QuestionAsked(QuestionAsked { about: About::Plan, .. })))
    );
}
