use muster_corpus::CitedPlace;
use muster_shared::flow::{
    CorpusRef, ObservationStatus, PlaceFound, Product, Standing, TaskOffered, Thought,
};
use muster_shared::ids::Role;
use serde_json::{Value, json};

use super::*;
use crate::react::consult::consulted;
use crate::react::limits::StepLimits;
use crate::react::partial::best_so_far;
use crate::react::testing::in_case;
use crate::testing::{leaf, step};

fn offered(critical: bool) -> TaskOffered {
    let mut offer = leaf(Role::Worker);
    offer.corpus = Some(CorpusRef { id: "c".into(), files: 1, bytes: 9, outline: String::new() });
    if let Work::Execute { task, .. } = &mut offer.work {
        task.critical = critical;
    }
    offer
}

fn read() -> Step {
    let mut step = step(1, "corpus.read", json!({"path": "a.md"}), ObservationStatus::Success);
    step.observation.as_mut().unwrap().content =
        "a.md:3-4 of 9 lines\n3| The limit is **20** levels,\n4| no more.".into();
    step
}

fn submitting(arguments: Value) -> ChosenAction {
    let thought = Thought { text: "done".into(), ..Thought::default() };
    ChosenAction {
        thought,
        action: Action { name: Action::SUBMIT.into(), arguments },
        more: Vec::new(),
        notes: Vec::new(),
    }
}

fn history(steps: Vec<Step>) -> History {
    let mut history = History::default();
    steps.into_iter().for_each(|step| history.push(step, false));
    history
}

