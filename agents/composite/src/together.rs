//! Composites of one folder, held against each other: none calls itself, and none is nested too deep. Pure.

use std::collections::BTreeMap;

use muster_tools::spec::model_name;

use crate::MOST_LEVELS;
use crate::fault::Fault;
use crate::file::Composite;

/// Of composites with their texts, those that may be used, and what is wrong with the others, by their names.
#[must_use]
pub fn together(all: Vec<(String, Composite)>) -> (Vec<Composite>, Vec<(String, Fault)>) {
    let known: BTreeMap<String, &Composite> =
        all.iter().map(|(_, composite)| (model_name(&composite.name), composite)).collect();
    let faults: Vec<Option<Fault>> =
        all.iter().map(|(text, composite)| fault(text, composite, &known)).collect();
    let (mut sound, mut wrong) = (Vec::new(), Vec::new());
    for ((_, composite), fault) in all.into_iter().zip(faults) {
        match fault {
            None => sound.push(composite),
            Some(fault) => wrong.push((composite.name, fault)),
        }
    }
    (sound, wrong)
}

/// How a composite goes on below itself.
enum Below {
    /// So many levels, itself counted.
    Levels(usize),
    /// It comes to itself.
    Itself,
}

fn fault(text: &str, composite: &Composite, known: &BTreeMap<String, &Composite>) -> Option<Fault> {
    let own = model_name(&composite.name);
    composite.named().find_map(|named| match below(&model_name(&named.name), &own, known, MOST_LEVELS + 1) {
        Below::Itself => Some(Fault::at(
            text,
            named.at,
            format!("`{}` calls itself by way of `{}`", composite.name, named.name),
            "a composite must not; take the step away",
        )),
        Below::Levels(levels) if levels + 1 > MOST_LEVELS => Some(Fault::at(
            text,
            named.at,
            format!("with `{}` there are more than {MOST_LEVELS} composites within each other", named.name),
            "name the tools of that composite instead",
        )),
        Below::Levels(_) => None,
    })
}

/// What is below a tool; looked at so many levels deep.
fn below(tool: &str, own: &str, known: &BTreeMap<String, &Composite>, left: usize) -> Below {
    if tool == own {
        return Below::Itself;
    }
    let Some(composite) = known.get(tool) else { return Below::Levels(0) };
    if left == 0 {
        // Somebody further down calls himself, or it is too deep anyway.
        return Below::Levels(MOST_LEVELS);
    }
    let mut deepest = 0;
    for named in composite.named() {
        match below(&model_name(&named.name), own, known, left - 1) {
            Below::Itself => return Below::Itself,
            Below::Levels(levels) => deepest = deepest.max(levels),
        }
    }
    Below::Levels(deepest + 1)
}
