//! The rules by table: what was written, what is answered, what follows.

use std::borrow::Cow;
use std::time::Duration;

use muster_shared::flow::{Ending, Outcome, Step, Thought};
use muster_shared::ids::{AgentId, Attempt, Generation, Role, RunId, Seq, TaskId};
use muster_shared::run::{AgentEvent, AgentKey, Entry, RecordEvent, Released, Say, Started, ToolStarted};
use muster_shared::time::Millis;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

const PATIENCE: Duration = Duration::from_secs(5);

fn key(agent: u32) -> AgentKey {
    AgentKey {
        role: Role::Worker,
        agent: AgentId::new("worker", agent),
        task: TaskId::Plan,
        generation: Generation(3),
    }
}

/// What an agent wrote: the others' tries come after ours.
fn entry(seq: u64, agent: u32, mut event: AgentEvent) -> Entry {
    if let AgentEvent::Started(started) = &mut event {
        started.attempt = started.attempt.max(Attempt(agent.min(2)));
    }
    let event = RecordEvent::Agent(key(agent), event);
    Entry { seq: Seq(seq), at: Millis(seq), run: RunId::from_uuid(Uuid::nil()), event }
}

fn started_by(ack: &str) -> AgentEvent {
    let (ack, host) = (ack.to_owned(), String::new());
    AgentEvent::Started(Started { attempt: Attempt(1), ack, pid: 1, host, after_step: 0 })
}

fn step(number: u32) -> Step {
    let (thought, action) = (Thought::default(), serde_json::json!({ "name": "tool", "arguments": null }));
    let step = serde_json::json!({ "number": number, "thought": thought, "action": action });
    serde_json::from_value(step).unwrap()
}

fn took(number: u32) -> AgentEvent {
    AgentEvent::Step(step(number))
}

fn announced(number: u32) -> AgentEvent {
    AgentEvent::ToolStarted(ToolStarted { step: step(number), idempotency_key: "key".into() })
}

fn ended() -> AgentEvent {
    AgentEvent::Outcome(Outcome { ending: Ending::Done, ..Outcome::of_fault() }.into())
}

fn released(parked: bool) -> AgentEvent {
    AgentEvent::Released(Released { parked, ..Released::default() })
}

fn at(millis: u64) -> Moment {
    Moment { at: Duration::from_millis(millis), connections: 0 }
}

fn begin(delivered: u64) -> Begin {
    Begin {
        continues: None,
        delivered,
        waited: Duration::ZERO,
        ack: "mine".into(),
        pid: 1,
        host: String::new(),
    }
}

fn journal() -> Journal<Entry> {
    Journal::new(key(1), PATIENCE, at(0))
}

/// A journal whose `started` stands at this place.
fn begun_at(seq: u64) -> Journal<Entry> {
    let mut journal = journal();
    let write = appending(journal.open(begin(1), at(0)));
    assert!(matches!(write.went(&mut journal, Appended::Stored(Seq(seq)), at(0)), JournalStep::Done(Ok(()))));
    journal
}

fn appending(step: JournalStep<'_>) -> AppendEvent<'_> {
    match step {
        JournalStep::Append(write) => write,
        other => panic!("it has to write: {other:?}"),
    }
}

fn asking(step: JournalStep<'_>) -> AskNewest {
    match step {
        JournalStep::AskNewest(ask) => ask,
        other => panic!("it has to look: {other:?}"),
    }
}

fn write<'e>(journal: &Journal<Entry>, event: &'e AgentEvent) -> AppendEvent<'e> {
    appending(journal.append(Cow::Borrowed(event), at(0)))
}

/// One that was given out before, and not offered anew.
fn opening(journal: &mut Journal<Entry>, now: Moment) -> ReadTask<'static> {
    let newest = Newest { last: None, offered: Some(Generation(3)) };
    reading(asking(journal.open(begin(2), now)).told(journal, Ok(newest), now))
}

