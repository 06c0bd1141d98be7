use std::collections::BTreeMap;

use muster_shared::ids::{RunId, TaskId};
use muster_shared::run::Avoided;
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::decide::Substance;

fn agent(n: u32) -> AgentId {
    AgentId::new("worker", n)
}

fn candidate(n: u32, capabilities: &[&str], tools: &[&str]) -> Candidate {
    let texts = |list: &[&str]| {
        let mut texts: Vec<String> = list.iter().map(|text| (*text).to_owned()).collect();
        texts.sort();
        texts
    };
    Candidate {
        agent: agent(n),
        role: Role::Worker,
        slots: 2,
        capabilities: texts(capabilities),
        tools: texts(tools),
        model: "m".into(),
        host: "here".into(),
        contract: String::new(),
        name: String::new(),
        quiet_ms: 0,
        started_at: muster_shared::time::Millis(0),
    }
}

/// An agent with a contract.
fn bound(n: u32, contract: &str) -> Candidate {
    Candidate { contract: contract.into(), ..candidate(n, &[], &[]) }
}

const READS: &str = r#"{"input":{"properties":{"documents":{"minimum":1}}}}"#;
const READS_MANY: &str = r#"{"input":{"properties":{"documents":{"minimum":10}}}}"#;
const ADDS: &str = r#"{"output":{"required":["total"]}}"#;
const ENDLESS: &str = r##"{"input":{"$ref":"https://example.org/nowhere"}}"##;

/// What is asked of a roster; owns what [`Wanted`] borrows.
#[derive(Debug, Clone, Default)]
struct Ask {
    needs: Vec<String>,
    tools: Vec<String>,
    avoid: Vec<u32>,
    knows: Vec<u32>,
    corpus: Option<&'static str>,
    documents: Option<u32>,
    data: Vec<String>,
    awarded: Option<u32>,
    idle: Vec<u32>,
    asked: Option<u32>,
    named: Option<&'static str>,
    by_name: bool,
    alone: bool,
    given: BTreeMap<AgentId, u32>,
}

fn needing(needs: &[&str]) -> Ask {
    Ask { needs: needs.iter().map(|need| (*need).to_owned()).collect(), ..Ask::default() }
}

fn place(roster: &Roster, ask: &Ask) -> Option<Placement> {
    place_with(roster, ask, &BTreeMap::new())
}

fn place_with(roster: &Roster, ask: &Ask, kept: &BTreeMap<AgentId, u32>) -> Option<Placement> {
    let avoided = |n: &u32| Avoided { agent: agent(*n), reason: "it failed it".into(), idle: false };
    let idle = |n: &u32| Avoided { idle: true, ..avoided(n) };
    let (task, asked) = ("1".parse::<TaskId>().unwrap(), ask.asked.map(agent));
    let wanted = Wanted {
        run: RunId::from_uuid(Uuid::from_u128(1)),
        task: &task,
        role: &Role::Worker,
        needs: &ask.needs,
        tools: &ask.tools,
        substance: ask
            .documents
            .map(|documents| Substance { given: json!({ "documents": documents }), data: ask.data.clone() }),
        awarded: ask.awarded.map(agent),
        named: ask.named,
        by_name: ask.by_name,
        alone: ask.alone,
        avoid: ask.avoid.iter().map(avoided).chain(ask.idle.iter().map(idle)).collect(),
        asked: asked.as_ref(),
        knows: ask.knows.iter().copied().map(agent).collect(),
        corpus: ask.corpus,
        given: &ask.given,
        stands: None,
    };
    roster.place_with(&wanted, kept)
}

fn bringing(documents: u32, data: &[&str]) -> Ask {
    let data = data.iter().map(|field| (*field).to_owned()).collect();
    Ask { documents: Some(documents), data, ..Ask::default() }
}

fn chosen(roster: &Roster, ask: &Ask) -> Option<AgentId> {
    place(roster, ask).map(|placement| match placement.to {
        Queue::Agent(agent) => agent,
        Queue::Role(role) => panic!("nobody was named, but {role}"),
    })
}

fn roster(candidates: impl IntoIterator<Item = Candidate>) -> Roster {
    let mut roster = Roster::default();
    candidates.into_iter().for_each(|candidate| roster.admit(candidate));
    roster
}

fn tally(done: u64, failed: u64, ms: u64) -> Tally {
    Tally { done, failed, ms: ms * (done + failed), ..Tally::default() }
}

