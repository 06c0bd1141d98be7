mod any;

use muster_shared::flow::{
    Action, Citation, ContradictedValue, CorpusRef, Ending, Finding, ObservationStatus, Product,
    RolePermissions, TaskResult, Thought,
};
use muster_shared::ids::Role;
use serde_json::{Value, json};

use super::*;
use crate::react::decide::{ChosenAction, NextStep, StepContext, taken_as_it_is};
use crate::react::limits::StepLimits;
use crate::react::verify::verified;
use crate::roles::rules_for;
use crate::testing::{leaf, step, toolset};

fn with_documents() -> TaskOffered {
    TaskOffered {
        corpus: Some(CorpusRef { id: "c".into(), files: 1, bytes: 9, outline: String::new() }),
        ..leaf(Role::Worker)
    }
}

fn in_case<T>(offer: &TaskOffered, limits: StepLimits, then: impl FnOnce(&StepContext<'_>) -> T) -> T {
    let (rules, toolset) = (rules_for(&offer.work), toolset(offer));
    let permissions = RolePermissions::OPEN;
    then(&StepContext { offer, rules, toolset: &toolset, permissions, has_model: true, limits })
}

fn submitting(arguments: Value) -> ChosenAction {
    let action = Action { name: Action::SUBMIT.to_owned(), arguments };
    ChosenAction { thought: Thought::default(), action, more: Vec::new(), notes: Vec::new() }
}

fn cited(line: u32, quote: &str) -> Value {
    let citation = json!({"path": "a.md", "line": line, "quote": quote});
    json!({
        "ending": "done", "conclusion": "So it is (a.md:3).", "body": "It is 20 [a.md:3-4; a.md:99].",
        "findings": [{"text": "It is 20.", "citations": [citation], "verified": true}]
    })
}

/// What follows when `found` says this of each line.
fn follows(arguments: &Value, limits: StepLimits, found: impl Fn(u32) -> PlaceFound) -> NextStep {
    let offer = with_documents();
    in_case(&offer, limits, |case| {
        let submission = case.rules.submission(&offer, arguments).unwrap();
        let next = verified(&History::default(), submitting(arguments.clone()), submission, case);
        let NextStep::LookUp { mut chosen, asked, .. } = next else {
            panic!("nothing is looked up: {next:?}")
        };
        let found = asked.iter().map(|place| found(place.line)).collect();
        chosen.notes.push(note_of(&asked, Ok(found)));
        looked_up(&History::default(), chosen, case)
    })
}

fn result_of(next: NextStep) -> (TaskResult, Submission) {
    let NextStep::Submit { submission, .. } = next else { panic!("not taken: {next:?}") };
    let Some(Product::Result(result)) = submission.product.clone() else { panic!("no result") };
    (result, submission)
}

#[test]
fn quotes_move_citations_and_proven_faults_are_sent_back_and_then_left_out() {
    let moved = |line: u32| match line {
        3 => PlaceFound::Stands(Standing { line: Some(12), ..Standing::default() }),
        99 => PlaceFound::NoLine { lines: 20 },
        _ => PlaceFound::Stands(Standing::default()),
    };
    let next = follows(&cited(3, "it is 20"), StepLimits::USUAL, moved);
    let NextStep::Refuse { observation, chosen } = next else { panic!("a false place is taken: {next:?}") };
    for told in ["a.md has 20 lines", "contains their quote: a.md:3 to a.md:12"] {
        assert!(observation.content.contains(told), "{}", observation.content);
    }
    assert!(is_looked_up(&chosen.notes));
    let unrevised = StepLimits { max_revisions: 0, ..StepLimits::USUAL };
    let (result, submission) = result_of(follows(&cited(3, "it is 20"), unrevised, moved));
    assert_eq!(result.conclusion, "So it is (a.md:12 (3 → 12)).");
    assert_eq!(result.body, "It is 20 [a.md:12-13 (3 → 12)].", "another place of the statement stands");
    assert_eq!(result.findings[0].citations[0].line, 12);
    assert!(result.findings[0].looked_up && result.findings[0].verified);
    assert_eq!((submission.ending, submission.reason.as_str()), (Ending::Done, ""));
    assert!(result.unanswered.is_empty());
    let nowhere = |_| PlaceFound::NoFile { nearest: "b.md".into() };
    let (result, _) = result_of(follows(&cited(3, "no"), unrevised, nowhere));
    assert_eq!((result.conclusion.as_str(), result.body.as_str()), ("So it is.", "It is 20."));
    assert!(result.findings.is_empty());
    assert_eq!(result.unanswered, ["It is 20.", "So it is"]);
}

/// Everything else of a text stays as it is.
#[test]
fn statements_with_a_proven_fault_are_left_out_of_a_text() {
    for (text, expected) in [
        ("It is so. It is 20 [a.md:99]. It ends (b.md:1).", "It is so.  It ends (b.md:1)."),
        ("- One [b.md:1]\n- Two\n  of them (a.md:99; a.md:98).\n- Three\n", "- One [b.md:1]\n\n- Three\n"),
        ("It is 20 [b.md:1; a.md:99].", "It is 20 [b.md:1]."),
        ("It is 20 (`a.md:99`, `b.md:1`).", "It is 20 (`b.md:1`)."),
        ("It is 20 [b.md:1], and it is 30 [a.md:99].", "It is 20 [b.md:1], and it is 30."),
        ("| steps | 50 | a.md:99 |\n", "| steps | 50 | |\n"),
        ("It is 20 [a.md:99].", "It is 20."),
    ] {
        let result = TaskResult { body: text.into(), ..TaskResult::default() };
        let verdict = |cite: Cite| {
            let why = String::new();
            let is_false = cite.place.path == "a.md";
            (cite, if is_false { Verdict::False { why } } else { Verdict::Seen })
        };
        let judged =
            Judged { cites: cites(&Product::Result(result.clone())).into_iter().map(verdict).collect() };
        let left = left_out(Submission::done(Product::Result(result)), &judged);
        let Some(Product::Result(left)) = left.product else { panic!("no result") };
        assert_eq!(left.body, expected);
    }
}

#[test]
fn whoever_is_asked_about_a_result_sees_the_lines_that_it_cites() {
    let offer = with_documents();
    let stands =
        PlaceFound::Stands(Standing { text: "3| The limit is **20** levels.".into(), ..Standing::default() });
    in_case(&offer, StepLimits::USUAL, |case| {
        let mut chosen = submitting(cited(3, "it is 20"));
        let submission = case.rules.submission(&offer, &chosen.action.arguments).unwrap();
        let Looked::ToAsk(asked) = look(&History::default(), &[], &submission, &offer) else {
            panic!("known")
        };
        chosen.notes.push(note_of(&asked, Ok(asked.iter().map(|_| stands.clone()).collect())));
        let told = crate::react::grounds::grounds(&History::default(), Some(&chosen), case);
        assert!(
            told.contains("Statement 1: It is 20.\nLines of 1: a.md\n3| The limit is **20** levels."),
            "{told}"
        );
    });
}

#[test]
fn what_was_not_looked_up_is_not_vouched_for() {
    let offer = with_documents();
    in_case(&offer, StepLimits::USUAL, |case| {
        let mut chosen = submitting(cited(3, "it is 20"));
        chosen.notes.push(note_of(&[], Err("the store is away".into())));
        let (result, submission) = result_of(looked_up(&History::default(), chosen, case));
        assert!(!result.findings[0].looked_up);
        assert!(submission.reason.contains("not looked up: the store is away"), "{}", submission.reason);
    });
}

#[test]
fn evidence_that_is_no_document_has_to_be_seen() {
    let offer = leaf(Role::Worker);
    let mut read = step(1, "workspace.read", json!({"path": "out/table.csv"}), ObservationStatus::Success);
    read.observation.as_mut().unwrap().content = "a,20\nb,30\nhttps://x.org/a".into();
    let mut history = History::default();
    history.push(read, false);
    let citation = |path: &str, quote: &str| Citation { path: path.into(), line: 1, quote: quote.into() };
    for (cited, stands) in [
        (citation("out/table.csv", "b,30"), true),
        (citation("out/table.csv", "b,31"), false),
        (citation("out/other.csv", ""), false),
        (citation("https://x.org/a", ""), true),
        (citation("https://y.org/b", ""), false),
        (citation("workspace.read", ""), true),
    ] {
        let finding = Finding { text: "so".into(), citations: vec![cited.clone()], ..Finding::default() };
        let result = TaskResult { conclusion: "c".into(), findings: vec![finding], ..TaskResult::default() };
        let submission = Submission::done(Product::Result(result));
        let Looked::Known(judged) = look(&history, &[], &submission, &offer) else { panic!("no documents") };
        assert_eq!(judged.faults().is_empty(), stands, "{cited:?}: {:?}", judged.faults());
    }
}

#[test]
fn plain_text_is_looked_up_too() {
    let offer = with_documents();
    in_case(&offer, StepLimits::USUAL, |case| {
        let taken = taken_as_it_is("It is 20 (a.md:99).", 3, case).unwrap();
        let next = of_prose(&History::default(), "It is 20 (a.md:99).", taken, case);
        let NextStep::LookUp { mut chosen, asked, .. } = next else { panic!("{next:?}") };
        chosen.notes.push(note_of(&asked, Ok(vec![PlaceFound::NoLine { lines: 9 }])));
        let NextStep::Conclude { submission, notes } = looked_up(&History::default(), chosen, case) else {
            panic!("not concluded");
        };
        let Some(Product::Result(result)) = submission.product else { panic!("no result") };
        assert_eq!(
            (result.conclusion.as_str(), result.unanswered.as_slice()),
            ("It is 20.", &["It is 20".to_owned()][..])
        );
        assert!(is_looked_up(&notes));
    });
}

/// What a picture shows stands in no line of it: what a model that looked at it said of it, in this task, bears it out.
#[test]
fn what_a_model_saw_in_a_picture_is_borne_out_by_what_it_said() {
    let offer = with_documents();
    let otherwise = || PlaceFound::NoQuote { there: "[picture: PNG, 2 x 1]".into() };
    let place = |path: &str, quote: &str, statement: &str| CitedPlace {
        path: path.into(),
        line: 1,
        last: 0,
        quote: quote.into(),
        statement: statement.into(),
        group: 1,
    };
    let mut seen = step(1, "corpus.look", json!({"path": "a.png"}), ObservationStatus::Success);
    if let Some(observation) = &mut seen.observation {
        observation.content = "a.png:1, as the model m says it sees it:\nA tower, 42 m high.".into();
    }
    let mut looked = History::default();
    looked.push(seen, false);
    let nobody = History::default();
    for (history, place, stands) in [
        (&looked, place("a.png", "a tower, 42 m", ""), true),
        (&looked, place("./a.png", "", "The tower has a height of 42 metres."), true),
        (&looked, place("a.png", "a bridge", ""), false),
        (&looked, place("a.png", "", "The tower has a height of 43 metres."), false),
        (&looked, place("b.png", "a tower, 42 m", ""), false),
        (&nobody, place("a.png", "a tower, 42 m", ""), false),
    ] {
        let evidence = Evidence::of(history, &offer);
        let cite = Cite { place: place.clone(), text: None, spot: Spot::Finding(0, 0) };
        let found = LookedUp { path: place.path.clone(), line: 1, words: 0, found: otherwise() };
        let verdict = judge(&cite, Some(&found), true, &evidence);
        assert_eq!(verdict == Verdict::Seen, stands, "{place:?}: {verdict:?}");
    }
}

/// A value of the goal or of a tool may differ from the cited lines.
#[test]
fn values_that_the_goal_or_a_tool_gave_are_no_fault() {
    let mut offer = with_documents();
    offer.goal = "Is it 85 %?".into();
    let mut computed = step(1, "calculator", json!({"expression": "7*6"}), ObservationStatus::Success);
    computed.observation.as_mut().unwrap().content = "42".into();
    let mut history = History::default();
    history.push(computed, false);
    for (stated, stands) in [("85 %", true), ("42", true), ("43", false), ("thirty days", false)] {
        let place =
            CitedPlace { path: "a.md".into(), line: 1, statement: "s".into(), ..CitedPlace::default() };
        let value = ContradictedValue { stated: stated.into(), there: "20".into() };
        let found = PlaceFound::Contradicted { values: vec![value], there: "It is 20.".into() };
        let looked = LookedUp { path: "a.md".into(), line: 1, words: 0, found };
        let cite = Cite { place, text: None, spot: Spot::Finding(0, 0) };
        let verdict = judge(&cite, Some(&looked), true, &Evidence::of(&history, &offer));
        assert_eq!(matches!(verdict, Verdict::Stands(_)), stands, "{stated}: {verdict:?}");
    }
}
