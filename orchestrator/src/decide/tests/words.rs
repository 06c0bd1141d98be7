//! The results of earlier tasks in the prompts of later ones.

use muster_shared::flow::{Outcome, Product, Report, RunLimits, TaskOffered, Work};

use super::fleet::{Fleet, done, good, leaf};

pub(super) const GOAL: &str = "Describe apples, and compare them with pears.";

pub(super) fn answering(body: &'static str) -> impl FnMut(&TaskOffered) -> Outcome {
    move |offer| match &offer.work {
        Work::Write { .. } => {
            done(Product::Report(Report { title: "Fruit".into(), body: body.into(), ..Report::default() }))
        }
        _ => good(offer, &[leaf("apples", &[]), leaf("pears", &["apples"])]),
    }
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
