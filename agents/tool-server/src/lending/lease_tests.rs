use proptest::prelude::*;
use serde_json::json;

use super::*;

const LASTS: Duration = Duration::from_secs(10);

fn leases() -> Leases {
    let settings = LeaseSettings { lasts: LASTS, most: 4, per_borrower: 3 };
    let rules = LeaseRules { to: vec!["worker".to_owned(), "word_*".to_owned()], leases: settings };
    Leases::new("researcher-1".parse().unwrap(), rules)
}

fn agent(role: &str, number: u8) -> ToolCaller {
    ToolCaller { role: role.parse().unwrap(), agent: format!("{role}-{number}").parse().unwrap() }
}

fn request(task: u8, tool: u8) -> LeaseRequest {
    let (run, spec) = ("r".to_owned(), "s".to_owned());
    LeaseRequest { run, task: task.to_string(), tool: format!("t{tool}"), spec }
}

fn call(task: u8, tool: u8) -> ToolCall {
    let call = json!({ "run": "r", "task": task.to_string(), "tool": format!("t{tool}"), "spec": "s", "arguments": {},
                       "key": "k", "patience_ms": 1 });
    serde_json::from_value(call).unwrap()
}

fn granted(leases: &mut Leases, request: LeaseRequest, to: &ToolCaller, now: Instant) -> String {
    match leases.ask(request, to, now) {
        Answer::Granted(lease) => lease,
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn a_lease_is_given_by_the_rules_and_the_same_again_to_whoever_has_it() {
    let (mut leases, now) = (leases(), Instant::now());
    let worker = agent("worker", 1);
    assert!(
        matches!(leases.ask(request(1, 1), &agent("planner", 1), now), Answer::Refused(why) if why.contains("planner"))
    );
    assert!(matches!(leases.ask(request(1, 1), &agent("word_counter", 1), now), Answer::Granted(_)));
    let first = granted(&mut leases, request(1, 1), &worker, now);
    assert_eq!(granted(&mut leases, request(1, 1), &worker, now), first);
    assert_ne!(granted(&mut leases, request(1, 2), &worker, now), first, "another tool");
    assert_ne!(granted(&mut leases, request(2, 1), &worker, now), first, "another task");
    assert_eq!(leases.ask(request(3, 1), &worker, now), Answer::Full, "as many as one may have");
    assert_eq!(leases.ask(request(3, 1), &agent("worker", 2), now), Answer::Full, "as many as there may be");
    assert!(leases.give_back(&first, &worker));
    assert!(matches!(leases.ask(request(3, 1), &agent("worker", 2), now), Answer::Granted(_)));
    let long = LeaseRequest { run: "x".repeat(10_000), ..request(1, 1) };
    assert!(matches!(leases.ask(long, &worker, now), Answer::Refused(_)), "nothing of any length is kept");
}

#[test]
fn a_lease_is_for_one_agent_one_task_and_one_tool_and_runs_out_when_it_is_not_used() {
    let (mut leases, now) = (leases(), Instant::now());
    let (worker, other) = (agent("worker", 1), agent("worker", 2));
    let lease = granted(&mut leases, request(1, 1), &worker, now);
    assert!(leases.renew(&lease, &call(1, 1), &other, now).is_err(), "another agent");
    assert!(leases.renew(&lease, &call(2, 1), &worker, now).is_err(), "another task");
    assert!(leases.renew(&lease, &call(1, 2), &worker, now).is_err(), "another tool");
    for odd in ["", "researcher-1", "researcher-1.", "researcher-1.99", "researcher-2.1", "researcher-1.1.1"]
    {
        assert!(leases.renew(odd, &call(1, 1), &worker, now).is_err(), "{odd}");
    }
    assert!(!leases.give_back(&lease, &other), "nobody gives it back for him");
    let later = now + LASTS - Duration::from_millis(1);
    leases.renew(&lease, &call(1, 1), &worker, later).unwrap();
    leases.uses(&lease, "call");
    let long_after = later + 10 * LASTS;
    leases.renew(&lease, &call(1, 1), &worker, long_after).unwrap();
    assert_eq!(leases.list(long_after + 10 * LASTS)[0].running, 1, "a call that takes long keeps it");
    assert!(!leases.ended("call", long_after));
    assert_eq!(leases.list(long_after + LASTS), Vec::new());
    assert!(leases.renew(&lease, &call(1, 1), &worker, long_after + LASTS).is_err(), "its time is up");
}

#[test]
fn what_is_revoked_ends_at_once_with_its_calls_and_is_not_lent_again() {
    let now = Instant::now();
    let named = |lease: Option<&str>, tool: Option<&str>, agent: Option<&str>| Revocation {
        lease: lease.map(str::to_owned),
        tool: tool.map(str::to_owned),
        agent: agent.map(|agent| agent.parse().unwrap()),
    };
    // What is revoked; how many of three leases end; whether worker-1 and worker-2 have t1 for task 1 again, worker-1 t2.
    let table = [
        (named(Some("researcher-1.1"), None, None), 1, [false, false, true]),
        (named(None, Some("t1"), None), 2, [false, false, true]),
        (named(None, None, Some("worker-1")), 2, [false, true, false]),
        (named(None, Some("t1"), Some("worker-1")), 1, [false, true, true]),
        (named(Some("researcher-1.99"), None, None), 0, [true, true, true]),
        (named(Some("researcher-1.1"), Some("t2"), None), 0, [true, true, true]),
        (named(None, None, None), 0, [true, true, true]),
    ];
    for (which, ends, again) in table {
        let mut leases = leases();
        let (one, two) = (agent("worker", 1), agent("worker", 2));
        let first = granted(&mut leases, request(1, 1), &one, now);
        granted(&mut leases, request(1, 2), &one, now);
        granted(&mut leases, request(1, 1), &two, now);
        leases.uses(&first, "call");
        let revoked = leases.revoke(&which, now);
        assert_eq!(revoked.leases.len(), ends, "{which:?}");
        let stopped = revoked.leases.iter().any(|lease| lease.lease == first);
        assert_eq!(revoked.calls.contains(&"call".to_owned()), stopped, "{which:?}");
        assert_eq!(leases.ended("call", now), stopped, "{which:?}");
        let had = [(1, &one), (1, &two), (2, &one)]
            .map(|(tool, agent)| matches!(leases.ask(request(1, tool), agent, now), Answer::Granted(_)));
        assert_eq!(had, again, "{which:?}");
    }
}

#[test]
fn a_call_that_another_lease_is_behind_goes_on_when_one_is_revoked() {
    let (mut leases, now) = (leases(), Instant::now());
    let (one, two) = (agent("worker", 1), agent("worker", 2));
    let of_dead = granted(&mut leases, request(1, 1), &one, now);
    let of_next = granted(&mut leases, request(1, 1), &two, now);
    leases.uses(&of_dead, "call");
    leases.uses(&of_next, "call");
    let dead = Revocation { agent: Some(one.agent), ..Revocation::default() };
    assert_eq!(leases.revoke(&dead, now).calls, Vec::<String>::new());
    let both = Revocation { agent: Some(two.agent), ..Revocation::default() };
    assert_eq!(leases.revoke(&both, now).calls, ["call"]);
}

#[test]
fn what_was_revoked_is_remembered_as_far_as_there_is_room() {
    let (mut leases, now) = (leases(), Instant::now());
    for number in 0..2 * MOST_BARS {
        let tool = Some(format!("t{number}"));
        leases.revoke(&Revocation { tool, ..Revocation::default() }, now);
    }
    assert_eq!(leases.bars.len(), MOST_BARS);
}

#[derive(Debug, Clone)]
enum Did {
    Ask(u8, u8, u8),
    Call(usize, u8, u8, u8),
    Ended(usize),
    GiveBack(usize, u8),
    Revoke(usize),
    Waited(u64),
}

fn did() -> impl Strategy<Value = Did> {
    let (agent, task, tool, which) = (1..4_u8, 1..3_u8, 1..3_u8, 0..12_usize);
    prop_oneof![
        4 => (agent.clone(), task.clone(), tool.clone()).prop_map(|(a, b, c)| Did::Ask(a, b, c)),
        6 => (which.clone(), agent.clone(), task, tool).prop_map(|(w, a, b, c)| Did::Call(w, a, b, c)),
        2 => which.clone().prop_map(Did::Ended),
        1 => (which.clone(), agent).prop_map(|(w, a)| Did::GiveBack(w, a)),
        1 => which.prop_map(Did::Revoke),
        2 => (0..15_000_u64).prop_map(Did::Waited),
    ]
}

/// What is known of a lease from outside.
struct Seen {
    name: String,
    of: (u8, u8, u8),
    used: Instant,
    running: BTreeSet<String>,
    over: bool,
}

proptest! {
    /// A call is let under a lease that was given to this agent for this task and tool, is not over, and was used within its
    /// time; under no other. There are never more leases than may be.
    #[test]
    fn calls_are_let_under_leases_that_hold_and_no_others(all in prop::collection::vec(did(), 0..60)) {
        let (mut leases, mut now) = (leases(), Instant::now());
        let mut seen: Vec<Seen> = Vec::new();
        for (step, did) in all.into_iter().enumerate() {
            match did {
                Did::Ask(who, task, tool) => {
                    if let Answer::Granted(name) = leases.ask(request(task, tool), &agent("worker", who), now) {
                        match seen.iter_mut().find(|one| one.name == name) {
                            Some(one) => {
                                prop_assert!(!one.over && one.of == (who, task, tool));
                                one.used = now;
                            }
                            None => {
                                let (of, running) = ((who, task, tool), BTreeSet::new());
                                seen.push(Seen { name, of, used: now, running, over: false });
                            }
                        }
                    }
                }
                Did::Call(which, who, task, tool) => {
                    let Some(one) = seen.get_mut(which) else { continue };
                    let holds = !one.over && (!one.running.is_empty() || now < one.used + LASTS);
                    let wanted = holds && one.of == (who, task, tool);
                    let let_in = leases.renew(&one.name, &call(task, tool), &agent("worker", who), now);
                    prop_assert_eq!(let_in.is_ok(), wanted, "{:?}", let_in);
                    one.over |= !holds;
                    if wanted {
                        let ticket = format!("call-{step}");
                        leases.uses(&one.name, &ticket);
                        (one.used, _) = (now, one.running.insert(ticket));
                    }
                }
                Did::Ended(which) => {
                    let Some(one) = seen.get_mut(which) else { continue };
                    if let Some(ticket) = one.running.pop_first() {
                        prop_assert_eq!(leases.ended(&ticket, now), one.over);
                        one.used = now;
                    }
                }
                Did::GiveBack(which, who) => {
                    let Some(one) = seen.get_mut(which) else { continue };
                    let is_his = one.of.0 == who;
                    if leases.give_back(&one.name, &agent("worker", who)) {
                        prop_assert!(is_his);
                        one.over = true;
                        one.running.clear();
                    }
                }
                Did::Revoke(which) => {
                    let Some(one) = seen.get_mut(which) else { continue };
                    let lease = Some(one.name.clone());
                    let revoked = leases.revoke(&Revocation { lease, ..Revocation::default() }, now);
                    prop_assert!(revoked.leases.len() <= 1);
                    one.over = true;
                }
                Did::Waited(millis) => now += Duration::from_millis(millis),
            }
            for one in &mut seen {
                one.over |= one.running.is_empty() && now >= one.used + LASTS;
            }
            let listed = leases.list(now);
            prop_assert!(listed.len() <= 4);
            for who in 1..4 {
                let of_agent = listed.iter().filter(|lease| lease.borrower == agent("worker", who).agent).count();
                prop_assert!(of_agent <= 3);
            }
            let names: Vec<&str> = listed.iter().map(|lease| lease.lease.as_str()).collect();
            for one in &seen {
                prop_assert_eq!(names.contains(&one.name.as_str()), !one.over, "{}", &one.name);
            }
        }
    }
}
