//! The report is held against the person's own words.

use muster_shared::flow::{Outcome, Product, Report, RunLimits, TaskOffered, Work};
use muster_shared::run::event::WordsUncovered;
use muster_shared::run::{Checked, RunEvent, RunStatus};

use super::fleet::{Fleet, ID, done, good, leaf};
use crate::replay::replay;

pub(super) const GOAL: &str = "Describe apples, and compare them with pears.";

pub(super) fn answering(body: &'static str) -> impl FnMut(&TaskOffered) -> Outcome {
    move |offer| match &offer.work {
        Work::Write { .. } => {
            done(Product::Report(Report { title: "Fruit".into(), body: body.into(), ..Report::default() }))
        }
        _ => good(offer, &[leaf("apples", &[]), leaf("pears", &["apples"])]),
    }
}

fn uncovered(fleet: &Fleet) -> Vec<Vec<String>> {
    let events = fleet.events().into_iter().filter_map(|event| match event {
        RunEvent::WordsUncovered(WordsUncovered { by: Checked::Report, words }) => Some(words.clone()),
        _ => None,
    });
    events.collect()
}

#[test]
fn what_the_report_does_not_speak_of_is_said_in_it_and_stops_nothing() {
    let mut fleet = Fleet::new();
    fleet.submit(GOAL, RunLimits::default());
    fleet.work(answering("# Apples\n\nApples are so."));
    assert_eq!(fleet.status(), RunStatus::Completed);
    assert_eq!(uncovered(&fleet), [["compare them with pears"]]);
    let report = fleet.run().report.as_ref().unwrap();
    assert_eq!(report.unanswered, ["compare them with pears"]);
    assert!(report.body.contains("does not speak of: compare them with pears"), "{}", report.body);
    assert_eq!(fleet.run().planning.uncovered.len(), 1);
    replay(ID, &fleet.record).unwrap();

    let mut fleet = Fleet::new();
    fleet.submit(GOAL, RunLimits::default());
    fleet.work(answering("# Fruit\n\nApples are so; pears are so, too."));
    assert_eq!(uncovered(&fleet), Vec::<Vec<String>>::new());
    assert!(fleet.run().report.as_ref().unwrap().unanswered.is_empty());
}

#[test]
fn later_tasks_read_in_a_line_what_each_has_come_to() {
    let mut fleet = Fleet::new();
    fleet.submit(GOAL, RunLimits::default());
    fleet.work(answering("Apples and pears."));
    let progress = |task: &str| {
        let told = fleet.offered().into_iter().find(|offer| offer.task.to_string() == task);
        match &told.unwrap().work {
            Work::Execute { progress, .. } => progress.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert!(!progress("1").contains(": apples is so"), "{}", progress("1"));
    assert!(progress("2").contains("[x] 1 apples: apples is so\n"), "{}", progress("2"));
}
