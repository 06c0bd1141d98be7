use std::collections::VecDeque;

use super::*;
use muster_shared::flow::{Ending, Goal, Outcome, RunLimits};
use muster_shared::ids::{Generation, Seq, TaskId};
use muster_shared::run::event::{RunCreated, TaskCompleted, TaskFailed};
use muster_shared::run::{EVENT_VERSION, TaskState, begin_run};
use std::sync::Arc;
use uuid::Uuid;

use crate::decide::Substance;

fn run(n: u128) -> RunId {
    RunId::from_uuid(Uuid::from_u128(n))
}

fn workers(slots: u32) -> RegistryChange {
    let profile = serde_json::json!({ "agent": AgentId::new("worker", 1), "role": "worker", "slots": slots });
    RegistryChange::Joined(serde_json::from_value(profile).unwrap())
}

/// A fleet with two workers of one slot each.
fn two_workers() -> Capacity {
    let capacity = Capacity::default();
    for n in 1..=2 {
        let said = serde_json::json!({ "agent": format!("worker-{n}"), "role": "worker", "slots": 1 });
        drop(capacity.joined(&serde_json::from_value(said).unwrap()));
    }
    capacity
}

fn of(count: u32) -> BTreeMap<Queue, u32> {
    BTreeMap::from([(Queue::Role(Role::Worker), count)])
}

#[test]
fn a_run_alone_gets_all_slots_and_one_more() {
    let capacity = Capacity::default();
    assert!(capacity.agents_changed(workers(8)).is_empty());
    assert_eq!(capacity.lend(run(1), of(0), &of(20)), of(9));
    assert_eq!(capacity.lend(run(2), of(0), &of(1)), of(0));
}

#[test]
fn what_gets_free_goes_to_whoever_waited_longest() {
    let capacity = Capacity::default();
    drop(capacity.agents_changed(workers(1)));
    assert_eq!(capacity.lend(run(1), of(0), &of(5)), of(2));
    assert!(capacity.settle(run(1), of(2), &of(3)).is_empty());
    assert_eq!(capacity.lend(run(2), of(0), &of(5)), of(0));
    assert!(capacity.settle(run(2), of(0), &of(5)).is_empty());
    assert_eq!(capacity.lend(run(1), of(1), &of(3)), of(0), "others wait, so it has to wait its turn too");
    assert_eq!(capacity.settle(run(1), of(1), &of(3)), [run(1)], "it waits longest");
    assert_eq!(capacity.lend(run(2), of(0), &of(5)), of(0), "what was promised is kept");
    assert_eq!(capacity.lend(run(1), of(1), &of(3)), of(1));
    assert!(capacity.settle(run(1), of(2), &of(2)).is_empty());
    assert_eq!(capacity.settle(run(1), of(1), &of(1)), [run(2)], "the first has had its turn");
    assert_eq!(capacity.lend(run(2), of(0), &of(5)), of(1));
}

#[test]
fn what_gets_free_goes_to_higher_priorities_first() {
    let capacity = Capacity::default();
    drop(capacity.agents_changed(workers(1)));
    assert_eq!(capacity.lend(run(1), of(0), &of(5)), of(2));
    assert!(capacity.settle(run(1), of(2), &of(3)).is_empty());
    for (other, priority) in [(2, 0), (3, 5), (4, -1), (5, 5)] {
        capacity.rank(run(other), priority);
        assert!(capacity.settle(run(other), of(0), &of(1)).is_empty());
    }
    assert_eq!(capacity.forget(run(1)), [run(3), run(5)], "two places are free, and these are first");
    assert_eq!(capacity.forget(run(3)), [run(2)], "then the usual one");
    assert_eq!(capacity.forget(run(5)), [run(4)]);
}

#[test]
fn lower_priorities_that_wait_take_nothing_from_a_higher_one() {
    let capacity = Capacity::default();
    drop(capacity.agents_changed(workers(1)));
    capacity.rank(run(2), 9);
    drop(capacity.lend(run(1), of(0), &of(2)));
    assert!(capacity.settle(run(1), of(2), &of(1)).is_empty());
    assert_eq!(capacity.lend(run(2), of(0), &of(1)), of(0), "what is held is not taken away");
    drop(capacity.settle(run(2), of(0), &of(1)));
    assert_eq!(capacity.settle(run(1), of(1), &of(1)), [run(2)]);
    assert_eq!(capacity.lend(run(2), of(0), &of(1)), of(1));
}

