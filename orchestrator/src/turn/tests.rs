use std::collections::VecDeque;
use std::time::Duration;

use muster_shared::flow::{Goal, RunLimits, TaskOffered};
use muster_shared::ids::{AgentId, Attempt, Role, RunId, Seq};
use muster_shared::run::chain;
use muster_shared::run::{
    AgentEvent, AgentKey, Covered, Digest, EVENT_VERSION, Entry, Input, RecordEvent, Request, RequestAction,
    RunEvent, Started,
};
use muster_shared::time::Millis;
use muster_shared::wire::Profile;
use uuid::Uuid;

use super::*;
use crate::decide::Effect;
use crate::{Capacity, decide_with_room};

const ID: RunId = RunId::from_uuid(Uuid::from_u128(7));

fn me() -> AgentId {
    AgentId::new("orchestrator", 1)
}

/// What somebody asks of the run.
fn asked_to(action: RequestAction) -> Input {
    let request = Request::new(ID, action).with_id(Uuid::from_u128(5));
    Input::Request(Request { by: "me".into(), ..request })
}

fn planner() -> Profile {
    let profile = serde_json::json!({ "agent": AgentId::new("planner", 1), "role": "planner", "slots": 2, "event_version": EVENT_VERSION });
    serde_json::from_value(profile).unwrap()
}

fn goal() -> Input {
    Input::Goal {
        goal: Box::new(Goal::new("Why?")),
        limits: RunLimits { planning: muster_shared::flow::Planning::Always, ..RunLimits::default() },
        secret: "ab".repeat(32),
        lessons: Vec::new(),
        signed: None,
    }
}

/// What becomes of one write.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// It lands, and nobody says so.
    LandsUnsaid,
    /// It is lost, and nobody knows.
    LostUnsaid,
    /// Somebody else wrote first.
    Conflict,
    /// The bus fails, for now or for good.
    Fails { is_transient: bool },
}

/// A record in memory, and what goes wrong with it.
struct Bus {
    fleet: Capacity,
    record: Vec<Entry>,
    now: Millis,
    /// After so many steps the lease is lost.
    lease_lasts: usize,
    writes: VecDeque<Option<Fault>>,
    reads_fail: Option<bool>,
    left_to: Option<AgentId>,
    effects: Vec<Effect>,
    batches: u128,
}

impl Bus {
    fn new() -> Self {
        let fleet = Capacity::default();
        drop(fleet.joined(&planner()));
        Self {
            fleet,
            record: Vec::new(),
            now: Millis(1_000_000),
            lease_lasts: usize::MAX,
            writes: VecDeque::new(),
            reads_fail: None,
            left_to: None,
            effects: Vec::new(),
            batches: 0,
        }
    }

    fn failing(writes: impl IntoIterator<Item = Fault>) -> Self {
        Self { writes: writes.into_iter().map(Some).collect(), ..Self::new() }
    }

