//! A small run, made by hand, is explained: what failed, where time went, and what it used.

use muster_shared::explain::{Explanation, explain};
use muster_shared::flow::Usage;
use muster_shared::ids::{AgentId, Role, TaskId};

use crate::small_run::{folded, leaf, record};

fn told(of: Option<&TaskId>) -> Explanation {
    let entries = record();
    explain(&folded(&entries), &entries, of)
}

#[test]
fn what_failed_is_told_with_what_was_done_about_it() {
    let told = told(None);
    let [trouble] = &told.failures[..] else { unreachable!("{:?}", told.failures) };
    let said: Vec<(bool, &str)> =
        trouble.items.iter().map(|item| (item.is_answer, item.item.text.as_str())).collect();
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
fn phases_and_steps_give_the_times() {
    let explained = told(None);
    assert_eq!(explained.total_ms, 3_700);
    let phases: u64 = explained.phases.iter().map(|phase| phase.millis).sum();
    assert!(phases > 0 && phases <= explained.total_ms, "{:?}", explained.phases);
    let [first, ..] = &explained.cost.by_task[..] else { unreachable!("{:?}", explained.cost.by_task) };
    assert!(first.model_ms.saturating_add(first.tool_ms) <= explained.total_ms, "{first:?}");
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
    assert!(told.failures.is_empty(), "nothing went wrong with the second task");
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
        let phases: u64 = told.phases.iter().map(|phase| phase.millis).sum();
        assert!(phases <= told.total_ms, "after {end}");
    }
}
