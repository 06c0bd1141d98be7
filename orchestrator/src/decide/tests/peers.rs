//! What tasks ask of their peers, and tell each other.

use muster_shared::flow::{
    CapabilityQuery, ContextRequest, HelpRequest, InformationShare, ObservationStatus, Peer, PeerAnswer,
    PeerRequest, Peers, RunLimits, Specialty, TaskDraft, TaskOffered, TaskStatus,
};
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::run::event::HandOverRefused;
use muster_shared::run::{Input, RunEvent};
use muster_shared::time::Millis;

use super::fleet::{Fleet, leaf, plan, queue, result};
use crate::decide::{Effect, next_deadline, say_again};

fn auditor() -> Specialty {
    let role = "security_auditor".parse().unwrap();
    Specialty {
        role,
        description: "finds weaknesses".into(),
        capabilities: vec!["security audit".into()],
        tools: Vec::new(),
        gives: Vec::new(),
    }
}

/// Two that work for a third, and one by itself.
fn tasks() -> Vec<TaskDraft> {
    vec![leaf("one", &[]), leaf("two", &[]), leaf("both", &["1", "2"]), leaf("apart", &[])]
}

fn begun(peers: Peers) -> Fleet {
    let mut fleet = Fleet::new();
    fleet.slots.insert(queue(auditor().role), 2);
    fleet.specialists = vec![auditor()];
    fleet.submit("Is the house safe?", RunLimits { peers, max_width: 8, ..RunLimits::default() });
    fleet.end_task("plan", plan(tasks()));
    fleet
}

/// Status, words and answer of what a task asked.
pub(super) type Answer = (ObservationStatus, String, Option<PeerAnswer>);

pub(super) fn answer(fleet: &Fleet, task: &str) -> Answer {
    let answered = fleet.find(task).answered.unwrap();
    (answered.observation.status, answered.observation.content, answered.answer.map(|answer| *answer))
}

fn refused(fleet: &Fleet, task: &str) -> String {
    let (status, why, none) = answer(fleet, task);
    assert_eq!((status, none), (ObservationStatus::Refused, None), "{why}");
    why
}

fn help(to: Peer, question: &str) -> PeerRequest {
    PeerRequest::HelpRequest(HelpRequest { to, question: question.into(), why: String::new() })
}

fn role(name: &str) -> Peer {
    Peer::Role(name.into())
}

fn share(text: &str, tasks: &[&str]) -> PeerRequest {
    let tasks = tasks.iter().map(|task| (*task).to_owned()).collect();
    PeerRequest::InformationShare(InformationShare { text: text.into(), tasks })
}

fn context(tasks: &[&str], question: &str) -> PeerRequest {
    let tasks = tasks.iter().map(|task| (*task).to_owned()).collect();
    PeerRequest::ContextRequest(ContextRequest { tasks, question: question.into() })
}

fn told(effects: &[Effect]) -> Vec<(String, Vec<String>)> {
    let told = effects.iter().filter_map(|effect| match effect {
        Effect::Inform { task, information, .. } => {
            Some((task.to_string(), information.iter().map(|one| one.text.clone()).collect()))
        }
        _ => None,
    });
    told.collect()
}

#[test]
fn help_is_a_task_of_whoever_can_give_it_and_its_result_the_answer() {
    let ways = [
        Peer::Capability("security audit of doors".into()),
        role(" Security_Auditor "),
        Peer::Agent("security_auditor-0000000a".into()),
    ];
    for to in ways {
        let mut fleet = begun(Peers::USUAL);
        fleet.ask_peer("1", help(to, "Which door is weak?"));
        let part = fleet.find("5");
        assert_eq!(part.queue, queue(auditor().role));
        assert!(fleet.open.iter().all(|offer| offer.task != TaskId::Leaf(TaskIndex::top(1))));
        fleet.start(&part);
        fleet.end(&part, result("the back door"));
        let (status, words, answer) = answer(&fleet, "1");
        assert_eq!(status, ObservationStatus::Success);
        assert!(words.contains("the back door"), "{words}");
        let given = PeerAnswer::HelpGiven { role: auditor().role, task: TaskIndex::top(5) };
        assert_eq!(answer, Some(given));
        fleet.finish(&tasks());
    }
}

