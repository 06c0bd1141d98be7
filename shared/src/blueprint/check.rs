//! What is wrong with a blueprint, as far as that can be known without values.

mod references;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::expression::Expression;
use super::names::{Path, RESERVED, hint, is_name};
use super::template::{TextPiece, paths, pieces};
use super::{
    Blueprint, BlueprintStep, Filled, MAX_FALLBACK, MAX_PARAMS, MAX_STEPS, MAX_TEMPLATE_BYTES, Param,
    ParamKind,
};
use crate::flow::{Pattern, RunLimits};
use crate::ids::Role;
use crate::plan::normal;

use super::fill::fits;
use super::layout::{Layout, least_tasks};

/// Longest description of a part of the report, in bytes.
const MAX_PART_BYTES: usize = 300;

/// Something wrong with a blueprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {why}")]
pub struct Problem {
    /// Where, such as `steps[2].if`, counted from 1.
    pub at: String,
    /// What is wrong, and what to do.
    pub why: String,
}

/// What is wrong with a blueprint. One with nothing wrong expands into a plan that can be carried out, whatever its
/// values and whatever its steps give.
#[must_use]
pub fn check(blueprint: &Blueprint) -> Vec<Problem> {
    let mut found = Finder { blueprint, problems: Vec::new() };
    found.head();
    found.params();
    found.output();
    found.steps();
    found.cycles();
    found.problems
}

/// What of a blueprint does not fit the limits of a run, or the roles that are there.
#[must_use]
pub fn check_limits(blueprint: &Blueprint, limits: &RunLimits, roles: &[Role]) -> Vec<Problem> {
    let mut problems: Vec<Problem> = Layout::problem(blueprint, limits)
        .map(|why| Problem { at: "steps".to_owned(), why })
        .into_iter()
        .collect();
    let known: Vec<String> = roles.iter().map(Role::to_string).collect();
    for (at, role) in named_roles(blueprint) {
        if !known.iter().any(|known| *known == role.trim().to_lowercase()) {
            let near = hint(role, known.iter().map(String::as_str));
            let why = format!("no {role:?} is in this fleet: there are {}{near}", known.join(", "));
            problems.push(Problem { at, why });
        }
    }
    problems
}

/// The lists among the values that a run with these limits has no room for. Steps with a condition are left out: whether
/// they are done is not known yet. What a list holds that steps give is not known either.
#[must_use]
pub fn check_lists(filled: &Filled, limits: &RunLimits) -> Vec<Problem> {
    let layout = Layout::of(&filled.blueprint, limits);
    let steps = || filled.blueprint.steps.iter().zip(1..);
    let given = |step: &BlueprintStep| match Path::read(step.for_each.as_deref()?.trim()) {
        Ok(Path::Param(name)) => match filled.params.get(&name) {
            Some(Value::Array(items)) => {
                let items = items.iter().filter_map(Value::as_str);
                Some(items.map(|item| normal(item.trim())).collect::<BTreeSet<_>>().len())
            }
            Some(_) | None => None,
        },
        Ok(Path::Item | Path::Step(..)) | Err(_) => None,
    };
    let lists = steps().filter(|(step, _)| step.condition.is_none());
    let lists = lists.filter_map(|(step, n)| Some((step, n, given(step)?)));
    let mut planned = layout.parts();
    let problems = lists.filter_map(|(step, n, items)| {
        let others = steps().filter(|(other, _)| other.id != step.id).map(|(other, _)| least_tasks(other));
        let arranged = layout.arrange(step, items, planned, others.sum());
        planned += items.saturating_sub(1);
        (arranged.items < items).then(|| Problem {
            at: format!("steps[{n}].for_each"),
            why: format!(
                "its list has {items} items, and there is room for {}: raise limits.max_tasks ({}), limits.max_width \
                 ({}) or limits.max_depth ({}), or give a shorter list",
                arranged.items, limits.max_tasks, limits.max_width, limits.max_depth
            ),
        })
    });
    problems.collect()
}

fn named_roles(blueprint: &Blueprint) -> impl Iterator<Item = (String, &str)> {
    blueprint.steps.iter().zip(1..).flat_map(|(step, n)| {
        let own = step.role.as_deref().map(|role| (format!("steps[{n}].role"), role));
        let others = step.fallback.iter().zip(1..);
        let others = others.filter_map(move |(other, m)| {
            other.role.as_deref().map(|role| (format!("steps[{n}].fallback[{m}].role"), role))
        });
        own.into_iter().chain(others)
    })
}

/// The steps that must have ended, or have been left out, before a step can be placed.
pub(super) fn needs(step: &BlueprintStep) -> BTreeSet<String> {
    let named = used(step).into_iter().chain(step.after.iter().cloned()).chain(reads(step));
    named.filter(|needed| *needed != step.id).collect()
}