#[test]
fn words_are_compared_in_lower_case_with_single_spaces() {
    for (text, expected) in [
        ("security audit", "security audit"),
        ("", ""),
        (" Security\t AUDIT ", "security audit"),
        ("a  b", "a b"),
        ("a ", "a"),
        (" a", "a"),
        ("Größe ÄNDERN", "größe ändern"),
    ] {
        assert_eq!(plain(text), expected, "{text:?}");
    }
}

#[test]
fn where_all_are_alike_nobody_is_named() {
    let alike = roster((1..=3).map(|n| candidate(n, &["audit"], &["search"])));
    for ask in
        [Ask::default(), needing(&["audit"]), needing(&["flying"]), Ask { knows: vec![2], ..Ask::default() }]
    {
        assert_eq!(chosen(&alike, &ask), None, "{ask:?}");
    }
    assert_eq!(chosen(&alike, &Ask { awarded: Some(3), ..Ask::default() }), Some(agent(3)));
    assert_eq!(chosen(&alike, &Ask { awarded: Some(9), ..Ask::default() }), None, "it is gone");
    assert_eq!(chosen(&Roster::default(), &needing(&["audit"])), None);
}

#[test]
fn a_task_goes_to_who_can_do_most_of_what_it_needs() {
    let all = roster([
        candidate(1, &["audit"], &["search"]),
        candidate(2, &["audit", "law"], &["search"]),
        candidate(3, &["law"], &["search", "nmap.scan"]),
        candidate(4, &[], &["corpus.*"]),
    ]);
    let with = |needs: &[&str], tools: &[&str]| Ask {
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        ..needing(needs)
    };
    let cases = [
        (with(&["Audit", "LAW"], &[]), Some(2)),
        (with(&["audit"], &[]), Some(1)),
        (with(&["law"], &[]), Some(2)),
        (with(&["law"], &["nmap.scan"]), Some(3)),
        (with(&[], &["corpus.read"]), Some(4)),
        (with(&[], &["nmap.*"]), Some(3)),
        (with(&["flying"], &[]), None),
        (with(&["flying", "audit"], &[]), Some(1)),
        (with(&[], &[]), None),
    ];
    for (ask, expected) in cases {
        assert_eq!(chosen(&all, &ask), expected.map(agent), "{ask:?}");
    }
    let placement = place(&all, &with(&["audit", "law"], &[])).unwrap();
    assert_eq!(placement.reasons[0], "it can do what is needed: audit, law");
    let said: Vec<_> =
        placement.passed_over.iter().map(|over| (over.agent.clone(), over.reason.as_str())).collect();
    assert!(said.contains(&(agent(1), "it lacks law")), "{said:?}");
    assert!(said.contains(&(agent(4), "it lacks audit, law")), "{said:?}");
}

#[test]
fn a_task_goes_to_whose_contract_takes_it_on_and_promises_what_is_expected() {
    let all = [bound(1, READS), bound(2, READS_MANY), bound(3, ADDS), candidate(4, &["law"], &[])];
    let these = |numbers: &[usize]| roster(numbers.iter().map(|number| all[number - 1].clone()));
    let knowing_law = |ask: Ask| Ask { needs: vec!["law".into()], ..ask };
    let cases = [
        (&[1, 2, 3, 4][..], bringing(0, &[]), Some(3), "all but two refuse it"),
        (&[1, 2], bringing(5, &[]), Some(1), "one of two takes it on"),
        (&[1, 2], bringing(0, &[]), None, "nobody takes it on: anybody is asked"),
        (&[1, 2], bringing(10, &[]), None, "both take it on"),
        (&[1], bringing(0, &[]), None, "there is nobody else"),
        (&[1, 3, 4], bringing(5, &["total"]), Some(3), "one promises it"),
        (&[1, 4], bringing(5, &["total"]), None, "nobody promises it"),
        (&[1, 2, 4], knowing_law(bringing(5, &[])), Some(4), "it can do it"),
        (&[1, 3], knowing_law(bringing(0, &[])), Some(3), "the contract goes before what is needed"),
        (&[1, 2, 3], Ask::default(), None, "nobody looked"),
    ];
    for (numbers, ask, expected, why) in cases {
        assert_eq!(chosen(&these(numbers), &ask), expected.map(agent), "{why}");
    }
    let mut busy = these(&[1, 3]);
    busy.take(&agent(3), 2);
    let failed_before = Ask { avoid: vec![3], ..bringing(0, &[]) };
    for ask in [bringing(0, &[]), failed_before] {
        assert_eq!(chosen(&busy, &ask), Some(agent(3)), "better than who would refuse it: {ask:?}");
    }
}

