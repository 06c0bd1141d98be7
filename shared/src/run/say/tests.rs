use uuid::Uuid;

use super::*;
use crate::flow::Outcome;
use crate::ids::{Attempt, RunId, Seq};
use crate::run::EventKind;
use crate::run::event::{TaskOrphaned, TaskReleased, TaskStarted};
use crate::run::{Released, Started, Unreadable};
use crate::time::Millis;

const GENERATION: Generation = Generation(2);

fn key(agent: u32) -> AgentKey {
    let agent = AgentId::new("worker", agent);
    AgentKey { role: Role::Worker, agent, task: TaskId::Plan, generation: GENERATION }
}

/// What is told of a task: by whom, and whether it counts.
enum Told {
    Says(u32, AgentEvent, bool),
    Other(Role, AgentEvent),
    Decides(RunEvent),
}

fn begins() -> AgentEvent {
    let (ack, host) = (String::new(), String::new());
    AgentEvent::Started(Started { attempt: Attempt(u32::MAX), ack, pid: 1, host, after_step: 9 })
}

fn ends() -> AgentEvent {
    AgentEvent::Outcome(Outcome::of_fault().into())
}

fn hands_over(parked: bool) -> AgentEvent {
    AgentEvent::Released(Released { parked, ..Released::default() })
}

fn garbles(kind: EventKind) -> AgentEvent {
    AgentEvent::Unreadable(Unreadable { kind, why: String::new() })
}

fn has(agent: u32) -> Told {
    let (attempt, ack) = (Attempt(1), String::new());
    let agent = AgentId::new("worker", agent);
    let started =
        TaskStarted { task: TaskId::Plan, generation: GENERATION, agent, attempt, ack, after_step: 0 };
    Told::Decides(started.into())
}

fn loses(agent: u32) -> Told {
    let (attempt, reason) = (Attempt(1), String::new());
    let agent = AgentId::new("worker", agent);
    let (task, generation) = (TaskId::Plan, GENERATION);
    Told::Decides(TaskOrphaned { task, generation, attempt, agent, reason, last_step: 0, beside: 0 }.into())
}

fn handed_over(agent: u32) -> Told {
    let agent = AgentId::new("worker", agent);
    let (task, generation, attempt) = (TaskId::Plan, GENERATION, Attempt(1));
    Told::Decides(TaskReleased { task, generation, agent, attempt }.into())
}

fn entry(seq: u64, event: RecordEvent) -> Entry {
    Entry { seq: Seq(seq), at: Millis(seq), run: RunId::from_uuid(Uuid::nil()), event }
}

fn deciding(event: &RunEvent) -> RecordEvent {
    let decided = serde_json::json!({
        "batch": Uuid::nil(), "by": "orchestrator-1", "inputs": [], "now": 1, "basis": 1, "after": 0, "offers": 0, "events": [event],
    });
    RecordEvent::Decided(serde_json::from_value(decided).unwrap())
}

#[test]
fn whoever_has_a_task_has_a_say_and_nobody_else() {
    use Told::{Decides, Other, Says};
    let (says, in_vain) = (|by, event| Says(by, event, true), |by, event| Says(by, event, false));
    let stories = [
        ("it is begun and ended", vec![says(1, begins()), says(1, ends())]),
        (
            "another says all that can be said",
            vec![
                says(1, begins()),
                in_vain(2, begins()),
                in_vain(2, hands_over(false)),
                in_vain(2, hands_over(true)),
                in_vain(2, garbles(EventKind::Started)),
                in_vain(2, garbles(EventKind::Step)),
                in_vain(2, ends()),
                Other(Role::Planner, ends()),
                says(1, ends()),
            ],
        ),
        (
            "it is lost",
            vec![
                says(1, begins()),
                has(1),
                in_vain(2, begins()),
                loses(1),
                says(1, garbles(EventKind::Step)),
                in_vain(3, garbles(EventKind::Step)),
                says(3, begins()),
                in_vain(2, ends()),
                in_vain(1, ends()),
                says(3, ends()),
            ],
        ),
        (
            "it is handed over",
            vec![
                says(1, begins()),
                says(1, hands_over(false)),
                says(2, begins()),
                handed_over(1),
                in_vain(3, begins()),
                says(2, ends()),
            ],
        ),
        ("it is put down", vec![says(1, begins()), says(1, hands_over(true)), in_vain(2, ends())]),
        (
            "what was decided goes before",
            vec![says(1, begins()), has(2), in_vain(1, ends()), says(2, ends())],
        ),
    ];
    for (name, told) in stories {
        let mut say = Say::of(&key(1), GENERATION);
        for (seq, told) in (1..).zip(told) {
            let (event, counts) = match told {
                Says(agent, event, counts) => (RecordEvent::Agent(key(agent), event), counts),
                Other(role, event) => (RecordEvent::Agent(AgentKey { role, ..key(3) }, event), false),
                Decides(event) => (deciding(&event), false),
            };
            let mut entries = vec![entry(seq, event)];
            say.keep(&mut entries);
            assert_eq!(entries.len() == 1, counts, "{name}, at {seq}");
        }
    }
}