/// The steps whose results stand in the goals of a step.
pub(super) fn used(step: &BlueprintStep) -> BTreeSet<String> {
    let goals = step.fallback.iter().map(|other| &other.goal).chain([&step.goal]);
    goals.flat_map(|goal| paths(goal)).filter_map(|path| path.step().map(str::to_owned)).collect()
}

/// The steps whose results must be there before it is known whether, and how often, a step is done.
pub(super) fn reads(step: &BlueprintStep) -> BTreeSet<String> {
    let condition = step.condition.iter().filter_map(|text| Expression::read(text).ok());
    let condition = condition.flat_map(|read| read.paths().into_iter().cloned().collect::<Vec<_>>());
    let list = step.for_each.iter().filter_map(|text| Path::read(text.trim()).ok());
    condition.chain(list).filter_map(|path| path.step().map(str::to_owned)).collect()
}

struct Finder<'a> {
    blueprint: &'a Blueprint,
    problems: Vec<Problem>,
}

impl Finder<'_> {
    fn add(&mut self, at: impl Into<String>, why: impl Into<String>) {
        self.problems.push(Problem { at: at.into(), why: why.into() });
    }

    fn head(&mut self) {
        let blueprint = self.blueprint;
        self.name("name", &blueprint.name);
        if blueprint.version.trim().is_empty() || blueprint.version.len() > 40 {
            self.add("version", "write a version of at most 40 letters, such as \"1.0\"");
        }
        if blueprint.goal.trim().is_empty() {
            self.add("goal", "the goal is empty: say what a run by this blueprint is for");
        }
        self.text("goal", &blueprint.goal, None, false);
        self.length("description", &blueprint.description);
    }

    fn params(&mut self) {
        let blueprint = self.blueprint;
        if blueprint.params.len() > MAX_PARAMS {
            self.add("params", format!("{} parameters, {MAX_PARAMS} is the most", blueprint.params.len()));
        }
        for (name, param) in &blueprint.params {
            let at = format!("params.{name}");
            self.name(&at, name);
            self.length(&at, &param.description);
            if !param.choices.is_empty() && !matches!(param.kind, ParamKind::String | ParamKind::List) {
                self.add(format!("{at}.choices"), "only texts and lists have choices");
            }
            if let Some(default) = &param.default {
                let plain = Param { required: false, ..param.clone() };
                if let Err(why) = fits(&plain, default) {
                    self.add(format!("{at}.default"), why);
                }
            }
        }
    }

    fn output(&mut self) {
        for (name, part) in &self.blueprint.output {
            let at = format!("output.{name}");
            self.name(&at, name);
            if part.description.len() > MAX_PART_BYTES {
                self.add(at, format!("the description of a part has {MAX_PART_BYTES} bytes at most"));
            }
        }
        if self.blueprint.output.len() > MAX_PARAMS {
            self.add("output", format!("{} parts, {MAX_PARAMS} is the most", self.blueprint.output.len()));
        }
    }

    fn steps(&mut self) {
        let steps = &self.blueprint.steps;
        if steps.is_empty() {
            self.add("steps", "there is no step: write at least one [[steps]]");
        }
        if steps.len() > MAX_STEPS {
            return self.add("steps", format!("{} steps, {MAX_STEPS} is the most", steps.len()));
        }
        let mut seen = BTreeSet::new();
        let mut goals: BTreeMap<(String, String), &str> = BTreeMap::new();
        for (step, n) in steps.iter().zip(1..) {
            let at = format!("steps[{n}]");
            self.name(&format!("{at}.id"), &step.id);
            if !seen.insert(&step.id) {
                self.add(format!("{at}.id"), format!("there is a step {:?} already", step.id));
            }
            self.step(&at, step);
            let key = (step.role.clone().unwrap_or_default(), normal(&step.goal));
            if let Some(first) = goals.insert(key, &step.id) {
                self.add(format!("{at}.goal"), format!("this is the same as step {first:?}: leave one out"));
            }
        }
    }

    fn step(&mut self, at: &str, step: &BlueprintStep) {
        let own = Some(step);
        self.task(at, step.role.as_deref(), &step.goal, &step.expected_output, own);
        self.text(&format!("{at}.name"), &step.name, None, false);
        if step.milestones.len() > crate::plan::MAX_ITEMS {
            self.add(format!("{at}.milestones"), format!("{} is the most", crate::plan::MAX_ITEMS));
        }
        for text in &step.milestones {
            self.length(&format!("{at}.milestones"), text);
        }
        self.needs(&format!("{at}.needs"), &step.needs);
        if let Some(Err(why)) = step.pattern.as_ref().map(|text| text.parse::<Pattern>()) {
            self.add(format!("{at}.pattern"), why);
        }
        for other in &step.after {
            self.known_step(&format!("{at}.after"), other, own);
        }
        if let Some(condition) = &step.condition {
            self.condition(&format!("{at}.if"), condition, step);
        }
        if let Some(list) = &step.for_each {
            self.list(&format!("{at}.for_each"), list, step);
        }
        if let Some(question) = &step.approval {
            let at = format!("{at}.approval");
            if question.trim().is_empty() {
                self.add(&at, "the question is empty: say what a person is to say yes or no to");
            }
            self.text(&at, question, own, false);
        }
        if step.fallback.len() > MAX_FALLBACK {
            self.add(format!("{at}.fallback"), format!("{MAX_FALLBACK} steps are the most"));
        }
        for (other, m) in step.fallback.iter().zip(1..) {
            let at = format!("{at}.fallback[{m}]");
            // A failure block is done once, also where the step is done for each item of a list.
            let once = BlueprintStep { for_each: None, ..step.clone() };
            self.task(&at, other.role.as_deref(), &other.goal, &other.expected_output, Some(&once));
            self.length(&format!("{at}.name"), &other.name);
        }
    }

    fn needs(&mut self, at: &str, needs: &[String]) {
        if needs.len() > crate::plan::MAX_ITEMS {
            self.add(at, format!("{} is the most", crate::plan::MAX_ITEMS));
        }
        for (need, n) in needs.iter().zip(1..) {
            let at = format!("{at}[{n}]");
            if need.trim().is_empty() {
                self.add(&at, "it is empty: name a capability, or leave it out");
            } else if pieces(need).iter().any(|piece| !matches!(piece, TextPiece::Words(_))) {
                self.add(&at, "a capability is named as it is: nothing in double braces can stand in it");
            }
            self.length(&at, need);
        }
    }

    fn task(
        &mut self,
        at: &str,
        role: Option<&str>,
        goal: &str,
        expected: &str,
        step: Option<&BlueprintStep>,
    ) {
        if goal.trim().is_empty() {
            self.add(format!("{at}.goal"), "the goal is empty: say what is to be achieved");
        }
        self.text(&format!("{at}.goal"), goal, step, true);
        self.text(&format!("{at}.expected_output"), expected, step, false);
        let Some(role) = role else { return };
        let at = format!("{at}.role");
        let leaves = [Role::Researcher.to_string(), Role::Worker.to_string()];
        match role.trim().to_lowercase().parse::<Role>() {
            Ok(Role::Researcher | Role::Worker) => {}
            Ok(Role::Specialist(_)) => {
                // Whether there is such a specialist is known where the run begins; a slip of the pen is known here.
                let near = hint(role, leaves.iter().map(String::as_str));
                if !near.is_empty() {
                    self.add(at, format!("{role:?} is no role{near}"));
                }
            }
            Ok(Role::Planner | Role::Reflector | Role::Refiner | Role::Writer) => {
                self.add(at, format!("a {role} does no steps: write researcher, worker, or a specialist"));
            }
            Err(_) => self.add(at, format!("{role:?} is no role: write researcher, worker, or a specialist")),
        }
    }

    fn name(&mut self, at: &str, name: &str) {
        if !is_name(name) {
            self.add(
                at,
                format!(
                    "{name:?} is no name: begin with a lower case letter, go on with lower case letters, digits and \
                     _, 40 at most"
                ),
            );
        } else if RESERVED.contains(&name) {
            self.add(at, format!("{name:?} has a meaning of its own: choose another name"));
        }
    }

    fn length(&mut self, at: &str, text: &str) {
        if text.len() > MAX_TEMPLATE_BYTES {
            self.add(at, format!("the text has {} bytes, {MAX_TEMPLATE_BYTES} is the most", text.len()));
        }
    }

    fn cycles(&mut self) {
        let all: BTreeMap<&str, BTreeSet<String>> =
            self.blueprint.steps.iter().map(|step| (step.id.as_str(), needs(step))).collect();
        let mut free: BTreeSet<&str> = BTreeSet::new();
        loop {
            let is_free = |needs: &BTreeSet<String>| {
                needs.iter().all(|need| free.contains(need.as_str()) || !all.contains_key(need.as_str()))
            };
            let next: Vec<&str> = all
                .iter()
                .filter(|(id, needs)| !free.contains(*id) && is_free(needs))
                .map(|(id, _)| *id)
                .collect();
            if next.is_empty() {
                break;
            }
            free.extend(next);
        }
        // What only waits for a knot is none of it: leave out whatever no other stuck step needs.
        let mut stuck: BTreeSet<&str> = all.keys().copied().filter(|id| !free.contains(id)).collect();
        loop {
            let needed: BTreeSet<&str> = stuck.iter().flat_map(|id| &all[id]).map(String::as_str).collect();
            let next: BTreeSet<&str> = stuck.intersection(&needed).copied().collect();
            if next.len() == stuck.len() {
                break;
            }
            stuck = next;
        }
        if let Some(n) = self.blueprint.steps.iter().position(|step| stuck.contains(step.id.as_str())) {
            let names: Vec<&str> = stuck.into_iter().collect();
            self.add(
                format!("steps[{}].id", n + 1),
                format!("these steps wait for each other: {}", names.join(", ")),
            );
        }
    }
}