#[test]
fn who_is_passed_over_for_its_contract_is_told_why() {
    let all = roster([bound(1, READS), bound(2, ADDS), candidate(3, &[], &[])]);
    let placement = place(&all, &bringing(0, &["total"])).unwrap();
    assert_eq!(placement.to, Queue::Agent(agent(2)));
    assert_eq!(
        placement.reasons[..2],
        ["it can do what is needed: data.total", "it takes on what the task brings, others do not"]
    );
    let said = |n| placement.passed_over.iter().find(|over| over.agent == agent(n)).unwrap().reason.clone();
    assert_eq!(
        said(1),
        "its contract asks for what the task does not bring: `input.documents`: 0 is less than the minimum of 1"
    );
    assert_eq!(said(3), "it lacks data.total");
    // The reason does not speak of what is needed where nothing is.
    let reasons = place(&all, &bringing(0, &[])).unwrap().reasons;
    assert_eq!(reasons[0], "it takes on what the task brings, others do not");
}

#[test]
fn whose_bid_won_does_not_get_what_its_contract_refuses() {
    let all = roster([bound(1, READS), candidate(2, &[], &[])]);
    let awarded = |documents, n| Ask { awarded: Some(n), ..bringing(documents, &[]) };
    assert_eq!(chosen(&all, &awarded(0, 1)), Some(agent(2)));
    assert_eq!(chosen(&all, &awarded(1, 1)), Some(agent(1)));
    assert_eq!(chosen(&roster([bound(1, READS)]), &awarded(0, 1)), Some(agent(1)), "there is nobody else");
}

#[test]
fn results_are_held_to_what_their_agent_promises() {
    let mut roster = Roster::default();
    roster.admit(bound(1, ADDS));
    let unkept =
        |roster: &Roster, n, data: Option<Value>| roster.unkept(&Role::Worker, &agent(n), data.as_ref());
    assert_eq!(unkept(&roster, 1, Some(json!({"total": 3}))), Vec::<String>::new());
    assert!(unkept(&roster, 1, None)[0].contains("`data` is missing"));
    assert!(unkept(&roster, 1, Some(json!({})))[0].contains("\"total\" is a required property"));
    assert!(!unkept(&roster, 9, None).is_empty(), "of one that has left, what all promise is asked");
    roster.admit(candidate(2, &[], &[]));
    assert!(unkept(&roster, 2, None).is_empty() && unkept(&roster, 9, None).is_empty());
}

#[test]
fn contracts_are_weighed_only_where_agents_differ_in_them() {
    let weighs = |all: &[Candidate]| roster(all.iter().cloned()).weighs_contracts(&Role::Worker);
    assert!(!weighs(&[candidate(1, &["a"], &[]), candidate(2, &[], &[])]));
    assert!(!weighs(&[bound(1, READS), Candidate { host: "there".into(), ..bound(2, READS) }]));
    assert!(weighs(&[bound(1, READS), bound(2, ADDS)]));
    assert!(weighs(&[bound(1, READS), candidate(2, &[], &[])]));
    // What cannot be judged by is no contract.
    assert!(!weighs(&[bound(1, ENDLESS), bound(2, "{"), candidate(3, &[], &[])]));
    let mut all = roster([bound(1, READS), candidate(2, &[], &[])]);
    all.dismiss(&agent(1));
    assert!(!all.weighs_contracts(&Role::Worker), "it is gone");
}

#[test]
fn a_profile_says_its_contract() {
    let said = json!({
        "agent": "clerk-1", "role": "clerk",
        "specialist": { "contract": { "input": { "properties": { "documents": { "minimum": 1 } } } } },
    });
    let contract = |said: serde_json::Value| {
        let profile: Profile = serde_json::from_value(said).unwrap();
        Candidate::of(&profile).unwrap().contract
    };
    assert_eq!(contract(said.clone()), READS);
    let mut large = said;
    large["specialist"]["contract"]["input"]["description"] = "x".repeat(100_000).into();
    assert_eq!(contract(large), "", "it is not looked at");
    assert_eq!(contract(json!({ "agent": "worker-1", "role": "worker" })), "");
}

#[test]
fn only_who_can_do_it_is_waited_for() {
    let mut all = roster([candidate(1, &["audit"], &[]), candidate(2, &[], &[])]);
    all.take(&agent(1), 2);
    assert_eq!(chosen(&all, &needing(&["audit"])), Some(agent(1)), "it is busy, and the only one");
    let avoiding = Ask { avoid: vec![2], ..Ask::default() };
    assert_eq!(chosen(&all, &avoiding), None, "nobody is waited for to spare another the task");
    all.take(&agent(1), 1);
    assert_eq!(chosen(&all, &avoiding), Some(agent(1)));
}