    fn view(&mut self) -> View<'_> {
        self.batches += 1;
        let holds_lease = self.lease_lasts > 0;
        self.lease_lasts = self.lease_lasts.saturating_sub(1);
        let batch = Uuid::from_u128(self.batches);
        View { now: self.now, fleet: &self.fleet, holds_lease, batch, decide: decide_with_room }
    }

    fn put(&mut self, event: RecordEvent) -> Seq {
        let seq = Seq(self.record.len() as u64 + 1);
        self.record.push(Entry { seq, at: self.now, run: ID, event });
        seq
    }

    fn append(&mut self, written: &Written) -> Seq {
        let first = self.put(RecordEvent::Decided(written.decided.clone()));
        for offer in &written.offers {
            self.put(RecordEvent::Offered(offer.clone()));
        }
        first
    }

    fn read(&self) -> Result<RunLog, Failure> {
        match self.reads_fail {
            Some(is_transient) => Err(Failure { is_transient, reason: "no record".into() }),
            None => Ok(RunLog::default().read(&self.record)?),
        }
    }

    /// Takes a turn. Returns what it asked for, in a word each, and how it ended.
    fn turn(
        &mut self,
        log: Option<RunLog>,
        messages: Vec<RunMessage<Entry, ()>>,
    ) -> (Vec<&'static str>, TurnEnd) {
        let rules = TurnRules { by: me(), max_deferred: 4, snapshot_every: 0 };
        let mut next = Turn::begin(ID, rules, log, Inbox::sort(messages), &self.view());
        let mut asked = Vec::new();
        loop {
            next = match next {
                Next::Read(step) => {
                    asked.push("read");
                    let log = self.read();
                    step.read(log, &self.view())
                }
                Next::Claim(step) => {
                    asked.push("claim");
                    match self.left_to.clone().filter(|_| step.author.is_some()) {
                        Some(other) => step.is_left_to(other),
                        None => step.is_ours(&self.view()),
                    }
                }
                Next::FindAgents(step) => {
                    asked.push("find");
                    step.found(Ok(Vec::new()), &self.view())
                }
                Next::LastStep(step) => step.read(Ok(self.record.clone()), &self.view()),
                Next::LastWord(step) => step.read(Ok(None), &self.view()),
                Next::Tell(step) => step.told(&self.view()),
                Next::Append(step) => {
                    asked.push("append");
                    let went = self.went(&step);
                    step.went(went, &self.view())
                }
                Next::Perform(step) => {
                    self.effects.push(step.effect.clone());
                    step.performed(&self.view())
                }
                Next::Done(end) => return (asked, *end),
            };
        }
    }

    fn went(&mut self, step: &AppendDecision<Entry>) -> Appending {
        match self.writes.pop_front().flatten() {
            None => {
                let link = step.written.link.clone().over([]).hash;
                Appending::Appended(WrittenAt { first: self.append(&step.written), link })
            }
            Some(Fault::LandsUnsaid) => {
                self.append(&step.written);
                Appending::Ambiguous
            }
            Some(Fault::LostUnsaid) => Appending::Ambiguous,
            Some(Fault::Conflict) => Appending::Conflict,
            Some(Fault::Fails { is_transient }) => {
                Appending::Failed(Failure { is_transient, reason: "no room".into() })
            }
        }
    }

    fn submitted(&mut self) -> RunLog {
        self.turn(None, vec![order(goal())]).1.log.unwrap()
    }

    /// The goal is submitted, and the planner's task offered.
    fn offered(&mut self) -> (RunLog, TaskOffered) {
        let log = self.submitted();
        let end = self.turn(Some(log), vec![RunMessage::Wake(Input::Capacity)]).1;
        let offer = self.record.iter().find_map(|entry| match &entry.event {
            RecordEvent::Decided(decided) => decided.offer.as_deref().cloned(),
            RecordEvent::Offered(offer) => Some(offer.clone()),
            RecordEvent::Agent(..) => None,
        });
        (end.log.unwrap(), offer.unwrap())
    }

    fn starts(&mut self, offer: &TaskOffered) -> Entry {
        let (agent, task, generation) = (planner().agent, offer.task.clone(), offer.generation);
        let key = AgentKey { role: Role::Planner, agent, task, generation };
        let (pid, host, ack) = (0, String::new(), "ack".to_owned());
        let started = Started { attempt: Attempt(1), ack, pid, host, after_step: 0 };
        self.put(RecordEvent::Agent(key, AgentEvent::Started(started)));
        self.record.last().unwrap().clone()
    }

    fn created(&self) -> usize {
        let decided = self.record.iter().filter_map(|entry| match &entry.event {
            RecordEvent::Decided(decided) => Some(&decided.events),
            RecordEvent::Offered(_) | RecordEvent::Agent(..) => None,
        });
        decided.flatten().filter(|event| matches!(event, RunEvent::RunCreated { .. })).count()
    }
}

