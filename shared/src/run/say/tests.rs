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
    let stories = [
        ("it is begun and ended", vec![Says(1, begins(), true), Says(1, ends(), true)]),
        (
            "another says all that can be said",
            vec![
                Says(1, begins(), true),
                Says(2, begins(), false),
                Says(2, hands_over(false), false),
                Says(2, hands_over(true), false),
                Says(2, garbles(EventKind::Started), false),
                Says(2, garbles(EventKind::Step), false),
                Says(2, ends(), false),
                Other(Role::Planner, ends()),
                Says(1, ends(), true),
            ],
        ),
        (
            "it is lost",
            vec![
                Says(1, begins(), true),
                has(1),
                Says(2, begins(), false),
                loses(1),
                Says(1, garbles(EventKind::Step), true),
                Says(3, garbles(EventKind::Step), false),
                Says(3, begins(), true),
                Says(2, ends(), false),
                Says(1, ends(), false),
                Says(3, ends(), true),
            ],
        ),
        (
            "it is handed over",
            vec![
                Says(1, begins(), true),
                Says(1, hands_over(false), true),
                Says(2, begins(), true),
                handed_over(1),
                Says(3, begins(), false),
                Says(2, ends(), true),
            ],
        ),
        (
            "it is put down",
            vec![Says(1, begins(), true), Says(1, hands_over(true), true), Says(2, ends(), false)],
        ),
        (
            "what was decided goes before",
            vec![Says(1, begins(), true), has(2), Says(1, ends(), false), Says(2, ends(), true)],
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
