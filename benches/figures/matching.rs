//! How long it takes to find an agent for each of many tasks.

use std::collections::BTreeMap;
use std::time::Instant;

use muster_orchestrator::decide::Wanted;
use muster_orchestrator::matching::{Candidate, Roster};
use muster_shared::ids::{AgentId, Queue, Role, RunId, TaskId, TaskIndex};
use muster_shared::track_record::Tally;
use muster_support::figures::{Aim, Figure, Measured};
use uuid::Uuid;

use crate::print::median;

const AGENTS: u32 = 10_000;
const TASKS: u16 = 10_000;
const ROLES: [&str; 4] = ["clerk", "auditor", "translator", "analyst"];
/// What agents may be able to do; each can do three of these, in many mixtures.
const CAPABILITIES: u32 = 40;
const TIMES: usize = 9;

pub(crate) fn measure() -> Vec<Figure> {
    let roles: Vec<Role> = ROLES.iter().map(|role| role.parse().unwrap()).collect();
    let needs: Vec<Vec<String>> =
        (0..u32::from(TASKS)).map(|n| vec![capability(n * 7), capability(n * 7 + 5)]).collect();
    let tasks: Vec<TaskId> = (1..=TASKS).map(|n| TaskId::Leaf(TaskIndex::top(n))).collect();
    let mut times = Vec::new();
    let mut named = 0;
    for _ in 0..TIMES {
        let mut roster = fleet(&roles);
        let (run, given) = (RunId::from_uuid(Uuid::from_u128(1)), BTreeMap::new());
        let mut taken: BTreeMap<AgentId, u32> = BTreeMap::new();
        named = 0;
        let began = Instant::now();
        for (at, (task, needs)) in tasks.iter().zip(&needs).enumerate() {
            let placement = roster
                .place(&Wanted { needs, ..Wanted::of_role(run, task, &roles[at % roles.len()], &given) });
            if let Some(Queue::Agent(agent)) = placement.map(|placement| placement.to) {
                let count = taken.entry(agent.clone()).or_default();
                *count += 1;
                roster.take(&agent, *count);
                named += 1;
            }
        }
        times.push(began.elapsed());
    }
    let time = median(&mut times);
    let what = format!("{TASKS} tasks to {AGENTS} agents by what they need ({named} named)");
    vec![Figure::new(what, Measured::time(time)).aiming(Aim::AtMost(50.0))]
}

fn capability(n: u32) -> String {
    format!("capability {:02}", n % CAPABILITIES)
}

fn fleet(roles: &[Role]) -> Roster {
    let mut roster = Roster::default();
    for n in 0..AGENTS {
        let role = roles[n as usize % roles.len()].clone();
        let mixture = n / 4 % 120;
        let mut capabilities: Vec<String> =
            [0, 5, 11].iter().map(|step| capability(mixture + step)).collect();
        capabilities.sort();
        roster.admit(Candidate {
            agent: AgentId::new(&role.to_string(), n),
            role,
            slots: 2,
            capabilities,
            tools: vec!["corpus.*".to_owned()],
            model: "model".to_owned(),
            host: "host".to_owned(),
            contract: String::new(),
            name: String::new(),
            quiet_ms: 0,
            started_at: muster_shared::time::Millis(0),
        });
    }
    roster.judge(|one| {
        let bad = one.agent.as_str().ends_with('3');
        Some(Tally { done: if bad { 1 } else { 9 }, failed: if bad { 9 } else { 1 }, ..Tally::default() })
    });
    roster
}
