//! Whatever can be offered is offered, and no run decides over and over for nothing.

mod crowd;

use muster_shared::flow::{Ending, RunLimits, TaskDraft};
use proptest::prelude::*;

use super::fleet::{failed, leaf};
use crowd::{Crowd, Worker, worker};

/// What happens in a fleet.
#[derive(Debug, Clone)]
enum Step {
    Takes(usize),
    Ends(usize),
    Fails(usize),
    Bids(usize),
    Waits,
    Leaves(u32),
    Comes(u32),
}

fn take(crowd: &mut Crowd, step: &Step) {
    let disaster = || Some(failed(Ending::AgentFailed, "it broke"));
    match step {
        Step::Takes(pick) => drop(crowd.take(*pick)),
        Step::Ends(pick) => drop(crowd.end(*pick, None)),
        Step::Fails(pick) => drop(crowd.end(*pick, disaster())),
        Step::Bids(pick) => drop(crowd.bid(*pick)),
        Step::Waits => drop(crowd.wait()),
        Step::Leaves(n) => crowd.leave(&worker(*n)),
        Step::Comes(n) => {
            let agent = worker(*n);
            if crowd.workers.get(&agent).is_some_and(|worker| !worker.is_there) {
                crowd.join(&agent);
            }
        }
    }
}

/// Everybody is there and willing: all runs come to their end.
fn bring_to_its_end(crowd: &mut Crowd) {
    let all: Vec<_> = crowd.workers.keys().cloned().collect();
    for agent in all {
        if let Some(worker) = crowd.workers.get_mut(&agent) {
            worker.is_deaf = false;
        }
        if !crowd.workers[&agent].is_there {
            crowd.join(&agent);
        }
    }
    let mut rounds = 0;
    while !crowd.is_over() && crowd.wrong.is_none() {
        let did = crowd.take(0) || crowd.end(0, None) || crowd.bid(0) || crowd.wait();
        rounds += 1;
        if !did || rounds > 2_000 {
            crowd.wrong = Some(format!("the runs do not come to their end:\n{}", crowd.track_record()));
        }
    }
}

/// Goes through these steps, and to the end. Says what was wrong: every run is told at once when it can go on.
fn play(crowd: &mut Crowd, steps: &[Step]) -> Result<(), String> {
    play_with(crowd, steps, |_| {})
}

/// As [`play`], where `before` happens before it is looked whether anything could go on.
fn play_with(crowd: &mut Crowd, steps: &[Step], mut before: impl FnMut(&mut Crowd)) -> Result<(), String> {
    for step in steps {
        take(crowd, step);
        before(crowd);
        crowd.look();
        if let Some(wrong) = &crowd.wrong {
            return Err(format!("{step:?}: {wrong}\n{}", crowd.track_record()));
        }
    }
    bring_to_its_end(crowd);
    crowd.wrong.clone().map_or(Ok(()), Err)
}

fn equal(count: u32, slots: u32) -> Vec<Worker> {
    let one = Worker { slots, capabilities: Vec::new(), is_deaf: false, is_there: true };
    (0..count).map(|_| one.clone()).collect()
}

fn able(capabilities: &[&str]) -> Worker {
    let capabilities = capabilities.iter().map(|text| (*text).to_owned()).collect();
    Worker { slots: 1, capabilities, is_deaf: false, is_there: true }
}

fn task(n: usize, needs: &[&str], pattern: Option<&str>) -> TaskDraft {
    TaskDraft {
        needs: needs.iter().map(|text| (*text).to_owned()).collect(),
        pattern: pattern.map(str::to_owned),
        ..leaf(&format!("task {n}"), &[])
    }
}

fn tasks(count: usize, needs: &[&str], pattern: Option<&str>) -> Vec<TaskDraft> {
    (1..=count).map(|n| task(n, needs, pattern)).collect()
}

/// The plan is made.
const PLANNED: [Step; 2] = [Step::Takes(0), Step::Ends(0)];

fn steps(rest: impl IntoIterator<Item = Step>) -> Vec<Step> {
    PLANNED.into_iter().chain(rest).collect()
}

#[test]
fn a_task_that_failed_goes_to_another_however_many_are_equally_fit() {
    for count in 1..=50 {
        let mut crowd = Crowd::new(equal(count, 1), vec![tasks(1, &[], None)], &RunLimits::default());
        let again = steps([Step::Takes(0), Step::Fails(0), Step::Takes(0)]);
        play(&mut crowd, &again).unwrap_or_else(|wrong| panic!("{count} workers: {wrong}"));
    }
}

#[test]
fn whoever_differs_in_what_it_can_do_is_asked_for_every_task_that_it_can_do() {
    let all = [able(&["sums"]), able(&["sums", "maps"]), able(&["maps"]), able(&[])];
    for agents in 2..=4 {
        for count in 1..=5 {
            let workers = all[..agents].to_vec();
            let mut crowd = Crowd::new(workers, vec![tasks(count, &["sums"], None)], &RunLimits::default());
            play(&mut crowd, &steps([]))
                .unwrap_or_else(|wrong| panic!("{agents} agents, {count} tasks: {wrong}"));
        }
    }
}

#[test]
fn members_of_two_committees_find_different_agents() {
    let plan = tasks(2, &[], Some("committee:3"));
    let mut crowd = Crowd::new(equal(5, 1), vec![plan], &RunLimits::default());
    play(&mut crowd, &steps((0..6).map(Step::Takes))).unwrap();
}

