//! What a seed sets up: which processes there are, what is asked of them, and under which limits.

use muster_shared::flow::{
    Budget, DraftReviewPolicy, Goal, GuardRule, Hook, ModelVerification, OnFailure, OnTimeout, People,
    Planning, ReflectionLevel, ReviewPolicy, RunLimits, Writing,
};
use muster_shared::ids::{AgentId, Role, RunId, TaskIndex};
use muster_shared::run::{EVENT_VERSION, Input, Request, RequestAction};
use muster_shared::wire::{Advertised, Profile};
use uuid::Uuid;

use crate::agenda::Time;
use crate::agent::Agent;
use crate::broker::agent_of;
use crate::faults::Blow;
use crate::fleet::{Conduct, RandomFleet, Victim};
use crate::goals;
use crate::messages::{Life, Order};
use crate::owner::Owner;
use crate::process::Process;
use crate::random::Random;
use crate::teams;
use crate::trials;

/// When every run that was paused is asked once more to go on.
const LAST_RESUME: Time = 150_000;

/// A process's place in the fleet, whoever lives in it.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Orchestrator,
    Agent { role: Role, slots: usize, capabilities: Vec<String>, is_deaf: bool, conduct: Conduct },
}

/// What a seed sets up.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) places: Vec<Kind>,
    pub(crate) runs: Vec<RunId>,
    pub(crate) commands: Vec<(Time, RunId, Order)>,
    /// When somebody forks a run: the run, and what the new one is called.
    pub(crate) forks: Vec<(Time, RunId, RunId)>,
    /// Whether orchestrators are told who is there.
    pub(crate) is_told: bool,
    pub(crate) limits: RunLimits,
}

impl Scenario {
    pub(crate) fn new(seed: u64, random: &mut Random) -> Self {
        let mut places: Vec<Kind> = (0..random.between(1, 3)).map(|_| Kind::Orchestrator).collect();
        // Of some fleets the agents differ in what they can do, and some take nothing that is offered to them by name for a while.
        let (differ, deaf) = (random.chance(400), random.chance(200));
        for role in Role::BUILT_IN {
            let count = if role == Role::Worker { workers(random) } else { random.between(1, 2) };
            for _ in 0..count {
                let slots = usize::try_from(random.between(1, 3)).unwrap_or(1);
                let able = teams::NEEDS.iter().filter(|_| !differ || random.chance(500));
                let capabilities = able.map(|word| (*word).to_owned()).collect();
                let is_deaf = deaf && role == Role::Worker && random.chance(300);
                let (role, conduct) = (role.clone(), Conduct::Sound);
                places.push(Kind::Agent { role, slots, capabilities, is_deaf, conduct });
            }
        }
        // Some fleets do not know who is there.
        let is_told = !random.chance(60);
        let count = if random.chance(250) { 2 } else { 1 };
        let id = |n: u64| RunId::from_uuid(Uuid::from_u128(u128::from(seed) << 8 | u128::from(n)));
        let runs: Vec<RunId> = (1..=count).map(id).collect();
        let mut commands: Vec<_> = runs.iter().flat_map(|run| commands(*run, random)).collect();
        for (_, run, order) in &mut commands {
            if let Order::Submit(goal) = order {
                *goal = goals::planned(seed, *run, goal.clone());
            }
        }
        for run in &runs {
            let written = teams::written_by_people(seed, *run).into_iter();
            commands.extend(written.map(|(at, input)| (at, *run, Order::Control(input))));
        }
        let forks =
            if random.chance(150) { vec![(random.below(60_000), runs[0], id(9))] } else { Vec::new() };
        let limits = trials::tried(seed, guarded(seed, sparing(seed, limits(seed, random))));
        places.extend(trials::those_who_try(seed, &limits));
        Self { forks, places, runs, commands, is_told, limits }
    }

