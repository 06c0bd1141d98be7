//! What rules about language said stands in the record: word lists, stems and thresholds may change, and a replay of what was
//! decided by the old ones agrees.

use muster_shared::flow::{ConflictStep, Goal, Planning, Reading, ReadingRule, RunLimits};
use muster_shared::run::{Entry, RecordEvent};

use super::fleet::{Fleet, ID, leaf};
use super::{acceptance, conflicts, groups, review, words};
use crate::replay::replay;

fn a_conflict_is_found_and_settled() -> Fleet {
    let mut fleet = conflicts::contradicted(&ConflictStep::USUAL);
    let shown = |value: &str, how: &str| conflicts::claiming(vec![conflicts::claim(value, how)]);
    fleet.do_task("settle-1", shown("30 %", "rows of November"));
    fleet.do_task("settle-2", shown("30.1 percent", "had taken the rows of October"));
    assert!(conflicts::is_settled_by(&fleet, 1).is_some());
    fleet.do_task("2", conflicts::says("0.3"));
    fleet
}

fn a_result_is_judged(conclusion: &str) -> Fleet {
    let mut fleet = acceptance::begun();
    fleet.do_task("1", acceptance::gives(conclusion));
    fleet
}

fn a_report_is_judged(body: &'static str) -> Fleet {
    let mut fleet = Fleet::new();
    fleet.submit(words::GOAL, RunLimits::default());
    fleet.work(words::answering(body));
    fleet
}

fn a_goal_is_small(text: &str) -> Fleet {
    let mut fleet = Fleet::new();
    let limits = RunLimits { planning: Planning::Auto, ..RunLimits::default() };
    fleet.begin_as_it_is(Goal::new(text), limits);
    fleet
}

fn a_goal_is_separable(text: &str) -> Fleet {
    let mut fleet = Fleet::new();
    let limits = RunLimits { planning: Planning::Sparing, ..RunLimits::default() };
    fleet.begin_as_it_is(Goal::new(text), limits);
    fleet
}

fn readings(record: &[Entry]) -> Vec<&Reading> {
    let decided = record.iter().filter_map(|entry| match &entry.event {
        RecordEvent::Decided(decided) => Some(&decided.readings),
        RecordEvent::Offered(_) | RecordEvent::Agent(..) => None,
    });
    decided.flatten().collect()
}

/// The record without what rules said.
fn without_readings(record: &[Entry]) -> Vec<Entry> {
    let mut record = record.to_vec();
    for entry in &mut record {
        if let RecordEvent::Decided(decided) = &mut entry.event {
            decided.readings.clear();
        }
    }
    record
}

#[test]
fn a_replay_goes_by_what_rules_said_and_not_by_what_they_would_say_now() {
    let cases = [
        ("a conflict", a_conflict_is_found_and_settled(), Some(ReadingRule::Contradictions)),
        ("a goal in parts", a_goal_is_separable("Who? When? How?"), Some(ReadingRule::Separable)),
        ("a goal in one", a_goal_is_separable("Compare the two."), None),
        ("a plan under review", review::waiting(review::asking()), Some(ReadingRule::Uncovered)),
        ("what is expected", a_result_is_judged("[1, 2, 3]"), None),
        ("what is not expected", a_result_is_judged("banana"), Some(ReadingRule::Unmet)),
        (
            "a report that lacks something",
            a_report_is_judged("# Apples\n\nApples are so."),
            Some(ReadingRule::Unanswered),
        ),
        ("a report", a_report_is_judged("# Fruit\n\nApples are so; pears are so, too."), None),
        ("a small goal", a_goal_is_small("What is a run?"), Some(ReadingRule::SmallGoal)),
        ("a goal that is not small", a_goal_is_small("Compare runs with tasks."), None),
        ("a committee that is divided", groups::divided(), Some(ReadingRule::Camps)),
    ];
    for (what, fleet, rule) in cases {
        replay(ID, &fleet.record).unwrap();
        let kept = readings(&fleet.record);
        assert!(rule.is_none_or(|rule| kept.iter().any(|reading| reading.rule == rule)), "{what}: {kept:?}");
        let again = replay(ID, &without_readings(&fleet.record));
        assert_eq!(again.is_err(), !kept.is_empty(), "{what}: the rules are asked again: {kept:?}");
    }
}

#[test]
fn what_is_kept_is_small_and_nothing_is_where_no_rule_is_asked() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    let tasks = [leaf("one", &[]), leaf("two", &["1"])];
    fleet.finish(&tasks);
    let bytes = |kept: Vec<&Reading>| -> usize {
        kept.iter().map(|reading| serde_json::to_string(reading).unwrap().len()).sum()
    };
    let kept = readings(&fleet.record);
    assert!(bytes(kept.clone()) <= 100, "{kept:?}");
    let conflict = a_conflict_is_found_and_settled();
    let kept = readings(&conflict.record);
    assert!(bytes(kept.clone()) <= 700, "{kept:?}");
}