#[test]
fn members_of_two_committees_share_one_agent() {
    let plan = tasks(2, &[], Some("committee:3"));
    let limits = RunLimits { max_generations: 1, ..RunLimits::default() };
    let mut crowd = Crowd::new(equal(1, 1), vec![plan], &limits);
    play(&mut crowd, &steps([Step::Takes(0), Step::Ends(0)])).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn what_lay_too_long_moves_as_soon_as_another_is_free() {
    let mut workers = vec![able(&["law"]), able(&["sums"])];
    workers[0].slots = 2;
    let second = vec![task(1, &["law"], None), task(2, &[], None), task(3, &[], None)];
    let mut crowd = Crowd::new(workers, vec![vec![task(1, &["sums"], None)], second], &RunLimits::default());
    let planned = [Step::Takes(0), Step::Takes(0), Step::Ends(0), Step::Ends(0)];
    play(&mut crowd, &[&planned[..], &[Step::Waits]].concat()).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn members_that_nobody_took_change_places() {
    let plan = vec![task(1, &[], None), task(2, &[], Some("committee:3"))];
    let limits = RunLimits { max_generations: 2, ..RunLimits::default() };
    let mut crowd = Crowd::new(equal(5, 1), vec![plan], &limits);
    play(&mut crowd, &steps([Step::Waits])).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn a_winner_that_does_not_start_is_passed_over() {
    for count in 2..=5 {
        let mut workers = equal(count, 1);
        workers[0].is_deaf = true;
        let mut crowd = Crowd::new(workers, vec![tasks(2, &[], Some("auction"))], &RunLimits::default());
        let silent = [Step::Bids(0), Step::Bids(0), Step::Waits, Step::Waits, Step::Waits, Step::Takes(0)];
        play(&mut crowd, &steps(silent)).unwrap_or_else(|wrong| panic!("{count} workers: {wrong}"));
    }
}

#[test]
fn whoever_waits_for_one_agent_gets_another_that_comes_or_gets_free() {
    // Two can add, and both are busy with the first run; the second waits for the one that comes first by name.
    let workers = vec![able(&["sums"]), able(&["sums"]), able(&[])];
    let mut crowd = Crowd::new(
        workers,
        vec![tasks(2, &["sums"], None), tasks(1, &["sums"], None)],
        &RunLimits::default(),
    );
    for _ in 0..2 {
        crowd.take(0);
        crowd.end(0, None);
    }
    assert!(crowd.take(0) && crowd.take(0));
    crowd.end(1, None);
    crowd.look();
    assert_eq!(crowd.wrong, None);
}

#[test]
fn what_was_once_wrong_is_noticed() {
    let mut crowd = Crowd::new(equal(3, 1), vec![tasks(1, &[], None)], &RunLimits::default());
    crowd.holds_against = true;
    let again = steps([Step::Takes(0), Step::Fails(0)]);
    let wrong = play(&mut crowd, &again).unwrap_err();
    assert!(wrong.contains("over and over"), "{wrong}");
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => any::<usize>().prop_map(Step::Takes),
        5 => any::<usize>().prop_map(Step::Ends),
        4 => any::<usize>().prop_map(Step::Fails),
        3 => any::<usize>().prop_map(Step::Bids),
        2 => Just(Step::Waits),
        1 => (1..6u32).prop_map(Step::Leaves),
        2 => (1..6u32).prop_map(Step::Comes),
    ]
}

fn some_worker() -> impl Strategy<Value = Worker> {
    let capabilities = prop::sample::subsequence(vec!["sums", "maps", "law"], 0..3);
    (1..4u32, capabilities, prop::bool::weighted(0.2)).prop_map(|(slots, capabilities, is_deaf)| Worker {
        slots,
        is_deaf,
        ..able(&capabilities)
    })
}

fn fleets() -> impl Strategy<Value = Vec<Worker>> {
    prop_oneof![
        (1..51u32, 1..4u32).prop_map(|(count, slots)| equal(count, slots)),
        prop::collection::vec(some_worker(), 1..8),
    ]
}

fn plans() -> impl Strategy<Value = Vec<TaskDraft>> {
    let pattern = prop_oneof![
        6 => Just(None),
        1 => Just(Some("auction")),
        1 => Just(Some("committee:3")),
        1 => Just(Some("redundant:2")),
    ];
    let needs = prop::sample::subsequence(vec!["sums", "maps", "law"], 0..3);
    let one = (needs, pattern);
    prop::collection::vec(one, 1..6)
        .prop_map(|all| (1..).zip(all).map(|(n, (needs, pattern))| task(n, &needs, pattern)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    /// Agents of equal and different fitness, needs, auctions with silent winners, committees, failures, full queues,
    /// agents that leave and come back: after everything that happens, whatever can be offered is offered, nobody
    /// decided over and over to get there, and in the end all runs end. Nearly always a run is told that it can go on;
    /// else it finds out by itself.
    #[test]
    fn whatever_can_be_offered_is_offered(
        workers in fleets(),
        plans in prop::collection::vec(plans(), 1..4),
        tries in 1..5u32,
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let limits = RunLimits { max_generations: tries, ..RunLimits::default() };
        let mut crowd = Crowd::new(workers, plans, &limits);
        let happened = steps.len() as u64;
        let mut late = 0;
        let played = play_with(&mut crowd, &steps, |crowd| late += crowd.look_by_itself());
        prop_assert!(played.is_ok(), "{}", played.unwrap_err());
        prop_assert!(late <= 2 + happened / 10, "{late} times in {happened} steps a run was not told");
        prop_assert!(crowd.turns() < 200 * (happened + 100), "{} turns", crowd.turns());
    }
}