#[test]
fn help_that_leads_nowhere_is_refused_with_the_reason() {
    let mut fleet = begun(Peers::USUAL);
    fleet.ask_peer("1", help(role("security_auditor"), "Which door is weak?"));
    // Back to a worker, by itself and by what it can do.
    fleet.ask_peer("5", help(role("worker"), "Which doors are there?"));
    assert!(refused(&fleet, "5").contains("would come back"), "{}", refused(&fleet, "5"));
    let way = "It would have gone 1 (worker) -> 5 (security_auditor) -> worker.";
    assert!(refused(&fleet, "5").contains(way), "{}", refused(&fleet, "5"));
    let avoided = &fleet.run().planned(&TaskIndex::top(5)).unwrap().avoid;
    assert_eq!(avoided.len(), 1, "the orchestrator places it anew: {avoided:?}");
    let chains = fleet.events().into_iter().filter_map(|event| match event {
        RunEvent::HandOverRefused(HandOverRefused { chain, .. }) => Some(chain.clone()),
        _ => None,
    });
    assert_eq!(chains.collect::<Vec<_>>(), [vec![TaskIndex::top(1), TaskIndex::top(5)]]);
    fleet.ask_peer("5", help(role("security_auditor"), "Find out about one"));
    assert!(refused(&fleet, "5").contains("what 1 is to do"), "{}", refused(&fleet, "5"));
    for (to, expected) in [
        (role("astronaut"), "no \"astronaut\" to be asked in this fleet: there are researcher, worker"),
        (Peer::Capability("flying".into()), "nobody in this fleet says that they can do \"flying\""),
        (Peer::Agent("x".into()), "no \"x\" to be asked"),
    ] {
        fleet.ask_peer("2", help(to, "How high?"));
        assert!(refused(&fleet, "2").contains(expected), "{}", refused(&fleet, "2"));
    }
    fleet.ask_peer("2", help(role("researcher"), "  "));
    assert!(refused(&fleet, "2").contains("nothing is asked"));
    fleet.finish(&tasks());
}

#[test]
fn help_that_does_not_come_in_time_is_gone_without() {
    let mut fleet = begun(Peers { help_within_ms: 1_000, ..Peers::USUAL });
    fleet.ask_peer("1", help(role("security_auditor"), "Which door is weak?"));
    assert_eq!(next_deadline(fleet.run()), Some(Millis(fleet.now.0 + 1_000)));
    let part = fleet.begin_task("5");
    fleet.pass(1_000);
    let (status, words, _) = answer(&fleet, "1");
    assert_eq!(status, ObservationStatus::Timeout, "{words}");
    let left_out = fleet.run().planned(&TaskIndex::top(5)).unwrap();
    assert_eq!(left_out.status, TaskStatus::Skipped);
    let cut = |effect: &Effect| matches!(effect, Effect::CancelTask { task, .. } if *task == part.task);
    assert!(fleet.effects.iter().any(cut), "whoever works on it is told");
    fleet.open.retain(|open| open.task != part.task);
    fleet.finish(&tasks());
}

#[test]
fn who_can_do_something_is_answered_from_what_agents_say_of_themselves() {
    let mut fleet = begun(Peers::USUAL);
    let query = |need: &str| PeerRequest::CapabilityQuery(CapabilityQuery { needs: vec![need.into()] });
    fleet.ask_peer("1", query("security audit"));
    let (status, words, found) = answer(&fleet, "1");
    assert_eq!(status, ObservationStatus::Success);
    assert!(words.contains("security_auditor (can security audit): finds weaknesses"), "{words}");
    let Some(PeerAnswer::CapabilityFound { peers }) = found else { panic!("{found:?}") };
    assert_eq!(peers.iter().map(|peer| &peer.role).collect::<Vec<_>>(), [&auditor().role]);
    let advertised = [
        ("reading", "- researcher (can reading)"),
        ("planning", "- planner: planning"),
        ("flying", "worker: reasoning, calculation, writing files"),
    ];
    for (need, line) in advertised {
        fleet.ask_peer("1", query(need));
        assert!(answer(&fleet, "1").1.contains(line), "{need}: {:?}", answer(&fleet, "1"));
    }
    assert!(answer(&fleet, "1").1.contains("advertises flying"), "{:?}", answer(&fleet, "1"));
    fleet.finish(&tasks());
}