fn reading(step: JournalStep<'_>) -> ReadTask<'_> {
    match step {
        JournalStep::Read(step) => step,
        other => panic!("it has to look: {other:?}"),
    }
}

/// What follows, in a word.
fn said(step: &JournalStep<'_>) -> &'static str {
    match step {
        JournalStep::Read(_) => "read",
        JournalStep::Append(_) => "append",
        JournalStep::AskWhoHolds(_) => "who",
        JournalStep::AskNewest(_) => "newest",
        JournalStep::Wait(_) => "wait",
        JournalStep::Done(Ok(())) => "ok",
        JournalStep::Done(Err(JournalFailure::Closed)) => "closed",
        JournalStep::Done(Err(JournalFailure::OfferedAnew)) => "offered anew",
        JournalStep::Done(Err(JournalFailure::Lost)) => "lost",
        JournalStep::Done(Err(JournalFailure::LeftTo(_))) => "left",
        JournalStep::Done(Err(JournalFailure::TooLarge { .. })) => "too large",
        JournalStep::Done(Err(JournalFailure::Unreachable)) => "unreachable",
        JournalStep::Done(Err(JournalFailure::TimedOut)) => "timed out",
    }
}

#[test]
fn a_write_that_did_not_go_through_is_looked_for() {
    use Appended::{Ambiguous, Conflict};
    let (ours, half) = (|seq| entry(seq, 1, took(1)), || entry(11, 1, announced(1)));
    let theirs = |seq| entry(seq, 2, started_by("theirs"));
    let table = [
        ("nobody wrote", Ambiguous, vec![], "wait", 10),
        ("it landed", Ambiguous, vec![ours(11)], "ok", 11),
        ("it landed, and was sent twice on the way", Conflict, vec![ours(11)], "ok", 11),
        ("another began", Ambiguous, vec![theirs(11)], "who", 10),
        ("another began after it landed", Ambiguous, vec![ours(11), theirs(12)], "who", 10),
        ("the step of another who has not begun it", Conflict, vec![entry(11, 2, took(1))], "wait", 11),
        ("another slot of ours began", Conflict, vec![entry(11, 1, started_by("other"))], "lost", 10),
        ("it was released", Conflict, vec![entry(11, 1, released(false))], "lost", 10),
        ("it was closed", Conflict, vec![entry(11, 1, ended())], "lost", 10),
        ("a write given up half-way", Conflict, vec![half()], "wait", 11),
        ("one given up half-way, then ours", Ambiguous, vec![half(), ours(12)], "ok", 12),
    ];
    for (name, appended, entries, expected, last) in table {
        let (mut journal, event) = (begun_at(10), took(1));
        let look = reading(write(&journal, &event).went(&mut journal, appended, at(1)));
        assert_eq!((look.generation, look.after), (Generation(3), Seq(10)), "{name}");
        let next = look.read(&mut journal, Ok(entries), at(2));
        assert_eq!((said(&next), journal.last()), (expected, Seq(last)), "{name}");
        if let JournalStep::Wait(pause) = next {
            assert_eq!(appending(pause.over(at(60))).after, Seq(last), "{name}");
        }
    }
}

/// Where several processes write for an agent, what one of them wrote is read by the others before they write on.
#[test]
fn nothing_is_written_for_a_shared_agent_that_was_thought_of_before_what_stands_there() {
    let mine = |seq, event| entry(seq, 1, event);
    let tables: [(&str, Vec<Entry>, &str, &str); 6] = [
        ("nothing stands there", vec![], "wait", "wait"),
        ("it landed", vec![mine(8, took(1))], "ok", "ok"),
        ("another step of its agent", vec![mine(8, took(2))], "wait", "lost"),
        ("it landed, and another followed", vec![mine(8, took(1)), mine(9, took(2))], "wait", "lost"),
        ("its agent announced something", vec![mine(8, announced(1))], "wait", "lost"),
        ("another agent began", vec![entry(8, 2, started_by("other"))], "who", "who"),
    ];
    for (case, entries, alone, shared) in tables {
        for (journal, expected) in [(begun_at(7), alone), (begun_at(7).shared(), shared)] {
            let (mut journal, event) = (journal, took(1));
            let step = write(&journal, &event).went(&mut journal, Appended::Conflict, at(0));
            let step = reading(step).read(&mut journal, Ok(entries.clone()), at(0));
            assert_eq!(said(&step), expected, "{case}");
        }
    }
}

#[test]
fn a_write_is_tried_until_patience_is_over() {
    let (mut journal, event) = (begun_at(10), took(1));
    let transient = Appended::Failed(Unanswered { is_transient: true });
    let (mut now, mut pauses, mut next) = (at(0), Vec::new(), write(&journal, &event));
    loop {
        match next.went(&mut journal, transient, now) {
            JournalStep::Wait(pause) => {
                pauses.push(pause.time.as_millis());
                now.at += pause.time;
                next = appending(pause.over(now));
            }
            over => {
                assert_eq!(said(&over), "unreachable");
                break;
            }
        }
    }
    assert_eq!(pauses[..4], [50, 100, 200, 250]);
    assert!(now.at > PATIENCE && now.at <= PATIENCE + MAX_PAUSE, "{now:?}");

    let for_good = Appended::Failed(Unanswered { is_transient: false });
    let table = [
        (for_good, "unreachable"),
        (Appended::TooLarge { bytes: 2, most: 1 }, "too large"),
        (Appended::Stored(Seq(11)), "ok"),
    ];
    for (appended, expected) in table {
        assert_eq!(said(&write(&journal, &event).went(&mut journal, appended, at(0))), expected);
    }
    // It conflicts with nothing over and over.
    let look = reading(write(&journal, &event).went(&mut journal, Appended::Conflict, at(0)));
    assert_eq!(said(&look.read(&mut journal, Ok(Vec::new()), at(5_001))), "timed out");
}

#[test]
fn a_read_is_tried_until_patience_is_over() {
    let table =
        [(true, 0, "wait"), (true, 4_999, "wait"), (true, 5_000, "unreachable"), (false, 0, "unreachable")];
    for (is_transient, after, expected) in table {
        let mut journal = journal();
        let look = opening(&mut journal, at(100));
        let next = look.read(&mut journal, Err(Unanswered { is_transient }), at(100 + after));
        assert_eq!(said(&next), expected, "{is_transient} after {after}");
    }
}

#[test]
fn a_task_is_begun_after_what_was_done_before() {
    let theirs = || entry(5, 2, started_by("theirs"));
    let table = [
        ("nothing was done", vec![], "append"),
        ("we began ourselves", vec![entry(5, 1, started_by("before"))], "append"),
        ("it was given back", vec![theirs(), entry(6, 2, released(false))], "append"),
        ("another has it", vec![theirs()], "who"),
        ("it was put down", vec![theirs(), entry(6, 2, released(true))], "closed"),
        ("it has ended", vec![theirs(), entry(6, 2, ended())], "closed"),
    ];
    for (name, entries, expected) in table {
        let (mut journal, last) = (journal(), entries.last().map_or(Seq(0), |entry| entry.seq));
        let next = opening(&mut journal, at(0)).read(&mut journal, Ok(entries), at(1));
        assert_eq!(said(&next), expected, "{name}");
        if let JournalStep::Append(write) = next {
            assert_eq!(write.after, last, "{name}");
        }
    }
}

/// The old offer may have been made again while it could not be begun.
#[test]
fn a_task_whose_beginning_takes_long_is_looked_up_before_it_is_begun() {
    for (offered, expected) in [(3, "append"), (4, "offered anew")] {
        let mut journal = journal();
        let first = reading(journal.open(Begin { continues: Some(Generation(2)), ..begin(1) }, at(0)));
        let ask = asking(first.read(&mut journal, Ok(Vec::new()), at(2_000)));
        let newest = Newest { last: None, offered: Some(Generation(offered)) };
        assert_eq!(said(&ask.told(&mut journal, Ok(newest), at(9_000))), expected);
    }
}

/// Its fence says nothing of an offer that was made again because nobody heard of its beginning.
#[test]
fn whoever_writes_all_the_time_looks_now_and_then_whether_its_task_was_offered_anew() {
    let mut journal = begun_at(10);
    let mut looked = Vec::new();
    for millis in (100..5_000).step_by(100) {
        let event = took(1);
        let write = appending(journal.append(Cow::Borrowed(&event), at(millis)));
        write.went(&mut journal, Appended::Stored(Seq(10 + millis)), at(millis));
        if let JournalStep::AskNewest(ask) = journal.look(at(millis)) {
            looked.push(millis);
            let newest = Newest { last: None, offered: Some(Generation(3)) };
            assert_eq!(said(&ask.told(&mut journal, Ok(newest), at(millis))), "ok");
        }
    }
    assert_eq!(looked, [2_000, 4_000]);
}

#[test]
fn an_offer_that_came_late_is_looked_up() {
    let offered = |generation| Newest { last: None, offered: Some(Generation(generation)) };
    let table = [
        ("at once", 1, 1_999, offered(4), "append"),
        ("late", 1, 2_000, offered(4), "offered anew"),
        ("late, and the newest", 1, 2_000, offered(3), "append"),
        ("given out again", 2, 0, offered(4), "offered anew"),
        ("given out again, and the newest", 2, 0, offered(3), "read"),
        ("given out again, and nothing is known", 2, 0, Newest { last: None, offered: None }, "read"),
    ];
    for (name, delivered, waited, newest, expected) in table {
        let mut journal = journal();
        let begin = Begin { waited: Duration::from_millis(waited), ..begin(delivered) };
        let mut next = journal.open(begin, at(0));
        if let JournalStep::AskNewest(ask) = next {
            next = ask.told(&mut journal, Ok(newest), at(1));
        }
        assert_eq!(said(&next), expected, "{name}");
    }
}

#[test]
fn start_of_a_redelivered_offer_is_checked_against_newer_offers() {
    for (offered, expected) in [(3, "ok"), (4, "offered anew")] {
        let mut journal = journal();
        let write = appending(opening(&mut journal, at(0)).read(&mut journal, Ok(Vec::new()), at(1)));
        let ask = asking(write.went(&mut journal, Appended::Stored(Seq(7)), at(2)));
        let newest = Newest { last: Some(Seq(7)), offered: Some(Generation(offered)) };
        assert_eq!(said(&ask.told(&mut journal, Ok(newest), at(3))), expected);
    }
}

/// A server that was killed gives the same delivery out again, word for word.
#[test]
fn whoever_begins_takes_nothing_for_its_own_that_it_has_not_read() {
    let mut journal = journal();
    let JournalStep::Append(write) = journal.open(begin(1), at(0)) else { panic!("it is taken for new") };
    assert_eq!(write.after, Seq(0), "without a look");
    let same = vec![entry(5, 1, write.event().clone()), entry(6, 1, took(1))];
    let look = reading(write.went(&mut journal, Appended::Conflict, at(1)));
    let again = reading(look.read(&mut journal, Ok(same.clone()), at(2)));
    assert_eq!(again.after, Seq(0), "it is read from its beginning");
    let JournalStep::Append(write) = again.read(&mut journal, Ok(same), at(3)) else { panic!("it is ours") };
    let AgentEvent::Started(started) = write.event().clone() else { panic!("it begins") };
    assert_eq!((write.after, started.attempt, started.after_step), (Seq(6), Attempt(2), 1));
    assert_eq!(said(&write.went(&mut journal, Appended::Stored(Seq(7)), at(4))), "ok");
    assert_eq!(journal.take_found().entries.len(), 2, "what was found is told");
}

#[test]
fn whoever_always_comes_too_late_leaves_the_task_after_three_times() {
    let mut journal = journal();
    let (mut next, mut times) = (journal.open(begin(1), at(0)), 0);
    let theirs = || vec![entry(5, 2, released(false))];
    while let JournalStep::Append(write) = next {
        times += 1;
        let look = reading(write.went(&mut journal, Appended::Conflict, at(1)));
        next = match look.read(&mut journal, Ok(vec![entry(9, 2, started_by("theirs"))]), at(1)) {
            JournalStep::Read(again) => again.read(&mut journal, Ok(theirs()), at(1)),
            over => over,
        };
    }
    assert_eq!((said(&next), times), ("lost", 3));
}

#[test]
fn whoever_has_a_task_keeps_it_until_it_is_decided_that_it_has_not() {
    let ask = |journal: &mut Journal<Entry>| -> AskWhoHolds<'static> {
        let theirs = vec![entry(5, 2, started_by("theirs"))];
        match opening(journal, at(0)).read(journal, Ok(theirs), at(0)) {
            JournalStep::AskWhoHolds(ask) => ask,
            other => panic!("another has it: {other:?}"),
        }
    };
    for (was_taken, expected) in [(false, "left"), (true, "append")] {
        let mut journal = journal();
        let asked = ask(&mut journal);
        assert_eq!((&asked.agent, asked.since), (&AgentId::new("worker", 2), Seq(5)));
        assert_eq!(said(&asked.told(&mut journal, Ok(was_taken), at(1))), expected, "{was_taken}");
    }
    let mut journal = self::journal();
    let unanswered = Unanswered { is_transient: true };
    assert_eq!(said(&ask(&mut journal).told(&mut journal, Err(unanswered), at(1))), "wait");
    assert_eq!(said(&ask(&mut journal).told(&mut journal, Err(unanswered), at(5_000))), "unreachable");
}

#[test]
fn earlier_generations_are_read_first_and_their_end_is_not_ours() {
    let mut journal = journal();
    let continues = Begin { continues: Some(Generation(1)), ..begin(1) };
    let first = reading(journal.open(continues, at(0)));
    assert_eq!((first.generation, first.after), (Generation(1), Seq(0)));
    let done = vec![entry(1, 2, started_by("theirs")), entry(2, 2, took(1)), entry(3, 2, released(true))];
    let second = reading(first.read(&mut journal, Ok(done), at(1)));
    assert_eq!(second.generation, Generation(2));
    let dead = vec![entry(4, 3, started_by("theirs")), entry(5, 3, took(2))];
    let JournalStep::Append(write) = second.read(&mut journal, Ok(dead), at(2)) else { panic!("it is ours") };
    let AgentEvent::Started(started) = write.event() else { panic!("it begins") };
    assert_eq!((write.after, started.attempt, started.after_step), (Seq(0), Attempt(1), 2));
    // Their agents may have written since: it is read on where it was left.
    let first = reading(write.went(&mut journal, Appended::Stored(Seq(8)), at(3)));
    assert_eq!((first.generation, first.after), (Generation(1), Seq(3)));
    let second = reading(first.read(&mut journal, Ok(Vec::new()), at(4)));
    assert_eq!((second.generation, second.after), (Generation(2), Seq(5)));
    let late = vec![entry(7, 3, took(3))];
    assert_eq!(said(&second.read(&mut journal, Ok(late), at(5))), "ok");
    assert_eq!(journal.take_found().before.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
}

#[test]
fn a_model_is_asked_without_a_look_only_right_after_our_own_word() {
    let again = Moment { connections: 1, ..at(10) };
    let table =
        [(at(0), "ok"), (at(199), "ok"), (at(200), "newest"), (at(60_000), "newest"), (again, "newest")];
    for (now, expected) in table {
        assert_eq!(said(&begun_at(10).look(now)), expected, "{now:?}");
    }
}

#[test]
fn a_task_is_lost_to_whoever_wrote_or_is_offered_it() {
    let last = |seq| Newest { last: Some(Seq(seq)), offered: Some(Generation(3)) };
    let table = [
        ("nobody wrote", last(10), vec![], "ok"),
        ("nothing is known of offers", Newest { offered: None, ..last(10) }, vec![], "ok"),
        ("it was offered anew", Newest { offered: Some(Generation(4)), ..last(10) }, vec![], "lost"),
        ("another began", last(11), vec![entry(11, 2, started_by("theirs"))], "who"),
        ("another slot of ours began", last(11), vec![entry(11, 1, started_by("other"))], "lost"),
        ("it has ended", last(11), vec![entry(11, 1, ended())], "lost"),
        ("a write given up half-way", last(11), vec![entry(11, 1, announced(1))], "ok"),
    ];
    for (name, told, entries, expected) in table {
        let mut journal = begun_at(10);
        let mut next = asking(journal.look(at(1_000))).told(&mut journal, Ok(told), at(1_001));
        if let JournalStep::Read(look) = next {
            assert_eq!(look.after, Seq(10), "{name}");
            next = look.read(&mut journal, Ok(entries), at(1_002));
        }
        assert_eq!(said(&next), expected, "{name}");
        let sure = if expected == "ok" { "ok" } else { "newest" };
        assert_eq!(said(&journal.look(at(1_100))), sure, "{name}");
    }
}

/// An answer that lay there while the process stood still says nothing of what happened meanwhile.
#[test]
fn whoever_stood_still_while_it_looked_looks_again() {
    let same = Newest { last: Some(Seq(10)), offered: None };
    let mut journal = begun_at(10);
    let again = asking(asking(journal.look(at(1_000))).told(&mut journal, Ok(same), at(9_000)));
    let taken = Newest { offered: Some(Generation(4)), ..same };
    assert_eq!(said(&again.told(&mut journal, Ok(taken), at(9_001))), "lost");

    // A bus that is always slow has to do.
    let mut journal = begun_at(10);
    let (mut next, mut looks) = (journal.look(at(1_000)), 0);
    while let JournalStep::AskNewest(ask) = next {
        looks += 1;
        next = ask.told(&mut journal, Ok(same), at(1_000 + looks * 300));
    }
    assert_eq!((said(&next), looks), ("ok", 3));
}

/// A bus that was away for long is asked anew: what counts is when the last question was sent.
#[test]
fn a_look_counts_from_the_question_that_was_answered() {
    let mut journal = begun_at(10);
    let failed = Err(Unanswered { is_transient: true });
    let asked = asking(journal.look(at(1_000)));
    let JournalStep::Wait(pause) = asked.told(&mut journal, failed, at(4_000)) else { panic!("no wait") };
    let ask = asking(pause.over(at(4_050)));
    let same = Newest { last: Some(Seq(10)), offered: None };
    assert_eq!(said(&ask.told(&mut journal, Ok(same), at(4_051))), "ok");
    assert_eq!(said(&journal.look(at(4_249))), "ok");
    assert_eq!(said(&journal.look(at(4_250))), "newest");
}

fn any_event() -> impl Strategy<Value = AgentEvent> {
    prop_oneof![
        Just(started_by("some")),
        (1..4_u32).prop_map(took),
        (1..4_u32).prop_map(announced),
        any::<bool>().prop_map(released),
        Just(ended()),
    ]
}

fn any_entries() -> impl Strategy<Value = Vec<Entry>> {
    let written = proptest::collection::vec((1..4_u32, any_event()), 0..8);
    written.prop_map(|written| {
        (1..).zip(written).map(|(seq, (agent, event))| entry(seq, agent, event)).collect()
    })
}

proptest! {
    /// Whatever was written, and wherever it is divided.
    #[test]
    fn a_fold_in_two_parts_is_the_fold_of_the_whole(entries in any_entries(), at in 0..8_usize) {
        let at = at.min(entries.len());
        let whole = TaskFold::default().and_then(&entries);
        let parts = TaskFold::default().and_then(&entries[..at]).and_then(&entries[at..]);
        prop_assert_eq!(format!("{whole:?}"), format!("{parts:?}"));
    }

    /// Whatever was written meanwhile, a write is taken for stored only if it stands there, and the place never goes back.
    #[test]
    fn no_write_counts_that_is_not_there(entries in any_entries(), sure in any::<bool>()) {
        let (mut journal, event) = (begun_at(0), took(1));
        let appended = if sure { Appended::Conflict } else { Appended::Ambiguous };
        let look = reading(write(&journal, &event).went(&mut journal, appended, at(1)));
        let next = look.read(&mut journal, Ok(entries.clone()), at(2));
        let mut own = entries.iter().filter(|entry| matches!(&entry.event, RecordEvent::Agent(by, _) if *by == key(1)));
        let is_this = |entry: &&Entry| entry.event == RecordEvent::Agent(key(1), event.clone());
        let ends = |entry: &Entry| match &entry.event {
            RecordEvent::Agent(by, event) if *by == key(1) => event.kind().is_decided_upon(),
            RecordEvent::Agent(..) | RecordEvent::Decided(_) | RecordEvent::Offered(_) => false,
        };
        let is_begun = entries.iter().any(|entry| match &entry.event {
            RecordEvent::Agent(by, event) => *by != key(1) && matches!(event, AgentEvent::Started(_)),
            RecordEvent::Decided(_) | RecordEvent::Offered(_) => false,
        });
        match said(&next) {
            "who" => prop_assert!(is_begun),
            "ok" => prop_assert!(!is_begun && own.next_back().iter().any(is_this)),
            "lost" => prop_assert!(!is_begun && entries.iter().any(ends)),
            _ => prop_assert!(!is_begun && !entries.iter().any(ends)),
        }
        prop_assert!(journal.last() <= entries.last().map_or(Seq(0), |entry| entry.seq));
    }

    /// Nobody begins a task that has ended, or that another has who was not asked about.
    #[test]
    fn nobody_begins_what_is_not_free(entries in any_entries()) {
        let mut journal = journal();
        let mut counted = entries.clone();
        Say::of(&key(1), key(1).generation).keep(&mut counted);
        let fold = TaskFold::default().and_then(&counted);
        let next = opening(&mut journal, at(0)).read(&mut journal, Ok(entries), at(1));
        let expected = match fold.holder() {
            _ if fold.is_closed() => "closed",
            Some((agent, _)) if *agent != key(1).agent => "who",
            Some(_) | None => "append",
        };
        prop_assert_eq!(said(&next), expected);
    }
}

/// Entries of others are no part of a task in hand; where one begins it, decisions tell whether it may.
#[test]
fn what_others_say_of_a_task_in_hand_does_not_end_our_part_in_it() {
    let of = |role: Role, event: AgentEvent| {
        let event = RecordEvent::Agent(AgentKey { role, ..key(2) }, event);
        Entry { event, ..entry(6, 2, took(1)) }
    };
    for (role, event, asks) in [
        (Role::Worker, ended(), false),
        (Role::Worker, released(false), false),
        (Role::Worker, took(7), false),
        (Role::Worker, started_by("theirs"), true),
        (Role::Writer, started_by("theirs"), false),
        (Role::Writer, ended(), false),
    ] {
        let (mut journal, own) = (begun_at(5), took(1));
        let look = reading(write(&journal, &own).went(&mut journal, Appended::Conflict, at(1)));
        let theirs = vec![of(role.clone(), event.clone())];
        let next = look.read(&mut journal, Ok(theirs.clone()), at(2));
        if !asks {
            assert_eq!((said(&next), journal.last()), ("wait", Seq(6)), "{role}: {event:?}");
            continue;
        }
        let JournalStep::AskWhoHolds(ask) = next else { panic!("{next:?}") };
        assert_eq!((&ask.agent, ask.since), (&key(1).agent, Seq(5)));
        let again = reading(ask.told(&mut journal, Ok(false), at(3)));
        let next = again.read(&mut journal, Ok(theirs), at(4));
        assert_eq!((said(&next), journal.last()), ("wait", Seq(6)), "it was not taken from us");
    }
}

#[test]
fn who_begins_what_we_had_is_believed_when_it_is_decided() {
    let (mut journal, own) = (begun_at(5), took(1));
    let look = reading(write(&journal, &own).went(&mut journal, Appended::Conflict, at(1)));
    let theirs = vec![entry(6, 2, started_by("theirs"))];
    let JournalStep::AskWhoHolds(ask) = look.read(&mut journal, Ok(theirs), at(2)) else { panic!("asks") };
    assert_eq!(said(&ask.told(&mut journal, Ok(true), at(3))), "lost");
}

/// Whatever others of the role write, whoever goes on from it goes on from what the holder wrote.
#[test]
fn what_others_wrote_is_not_gone_on_from() {
    let mut journal = journal();
    let forged = vec![
        entry(1, 2, started_by("theirs")),
        entry(2, 2, took(1)),
        entry(3, 3, started_by("forged")),
        entry(4, 3, took(7)),
        entry(5, 3, released(false)),
        entry(6, 3, ended()),
    ];
    let next = opening(&mut journal, at(0)).read(&mut journal, Ok(forged), at(1));
    let JournalStep::AskWhoHolds(ask) = next else { panic!("{next:?}") };
    assert_eq!((&ask.agent, ask.since), (&AgentId::new("worker", 2), Seq(1)));
    let JournalStep::Append(write) = ask.told(&mut journal, Ok(true), at(2)) else { panic!("it is free") };
    let AgentEvent::Started(started) = write.event() else { panic!("it begins") };
    assert_eq!((write.after, started.attempt, started.after_step), (Seq(6), Attempt(2), 1));
    assert_eq!(journal.take_found().entries.len(), 2);
}