#[test]
fn who_had_the_task_before_is_passed_over_as_long_as_there_are_others() {
    let all = roster((1..=3).map(|n| candidate(n, &[], &[])));
    assert_eq!(chosen(&all, &Ask { avoid: vec![1], ..Ask::default() }), Some(agent(2)));
    assert_eq!(chosen(&all, &Ask { avoid: vec![1, 2], ..Ask::default() }), Some(agent(3)));
    assert_eq!(chosen(&all, &Ask { avoid: vec![1, 2, 3], ..Ask::default() }), None);
    assert_eq!(chosen(&all, &Ask { avoid: vec![9], ..Ask::default() }), None, "it is not there");
    let alone = roster([candidate(1, &["audit"], &[]), candidate(2, &[], &[])]);
    let ask = Ask { avoid: vec![1], ..needing(&["audit"]) };
    assert_eq!(chosen(&alone, &ask), Some(agent(1)), "nobody else can do it");
    let said = place(&all, &Ask { avoid: vec![1], ..Ask::default() }).unwrap().passed_over;
    assert_eq!((&said[0].agent, said[0].reason.as_str()), (&agent(1), "it failed it"));
}

#[test]
fn who_failed_much_or_takes_much_longer_is_passed_over_while_others_are_free() {
    let cases = [
        (tally(1, 4, 10), Some(2), "too much of its work went wrong: 1 of 5 tasks done"),
        (tally(4, 1, 2_000), None, ""),
        (tally(1, 1, 10), None, ""),
        (tally(5, 0, 9_000), Some(2), "it takes longer or costs more"),
        (tally(5, 0, 5_000), None, ""),
    ];
    for (of_first, expected, reason) in cases {
        let mut all = roster((1..=2).map(|n| candidate(n, &[], &[])));
        all.judge(|one| Some(if one.agent == agent(1) { of_first } else { tally(4, 0, 2_000) }));
        let placement = place(&all, &Ask::default());
        assert_eq!(
            placement.as_ref().map(|placement| placement.to.clone()),
            expected.map(|n| Queue::Agent(agent(n)))
        );
        if let Some(placement) = placement {
            assert!(placement.passed_over[0].reason.starts_with(reason), "{placement:?}");
            assert!(placement.reasons[0].starts_with("known for 4 of 4 tasks done"), "{placement:?}");
            all.take(&agent(2), 2);
            assert_eq!(chosen(&all, &Ask::default()), Some(agent(1)), "better than to wait");
        }
    }
}

#[test]
fn what_was_given_in_the_same_decision_counts_as_taken() {
    let all = roster([candidate(1, &["audit"], &[]), candidate(2, &["audit"], &[]), candidate(3, &[], &[])]);
    let mut ask = needing(&["audit"]);
    let mut order = Vec::new();
    for _ in 0..5 {
        let agent = chosen(&all, &ask).unwrap();
        *ask.given.entry(agent.clone()).or_default() += 1;
        order.push(agent);
    }
    assert_eq!(order[..4], [agent(1), agent(2), agent(1), agent(2)]);
}

#[test]
fn documents_draw_a_task_to_the_machine_that_holds_them() {
    let there = |n| Candidate { host: "there".into(), ..candidate(n, &[], &[]) };
    let mut all = roster([candidate(1, &[], &[]), candidate(2, &[], &[]), there(3), there(4)]);
    let ask = Ask { knows: vec![3], corpus: Some("c"), ..Ask::default() };
    assert_eq!(chosen(&all, &ask), Some(agent(3)));
    all.take(&agent(3), 2);
    let placement = place(&all, &ask).unwrap();
    assert_eq!(placement.to, Queue::Agent(agent(4)));
    assert_eq!(placement.reasons[0], "its machine holds the documents");
    assert_eq!(chosen(&all, &Ask { corpus: None, ..ask }), None, "without documents it makes no difference");
}

#[test]
fn kinds_that_nobody_is_of_any_more_are_forgotten() {
    let mut all = roster((0..200).map(|n| candidate(n, &[&format!("c{n}")], &[])));
    for n in 0..199 {
        all.dismiss(&agent(n));
    }
    all.admit(candidate(500, &[], &[]));
    assert_eq!(chosen(&all, &needing(&["c199"])), Some(agent(199)));
    assert!(all.pools[&Role::Worker].kinds().count() == 2);
}