fn order(input: Input) -> RunMessage<Entry, ()> {
    RunMessage::Order(Order { input, answer: () })
}

#[test]
fn a_goal_is_written_without_a_look_into_the_record_and_its_effects_follow() {
    let mut bus = Bus::new();
    let (asked, end) = bus.turn(None, vec![order(goal())]);
    assert_eq!(asked, ["claim", "append"]);
    assert_eq!(end.answer, OrderReply::Recorded);
    assert!(matches!(end.outcome, TurnOutcome::GoOn { more: true, .. }), "{:?}", end.outcome);
    assert!(end.took.wrote && end.took.news);
    let log = end.log.unwrap();
    assert_eq!(log.run(), bus.read().unwrap().run(), "what is kept is what the record folds to");

    let (asked, end) = bus.turn(Some(log), vec![RunMessage::Wake(Input::Capacity)]);
    assert_eq!(asked, ["append"], "what is known is not read again");
    assert!(matches!(end.outcome, TurnOutcome::GoOn { wake: Some(Alarm::Due(_)), .. }), "{:?}", end.outcome);
    let log = end.log.unwrap();
    assert_eq!(log.run(), bus.read().unwrap().run());

    let (asked, end) = bus.turn(Some(log), vec![RunMessage::Wake(Input::Timer)]);
    assert!(asked.is_empty(), "an alarm that rings for nothing is not written");
    assert!(matches!(end.outcome, TurnOutcome::GoOn { wake: Some(Alarm::Due(_)), .. }), "{:?}", end.outcome);
}

/// What became of the first writes, what was asked for then, and how the turn ended.
#[test]
fn writes_that_fail_are_looked_up_and_made_again() {
    let conflict = [Fault::Conflict];
    let again = ["claim", "append", "read", "append"];
    let cases: [(&[Fault], Vec<&str>, OrderReply); 6] = [
        (&conflict, again.to_vec(), OrderReply::Recorded),
        (&[Fault::LostUnsaid], again.to_vec(), OrderReply::Recorded),
        (&[Fault::LandsUnsaid], vec!["claim", "append", "read"], OrderReply::Recorded),
        (&[Fault::Fails { is_transient: true }], vec!["claim", "append"], OrderReply::Later),
        (&[Fault::Fails { is_transient: false }], vec!["claim", "append"], OrderReply::Later),
        (
            &[Fault::Conflict; 5],
            [vec!["claim"], [["append", "read"]; 5].concat()].concat(),
            OrderReply::Later,
        ),
    ];
    for (faults, expected, answer) in cases {
        let mut bus = Bus::failing(faults.iter().copied());
        let (asked, end) = bus.turn(None, vec![order(goal())]);
        assert_eq!(asked, expected, "{faults:?}");
        assert_eq!(end.answer, answer, "{faults:?}");
        assert_eq!(bus.created(), usize::from(answer == OrderReply::Recorded), "{faults:?}");
        match answer {
            OrderReply::Recorded => {
                assert_eq!(end.log.unwrap().run(), bus.read().unwrap().run(), "{faults:?}")
            }
            OrderReply::NoSuchRun | OrderReply::Elsewhere(_) | OrderReply::Crowded | OrderReply::Later => {
                assert!(end.log.is_none(), "the record is read again");
            }
        }
    }
}

#[test]
fn what_fails_for_good_is_given_up_and_all_else_tried_again() {
    let given_up = TurnOutcome::GiveUp { reason: "no record".into() };
    for (is_transient, expected) in [(true, TurnOutcome::Retry), (false, given_up)] {
        let mut bus = Bus { reads_fail: Some(is_transient), ..Bus::new() };
        let (asked, end) = bus.turn(None, vec![RunMessage::Wake(Input::Timer)]);
        assert_eq!((asked, end.outcome), (vec!["read"], expected));
    }
}