    /// A random fleet that works on two goals: one comes with its plan.
    pub(crate) fn of_fleet(seed: u64, fleet: &RandomFleet, random: &mut Random) -> Self {
        let mut places: Vec<Kind> = (0..fleet.orchestrators).map(|_| Kind::Orchestrator).collect();
        places.extend(fleet.agents.iter().map(|(role, conduct)| Kind::Agent {
            role: role.clone(),
            slots: usize::try_from(fleet.slots).unwrap_or(1),
            capabilities: teams::NEEDS.map(str::to_owned).to_vec(),
            // It bids for tasks and does not start them.
            is_deaf: *conduct == Conduct::Lying,
            conduct: *conduct,
        }));
        let runs = [1, 2].map(|n| RunId::from_uuid(Uuid::from_u128(u128::from(seed) << 8 | n))).to_vec();
        let brought = Goal { plan: Some(Box::new(fleet.plan.clone())), ..Goal::new("what the plan is for") };
        let commands = vec![
            (0, runs[0], Order::Submit(brought)),
            (random.below(500), runs[1], Order::Submit(Goal::new("everything"))),
        ];
        let limits = RunLimits {
            max_tasks: 12,
            max_refinements: if fleet.refines { 2 } else { 0 },
            task_deadline_ms: 180_000,
            wait_for_role_ms: fleet.wait_for_role_ms,
            planning: Planning::Always,
            people: People { answer_within_ms: random.between(2_000, 90_000), ..People::default() },
            ..RunLimits::default()
        };
        Self { forks: Vec::new(), places, runs, commands, is_told: true, limits }
    }

    /// The kills of a random fleet: another process takes the place soon.
    pub(crate) fn kills(&self, fleet: &RandomFleet, random: &mut Random) -> Vec<(Time, Blow)> {
        let place = |victim: &Victim| match victim {
            Victim::Orchestrator => (0..self.places.len()).find(|place| self.is_orchestrator(*place)),
            Victim::Agent(role) => (0..self.places.len()).find(|place| self.is_of(*place, role)),
        };
        let kills = fleet.kills.iter().filter_map(|(at, victim)| Some((*at, place(victim)?)));
        kills.map(|(at, place)| (at, Blow::Crash(place, random.between(50, 2_000)))).collect()
    }

    /// A new process for a place.
    pub(crate) fn start(&self, seed: u64, place: usize, life: u32) -> Box<dyn Process> {
        match &self.places[place] {
            Kind::Orchestrator => {
                let me = agent_of(Life { place, number: life });
                Box::new(Owner::new(me, self.limits.clone()))
            }
            Kind::Agent { role, slots, is_deaf, conduct, .. } => {
                let me = agent_name(role, place, life);
                Box::new(Agent::new(seed, me, role.clone(), *slots, (*is_deaf, *conduct)))
            }
        }
    }

    /// What the agent in a place says of itself; orchestrators are none.
    pub(crate) fn profile(&self, place: usize, life: u32) -> Option<Profile> {
        let Kind::Agent { role, slots, capabilities, .. } = &self.places[place] else { return None };
        let said = Advertised { capabilities: capabilities.clone(), ..Advertised::default() };
        let profile = serde_json::json!({
            "agent": agent_name(role, place, life), "role": role, "pid": 1, "host": "here",
            "event_version": EVENT_VERSION, "slots": slots, "specialist": said,
        });
        serde_json::from_value(profile).ok()
    }

    /// Whether an agent of the role lives in a place.
    pub(crate) fn is_of(&self, place: usize, wanted: &Role) -> bool {
        matches!(&self.places[place], Kind::Agent { role, .. } if role == wanted)
    }

    /// The name of the agent in a place; orchestrators are none.
    pub(crate) fn agent(&self, place: usize, life: u32) -> Option<AgentId> {
        match &self.places[place] {
            Kind::Orchestrator => None,
            Kind::Agent { role, .. } => Some(agent_name(role, place, life)),
        }
    }

    pub(crate) fn is_orchestrator(&self, place: usize) -> bool {
        matches!(self.places[place], Kind::Orchestrator)
    }
}

/// One to fifty.
const fn workers(random: &mut Random) -> u64 {
    match random.below(40) {
        0 => random.between(10, 50),
        1..=6 => random.between(4, 9),
        _ => random.between(1, 3),
    }
}

fn agent_name(role: &Role, place: usize, life: u32) -> AgentId {
    AgentId::new(&role.to_string(), u32::try_from(place).unwrap_or(0) << 16 | life)
}

/// Some fleets do little for a goal that does not need more: it begins as one task, and what that gives may be the report.
fn sparing(seed: u64, limits: RunLimits) -> RunLimits {
    if !Random::of(seed, "effort").chance(350) {
        return limits;
    }
    RunLimits {
        planning: Planning::Auto,
        reflection: ReflectionLevel::WhenNeeded,
        writer: Writing::UnlessSingle,
        verification: ModelVerification::Off,
        iterate_plans: false,
        ..limits
    }
}