#[test]
fn what_one_agent_has_takes_of_its_role_and_leaves_with_it() {
    let capacity = Capacity::default();
    drop(capacity.agents_changed(workers(2)));
    let (role, own) = (Queue::Role(Role::Worker), Queue::Agent(AgentId::new("worker", 1)));
    let both = BTreeMap::from([(role.clone(), 5), (own.clone(), 5)]);
    let addressed = |count| BTreeMap::from([(own.clone(), count)]);
    assert_eq!(capacity.lend(run(1), BTreeMap::new(), &addressed(5))[&own], 2, "slots, and not one more");
    assert!(capacity.settle(run(1), addressed(2), &BTreeMap::new()).is_empty());
    let lent = capacity.lend(run(2), BTreeMap::new(), &both);
    assert_eq!((lent[&role], lent[&own]), (1, 0));
    assert!(capacity.settle(run(2), of(1), &addressed(1)).is_empty());
    // Another agent has it in hand that took it from the queue of the role.
    let hands = Holding { queues: of(1), hands: BTreeMap::from([(AgentId::new("worker", 1), 1)]) };
    assert_eq!(capacity.settle(run(1), hands, &BTreeMap::new()), [run(2)], "one slot is free again");
    assert_eq!(capacity.lend(run(2), of(1), &addressed(2))[&own], 1);
    assert!(capacity.settle(run(2), addressed(1), &BTreeMap::new()).is_empty());
    let left = capacity.agents_changed(RegistryChange::Left(AgentId::new("worker", 1)));
    assert_eq!(left, [run(2)], "it has to look for another");
    assert!(!capacity.lend(run(2), addressed(1), &addressed(1)).contains_key(&own));
}

/// Runs that share the slots of one role: what each holds, what it has left to do, and how many tasks ended since
/// it was given something, while it wanted more.
struct Sharing {
    capacity: Capacity,
    held: Vec<u32>,
    left: Vec<u32>,
    waited: Vec<usize>,
}

impl Sharing {
    fn id(at: usize) -> RunId {
        run(1 + at as u128)
    }

    /// One turn, as the driver takes it, and the turns of all that it wakes.
    fn turn(&mut self, at: usize) {
        let mut turns = VecDeque::from([at]);
        while let Some(at) = turns.pop_front() {
            let wanted = |left: u32| if left > 0 { of(left) } else { BTreeMap::new() };
            let lent = self.capacity.lend(Self::id(at), of(self.held[at]), &wanted(self.left[at]));
            let given = lent.get(&Queue::Role(Role::Worker)).copied().unwrap_or(0).min(self.left[at]);
            self.held[at] += given;
            self.left[at] -= given;
            if given > 0 || self.left[at] == 0 {
                self.waited[at] = 0;
            }
            let woken = self.capacity.settle(Self::id(at), of(self.held[at]), &wanted(self.left[at]));
            let place = |woken: &RunId| (0..self.held.len()).find(|at| Self::id(*at) == *woken);
            turns.extend(woken.iter().filter_map(place));
        }
    }

    /// A task of a run ends.
    fn end(&mut self, at: usize) {
        self.held[at] -= 1;
        for (waited, left) in self.waited.iter_mut().zip(&self.left) {
            *waited += usize::from(*left > 0);
        }
        self.turn(at);
    }
}

proptest::proptest! {
    /// Whatever others want: while somebody waits, everybody is given something before each of the others had
    /// one more turn.
    #[test]
    fn no_run_starves_another(
        slots in 1..6u32,
        left in proptest::collection::vec(1..40u32, 2..12),
        picks in proptest::collection::vec(0..1_000usize, 400),
    ) {
        let runs = left.len();
        let capacity = Capacity::default();
        drop(capacity.agents_changed(workers(slots)));
        let mut sharing = Sharing { capacity, held: vec![0; runs], left, waited: vec![0; runs] };
        (0..runs).for_each(|at| sharing.turn(at));
        for pick in picks {
            let busy: Vec<usize> = (0..runs).filter(|at| sharing.held[*at] > 0).collect();
            let Some(at) = busy.get(pick % busy.len().max(1)) else { break };
            sharing.end(*at);
            let total: u32 = sharing.held.iter().sum();
            proptest::prop_assert!(total <= slots + 1);
            let all_done = sharing.left.iter().all(|left| *left == 0);
            proptest::prop_assert!(all_done || total == slots + 1, "what is free is given out");
            for waited in &sharing.waited {
                proptest::prop_assert!(*waited <= runs, "{waited} of {runs}");
            }
        }
    }
}

#[test]
fn a_role_without_an_agent_has_no_room_and_its_first_agent_wakes_the_run() {
    let capacity = Capacity::default();
    assert_eq!(capacity.lend(run(1), of(0), &of(5)), BTreeMap::new());
    assert!(capacity.settle(run(1), of(0), &of(5)).is_empty());
    assert_eq!(capacity.agents_changed(workers(2)), [run(1)]);
}

/// A clerk whose contract asks for so many documents.
fn clerk(n: u32, documents: u32) -> RegistryChange {
    let contract =
        serde_json::json!({ "input": { "properties": { "documents": { "minimum": documents } } } });
    let said = serde_json::json!({
        "agent": format!("clerk-{n}"), "role": "clerk", "specialist": { "contract": contract },
    });
    RegistryChange::Joined(serde_json::from_value(said).unwrap())
}