/// A process that stood still let go of its runs when it woke, renewed its lease too late and without them, and
/// nobody knew that they were left.
#[test]
fn a_run_is_not_let_go_of_for_want_of_a_lease() {
    // After so many steps it is lost: at once, before the decision, before the write, before the first effect.
    for (lease_lasts, written) in [(0, 0), (1, 0), (2, 0), (3, 1)] {
        let mut bus = Bus { lease_lasts, ..Bus::new() };
        let (_, end) = bus.turn(None, vec![order(goal())]);
        assert_eq!(bus.created(), written, "{lease_lasts}");
        assert_eq!(bus.effects, [], "{lease_lasts}");
        match written {
            0 => assert_eq!((end.outcome, end.answer), (TurnOutcome::Retry, OrderReply::Later)),
            _ => assert_eq!(end.answer, OrderReply::Recorded),
        }
    }
}

#[test]
fn a_run_that_somebody_else_has_is_left_to_it() {
    let mut bus = Bus::new();
    drop(bus.submitted());
    let other = AgentId::new("orchestrator", 2);
    bus.left_to = Some(other.clone());
    let (asked, end) = bus.turn(None, vec![RunMessage::Wake(Input::Capacity)]);
    assert_eq!(asked, ["read", "claim"]);
    assert_eq!((end.outcome, end.answer), (TurnOutcome::Elsewhere, OrderReply::Elsewhere(other)));
}

#[test]
fn a_run_that_does_not_exist_is_done_with() {
    let mut bus = Bus::new();
    let cancel = asked_to(RequestAction::Cancel);
    let (asked, end) = bus.turn(None, vec![order(cancel)]);
    assert_eq!(asked, ["read"]);
    assert_eq!((end.outcome, end.answer), (TurnOutcome::Ended, OrderReply::NoSuchRun));
}

#[test]
fn what_concerns_nobody_is_put_off_and_decided_with_what_comes_next() {
    let mut bus = Bus::new();
    let (log, offer) = bus.offered();
    let before = log.run().cloned();
    let started = bus.starts(&offer);
    let (asked, end) = bus.turn(Some(log), vec![RunMessage::Signal(started.clone())]);
    assert!(asked.is_empty(), "nothing is written: {asked:?}");
    assert!(end.took.news && !end.took.wrote);
    let log = end.log.unwrap();
    let (now, before) = (log.run().unwrap(), before.unwrap());
    assert_eq!(
        (now.tasks.clone(), now.spending.used),
        (before.tasks, before.spending.used),
        "as if nothing was decided"
    );
    assert_eq!(now.pending.keys().copied().collect::<Vec<_>>(), [started.seq]);

    let cancel = asked_to(RequestAction::Cancel);
    let (asked, end) = bus.turn(Some(log), vec![order(cancel)]);
    assert_eq!((asked, end.outcome), (vec!["append"], TurnOutcome::Ended));
    let Some(RecordEvent::Decided(last)) = bus.record.last().map(|entry| &entry.event) else { panic!() };
    assert!(last.inputs.contains(&Input::Agent { seq: started.seq }), "{:?}", last.inputs);
    assert_eq!(end.log.unwrap().run(), bus.read().unwrap().run());
}

#[test]
fn whoever_falls_silent_is_noticed_though_its_start_was_put_off() {
    let mut bus = Bus::new();
    let (log, offer) = bus.offered();
    let started = bus.starts(&offer);
    let (asked, end) = bus.turn(Some(log), vec![RunMessage::Signal(started)]);
    assert!(asked.is_empty(), "nothing is written: {asked:?}");
    let TurnOutcome::GoOn { wake: Some(alarm @ Alarm::Due(_)), .. } = end.outcome else { panic!() };

    bus.now = alarm.at();
    let (asked, end) = bus.turn(end.log, vec![RunMessage::Wake(Input::Timer)]);
    assert_eq!(asked, ["append"], "that it has the task is known by then");
    let TurnOutcome::GoOn { wake: Some(alarm @ Alarm::Due(_)), .. } = end.outcome else { panic!() };

    bus.now = alarm.at();
    bus.turn(end.log, vec![RunMessage::Wake(Input::Timer)]);
    let Some(RecordEvent::Decided(last)) = bus.record.last().map(|entry| &entry.event) else { panic!() };
    assert!(last.inputs.iter().any(|input| matches!(input, Input::Silent { .. })), "{:?}", last.inputs);
}