fn candidates() -> impl Strategy<Value = Vec<(Candidate, u32, Tally)>> {
    let one = (0..4usize, 0..3usize, 0..3u32, 0..6u64, 0..6u64, 0..5usize);
    proptest::collection::vec(one, 1..12).prop_map(|all| {
        let capabilities = [&["a"][..], &["a", "b"], &["b"], &[]];
        let tools = [&["x"][..], &["y.*"], &[]];
        let numbered = (0u32..).zip(all);
        let contracts = ["", "", READS, READS_MANY, ADDS];
        let made = numbered.map(|(n, (can, has, taken, done, failed, says))| {
            let candidate = candidate(n, capabilities[can], tools[has]);
            let contract = contracts[says].to_owned();
            (Candidate { contract, ..candidate }, taken, tally(done, failed, 100))
        });
        made.collect()
    })
}

fn asks() -> impl Strategy<Value = Ask> {
    let words = |all: &'static [&'static str]| proptest::sample::subsequence(all.to_vec(), 0..=all.len());
    let agents = || proptest::collection::vec(0..12u32, 0..3);
    let documents = proptest::option::of(0..12u32);
    (words(&["a", "b", "c"]), words(&["x", "y.z"]), agents(), agents(), documents, words(&["total"]))
        .prop_map(|(needs, tools, avoid, knows, documents, data)| Ask {
            tools: tools.into_iter().map(str::to_owned).collect(),
            avoid,
            knows,
            documents,
            data: data.into_iter().map(str::to_owned).collect(),
            ..needing(&needs)
        })
}

fn built(all: &[(Candidate, u32, Tally)]) -> Roster {
    let mut made = roster(all.iter().map(|(candidate, _, _)| candidate.clone()));
    for (candidate, taken, _) in all {
        made.take(&candidate.agent, *taken);
    }
    let tallies: BTreeMap<AgentId, Tally> =
        all.iter().map(|(candidate, _, tally)| (candidate.agent.clone(), *tally)).collect();
    made.judge(|one| tallies.get(&one.agent).copied());
    made
}

proptest! {
    #[test]
    fn the_order_in_which_agents_came_does_not_matter(all in candidates(), ask in asks(), seed in any::<u64>()) {
        let mut other = all.clone();
        let len = other.len();
        for at in 0..len {
            let with = (seed.rotate_left(u32::try_from(at).unwrap()) % len as u64) as usize;
            other.swap(at, with);
        }
        prop_assert_eq!(place(&built(&all), &ask), place(&built(&other), &ask));
    }

    #[test]
    fn one_who_comes_and_goes_leaves_no_trace(all in candidates(), ask in asks()) {
        let before = place(&built(&all), &ask);
        let mut made = built(&all);
        made.admit(candidate(100, &["a", "b", "c"], &["x", "y.z"]));
        made.take(&agent(100), 1);
        made.dismiss(&agent(100));
        prop_assert_eq!(before, place(&made, &ask));
    }

    #[test]
    fn one_who_can_do_nothing_changes_nothing_where_somebody_is_named(all in candidates(), ask in asks()) {
        let ask = Ask { documents: ask.documents.map(|few| few.min(9)), ..ask };
        let before = chosen(&built(&all), &ask);
        let mut worse = all;
        worse.push((bound(100, READS_MANY), 2, tally(0, 9, 100)));
        if let Some(before) = before {
            prop_assert_eq!(chosen(&built(&worse), &ask), Some(before));
        }
    }

    #[test]
    fn nobody_who_can_do_less_or_is_to_be_avoided_is_chosen_while_another_can(all in candidates(), ask in asks()) {
        let made = built(&all);
        let Some(agent) = chosen(&made, &ask) else { return Ok(()) };
        let weighs = made.weighs_contracts(&Role::Worker);
        let refuses = |one: &Candidate| ask.documents.is_some_and(|documents| match one.contract.as_str() {
            READS => documents < 1,
            READS_MANY => documents < 10,
            _ => false,
        });
        let can = |one: &Candidate| {
            let promised = ask.data.iter().filter(|_| ask.documents.is_some() && one.contract == ADDS).count();
            let needs = ask.needs.iter().filter(|need| one.capabilities.contains(need)).count();
            let has = |tool: &&String| one.tools.iter().any(|own| {
                own == *tool || own.strip_suffix('*').is_some_and(|prefix| tool.starts_with(prefix))
            });
            promised + needs + ask.tools.iter().filter(has).count()
        };
        let suited: Vec<&Candidate> = all.iter().map(|(one, _, _)| one).filter(|one| !refuses(one)).collect();
        let nobody = suited.is_empty();
        prop_assert!(nobody || !weighs || !refuses(made.candidate(&agent).unwrap()));
        let able: Vec<&Candidate> = if nobody { all.iter().map(|(one, _, _)| one).collect() } else { suited };
        let own = can(made.candidate(&agent).unwrap());
        prop_assert_eq!(own, able.iter().map(|one| can(one)).max().unwrap());
        let is_avoided = |agent: &AgentId| ask.avoid.iter().any(|n| super::tests::agent(*n) == *agent);
        let others = able.iter().any(|one| can(one) == own && !is_avoided(&one.agent));
        prop_assert!(!is_avoided(&agent) || !others);
    }
}

