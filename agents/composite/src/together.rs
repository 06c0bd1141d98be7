//! Composites of one folder, held against each other: none calls itself, and none is nested too deep. Pure.

use std::collections::{BTreeMap, BTreeSet};

use muster_tools::spec::model_name;

use crate::MOST_LEVELS;
use crate::file::Composite;
use muster_shared::text::Fault;

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

fn fault(text: &str, composite: &Composite, known: &BTreeMap<String, &Composite>) -> Option<Fault> {
    let own = model_name(&composite.name);
    composite.named().find_map(|named| {
        let (name, tool) = (&named.name, model_name(&named.name));
        if reaches(&tool, &own, known) {
            let what = format!("`{}` calls itself by way of `{name}`", composite.name);
            return Some(Fault::at(text, named.at, what, "a composite must not; take the step away"));
        }
        (1 + levels(&tool, known, MOST_LEVELS - 1) > MOST_LEVELS).then(|| {
            let what =
                format!("with `{name}` there are more than {MOST_LEVELS} composites within each other");
            Fault::at(text, named.at, what, "name the tools of that composite instead")
        })
    })
}

/// Whether a tool is this one, or calls it, by way of whatever others.
fn reaches(tool: &str, own: &str, known: &BTreeMap<String, &Composite>) -> bool {
    let (mut seen, mut left) = (BTreeSet::new(), vec![tool.to_owned()]);
    while let Some(tool) = left.pop() {
        if tool == own {
            return true;
        }
        if let Some(composite) = known.get(&tool).filter(|_| !seen.contains(&tool)) {
            left.extend(composite.named().map(|named| model_name(&named.name)));
            seen.insert(tool);
        }
    }
    false
}

/// How many composites are within each other below a tool, itself counted; looked at so many levels below it.
fn levels(tool: &str, known: &BTreeMap<String, &Composite>, left: usize) -> usize {
    let Some(composite) = known.get(tool) else { return 0 };
    let Some(left) = left.checked_sub(1) else { return 1 };
    let below = composite.named().map(|named| levels(&model_name(&named.name), known, left));
    1 + below.max().unwrap_or(0)
}
