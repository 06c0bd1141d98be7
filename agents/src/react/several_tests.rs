use muster_shared::flow::{ObservationStatus, RolePermissions, TaskOffered, Thought};
use muster_shared::ids::Role;
use serde_json::{Value, json};

use super::*;
use crate::react::limits::StepLimits;
use crate::react::toolset::Toolset;
use crate::roles::rules_for;
use crate::testing::{leaf, step};
use crate::tools::{ToolSettings, standard_registry};

/// The tools of a worker that are of interest here, as they come with the program.
fn toolset_of(offer: &TaskOffered) -> Toolset {
    const NAMES: [&str; 5] = ["analyze", "calculator", "corpus.search", "delegate", "escalate"];
    let all = standard_registry(&ToolSettings::default()).unwrap().list();
    let abilities = all.into_iter().filter(|spec| NAMES.contains(&spec.name.as_str())).collect();
    Toolset::new(abilities, (rules_for(&offer.work).schema)(offer))
}

fn sorted(history: &History, all: &[(&str, Value)], limits: StepLimits) -> ChosenAction {
    let offer = leaf(Role::Worker);
    let toolset = toolset_of(&offer);
    let permissions = RolePermissions { delegate: false, ..RolePermissions::OPEN };
    let (rules, has_model) = (rules_for(&offer.work), true);
    let case = StepContext { offer: &offer, rules, toolset: &toolset, permissions, has_model, limits };
    let mut all =
        all.iter().map(|(name, arguments)| Action { name: (*name).into(), arguments: arguments.clone() });
    let action = all.next().unwrap();
    let chosen = ChosenAction { thought: Thought::default(), action, more: Vec::new(), notes: Vec::new() };
    with_more(history, chosen, all.collect(), &case)
}

/// What becomes of each action, the one that is done first at the head.
fn told(chosen: &ChosenAction) -> Vec<(String, &'static str)> {
    let word = |one: &FurtherAction| match &one.observation {
        None => "done",
        Some(seen) => {
            assert_eq!(seen.status, ObservationStatus::Refused);
            let content = seen.content.as_str();
            let known = ["goes alone", "twice", "again", "no action", "may not", "at most", "then submit"];
            known.into_iter().find(|word| content.contains(word)).unwrap_or_else(|| panic!("{content}"))
        }
    };
    let first = std::iter::once((chosen.action.name.clone(), "done"));
    first.chain(chosen.more.iter().map(|one| (one.action.name.clone(), word(one)))).collect()
}

#[test]
fn all_calls_of_an_answer_are_done_but_those_that_cannot_be() {
    let search = |query: &str| ("corpus.search", json!({ "query": query }));
    let calculate = |sum: &str| ("calculator", json!({ "expression": sum }));
    let ask = || ("escalate", json!({"question": "which one?"}));
    let think = || ("analyze", json!({"material": "all of it"}));
    let submit = || ("submit", json!({"conclusion": "so"}));
    let delegate = || ("delegate", json!({"name": "n", "goal": "g"}));
    let mut history = History::default();
    history.push(step(1, "corpus.search", json!({"query": "old"}), ObservationStatus::Success), false);
    let table = [
        (vec![search("a"), calculate("1+1"), search("b")], vec!["done", "done", "done"]),
        (vec![search("a"), search("a")], vec!["done", "twice"]),
        (vec![search("a"), search("old")], vec!["done", "again"]),
        (vec![search("a"), submit()], vec!["done", "then submit"]),
        (vec![search("a"), ("corpus.find", json!({}))], vec!["done", "no action"]),
        (vec![search("a"), think()], vec!["done", "goes alone"]),
        (vec![search("a"), delegate()], vec!["done", "may not"]),
        (vec![search("a"), ask()], vec!["done", "goes alone"]),
        (vec![ask(), search("a")], vec!["done", "goes alone"]),
        // The first that can be done comes first.
        (vec![search("old"), calculate("1+1")], vec!["done", "again"]),
        (vec![("corpus.find", json!({})), search("a")], vec!["done", "no action"]),
    ];
    for (all, expected) in table {
        let chosen = sorted(&history, &all, StepLimits::USUAL);
        let words: Vec<&str> = told(&chosen).into_iter().map(|(_, word)| word).collect();
        assert_eq!(words, expected, "{all:?}: {chosen:?}");
    }
    let chosen = sorted(&history, &[search("old"), calculate("1+1")], StepLimits::USUAL);
    assert_eq!(chosen.action.name, "calculator");
}

#[test]
fn calls_above_the_limit_of_a_step_are_not_executed() {
    let all: Vec<(&str, Value)> =
        (0..4).map(|number| ("corpus.search", json!({ "query": number.to_string() }))).collect();
    let limits = |calls_a_step| StepLimits { calls_a_step, ..StepLimits::USUAL };
    let words = |most| {
        let chosen = sorted(&History::default(), &all, limits(most));
        told(&chosen).into_iter().map(|(_, word)| word).collect::<Vec<_>>()
    };
    assert_eq!(words(8), ["done"; 4]);
    assert_eq!(words(3), ["done", "done", "done", "at most"]);
    assert_eq!(words(1), ["done", "at most", "at most", "at most"]);
}