#[test]
fn somebody_is_asked_by_name_where_that_is_wanted() {
    let alike = roster((1..=3).map(|n| candidate(n, &[], &[])));
    assert_eq!(chosen(&alike, &Ask::default()), None);
    assert_eq!(chosen(&alike, &Ask { by_name: true, ..Ask::default() }), Some(agent(1)));
    let mut busy = roster((1..=2).map(|n| candidate(n, &[], &[])));
    busy.take(&agent(1), 2);
    busy.take(&agent(2), 2);
    assert_eq!(chosen(&busy, &Ask { by_name: true, ..Ask::default() }), None, "nobody is waited for");
}

#[test]
fn a_suspect_goes_to_who_has_nothing_else_in_hand() {
    let mut some_busy = roster((1..=3).map(|n| candidate(n, &[], &[])));
    some_busy.take(&agent(1), 1);
    some_busy.take(&agent(2), 1);
    let alone = Ask { by_name: true, alone: true, ..Ask::default() };
    assert_eq!(chosen(&some_busy, &alone), Some(agent(3)));
    some_busy.take(&agent(3), 1);
    assert_eq!(chosen(&some_busy, &alone), None, "whoever takes it ends what it has first");
}

#[test]
fn who_was_asked_and_did_nothing_is_not_asked_again_while_another_is_busy() {
    let mut two = roster((1..=2).map(|n| candidate(n, &[], &[])));
    two.take(&agent(2), 2);
    assert_eq!(chosen(&two, &Ask { avoid: vec![1], ..Ask::default() }), None, "whoever is free takes it");
    assert_eq!(chosen(&two, &Ask { idle: vec![1], ..Ask::default() }), Some(agent(2)));
    assert_eq!(chosen(&two, &Ask { idle: vec![1, 2], ..Ask::default() }), None, "there is nobody else");
    let member = Ask { idle: vec![1], avoid: vec![2], by_name: true, ..Ask::default() };
    assert_eq!(
        chosen(&two, &member),
        Some(agent(2)),
        "one with another member comes before one that failed it"
    );
    assert_eq!(chosen(&two, &Ask { asked: Some(1), ..member }), None, "whoever is free takes it");
}

#[test]
fn whoever_hands_a_task_back_may_name_an_agent() {
    let named = |n: u32, name: &str, role: &str| {
        let role = role.parse().unwrap();
        Candidate { name: name.into(), role, ..candidate(n, &[], &[]) }
    };
    let mut fleet =
        roster([named(1, "alpha", "worker"), named(2, "beta", "worker"), named(3, "pat", "planner")]);
    let asks = |words| Ask { named: Some(words), avoid: vec![1], ..Ask::default() };
    assert_eq!(chosen(&fleet, &asks("Beta should do it.")), Some(agent(2)));
    assert_eq!(chosen(&fleet, &asks("worker-00000002 should do it")), Some(agent(2)), "by its id");
    assert_eq!(chosen(&fleet, &asks("pat should do it")), Some(agent(2)), "a planner does no tasks of plans");
    assert_eq!(chosen(&fleet, &asks("alpha should do it")), Some(agent(2)), "it handed it back");
    fleet.take(&agent(2), 2);
    assert_eq!(chosen(&fleet, &asks("beta should do it")), None, "it has no room, and nobody is waited for");
    let kept = BTreeMap::from([(agent(2), 1)]);
    let placed = place_with(&fleet, &asks("beta should do it"), &kept).map(|placement| placement.to);
    assert_eq!(placed, Some(Queue::Agent(agent(2))), "what is kept for the run is free for it");
}
