//! Random fleets, for the simulation and for real processes: a seed decides which roles are missing, which agents are broken,
//! slow or lying, how the tasks of a plan are dispatched, and which processes are killed.

use muster_shared::flow::{PlanDraft, TaskDraft};
use muster_shared::ids::Role;

use crate::random::Random;

/// The specialist that some plans name.
pub const SPECIALIST: &str = "brewer";
/// A task whose goal contains this asks for a child run.
pub const NESTED: &str = "in a separate run";
/// Ways to dispatch a task.
const PATTERNS: [&str; 4] = ["committee:3", "redundant:2", "auction", "committee:2:1"];

/// How an agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conduct {
    /// As it should.
    Sound,
    /// Well, and much slower than others.
    Slow,
    /// Every task fails at once, so that it is always free.
    Broken,
    /// It states that a task is done and delivers nothing that supports this.
    Lying,
}

/// A process that is killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Victim {
    /// An orchestrator.
    Orchestrator,
    /// An agent of this role.
    Agent(Role),
}

/// A random fleet and its work.
#[derive(Debug, Clone)]
pub struct RandomFleet {
    /// Number of orchestrators.
    pub orchestrators: u64,
    /// The agents. A role without one is missing.
    pub agents: Vec<(Role, Conduct)>,
    /// Tasks that an agent works on at the same time.
    pub slots: u64,
    /// The plan that comes with the first goal; a planner makes the same one for the second.
    pub plan: PlanDraft,
    /// Time that tasks wait for a missing role, in milliseconds.
    pub wait_for_role_ms: u64,
    /// Whether reflections ask for a refinement.
    pub refines: bool,
    /// Processes that are killed, with the time since the start in milliseconds.
    pub kills: Vec<(u64, Victim)>,
}

impl RandomFleet {
    /// The fleet of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut random = Random::of(seed, "fleet");
        let specialist: Option<Role> = SPECIALIST.parse().ok();
        let missing: Vec<Role> =
            (0..random.below(3)).filter_map(|_| pick(&mut random, &Role::BUILT_IN)).collect();
        let is_specialist_online = random.chance(500);
        let mut agents = Vec::new();
        for role in Role::BUILT_IN.into_iter().chain(specialist.filter(|_| is_specialist_online)) {
            if missing.contains(&role) {
                continue;
            }
            agents.push((role.clone(), Conduct::Sound));
            let others = if role == Role::Worker { random.below(4) } else { random.below(5) / 3 };
            let conducts = [Conduct::Sound, Conduct::Slow, Conduct::Broken, Conduct::Lying];
            let conduct = |random: &mut Random| pick(random, &conducts).unwrap_or(Conduct::Sound);
            agents.extend((0..others).map(|_| (role.clone(), conduct(&mut random))));
        }
        let victims = [Victim::Orchestrator, Victim::Agent(Role::Worker), Victim::Agent(Role::Researcher)];
        let kills = (0..random.below(4))
            .filter_map(|_| Some((random.between(100, 4_000), pick(&mut random, &victims)?)));
        let kills = kills.collect();
        Self {
            orchestrators: random.between(1, 2),
            agents,
            slots: random.between(1, 3),
            plan: plan(&mut random),
            wait_for_role_ms: random.between(2_000, 4_000),
            refines: random.chance(400),
            kills,
        }
    }

    /// Whether agents of the role are online that do their work.
    #[must_use]
    pub fn has(&self, role: &Role) -> bool {
        self.agents.iter().any(|(of, conduct)| of == role && *conduct != Conduct::Broken)
    }
}

fn pick<T: Clone>(random: &mut Random, of: &[T]) -> Option<T> {
    random.pick(of).cloned()
}

fn plan(random: &mut Random) -> PlanDraft {
    let tasks = (1..=random.between(1, 4)).map(|number| task(number, random)).collect();
    PlanDraft { goal: "Find it out.".to_owned(), tasks, ..PlanDraft::default() }
}

fn task(number: u64, random: &mut Random) -> TaskDraft {
    let roles = ["worker", "worker", "researcher", SPECIALIST];
    let nested = if random.chance(150) { format!(" {NESTED}") } else { String::new() };
    TaskDraft {
        name: format!("part {number}"),
        goal: format!("Find out about part {number}{nested}."),
        role: pick(random, &roles).map(str::to_owned),
        depends_on: (1..number).filter(|_| random.chance(300)).map(|on| on.to_string()).collect(),
        critical: random.chance(250),
        pattern: random.chance(400).then(|| pick(random, &PATTERNS).map(str::to_owned)).flatten(),
        ..TaskDraft::default()
    }
}