#[test]
fn takeover_of_a_run_looks_up_agents_that_are_not_known() {
    let table = [
        (RunMessage::Wake(Input::Capacity), None, &["read", "claim", "find", "append"][..]),
        (order(goal()), Some(Fault::Conflict), &["claim", "append", "read", "claim", "find", "append"][..]),
    ];
    for (message, writes, expected) in table {
        let mut bus = Bus::new();
        let (log, offer) = bus.offered();
        let (started, pause) = (bus.starts(&offer), asked_to(RequestAction::Pause));
        drop(bus.turn(Some(log), vec![RunMessage::Signal(started), order(pause)]));
        drop(bus.fleet.left(planner().agent));
        bus.writes.extend(writes.map(Some));
        assert_eq!(bus.turn(None, vec![message]).0, expected);
        let Some(RecordEvent::Decided(last)) = bus.record.last().map(|entry| &entry.event) else { panic!() };
        assert!(
            last.inputs.iter().any(|input| matches!(input, Input::AgentLost { .. })),
            "{:?}",
            last.inputs
        );
    }
}

/// The driver of a run, and what it says to each thing that happens.
struct Driven(Driver<Entry, u32>);

impl Driven {
    fn new() -> Self {
        let (max_turns_in_vain, pause_in_vain) = (2, Duration::from_secs(1));
        Self(Driver::new(DriverRules { max_turns_in_vain, pause_in_vain }))
    }

    fn gets(&mut self, messages: RunMessage<Entry, u32>) -> Vec<String> {
        said(self.0.receive(messages))
    }

    fn ends(&mut self, outcome: TurnOutcome, took: Took) -> Vec<String> {
        let answer = OrderReply::Recorded;
        said(self.0.ended(TurnEnd { log: None, outcome, answer, took, keeps_snapshot: false }))
    }
}

fn said(actions: Vec<Action<Entry, u32>>) -> Vec<String> {
    let in_words = |action| match action {
        Action::Begin { inbox, .. } => {
            let reload = if inbox.reload { " reload" } else { "" };
            format!("begin {} {}{reload}", inbox.wakes.len(), inbox.commands.len())
        }
        Action::SetAlarm(alarm) => format!("alarm {}", alarm.at()),
        Action::Wait(time) => format!("wait {}", time.as_millis()),
        Action::StepAside(time) => format!("aside {}", time.as_millis()),
        Action::EndPause => "go on".to_owned(),
        Action::LeaveAlone(_) => "leave".to_owned(),
        Action::Stop => "stop".to_owned(),
    };
    actions.into_iter().map(in_words).collect()
}

const NEWS: Took = Took { news: true, wrote: true };
const VAIN: Took = Took { news: false, wrote: false };

const fn rests() -> TurnOutcome {
    TurnOutcome::GoOn { wake: Some(Alarm::Due(Millis(5))), more: false }
}

#[test]
fn one_turn_goes_on_at_a_time_and_what_comes_meanwhile_waits() {
    let mut run = Driven::new();
    assert_eq!(run.gets(RunMessage::Wake(Input::Timer)), ["begin 1 0"]);
    assert!(run.gets(RunMessage::Wake(Input::Timer)).is_empty());
    assert!(run.gets(RunMessage::Wake(Input::Timer)).is_empty());
    assert_eq!(run.ends(rests(), NEWS), ["begin 1 0"], "the same is told once");
    assert_eq!(run.ends(rests(), NEWS), [format!("alarm {}", Millis(5))]);
    assert_eq!(said(run.0.rang(Alarm::Due(Millis(5)))), ["begin 1 0"]);
    assert_eq!(run.ends(TurnOutcome::GoOn { wake: None, more: true }, NEWS), ["begin 1 0"], "there is more");
    assert_eq!(run.ends(TurnOutcome::Ended, NEWS), ["stop"]);
}