/// Some fleets have guards, of which some let things pass when they give no verdict.
fn guarded(seed: u64, limits: RunLimits) -> RunLimits {
    let mut random = Random::of(seed, "guards");
    if !random.chance(200) {
        return limits;
    }
    let on_failure = if random.chance(500) { OnFailure::Allow } else { OnFailure::Refuse };
    let hooks = vec![Hook::BeforePlan, Hook::BeforeReport];
    let (name, tools, roles) = ("eye".to_owned(), Vec::new(), Vec::new());
    let rule = GuardRule { name, hooks, on_failure, timeout_ms: random.between(100, 5_000), tools, roles };
    RunLimits { guards: vec![rule], ..limits }
}

fn limits(seed: u64, random: &mut Random) -> RunLimits {
    RunLimits {
        conflicts: teams::conflicts(seed),
        max_tasks: 12,
        max_generations: u32::try_from(random.between(1, 5)).unwrap_or(3),
        max_refinements: u32::try_from(random.below(3)).unwrap_or(0),
        task_deadline_ms: random.between(60_000, 180_000),
        budget: Budget {
            model_calls: random.chance(250).then(|| random.between(4, 80)),
            ..Budget::default()
        },
        max_nesting: u32::try_from(random.below(3)).unwrap_or(1),
        people: people(random),
        run_deadline_ms: if random.chance(100) { random.between(10_000, 60_000) } else { 3_600_000 },
        draft_review: if random.chance(300) { DraftReviewPolicy::On } else { DraftReviewPolicy::Off },
        draft_rounds: u8::try_from(random.below(3)).unwrap_or(1),
        ..RunLimits::default()
    }
}

fn people(random: &mut Random) -> People {
    let ask = ["ada", "grace"].into_iter().map(str::to_owned).collect();
    People {
        review: if random.chance(100) { ReviewPolicy::Ask } else { ReviewPolicy::Auto },
        answer_within_ms: random.between(2_000, 90_000),
        on_timeout: match random.below(10) {
            0 => OnTimeout::Abort,
            1..=3 => OnTimeout::AskAnother,
            _ => OnTimeout::Proceed,
        },
        ask: if random.chance(300) { ask } else { Vec::new() },
        pause_at: if random.chance(60) { vec!["1".to_owned()] } else { Vec::new() },
        ..People::default()
    }
}

/// What people ask of a run, and when.
fn commands(run: RunId, random: &mut Random) -> Vec<(Time, RunId, Order)> {
    let begin = random.below(500);
    let text = if random.chance(20) { "  " } else { "everything" };
    let mut commands = vec![(begin, run, Order::Submit(Goal::new(text)))];
    if random.chance(80) {
        let cancel = Request::new(run, RequestAction::Cancel).because("it is enough").with_id(id(random));
        let cancel = by_somebody(cancel);
        commands.push((random.below(30_000), run, Order::Control(cancel)));
    }
    let count = if random.chance(600) { 0 } else { random.between(1, 4) };
    for _ in 0..count {
        let at = random.below(30_000);
        let asked = Request { id: id(random), ..Request::new(run, action(random)) };
        if asked.action == RequestAction::Pause {
            // Whatever comes first: in the end it goes on.
            for later in [at + random.below(20_000), LAST_RESUME] {
                let resume = RequestAction::Resume { deadline_ms: None };
                let resume = request(Request::new(run, resume).with_id(id(random)));
                commands.push((later, run, Order::Control(resume)));
            }
        }
        commands.push((at, run, Order::Control(request(asked))));
    }
    commands
}

fn action(random: &mut Random) -> RequestAction {
    let top = TaskIndex::top(u16::try_from(random.between(1, 5)).unwrap_or(1));
    let task = match random.below(10) {
        0 | 1 => top.child(1),
        2 => top.member('b').unwrap_or(top),
        _ => top,
    };
    match random.below(4) {
        0 => RequestAction::Pause,
        1 => RequestAction::Skip { task },
        2 => RequestAction::Redo { task },
        _ => {
            let task = random.chance(700).then_some(task);
            RequestAction::Edit { task, goal: "find out something else".into() }
        }
    }
}

fn request(asked: Request) -> Input {
    by_somebody(asked.because("so it is to be"))
}

fn by_somebody(asked: Request) -> Input {
    Input::Request(Request { by: "somebody".into(), ..asked })
}

fn id(random: &mut Random) -> Uuid {
    Uuid::from_u128(u128::from(random.next()) << 64 | u128::from(random.next()))
}
