//! The write budget of the yardstick workload: 1 plan, 8 parallel leaves of 3 tool steps and an answer, each
//! followed by a reflection, 1 report.

use muster_shared::flow::{RunLimits, TaskDraft, TaskOffered, Thought};
use muster_shared::ids::TaskId;
use muster_shared::run::{AgentEvent, RunStatus};

use super::fleet::{Fleet, good, leaf, started};

/// Most record entries of one run of the workload.
const BUDGET: usize = 90;

const LEAVES: usize = 8;

fn limits() -> RunLimits {
    RunLimits { max_width: 8, ..RunLimits::default() }
}

fn tasks() -> Vec<TaskDraft> {
    (1..=LEAVES).map(|n| leaf(&format!("part {n}"), &[])).collect()
}

fn step(number: u32) -> AgentEvent {
    let action = serde_json::json!({ "name": "search", "arguments": { "query": number } });
    let step = serde_json::json!({
        "number": number, "thought": Thought::default(), "action": action, "millis": 1, "outside_millis": 1,
    });
    AgentEvent::Step(serde_json::from_value(step).unwrap())
}

/// Everybody starts at once, then everybody's outcome is decided upon by itself: the most expensive order.
fn run(fleet: &mut Fleet) {
    while !fleet.open.is_empty() {
        let offers: Vec<TaskOffered> = fleet.open.clone();
        for offer in &offers {
            let input = fleet.report_only(offer, started());
            fleet.turn(vec![input]);
            if matches!(offer.task, TaskId::Leaf(_)) {
                (1..=3).for_each(|number| drop(fleet.report_only(offer, step(number))));
            }
        }
        for offer in offers {
            let outcome = good(&offer, &tasks());
            fleet.end(&offer, outcome);
        }
    }
}

#[test]
fn the_workload_stays_within_its_write_budget() {
    let mut fleet = Fleet::submitted(limits());
    run(&mut fleet);
    assert_eq!(fleet.status(), RunStatus::Completed);
    let entries = fleet.record.len();
    println!("workload W: {entries} record entries of {BUDGET}, {} of them offers", fleet.offered().len());
    assert_eq!(fleet.offered().len(), 2 + 2 * LEAVES);
    assert!(entries <= BUDGET, "{entries} entries");
}

#[test]
fn putting_decisions_off_changes_nothing_but_the_number_of_entries() {
    let mut lazy = Fleet::submitted(limits());
    let mut eager = Fleet { defer: false, ..Fleet::new() };
    eager.submit("Which limits are there?", limits());
    run(&mut lazy);
    run(&mut eager);
    assert!(eager.record.len() > lazy.record.len());
    assert_eq!(lazy.run().reflections().collect::<Vec<_>>(), eager.run().reflections().collect::<Vec<_>>());
    assert_eq!(lazy.run().spending.used, eager.run().spending.used);
    let outcomes = |fleet: &Fleet| -> Vec<_> {
        fleet
            .run()
            .tasks
            .iter()
            .map(|(task, state)| (task.clone(), state.status, state.outcome.clone()))
            .collect()
    };
    assert_eq!(outcomes(&lazy), outcomes(&eager));
}