#[test]
fn what_is_shared_reaches_those_that_it_concerns_wherever_they_stand() {
    let mut fleet = begun(Peers::USUAL);
    fleet.begin_task("2");
    fleet.effects.clear();
    fleet.ask_peer("1", share("the door is open", &[]));
    let to = vec![TaskIndex::top(2), TaskIndex::top(3)];
    assert_eq!(answer(&fleet, "1").2, Some(PeerAnswer::InformationShared { number: 1, to }));
    let word = || ("2".to_owned(), vec!["the door is open".to_owned()]);
    assert_eq!(told(&fleet.effects), [word()], "whoever works on it is told at once");
    assert_eq!(told(&say_again(fleet.run())), [word()], "also by whoever takes the run over");
    assert!(fleet.find("4").heard.is_empty(), "it does not concern it");

    // Whoever is named, begun or not; one that is begun only later is told then.
    fleet.effects.clear();
    fleet.ask_peer("1", share("mind the gap", &["apart", "3"]));
    assert_eq!(told(&fleet.effects), []);
    fleet.begin_task("4");
    assert_eq!(told(&fleet.effects), [("4".to_owned(), vec!["mind the gap".to_owned()])]);
    let texts = |offer: &TaskOffered| offer.heard.iter().map(|one| one.text.clone()).collect::<Vec<_>>();
    for task in ["1", "2", "4"] {
        let offer = fleet.open.iter().find(|open| open.task == task.parse().unwrap()).cloned().unwrap();
        fleet.end(&offer, result("so it is"));
    }
    fleet.turn(vec![Input::Capacity]);
    let both = fleet.open.iter().find(|open| open.task == TaskId::Leaf(TaskIndex::top(3)));
    assert_eq!(texts(both.unwrap()), ["the door is open", "mind the gap"], "an offer tells all");
    fleet.finish(&tasks());
}

#[test]
fn what_cannot_be_shared_is_refused_with_the_reason() {
    let mut fleet = begun(Peers::USUAL);
    fleet.end_task("4", result("alone"));
    for (request, expected) in [
        (share(" ", &[]), "nothing to share"),
        (share("x", &["9"]), "there is no task 9"),
        (share("x", &["nobody"]), "there is no task \"nobody\": there are 1 (one)"),
        (share("x", &["4"]), "4 has ended, or is the task that shares it; open are 2 (two), 3 (both)"),
    ] {
        fleet.ask_peer("1", request);
        assert!(refused(&fleet, "1").contains(expected), "{}", refused(&fleet, "1"));
    }
    fleet.finish(&tasks());
}

#[test]
fn what_the_run_knows_is_told_without_a_model() {
    let mut fleet = begun(Peers::USUAL);
    fleet.end_task("2", result("the back door is made of paper"));
    fleet.ask_peer("1", context(&["two", "3"], ""));
    let (_, words, found) = answer(&fleet, "1");
    assert!(words.contains("Task 2 (two) gives: the back door is made of paper"), "{words}");
    assert!(words.contains("Task 3 (both) is not begun"), "{words}");
    assert_eq!(found, Some(PeerAnswer::ContextGiven { tasks: vec![TaskIndex::top(2), TaskIndex::top(3)] }));
    fleet.ask_peer("1", context(&[], "What is the door made of?"));
    let (_, words, _) = answer(&fleet, "1");
    assert!(words.contains("made of paper") && words.contains("Is the house safe?"), "{words}");
    assert!(words.contains("[x] 2 two") && words.contains("[ ] 3 both"), "{words}");
    fleet.ask_peer("1", context(&["7"], ""));
    assert!(refused(&fleet, "1").contains("no task 7"));
    fleet.finish(&tasks());
}

#[test]
fn requests_and_their_answers_keep_to_their_limits() {
    let mut fleet = begun(Peers { max_requests: 3, max_bytes: 60, ..Peers::USUAL });
    fleet.ask_peer("1", share(&"x".repeat(100), &["2"]));
    assert!(refused(&fleet, "1").contains("100 bytes") || refused(&fleet, "1").contains("101 bytes"));
    fleet.ask_peer("1", context(&[], ""));
    let answered = fleet.find("1").answered.unwrap();
    assert!(answered.observation.truncated && answered.observation.content.len() < 200);
    fleet.ask_peer("1", share("short", &["2"]));
    fleet.ask_peer("1", share("short", &["2"]));
    assert!(refused(&fleet, "1").contains("3 times, which is the most"), "{}", refused(&fleet, "1"));
    fleet.finish(&tasks());
}
