//! What is kept of a run's agents and tools when it ends.

use muster_shared::flow::{CallDigest, Ending, ObservationStatus, Outcome, StepDigest, Work};
use muster_shared::run::{Entry, RecordEvent};
use muster_shared::track_record::ToolTally;

use super::fleet::{Fleet, failed, good};
use super::tables::{planned, tasks};
use crate::decide::Effect;

/// Two steps: in the first, three calls of one answer.
fn steps() -> Vec<StepDigest> {
    use ObservationStatus::{Error, Success, Timeout};
    let call = |tool: &str, status, millis| CallDigest { tool: tool.to_owned(), status, millis };
    let step = |number, action: &str, status, millis| StepDigest {
        number,
        action: action.to_owned(),
        status: Some(status),
        millis,
        more: Vec::new(),
    };
    let more = vec![call("search", Error, 20), call("read", Timeout, 300)];
    vec![
        StepDigest { more, ..step(1, "search a; search b; read c", Success, 10) },
        step(2, "read d", Success, 5),
    ]
}

/// The run with these steps of its first task, which ends well or is given up.
fn ended(steps: &[StepDigest], ending: Ending) -> Fleet {
    let mut fleet = planned();
    fleet.work(|offer| {
        let is_first = matches!(&offer.work, Work::Execute { task, .. } if task.name == "apples");
        let outcome = match ending.is_success() || !is_first {
            true => good(offer, &tasks()),
            false => failed(ending, "it would not"),
        };
        Outcome { steps: if is_first { steps.to_vec() } else { Vec::new() }, ..outcome }
    });
    fleet
}

fn decided(fleet: &Fleet) -> Vec<&Entry> {
    let is_decided = |entry: &&Entry| match entry.event {
        RecordEvent::Decided(_) | RecordEvent::Offered(_) => true,
        RecordEvent::Agent(..) => false,
    };
    fleet.record.iter().filter(is_decided).collect()
}

fn tools(fleet: &Fleet) -> Vec<(&str, ToolTally)> {
    let [.., Effect::KeepTrackRecord { track_record }] = &fleet.effects[..] else {
        panic!("{:?}", fleet.effects)
    };
    track_record.tools.iter().map(|(tool, tally)| (tool.as_str(), *tally)).collect()
}

#[test]
fn every_call_of_a_step_counts() {
    let fleet = ended(&steps(), Ending::Done);
    let tally = |calls, failed, ms| ToolTally { calls, failed, ms };
    assert_eq!(tools(&fleet), [("read", tally(2, 1, 305)), ("search", tally(2, 1, 30))]);
}

#[test]
fn nothing_is_decided_by_the_further_calls_of_a_step() {
    let older: Vec<StepDigest> =
        steps().into_iter().map(|step| StepDigest { more: Vec::new(), ..step }).collect();
    let read: Vec<StepDigest> = serde_json::from_value(serde_json::json!([
        {"number": 1, "action": "search a; search b; read c", "status": "success", "millis": 10},
        {"number": 2, "action": "read d", "status": "success", "millis": 5},
    ]))
    .unwrap();
    assert_eq!(read, older, "as it stands in records of before");
    for ending in [Ending::Done, Ending::GaveUp, Ending::Blocked] {
        let (before, now) = (ended(&older, ending), ended(&steps(), ending));
        assert!(decided(&before).len() > 8, "{ending:?}");
        assert_eq!(decided(&before), decided(&now), "{ending:?}");
    }
    let tally = |calls, failed, ms| ToolTally { calls, failed, ms };
    let before = ended(&older, Ending::Done);
    assert_eq!(tools(&before), [("read", tally(1, 0, 5)), ("search", tally(1, 0, 10))]);
}
