//! A small run, made by hand, is explained: what failed, where time went, and what it used.
#![allow(clippy::unwrap_used)]

mod small_run;

use muster_shared::explain::{Explanation, SegmentKind, explain};
use muster_shared::flow::Usage;
use muster_shared::ids::{AgentId, Role, TaskId};

use small_run::{folded, leaf, record};

fn told(of: Option<&TaskId>) -> Explanation {
    let entries = record();
    explain(&folded(&entries), &entries, of)
}

#[test]
fn what_failed_is_told_with_what_was_done_about_it() {
    let told = told(None);
    let [trouble] = &told.troubles[..] else { unreachable!("{:?}", told.troubles) };
    let said: Vec<(bool, &str)> =
        trouble.items.iter().map(|item| (item.is_answer, item.told.text.as_str())).collect();
    assert_eq!(trouble.task, Some(leaf("1")));
    let [(true, answer), (false, retried), (false, lost)] = said[..] else { unreachable!("{said:?}") };
    assert!(answer.ends_with("another agent tries it"), "{answer}");
    assert_eq!(retried, "1 to be tried again: no use");
    assert!(lost.contains("worker-00000002") && lost.contains("its connection is gone"), "{lost}");
    let turns: Vec<&str> = told.turning_points.iter().map(|told| told.text.as_str()).collect();
    assert_eq!(turns, [lost]);
    assert_eq!(told.result.how, "it ended with a report, and all that was planned was done");
    assert_eq!(told.result.report.as_deref(), Some("So it is"));
}

#[test]
fn the_critical_path_is_followed_over_retries_and_takeovers() {
    use SegmentKind::{Agent, Decision, Lost, Work};
    let told = told(None);
    let path: Vec<(SegmentKind, u64)> =
        told.time.critical_path.iter().map(|part| (part.kind, part.millis)).collect();
    let wanted = [
        (Agent, 100),
        (Work, 1_000),
        (Decision, 10),
        (Agent, 90),
        (Lost, 800),
        (Agent, 100),
        (Work, 500),
        (Decision, 10),
        (Agent, 40),
        (Work, 1_000),
        (Decision, 50),
    ];
    assert_eq!(path, wanted);
    assert_eq!(told.time.total_ms, 3_700);
    let first = told.time.tasks.iter().find(|time| time.task == leaf("1")).unwrap();
    assert_eq!((first.offers, first.worked_ms, first.lost_ms, first.queued_ms), (2, 1_500, 800, 290));
    assert_eq!(first.agents.len(), 3);
}

#[test]
fn what_was_used_adds_up_by_task_and_role() {
    let told = told(None);
    let by_task: Vec<(Option<TaskId>, u64)> =
        told.cost.by_task.iter().map(|row| (row.task.clone(), row.usage.model_calls)).collect();
    assert_eq!(by_task, [(Some(leaf("1")), 5), (Some(leaf("2")), 4)]);
    let [role] = &told.cost.by_role[..] else { unreachable!("{:?}", told.cost.by_role) };
    assert_eq!((role.role.clone(), role.usage), (Some(Role::Worker), told.cost.total));
    assert_eq!(told.cost.total.cost_micros, 90);
}

#[test]
fn findings_are_told_with_where_they_stand_and_who_gave_them() {
    let told = told(Some(&leaf("2")));
    let [finding] = &told.evidence[..] else { unreachable!("{:?}", told.evidence) };
    assert_eq!((finding.text.as_str(), finding.agent.clone()), ("2 is so", Some(AgentId::new("worker", 1))));
    assert_eq!(finding.citations[0].path, "a.md");
    assert!(told.troubles.is_empty(), "nothing went wrong with the second task");
}

#[test]
fn every_beginning_of_a_record_is_explained_and_adds_up() {
    let entries = record();
    for end in 1..=entries.len() {
        let (part, state) = (&entries[..end], folded(&entries[..end]));
        let told = explain(&state, part, None);
        let mut sum = Usage::default();
        told.cost.by_task.iter().for_each(|row| sum += row.usage);
        assert_eq!(sum, state.used(), "after {end}");
        let path: u64 = told.time.critical_path.iter().map(|part| part.millis).sum();
        assert_eq!(path, told.time.total_ms, "after {end}");
    }
}