#[test]
fn what_agents_write_besides_signals_begins_no_turn_and_a_gap_in_it_has_the_record_read_again() {
    let hashed = |seq, missed| {
        let entry = Covered { seq: Seq(seq), digest: Digest::from_bytes([0; 32]) };
        RunMessage::Covered(Hashed { entry, missed })
    };
    let covered = |mut actions: Vec<Action<Entry, u32>>| match actions.pop() {
        Some(Action::Begin { inbox, .. }) => {
            (inbox.covered.iter().map(|entry| entry.seq.0).collect::<Vec<_>>(), inbox.reload)
        }
        other => panic!("{other:?}"),
    };
    let mut run = Driven::new();
    assert!(run.gets(hashed(3, 0)).is_empty());
    assert!(run.gets(hashed(4, 0)).is_empty());
    assert_eq!(covered(run.0.receive(RunMessage::Look)), (vec![3, 4], false));
    assert!(run.gets(hashed(5, 0)).is_empty(), "it waits while a turn goes on");
    assert!(run.gets(hashed(7, 1)).is_empty());
    assert_eq!(run.ends(rests(), NEWS), ["begin 0 0 reload"], "one between them was not delivered");
    assert!(run.gets(hashed(8, 1)).is_empty());
    assert_eq!(run.ends(rests(), NEWS), [format!("alarm {}", Millis(5))]);
    assert_eq!(covered(run.0.receive(RunMessage::Look)), (vec![8], false));
}

/// Agents write while a decision is made: what is not heard of yet is covered by the next link, whoever writes it.
#[test]
fn a_link_covers_what_was_heard_and_whoever_reads_the_record_goes_on_alike() {
    let entry = |seq: u64| Covered { seq: Seq(seq), digest: chain::digest("evt", &seq.to_be_bytes()) };
    let hashed = |seq| RunMessage::Covered(Hashed { entry: entry(seq), missed: 0 });
    let mut bus = Bus::new();
    let log = bus.submitted();
    let begun = log.chain().head().unwrap();
    let waits = |log: &RunLog| log.chain().draft(ID);
    let (_, end) = bus.turn(Some(log), vec![hashed(3), hashed(5), RunMessage::Look]);
    let log = end.log.unwrap();
    assert!(end.took.wrote, "there was something to offer");
    let written = log.chain().head().unwrap();
    assert_ne!(written, begun);
    assert_eq!(waits(&log).over([]).of, [], "the decision covered both");
    let (_, end) = bus.turn(Some(log), vec![hashed(5), hashed(9), RunMessage::Look]);
    assert!(!end.took.wrote);
    let link = waits(end.log.as_ref().unwrap()).over([]);
    assert_eq!(link.of.iter().map(|marked| marked.0).collect::<Vec<_>>(), [Seq(9)], "each is covered once");
    assert_eq!(link.prev, Some(written.mark()));
}

#[test]
fn failures_are_tried_again_after_longer_each_time_and_faults_only_so_often() {
    let mut run = Driven::new();
    for wait in [200, 400, 800, 1600, 3200, 6400, 6400] {
        assert_eq!(run.gets(RunMessage::Look).len(), 1);
        assert_eq!(run.ends(TurnOutcome::Retry, VAIN), [format!("wait {wait}")]);
    }
    assert_eq!(said(run.0.waited()), ["begin 0 0"]);
    assert!(run.0.waited().is_empty());
    assert_eq!(said(run.0.broke_off()), ["wait 200"]);
    assert_eq!(said(run.0.waited()), ["begin 0 0"]);
    assert_eq!(said(run.0.broke_off()), ["wait 400"]);
    assert_eq!(said(run.0.waited()), ["begin 0 0"]);
    assert_eq!(said(run.0.broke_off()), ["leave", "stop"]);
    let mut run = Driven::new();
    assert_eq!(run.gets(RunMessage::Look).len(), 1);
    assert_eq!(run.ends(TurnOutcome::GiveUp { reason: String::new() }, VAIN), ["leave", "stop"]);
}

