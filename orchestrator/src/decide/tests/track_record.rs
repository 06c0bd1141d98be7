//! What is kept of a run's agents and tools when it ends.

use muster_shared::flow::{CallDigest, Ending, ObservationStatus, Outcome, StepDigest, Work};
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