#[test]
fn who_would_refuse_a_task_is_passed_over_and_else_whoever_is_free_takes_it() {
    let capacity = Capacity::default();
    let role: Role = "clerk".parse().unwrap();
    drop(capacity.agents_changed(clerk(1, 5)));
    assert!(!capacity.weighs_contracts(&role));
    drop(capacity.agents_changed(clerk(2, 1)));
    assert!(capacity.weighs_contracts(&role) && !capacity.weighs_contracts(&Role::Worker));
    let (task, given) = ("1".parse().unwrap(), BTreeMap::new());
    let to = |documents: u32| {
        let given_to_it = serde_json::json!({ "documents": documents });
        let placement = capacity.place(&Wanted {
            substance: Some(Substance { given: given_to_it, data: Vec::new() }),
            ..Wanted::of_role(run(1), &task, &role, &given)
        });
        placement.map(|placement| placement.to.to_string())
    };
    assert_eq!([0, 3, 9].map(to), [None, Some("@clerk-2".to_owned()), None]);
}

#[test]
fn who_does_poorly_gets_plain_tasks_only_while_nobody_better_is_free() {
    let capacity = two_workers();
    let (task, given) = ("1".parse().unwrap(), BTreeMap::new());
    let to = || {
        let placement = capacity.place(&Wanted::of_role(run(1), &task, &Role::Worker, &given));
        placement.map(|placement| placement.to.to_string())
    };
    assert_eq!(to(), None, "nothing tells them apart");
    let mut track_records = TrackRecords::default();
    let tally = muster_shared::track_record::Tally { failed: 9, ..Default::default() };
    let (agent, role) = ("worker-1".parse().unwrap(), "worker".to_owned());
    let (model, name, host) = Default::default();
    let poor = muster_shared::track_record::AgentTrackRecord { agent, role, model, name, host, tally };
    let (agents, tools) = (vec![poor], BTreeMap::new());
    let ended_at = muster_shared::time::Millis(1);
    track_records.learn(RunTrackRecord { run: run(7), ended_at, agents, tools });
    capacity.judge(&track_records);
    assert_eq!(to(), Some("@worker-2".to_owned()));
    // The better one is busy: whoever is free takes it.
    let held = BTreeMap::from([(Queue::Agent("worker-2".parse().unwrap()), 1)]);
    capacity.settle(run(2), held, &BTreeMap::new());
    assert_ne!(to(), Some("@worker-2".to_owned()), "nobody is waited for");
}

#[test]
fn planners_know_roles_that_left_a_moment_ago_or_start_with_the_fleet() {
    let capacity = Capacity::default();
    let known = || capacity.specialists().into_iter().map(|known| known.role).collect::<Vec<_>>();
    capacity.expect([Role::Planner, Role::Worker]);
    assert_eq!(known(), [Role::Worker], "planners are given no tasks of plans");
    drop(capacity.agents_changed(workers(1)));
    assert_eq!(known(), [], "it is online");
    drop(capacity.agents_changed(RegistryChange::Left(AgentId::new("worker", 1))));
    assert_eq!(known(), [Role::Worker]);
    assert!(capacity.none(None).is_empty(), "and is not online");
}

fn failing(n: u64, ending: Ending) -> (RunState, RunEvent) {
    let task: TaskId = "1".parse().unwrap();
    let outcome = Outcome { ending, ..Outcome::of_fault() };
    let (goal, limits, deadline) = (Box::new(Goal::new("Why?")), RunLimits::default(), Millis(9));
    let created = RunCreated { goal, limits, event_version: EVENT_VERSION, secret: String::new(), deadline };
    let mut run = begin_run(run(7), &created.into(), Millis(0)).unwrap();
    let (ended_by, outcome) = ("worker-1".parse().ok(), Some(Arc::new(outcome)));
    run.tasks.insert(task.clone(), TaskState { ended_by, outcome, ..TaskState::default() });
    let (generation, reason) = (Generation(u32::try_from(n).unwrap()), "it broke".to_owned());
    let outcome = Some(Seq(n));
    (run, TaskFailed { task, generation, outcome, reason }.into())
}