/// What was to end a wait rang all the same, as often as there had been failures, and each time a turn began for nothing.
#[test]
fn what_was_tried_again_because_something_came_is_not_tried_once_more_when_the_wait_is_over() {
    let mut run = Driven::new();
    assert_eq!(run.gets(RunMessage::Look).len(), 1);
    assert_eq!(run.ends(TurnOutcome::Retry, VAIN), ["wait 200"]);
    assert_eq!(run.gets(RunMessage::Look), ["begin 1 0"]);
    assert_eq!(run.ends(rests(), NEWS), [format!("alarm {}", Millis(5))]);
    assert!(run.0.waited().is_empty());
}

#[test]
fn whoever_decides_in_vain_is_set_aside_until_something_comes() {
    let mut run = Driven::new();
    for expected in [vec![], vec![], vec!["aside 1000".to_owned()]] {
        assert_eq!(run.gets(RunMessage::Wake(Input::Capacity)), ["begin 1 0"]);
        let alarm = [format!("alarm {}", Millis(5))];
        assert_eq!(run.ends(rests(), VAIN), [expected, alarm.to_vec()].concat());
    }
    assert!(run.gets(RunMessage::Wake(Input::Capacity)).is_empty(), "it is looked at when the pause is over");
    assert_eq!(run.gets(RunMessage::Look), ["go on", "begin 1 0"]);
    let mut waits = Driven::new();
    for _ in 0..3 {
        assert_eq!(waits.gets(RunMessage::Wake(Input::Capacity)).len(), 1);
        drop(waits.ends(rests(), VAIN));
    }
    assert_eq!(said(waits.0.pause_is_over()), ["go on", "begin 1 0"]);
}

#[test]
fn too_much_mail_is_dropped_but_for_orders_and_the_record_is_read_again() {
    let mut run = Driven::new();
    assert_eq!(run.gets(RunMessage::Look).len(), 1);
    let cancel = || asked_to(RequestAction::Cancel);
    assert!(run.gets(RunMessage::Order(Order { input: cancel(), answer: 1 })).is_empty());
    for _ in 0..4096 {
        assert!(run.gets(RunMessage::Wake(Input::Timer)).is_empty());
    }
    assert_eq!(run.ends(rests(), NEWS), ["begin 1 1 reload"]);
    assert!(run.gets(RunMessage::Order(Order { input: cancel(), answer: 2 })).is_empty());
    assert_eq!(run.0.into_waiting(), [2], "whoever waits is told when the run is let go of");
}

/// Whoever took an offer and died before it said so has it in hand, and nobody knows: only its queue can tell.
#[test]
fn what_nobody_has_started_is_handed_on_when_an_agent_is_lost() {
    let mut bus = Bus::new();
    let (log, offer) = bus.offered();
    let lost = |agent| {
        let (reason, steps) = ("its connection ended".to_owned(), std::collections::BTreeMap::new());
        RunMessage::Wake(Input::AgentLost { agent, reason, steps, elsewhere: 0 })
    };
    bus.effects.clear();
    let end = bus.turn(Some(log), vec![lost(AgentId::new("planner", 9))]).1;
    let unstarted = Effect::HandOnUnstarted { task: offer.task.clone(), queue: offer.queue.clone() };
    assert_eq!(bus.effects, [unstarted]);

    let started = bus.starts(&offer);
    bus.effects.clear();
    bus.turn(end.log, vec![RunMessage::Signal(started), lost(AgentId::new("planner", 9))]);
    assert_eq!(bus.effects, [], "somebody who lives has it");
}
