//! Blueprints, with the conditions and texts in them.

use std::collections::BTreeMap;

use muster_shared::blueprint::{
    self, Blueprint, BlueprintProgress, BlueprintStep, Ended, Filled, Param, ParamKind, check, check_limits,
    expand, fill, fill_text, missing,
};
use muster_shared::flow::{Plan, RunLimits, TaskResult};
use muster_shared::ids::Role;
use muster_shared::plan::check_plan;
use serde_json::{Value, json};

use super::{ensure, text_of};
use crate::{Seen, Shape, Target};

const WORDS: &[&str] = &[
    "scan.findings",
    "{{params.topic}}",
    "<=",
    "count(",
    "\"deep\"",
    "'a'",
    "true",
    "false",
    "1e308",
    "-1",
    "type = \"list\"",
    "required = true",
    "id = ",
    "goal = ",
    "if = ",
    "for_each = ",
    "after = ",
    "approval = ",
    "pattern = \"committee:3\"",
];

/// Files.
pub(super) const FILES: Target = Target::new("blueprints", Shape::Toml, file)
    .with_fixtures(&["shared/assets/blueprints"])
    .with_words(WORDS);

/// Conditions.
pub(super) const CONDITIONS: Target = Target::new("conditions", Shape::Text, condition)
    .with_fixtures(&["tests/fuzz/corpus/blueprint_texts"])
    .with_words(WORDS);

/// Texts with references in them.
pub(super) const TEXTS: Target = Target::new("blueprint_texts", Shape::Text, text)
    .with_fixtures(&["tests/fuzz/corpus/conditions"])
    .with_words(WORDS);

fn file(input: &[u8]) -> Result<Seen, String> {
    let text = text_of(input);
    let read = match blueprint::parse(&text) {
        Ok(read) => read,
        Err(problems) => {
            let lines = text.lines().count().max(1);
            let outside = problems
                .iter()
                .find(|problem| problem.line == 0 || problem.line > lines + 1 || problem.column == 0);
            ensure(outside.is_none(), || format!("a problem outside of the file: {outside:?}"))?;
            ensure(!problems.is_empty(), || "refused without a problem".to_owned())?;
            return Ok(Seen::refused(problems));
        }
    };
    let written = blueprint::write(&read);
    let again = blueprint::parse(&written).map_err(|problems| format!("not read again: {problems:?}"))?;
    ensure(again == read, || "read again it is another".to_owned())?;
    carried_out(&read)
}

/// Fills a sound blueprint with values, and does its steps until nothing more follows.
fn carried_out(blueprint: &Blueprint) -> Result<Seen, String> {
    let _schema = blueprint::schema(blueprint);
    let limits = RunLimits::default();
    let mut given: BTreeMap<String, Value> = BTreeMap::new();
    for name in missing(blueprint, &given.clone()) {
        given.insert(name.to_owned(), json!("4"));
    }
    let given = filled_in(blueprint, given);
    let filled = match fill_text(blueprint, &given).or_else(|_| fill(blueprint, &given)) {
        Ok(filled) => filled,
        Err(wrong) => return Ok(Seen::refused(wrong)),
    };
    let _goal =
        (filled.goal(), filled.goal_of_report("goal"), check_limits(blueprint, &limits, &[Role::Worker]));
    for (ok, text) in [(true, "result"), (false, "")] {
        steps(&filled, &limits, ok, text)?;
    }
    Ok(Seen::Read)
}

/// A value of its kind for each parameter that needs one.
fn filled_in(blueprint: &Blueprint, mut given: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    for (name, value) in &mut given {
        if let Some(choice) = blueprint.params.get(name).and_then(|param| param.choices.first()) {
            *value = json!(choice);
        } else if blueprint.params.get(name).is_some_and(|param| param.kind == ParamKind::Boolean) {
            *value = json!("yes");
        }
    }
    given
}

fn steps(filled: &Filled, limits: &RunLimits, ok: bool, text: &str) -> Result<(), String> {
    let (mut plan, mut outcomes, mut ended) = (Plan::default(), BTreeMap::new(), BTreeMap::new());
    let approvals: BTreeMap<String, bool> =
        filled.blueprint.steps.iter().map(|step| (step.id.clone(), ok)).collect();
    // Each round decides of one step at least: with failure blocks, not more than four times as many as there are.
    for round in 0.. {
        let progress = BlueprintProgress {
            limits,
            plan: &plan,
            step_outcomes: &outcomes,
            ended: &ended,
            approvals: &approvals,
        };
        let expansion = expand(filled, &progress);
        if expansion.is_empty() {
            return Ok(());
        }
        ensure(round < 4 * (filled.blueprint.steps.len() + 1), || {
            format!("it is expanded for ever: {:?}", expansion.step_outcomes)
        })?;
        outcomes.extend(expansion.step_outcomes);
        for (index, task) in expansion.tasks {
            let given = TaskResult { conclusion: text.to_owned(), ..TaskResult::default() };
            let result = Ended { result: ok.then_some(given), skipped: false, why: String::new() };
            ended.insert(index.clone(), result);
            plan.tasks.insert(index, task);
        }
        let problems = check_plan(&plan, limits, &[Role::Worker, Role::Researcher]);
        let cycle = problems.iter().find(|problem| problem.to_string().contains("wait for each other"));
        ensure(cycle.is_none(), || format!("what it makes is no plan: {cycle:?}"))?;
    }
    Ok(())
}

/// A blueprint around what is tried.
fn around(condition: Option<String>, goal: &str) -> Blueprint {
    let param = |kind, default: Value| Param { kind, default: Some(default), ..Param::default() };
    let params = [
        ("topic", param(ParamKind::String, json!("bees"))),
        ("depth", param(ParamKind::Integer, json!(3))),
        ("list", param(ParamKind::List, json!(["a", "b"]))),
        ("flag", param(ParamKind::Boolean, json!(true))),
    ];
    let step = |id: &str, goal: &str| BlueprintStep {
        id: id.to_owned(),
        goal: goal.to_owned(),
        ..BlueprintStep::default()
    };
    let for_each = Some("params.list".to_owned()).filter(|_| goal.contains("item"));
    Blueprint {
        name: "tried".to_owned(),
        version: "1".to_owned(),
        goal: "Look at {{params.topic}}".to_owned(),
        params: params.into_iter().map(|(name, param)| (name.to_owned(), param)).collect(),
        steps: vec![step("scan", "Look."), BlueprintStep { condition, for_each, ..step("next", goal) }],
        ..Blueprint::default()
    }
}

fn tried(blueprint: &Blueprint) -> Result<Seen, String> {
    let problems = check(blueprint);
    if problems.is_empty() {
        carried_out(blueprint)
    } else {
        // Decisions tell of them as they are.
        Ok(Seen::at_door(problems.iter().map(|problem| problem.why.as_str()).next().unwrap_or_default()))
    }
}

fn condition(input: &[u8]) -> Result<Seen, String> {
    tried(&around(Some(text_of(input).into_owned()), "Go on."))
}

fn text(input: &[u8]) -> Result<Seen, String> {
    tried(&around(None, &text_of(input)))
}
