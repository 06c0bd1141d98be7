use muster_shared::flow::{Ending, Step};
use muster_shared::ids::Role;
use serde_json::{Value, json};

use super::*;
use crate::react::limits::StepLimits;
use crate::react::testing::in_case;
use crate::testing::{leaf, step};

fn chosen(tool: &str, arguments: Value) -> ChosenAction {
    crate::react::testing::chosen("on", tool, arguments)
}

fn seen(number: u32, tool: &str, arguments: Value, status: ObservationStatus, content: &str) -> Step {
    let mut step = step(number, tool, arguments, status);
    step.observation.as_mut().unwrap().content = content.into();
    step
}

fn history(steps: Vec<Step>) -> History {
    let mut history = History::default();
    steps.into_iter().for_each(|step| history.push(step, false));
    history
}

fn next(history: &History, chosen: &ChosenAction, limits: StepLimits) -> Option<NextStep> {
    in_case(&leaf(Role::Worker), true, limits, |case| spinning(history, chosen, case))
}

/// Lets a model choose the same again and again until something else than a refusal comes.
fn driven(mut history: History, chosen: &ChosenAction) -> (Vec<Note>, NextStep) {
    let mut notes = Vec::new();
    for number in 100.. {
        match next(&history, chosen, StepLimits::USUAL).unwrap() {
            NextStep::Refuse { chosen, observation } => {
                notes.extend(chosen.notes.clone());
                let ChosenAction { thought, action, notes, .. } = chosen;
                let step = step(number, "", Value::Null, ObservationStatus::Refused);
                history.push(Step { thought, action, notes, observation: Some(observation), ..step }, false);
            }
            other => return (notes, other),
        }
    }
    panic!("it never ends")
}

#[test]
fn the_same_action_is_told_twice_then_a_person_has_to_look() {
    let same = chosen("corpus.search", json!({"query": "x"}));
    let before = history(vec![step(1, "corpus.search", json!({"query": "x"}), ObservationStatus::Success)]);
    let (told, end) = driven(before, &same);
    let spin = |times| Note::Spin { level: SpinLevel::SameAction, times };
    assert_eq!(told, [spin(1), spin(2)]);
    let NextStep::Conclude { submission, notes } = end else { panic!("{end:?}") };
    assert_eq!((submission.ending, notes), (Ending::Escalate, vec![spin(3)]));
    assert!(submission.product.is_some(), "what was found goes with it");
    assert!(submission.reason.contains("told 2 times"), "{}", submission.reason);
}

#[test]
fn only_what_gives_nothing_new_counts_as_the_same_kind() {
    use ObservationStatus::{Error, Success};
    let search = |number: u32, content: &str, status| {
        seen(number, "corpus.search", json!({"query": number}), status, content)
    };
    let found = |contents: &[&str]| -> Vec<Step> {
        (1..).zip(contents).map(|(number, content)| search(number, content, Success)).collect()
    };
    let other = seen(3, "calculator", json!({}), Error, "no");
    let table = [
        ("new each time", found(&["a", "b", "c"]), false),
        ("too few", found(&["a", "a", "a"]), false),
        ("the same hits", found(&["a", "a", "a", "a"]), true),
        ("nothing but errors", (1..=3).map(|n| search(n, &format!("bad {n}"), Error)).collect(), true),
        ("part of what was seen", found(&["a\nb\nc", "b", "c\na", " b"]), true),
        ("another kind between", [found(&["a", "a"]), vec![other, search(4, "a", Success)]].concat(), false),
    ];
    let again = chosen("corpus_search", json!({"query": "another"}));
    for (name, steps, spins) in table {
        let next = next(&history(steps), &again, StepLimits::USUAL);
        assert_eq!(next.is_some(), spins, "{name}: {next:?}");
        if let Some(NextStep::Refuse { chosen, observation }) = next {
            assert_eq!(chosen.notes, [Note::Spin { level: SpinLevel::SameKind, times: 1 }], "{name}");
            assert!(observation.content.contains("`calculator`"), "{}", observation.content);
        }
    }
    let never = StepLimits { stale_after: 0, ..StepLimits::USUAL };
    let stale = history((1..=9).map(|n| search(n, "a", Success)).collect());
    assert_eq!(next(&stale, &again, never), None);
}

#[test]
fn something_new_begins_the_count_anew() {
    let told = Step {
        notes: vec![Note::Spin { level: SpinLevel::SameAction, times: 2 }],
        ..step(2, "corpus.search", json!({"query": "x"}), ObservationStatus::Refused)
    };
    let new = seen(3, "calculator", json!({"query": "1"}), ObservationStatus::Success, "2");
    let same = chosen("calculator", json!({"query": "1"}));
    let Some(NextStep::Refuse { chosen, .. }) = next(&history(vec![told, new]), &same, StepLimits::USUAL)
    else {
        panic!("not told");
    };
    assert_eq!(chosen.notes, [Note::Spin { level: SpinLevel::SameAction, times: 1 }]);
}

#[test]
fn where_older_steps_are_shown_in_short_a_repetition_is_answered_with_what_it_gave() {
    let read = |number: u32, path: &str| {
        let content = format!("{path}: it stands here");
        seen(number, "corpus.read", json!({"path": path}), ObservationStatus::Success, &content)
    };
    let told = |steps: Vec<Step>, room: u32| {
        let again = chosen("corpus.read", json!({"path": "a.md"}));
        match next(&history(steps), &again, StepLimits { room, ..StepLimits::USUAL }) {
            Some(NextStep::Refuse { observation, .. }) => observation.content,
            other => panic!("{other:?}"),
        }
    };
    let two = || vec![read(1, "a.md"), read(2, "b.md")];
    assert!(told(two(), 60).ends_with("It showed:\na.md: it stands here"));
    for room in [0, 9_000] {
        assert!(!told(two(), room).contains("it stands here"), "all steps are in sight: {room}");
    }
    assert!(!told(vec![read(1, "a.md")], 20).contains("it stands here"), "the newest step is in sight");
}
