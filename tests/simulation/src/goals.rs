//! Goals with a plan that no planner makes: some are done by a blueprint, some bring their own.

use std::collections::BTreeMap;

use muster_shared::blueprint::{Filled, fill, parse};
use muster_shared::flow::{Goal, PlanDraft, TaskDraft};
use muster_shared::ids::RunId;
use serde_json::json;

use crate::random::Random;

/// Three steps: one for each of a list, one that may be left out, and one that has another way.
const STEPS: &str = "name='b'\nversion='1'\ngoal='g'\n[params.topics]\ntype='list'\n\
    [[steps]]\nid='look'\ngoal='look into {{item}}'\nfor_each='params.topics'\n\
    [[steps]]\nid='dig'\ngoal='dig into {{look.result}}'\nif='look.ok'\n\
    [[steps.fallback]]\ngoal='ask around'\n\
    [[steps]]\nid='sum'\ngoal='sum up {{dig.result}}'";

/// The goal as it is submitted.
pub(crate) fn planned(seed: u64, run: RunId, goal: Goal) -> Goal {
    match Random::of(seed, &format!("{run}/plan")).below(1000) {
        0..=149 => Goal { blueprint: blueprint().map(Box::new), ..goal },
        150..=199 => Goal { plan: Some(Box::new(brought())), ..goal },
        _ => goal,
    }
}

fn blueprint() -> Option<Filled> {
    let topics = BTreeMap::from([("topics".to_owned(), json!(["ants", "bees"]))]);
    fill(&parse(STEPS).ok()?, &topics).ok()
}

/// A plan as a person writes it.
pub(crate) fn brought() -> PlanDraft {
    let task = |name: &str, on: &[&str]| TaskDraft {
        name: name.to_owned(),
        goal: format!("find out about {name}"),
        expected_output: "a sentence".to_owned(),
        depends_on: on.iter().map(|on| (*on).to_owned()).collect(),
        ..TaskDraft::default()
    };
    PlanDraft { tasks: vec![task("ants", &[]), task("bees", &["ants"])], ..PlanDraft::default() }
}