#[test]
fn an_agent_that_fails_three_tasks_in_a_row_gets_none_for_a_minute_while_others_are_online() {
    // How three tries ended, and whether that excludes the agent.
    for (endings, excludes) in [
        ([Ending::AgentFailed; 3], true),
        ([Ending::ModelFailed; 3], true),
        ([Ending::Blocked; 3], true),
        ([Ending::AgentFailed, Ending::ModelFailed, Ending::AgentFailed], false),
        ([Ending::Cancelled; 3], false),
    ] {
        let capacity = two_workers();
        let held = BTreeMap::from([(Queue::Agent("worker-2".parse().unwrap()), 1)]);
        drop(capacity.settle(run(2), held, &BTreeMap::new()));
        let mut excluded = Vec::new();
        for (n, ending) in (1..).zip(endings) {
            let (run, event) = failing(n, ending);
            // A repeated decision is counted once.
            for _ in 0..2 {
                excluded = capacity.count_tries(Some((&run, std::slice::from_ref(&event))), Millis(n));
            }
            assert!(n == 3 || excluded.is_empty(), "{endings:?}");
        }
        assert_eq!(excluded.len(), usize::from(excludes), "{endings:?}");
        assert_eq!(capacity.has_excluded(&Role::Worker), excludes);
        let (task, given) = ("1".parse().unwrap(), BTreeMap::new());
        let to = || {
            let placement = capacity.place(&Wanted::of_role(run(1), &task, &Role::Worker, &given));
            placement.map(|placement| placement.to.to_string())
        };
        assert_eq!(to(), excludes.then(|| "@worker-2".to_owned()), "the other one is waited for");
        drop(capacity.left("worker-2".parse().unwrap()));
        assert_eq!(to(), None, "nobody else is online");
        assert!(capacity.count_tries(None, Millis(60_003)).is_empty(), "a minute is over");
        let (run, event) = failing(4, endings[1]);
        let again = capacity.count_tries(Some((&run, &[event])), Millis(60_004));
        assert_eq!(again.len(), usize::from(excludes), "one more failure is enough");
        let done = TaskCompleted { task: task.clone(), generation: Generation(1), outcome: Seq(5) };
        assert!(capacity.count_tries(Some((&run, &[done.into()])), Millis(60_005)).is_empty());
    }
}

#[test]
fn planners_know_the_tools_that_a_role_has_beside_those_that_come_on() {
    let capacity = Capacity::default();
    let worker = |number, tools: &[&str]| {
        let RegistryChange::Joined(profile) = workers(1) else { unreachable!() };
        let tools = tools.iter().map(|&tool| tool.to_owned()).collect();
        RegistryChange::Joined(Profile { agent: AgentId::new("worker", number), tools, ..profile })
    };
    drop(capacity.agents_changed(worker(1, &["*", "calculator", "corpus_search"])));
    assert_eq!(capacity.specialists(), [], "these come with Muster");
    drop(capacity.agents_changed(worker(2, &["*", "python", "calculator"])));
    let specialists = capacity.specialists();
    assert_eq!(specialists.len(), 1, "one role has further tools");
    let known = &specialists[0];
    assert_eq!((known.role.clone(), known.tools.clone()), (Role::Worker, vec!["python".to_owned()]));
    assert!(known.is_built_in());
    drop(capacity.agents_changed(worker(2, &["*"])));
    assert_eq!(capacity.specialists(), [], "they are taken away");
    drop(capacity.agents_changed(worker(2, &["python"])));
    drop(capacity.agents_changed(RegistryChange::Left(AgentId::new("worker", 2))));
    assert_eq!(capacity.specialists(), [], "nobody has them, and nobody is waited for");
}

#[test]
fn planners_know_the_tools_of_servers_that_a_role_may_use() {
    let capacity = Capacity::default();
    let joined = |agent: &str, role: &str, tools: &[&str]| {
        let RegistryChange::Joined(profile) = workers(1) else { unreachable!() };
        let tools = tools.iter().map(|&tool| tool.to_owned()).collect();
        let (agent, role) = (agent.parse().unwrap(), role.to_owned());
        drop(capacity.agents_changed(RegistryChange::Joined(Profile { agent, role, tools, ..profile })));
    };
    let known = || {
        let roles = capacity.specialists();
        roles.into_iter().map(|known| (known.role.to_string(), known.tools)).collect::<Vec<_>>()
    };
    let of =
        |role: &str, tools: &[&str]| (role.to_owned(), tools.iter().map(|&tool| tool.to_owned()).collect());
    joined("tools-own-1", "tools-own", &["own.count", "own.sum", "corpus.search", "count"]);
    assert_eq!(known(), [], "nobody is there who may use them");
    joined("researcher-1", "researcher", &["corpus.*", "own.s*"]);
    joined("worker-1", "worker", &["*", "python"]);
    joined("writer-1", "writer", &["calculator"]);
    let all = ["python", "own.count", "own.sum"];
    assert_eq!(known(), [of("worker", &all), of("researcher", &["own.sum"])]);
    let tools = muster_shared::plan::tools::known(&capacity.specialists());
    assert!(tools.contains(&"own.count".to_owned()));
    drop(capacity.agents_changed(RegistryChange::Left("tools-own-1".parse().unwrap())));
    assert_eq!(known(), [of("worker", &["python"])], "they are gone with their server");
}