fn with_case<T>(
    critical: bool,
    limits: StepLimits,
    has_model: bool,
    then: impl FnOnce(&StepContext<'_>) -> T,
) -> T {
    in_case(&offered(critical), has_model, limits, then)
}

fn next(history: &History, arguments: &Value, case: &StepContext<'_>) -> NextStep {
    let submission = case.rules.submission(case.offer, arguments).unwrap();
    match verified(history, submitting(arguments.clone()), submission, case) {
        NextStep::LookUp { mut chosen, asked, .. } => {
            chosen.notes.push(lookup::note_of(&asked, Ok(asked.iter().map(stands).collect())));
            lookup::looked_up(history, chosen, case)
        }
        next => next,
    }
}

/// What a look-up finds in the one document there is.
fn stands(place: &CitedPlace) -> PlaceFound {
    match (place.path.as_str(), place.line, place.quote.contains("30")) {
        ("a.md", 3 | 4, false) => PlaceFound::Stands(Standing::default()),
        ("a.md", 1..=9, _) => PlaceFound::NoQuote { there: "The limit is **20** levels,".into() },
        ("a.md", _, _) => PlaceFound::NoLine { lines: 9 },
        (_, _, _) => PlaceFound::NoFile { nearest: "a.md".into() },
    }
}

fn good() -> Value {
    let citation = json!({"path": "a.md", "line": 3, "quote": "limit is 20 levels, no more"});
    json!({"ending": "done", "conclusion": "20", "findings": [{"text": "20 levels", "citations": [citation]}]})
}

#[test]
fn each_rule_names_what_does_not_hold() {
    let finding = |finding: Value| json!({"ending": "done", "conclusion": "c", "findings": [finding]});
    let cited = |path: &str, line: u32, quote: &str| {
        finding(json!({"text": "t", "citations": [{"path": path, "line": line, "quote": quote}]}))
    };
    let table = [
        (good(), None),
        (json!({"ending": "done", "conclusion": "", "findings": [{"text": "t"}]}), Some(Check::Completeness)),
        (json!({"ending": "done", "conclusion": "c", "unanswered": ["why"]}), None),
        (
            json!({"ending": "done", "conclusion": "c", "unanswered": ["What limits delegation loops?"]}),
            Some(Check::Completeness),
        ),
        (json!({"ending": "done_partial", "reason": "r", "conclusion": "c", "unanswered": ["why"]}), None),
        (finding(json!({"text": "t", "verified": true})), Some(Check::Consistency)),
        (cited("b.md", 1, ""), Some(Check::Correctness)),
        (cited("a.md", 3, "limit is 30 levels"), Some(Check::Correctness)),
        (cited("a.md", 8, "was not shown"), Some(Check::Correctness)),
        (cited("a.md", 9_998, "is beyond the end"), Some(Check::Correctness)),
        (json!({"ending": "done", "conclusion": "The limit is TODO."}), None),
    ];
    with_case(false, StepLimits::USUAL, true, |case| {
        for (arguments, expected) in &table {
            let next = next(&history(vec![read()]), arguments, case);
            let found = match &next {
                NextStep::Submit { .. } => None,
                NextStep::Refuse { chosen, .. } => match chosen.notes.as_slice() {
                    [.., Note::Verified { by: Verifier::Rules, faults }] => Some(faults[0].check),
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            };
            assert_eq!(found, *expected, "{arguments}: {next:?}");
        }
    });
}

#[test]
fn what_is_not_mended_counts_as_a_part_and_says_why() {
    let open = "What limits delegation loops?";
    let bad = json!({"ending": "done", "conclusion": "c", "unanswered": [open]});
    with_case(false, StepLimits::USUAL, true, |case| {
        let mut steps = vec![read()];
        for revision in 0..2 {
            let NextStep::Refuse { chosen, observation } = next(&history(steps.clone()), &bad, case) else {
                panic!("revision {revision} was not asked for");
            };
            assert!(observation.content.contains("completeness"), "{}", observation.content);
            let number = u32::try_from(steps.len()).unwrap() + 1;
            let ChosenAction { action, notes, .. } = chosen;
            steps.push(Step { action, notes, ..step(number, "", Value::Null, ObservationStatus::Refused) });
        }
        let history = history(steps);
        let NextStep::Submit { submission, .. } = next(&history, &bad, case) else { panic!("not taken") };
        assert_eq!(submission.ending, Ending::DonePartial);
        assert_eq!(submission.reason, "verification found open points of completeness");

        let cut_short = best_so_far(&history, case.offer, "time was up".into());
        let Some(Product::Result(result)) = cut_short.product else { panic!("nothing is left") };
        assert_eq!(cut_short.ending, Ending::DonePartial);
        assert_eq!(result.conclusion, "Unfinished: time was up. c");
    });
}

#[test]
fn without_a_model_faults_are_told_and_nothing_is_asked_again() {
    let finding = json!({"text": "t", "verified": true});
    let bad = json!({"ending": "done", "conclusion": "c", "findings": [finding]});
    with_case(false, StepLimits::USUAL, false, |case| {
        let NextStep::Submit { submission, chosen } = next(&History::default(), &bad, case) else {
            panic!("asked again");
        };
        assert_eq!(submission.ending, Ending::Done);
        assert!(matches!(&chosen.notes[..], [Note::Verified { faults, .. }] if faults.len() == 1));
    });
}

#[test]
fn settings_and_what_hangs_on_it_say_whether_the_model_looks() {
    use Verification::{Brief, Cited, Critical, Full, Off};
    let whole = Some(Verify::Whole);
    let first = Some(Verify::One(Check::Completeness));
    for (verification, critical, asked) in [
        (Off, true, None),
        (Cited, true, None),
        (Critical, false, None),
        (Critical, true, whole),
        (Brief, false, whole),
        (Full, false, first),
    ] {
        let limits = StepLimits { verification, ..StepLimits::USUAL };
        let next = with_case(critical, limits, true, |case| next(&history(vec![read()]), &good(), case));
        let found = match next {
            NextStep::Consult { question: ConsultQuestion::Verify(asked), .. } => Some(asked),
            NextStep::Submit { .. } => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(found, asked, "{verification:?}, critical: {critical}");
    }
}

#[test]
fn the_chain_is_followed_link_by_link_and_ends_with_the_first_fault() {
    let limits = StepLimits { verification: Verification::Full, ..StepLimits::USUAL };
    with_case(false, limits, true, |case| {
        let history = history(vec![read()]);
        let mut step = next(&history, &good(), case);
        let mut asked = Vec::new();
        while let NextStep::Consult { chosen, question } = step {
            asked.push(question);
            step = consulted(&history, chosen, question, Ok(json!({"faults": []})), case);
        }
        assert_eq!(asked, Check::ALL.map(|check| ConsultQuestion::Verify(Verify::One(check))));
        let NextStep::Submit { chosen, .. } = step else { panic!("{step:?}") };
        let holds = |by| Note::Verified { by, faults: Vec::new() };
        assert_eq!(chosen.notes[1..], [holds(Verifier::Rules), holds(Verifier::Model)]);

        let fault = json!({"faults": [{"check": "completeness", "why": "half is missing"}]});
        let refused = consulted(&history, submitting(good()), asked[0], Ok(fault), case);
        let NextStep::Refuse { observation, .. } = refused else { panic!("{refused:?}") };
        assert!(observation.content.contains("half is missing"), "{}", observation.content);
        let silent = consulted(&history, submitting(good()), asked[0], Err("no JSON".into()), case);
        let NextStep::Submit { submission, chosen } = silent else { panic!("{silent:?}") };
        assert_eq!(submission.ending, Ending::Done, "a verifier that says nothing does not hold a result up");
        assert!(matches!(chosen.notes[0], Note::NotChecked { .. }), "{:?}", chosen.notes);
        assert!(submission.reason.contains(NOT_CHECKED), "it is no yes: {}", submission.reason);
        let unknown = json!({"faults": [{"check": "form", "why": "no array"}]});
        let refused = consulted(&history, submitting(good()), asked[0], Ok(unknown), case);
        assert!(matches!(refused, NextStep::Refuse { .. }), "a fault by another name is one: {refused:?}");
    });
}

/// A report with three cited statements, of which the model doubts the second: the author answers once, item by item.
#[test]
fn doubts_are_answered_once_and_kept_statements_are_counted() {
    let offer = TaskOffered {
        corpus: offered(false).corpus,
        ..crate::testing::offer(muster_shared::ids::TaskId::Write, Role::Writer, crate::testing::writing(&[]))
    };
    let body = "- The limit is 20 [a.md:3].\n- It always waits [a.md:4].\n- The limit is new [a.md:3-4].\n";
    let written = json!({"title": "t", "body": body, "unanswered": []});
    let limits = StepLimits { verification: Verification::Cited, ..StepLimits::USUAL };
    let lines = |place: &CitedPlace| {
        PlaceFound::Stands(Standing { text: format!("{}| It waits.", place.line), ..Standing::default() })
    };
    in_case(&offer, true, limits, |case| {
        let submitted = |arguments: &Value| case.rules.submission(&offer, arguments).unwrap();
        let asked = |history: &History, arguments: &Value| {
            let next = verified(history, submitting(arguments.clone()), submitted(arguments), case);
            let NextStep::LookUp { mut chosen, asked, shows: true } = next else { panic!("{next:?}") };
            chosen.notes.push(lookup::note_of(&asked, Ok(asked.iter().map(lines).collect())));
            lookup::looked_up(history, chosen, case)
        };
        let next = asked(&History::default(), &written);
        let NextStep::Consult { chosen, question } = next else { panic!("{next:?}") };
        assert_eq!(question, ConsultQuestion::Verify(Verify::Cited));
        let sheet = crate::react::consult::ask(question, &History::default(), Some(&chosen), case).text;
        for shown in [
            "Statement 2: It always waits",
            "Lines of 2: a.md\n4| It waits.",
            "Statement 3: The limit is new",
        ] {
            assert!(sheet.contains(shown), "{shown}: {sheet}");
        }
        let said = json!({"doubts": [
            {"item": 2, "kind": "overstated", "reason": "not always"},
            {"item": 9, "kind": "overstated", "reason": "not an item"},
        ]});
        let next = consulted(&History::default(), chosen, question, Ok(said), case);
        let NextStep::Refuse { chosen, observation } = next else { panic!("{next:?}") };
        assert!(
            observation.content.contains("1. overstated: \"It always waits\": not always"),
            "{observation:?}"
        );
        let ChosenAction { action, notes, .. } = chosen;
        let refused = Step { action, notes, ..step(1, "", Value::Null, ObservationStatus::Refused) };
        let history = history(vec![refused]);
        for (answer, statement, disputed) in
            [("keep", "It always waits [", 1), ("It waits", "- It waits [a.md:4]", 0)]
        {
            let answers = json!({"answers": [{"item": 1, "answer": answer}]});
            let answer = crate::react::testing::answer(None, "submit", answers);
            let next = crate::react::decide::decide(&history, &answer, 1, case);
            let NextStep::LookUp { chosen, .. } = next else { panic!("{next:?}") };
            let next = asked(&history, &chosen.action.arguments);
            let NextStep::Submit { chosen, submission } = next else { panic!("{next:?}") };
            let Some(Product::Report(report)) = submission.product else { panic!("no report") };
            assert!(report.body.contains(statement), "{}", report.body);
            let counted = chosen.notes.contains(&Note::Disputed { statements: 1 });
            assert_eq!(counted, disputed == 1, "{:?}", chosen.notes);
        }
    });
}
