mod any;
mod planted;

use muster_shared::flow::{
    Action, Citation, CorpusRef, Ending, Finding, ObservationStatus, Product, RolePermissions, Step,
    TaskResult, Thought,
};
use muster_shared::ids::Role;
use serde_json::{Value, json};

use super::*;
use crate::react::decide::{NextStep, taken_as_it_is};
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
fn what_stands_near_is_corrected_and_what_does_not_is_sent_back_and_then_left_out() {
    let moved = |line: u32| match line {
        3 => PlaceFound::Stands(Standing { line: Some(12), ..Standing::default() }),
        99 => PlaceFound::NoLine { lines: 20 },
        _ => PlaceFound::Stands(Standing::default()),
    };
    let next = follows(&cited(3, "it is 20"), StepLimits::USUAL, moved);
    let NextStep::Refuse { observation, chosen } = next else { panic!("a false place is taken: {next:?}") };
    assert!(observation.content.contains("a.md has 20 lines"), "{}", observation.content);
    assert!(is_looked_up(&chosen.notes));
    let unrevised = StepLimits { max_revisions: 0, ..StepLimits::USUAL };
    let (result, submission) = result_of(follows(&cited(3, "it is 20"), unrevised, moved));
    assert_eq!(result.conclusion, "So it is (a.md:12).");
    assert_eq!(result.body, "It is 20 [a.md:12-13].", "another place of the statement stands");
    assert_eq!(result.findings[0].citations[0].line, 12);
    assert!(result.findings[0].looked_up && result.findings[0].verified);
    assert_eq!(submission.ending, Ending::DonePartial);
    assert!(submission.reason.contains("a.md:99"), "{}", submission.reason);
    let (result, _) =
        result_of(follows(&cited(3, "no"), unrevised, |_| PlaceFound::NoFile { nearest: "b.md".into() }));
    assert_eq!(result.conclusion, "So it is *(not borne out)*.");
    assert_eq!(result.body.matches("not borne out").count(), 2, "{}", result.body);
    let Finding { text, citations, verified, looked_up, .. } = &result.findings[0];
    assert!(citations.is_empty() && !verified && !looked_up && text.contains("not borne out"), "{text}");
}

/// A report with a number that comes from no result is sent back once, and says so in the end.
#[test]
fn numbers_from_nowhere_are_asked_about_once() {
    let work = crate::testing::writing(&[]);
    let offer = crate::testing::offer(muster_shared::ids::TaskId::Write, Role::Writer, work);
    let arguments = json!({"title": "t", "body": "It took 4711 s.", "unanswered": []});
    let limits = StepLimits { max_revisions: 2, max_steps: 5, ..StepLimits::USUAL };
    in_case(&offer, limits, |case| {
        let submission = || case.rules.submission(&offer, &arguments).unwrap();
        let next = verified(&History::default(), submitting(arguments.clone()), submission(), case);
        let NextStep::Refuse { chosen, observation } = next else { panic!("taken: {next:?}") };
        assert!(observation.content.contains("4711 s"), "{}", observation.content);
        let mut history = History::default();
        let refused = step(1, Action::SUBMIT, arguments.clone(), ObservationStatus::Refused);
        history.push(Step { notes: chosen.notes, ..refused }, false);
        let next = verified(&history, submitting(arguments.clone()), submission(), case);
        let NextStep::Submit { submission, .. } = next else { panic!("asked again: {next:?}") };
        let Some(Product::Report(report)) = submission.product else { panic!("no report") };
        assert_eq!(submission.ending, Ending::Done);
        assert!(
            report.body.contains("> Not from the results of this run: “It took 4711 s.”"),
            "{}",
            report.body
        );
    });
}

#[test]
fn whoever_is_asked_about_a_result_sees_the_lines_that_it_cites() {
    let offer = with_documents();
    let stands =
        PlaceFound::Stands(Standing { text: "The limit is **20** levels.".into(), ..Standing::default() });
    in_case(&offer, StepLimits::USUAL, |case| {
        let mut chosen = submitting(cited(3, "it is 20"));
        let submission = case.rules.submission(&offer, &chosen.action.arguments).unwrap();
        let Looked::ToAsk(asked) = look(&History::default(), &[], &submission, &offer) else {
            panic!("known")
        };
        chosen.notes.push(note_of(&asked, Ok(asked.iter().map(|_| stands.clone()).collect())));
        let told = crate::react::grounds::grounds(&History::default(), Some(&chosen), case);
        assert!(told.contains("a.md:3| The limit is **20** levels."), "{told}");
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
        assert_eq!(result.conclusion, "It is 20 *(not borne out)*.");
        assert!(is_looked_up(&notes));
    });
}

/// What a picture shows stands in no line of it: what a model that looked at it said of it, in this task, bears it out.
#[test]
fn what_a_model_saw_in_a_picture_is_borne_out_by_what_it_said() {
    let offer = with_documents();
    let otherwise = || PlaceFound::Otherwise { there: "[picture: PNG, 2 x 1]".into(), lacks: Vec::new() };
    let place = |path: &str, quote: &str, statement: &str| CitedPlace {
        path: path.into(),
        line: 1,
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
        let word = judge(&cite, Some(&found), true, &evidence);
        assert_eq!(word == Word::Seen, stands, "{place:?}: {word:?}");
    }
}
