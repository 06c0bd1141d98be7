//! Tasks that their agents cannot go on with, and what people say to that.

use muster_shared::flow::{
    About, Ending, People, ReviewPolicy, RunLimits, TaskDraft, TaskOffered, TaskStatus, Work,
};
use muster_shared::ids::{QuestionId, TaskIndex};
use muster_shared::run::event::TaskBlocked;
use muster_shared::run::{QuestionEnd, RequestAction, RunEvent, RunStatus};

use super::fleet::{Fleet, failed, good, leaf, plan};
use super::tables::status;

fn tasks() -> Vec<TaskDraft> {
    vec![leaf("one", &[]), leaf("two", &["1"])]
}

fn people() -> People {
    People { ask: vec!["ann".into()], answer_within_ms: 60_000, ..People::default() }
}

/// A run whose first task went in circles.
fn stuck(people: People) -> Fleet {
    let mut fleet = Fleet::planned(RunLimits { people, ..RunLimits::default() }, tasks());
    escalate(&mut fleet);
    fleet
}

fn escalate(fleet: &mut Fleet) {
    fleet.do_task("1", failed(Ending::Escalate, "it went in circles"));
}

fn is_asked(fleet: &Fleet) -> bool {
    fleet.run().open_questions().count() == 1
}

fn say(fleet: &mut Fleet, n: u128, id: u32, text: &str) {
    let (question, text) = (QuestionId(id), text.to_owned());
    fleet.ask(n, RequestAction::Answer { question, text });
}

fn told(offer: &TaskOffered) -> &str {
    match &offer.work {
        Work::Execute { failed_before, .. } => failed_before.as_deref().unwrap_or_default(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn where_somebody_can_be_asked_a_stuck_task_waits_for_their_word() {
    for people in [people(), People { review: ReviewPolicy::AskIfRisky, ..People::default() }] {
        let mut fleet = stuck(people);
        let asked = fleet.run().questions[&QuestionId(1)].clone();
        assert_eq!(asked.about, About::Task("1".parse().unwrap()));
        assert!(asked.question.text.contains("1 one cannot be gone on with"), "{}", asked.question.text);
        assert_eq!(asked.question.reason, "it went in circles");
        fleet.work(|offer| good(offer, &tasks()));
        assert_eq!(fleet.status(), RunStatus::Processing, "what depends on it waits, too");
        assert!(fleet.open.is_empty());
        say(&mut fleet, 1, 1, "Count by hand.");
        let again = fleet.find("1");
        assert_eq!((again.continues, again.answered.as_ref()), (None, None), "it begins anew");
        assert!(told(&again).contains("it went in circles") && told(&again).contains("Count by hand."));
        fleet.finish(&tasks());
        assert_eq!(status(&fleet, "1"), TaskStatus::Completed);
    }
}

#[test]
fn a_person_is_asked_about_a_task_that_members_leave_to_people_and_cannot_do_without_them() {
    let mut fleet = Fleet::submitted(RunLimits { people: people(), ..RunLimits::default() });
    let planning = fleet.find("plan");
    let shared = TaskDraft { pattern: Some("committee:3".to_owned()), ..leaf("one", &[]) };
    fleet.end(&planning, plan(vec![shared, leaf("two", &["1"])]));
    let endings = [("1~b", Ending::Escalate), ("1~a", Ending::GaveUp), ("1~c", Ending::GaveUp)];
    for (member, ending) in endings {
        while let Some(offer) = fleet.open.iter().find(|offer| offer.task.to_string() == member).cloned() {
            fleet.start(&offer);
            fleet.end(&offer, failed(ending, "it may be against the law"));
        }
    }
    assert!(is_asked(&fleet), "{:?}", fleet.run().questions);
    say(&mut fleet, 1, 1, "It is not. Go on.");
    fleet.work(|offer| good(offer, &tasks()));
    assert_eq!((fleet.status(), status(&fleet, "1")), (RunStatus::Completed, TaskStatus::Completed));
}

#[test]
fn where_nobody_can_be_asked_it_ends() {
    let mut fleet = stuck(People::default());
    assert_eq!((fleet.run().questions.len(), status(&fleet, "1")), (0, TaskStatus::Failed));
    fleet.work(|offer| good(offer, &tasks()));
    assert!(fleet.status().is_ended());

    let older = People { max_questions: 0, ..people() };
    assert_eq!(status(&stuck(older), "1"), TaskStatus::Failed, "no more may be asked");
}

#[test]
fn nobody_in_time_ends_the_task_and_the_run_goes_on_without_it() {
    let mut fleet = stuck(people());
    fleet.work(|offer| good(offer, &tasks()));
    fleet.pass(60_000);
    assert_eq!(status(&fleet, "1"), TaskStatus::Blocked);
    fleet.work(|offer| good(offer, &tasks()));
    assert!(fleet.status().is_ended());
    let blocked = fleet.events().into_iter().any(|event| match event {
        RunEvent::TaskBlocked(TaskBlocked { task, reason }) => {
            *task == TaskIndex::top(1) && reason.contains("nobody said")
        }
        _ => false,
    });
    assert!(blocked);
}

#[test]
fn people_are_asked_about_one_task_twice_at_most() {
    let mut fleet = stuck(people());
    say(&mut fleet, 1, 1, "Count by hand.");
    escalate(&mut fleet);
    assert!(is_asked(&fleet));
    say(&mut fleet, 2, 2, "Count again.");
    escalate(&mut fleet);
    assert_eq!((is_asked(&fleet), status(&fleet, "1")), (false, TaskStatus::Failed));
}

#[test]
fn other_orders_end_the_wait() {
    type Order = fn(&mut Fleet);
    let orders: [(TaskStatus, Order); 2] = [
        (TaskStatus::Skipped, |fleet| fleet.ask(1, RequestAction::Skip { task: TaskIndex::top(1) })),
        (TaskStatus::Queued, |fleet| fleet.ask(1, RequestAction::Redo { task: TaskIndex::top(1) })),
    ];
    for (expected, order) in orders {
        let mut fleet = stuck(people());
        order(&mut fleet);
        assert_eq!(status(&fleet, "1"), expected);
        let end = &fleet.run().questions[&QuestionId(1)].end;
        assert!(matches!(end, Some(QuestionEnd::Withdrawn(_))), "{end:?}");
        fleet.finish(&tasks());
    }
}

#[test]
fn a_pause_does_not_lose_the_question() {
    let mut fleet = stuck(people());
    fleet.ask(1, RequestAction::Pause);
    fleet.ask(2, RequestAction::Resume { deadline_ms: None });
    assert!(is_asked(&fleet));
    say(&mut fleet, 3, 1, "Count by hand.");
    fleet.finish(&tasks());
}
