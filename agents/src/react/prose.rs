//! A result that was written as plain text instead of being submitted: where text is what is wanted, it counts. Pure.

use muster_shared::flow::{Action, Observation, ObservationStatus, Thought, Work};

use super::decide::{ChosenAction, NextStep, StepContext};
use super::history::History;
use super::parse::is_refusal;
use super::submit::arguments_of_product;
use super::toolset::model_name;
use super::verify::verified;
use crate::roles::Submission;

/// Texts of more characters are taken for results: no refusals and no announcements.
const LONG: usize = 600;
/// How sentences begin that say what is to come instead of what came out.
const ANNOUNCING: [&str; 15] = [
    "i will",
    "i'll",
    "i’ll",
    "let me",
    "let's",
    "first",
    "next",
    "now i",
    "i need to",
    "i am going to",
    "i'm going to",
    "i should",
    "to answer",
    "to do this",
    "ok,",
];

/// What follows from text without an action; nothing where it is to be asked for again.
pub(super) fn taken_as_text(history: &History, said: &str, case: &StepContext<'_>) -> Option<NextStep> {
    let text = said.trim();
    if !case.has_model || text.is_empty() {
        return None;
    }
    let is_result = is_long(text) || has_learnt(history) || matches!(case.offer.work, Work::Write { .. });
    if !is_result || is_refusal(text) || announces(text) || names_a_tool(text, case) {
        return None;
    }
    let product = (case.rules.from_prose?)(case.offer, text);
    let arguments = arguments_of_product(serde_json::to_value(&product).ok()?);
    let action = Action { name: Action::SUBMIT.to_owned(), arguments };
    let chosen = ChosenAction { thought: Thought::default(), action, more: Vec::new(), notes: Vec::new() };
    Some(verified(history, chosen, Submission::done(product), case))
}

/// Whether a text is so long that it is taken for a result, and for no refusal.
pub(super) fn is_long(text: &str) -> bool {
    text.chars().nth(LONG).is_some()
}

fn has_learnt(history: &History) -> bool {
    let good = |seen: &Observation| seen.status == ObservationStatus::Success;
    history.steps().iter().any(|step| step.observations().any(good))
}

/// Whether a text says what is to come.
fn announces(text: &str) -> bool {
    let lower = text.to_lowercase().replace("**", "");
    let mut sentences = lower.split(['.', '!', '?', '\n', ';']).map(str::trim);
    let announced = sentences.any(|sentence| ANNOUNCING.iter().any(|words| sentence.starts_with(words)));
    text.ends_with([':', '…']) || text.ends_with("...") || (announced && !is_long(text))
}

/// Whether a short text speaks of a tool: of what is to be done, then, and not of what came out.
fn names_a_tool(text: &str, case: &StepContext<'_>) -> bool {
    let names = |name: &String| text.contains(name.as_str()) || text.contains(&model_name(name));
    !is_long(text) && case.toolset.names().iter().filter(|name| *name != Action::SUBMIT).any(names)
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::{Ending, Product};
    use muster_shared::ids::Role;
    use serde_json::json;

    use super::*;
    use crate::react::limits::StepLimits;
    use crate::react::testing::in_case;
    use crate::testing::{leaf, step};

    fn taken(said: &str, steps: u32) -> Option<NextStep> {
        let offer = leaf(Role::Worker);
        let mut history = History::default();
        for number in 1..=steps {
            history.push(
                step(number, "calculator", json!({"expression": number}), ObservationStatus::Success),
                false,
            );
        }
        in_case(&offer, true, StepLimits::USUAL, |case| taken_as_text(&history, said, case))
    }

    #[test]
    fn text_counts_where_it_says_what_came_out() {
        let long = "The limit is eight. ".repeat(40);
        let table = [
            ("17.5 % of 2480 is 434.", 1, true),
            ("17.5 % of 2480 is 434.", 0, false),
            ("I'll look at the documents next.", 1, false),
            ("Let me check the second file.", 1, false),
            ("1 of what is asked is not known yet. I will look at the second file.", 1, false),
            ("The sum is not known yet; `calculator` is next.", 1, false),
            ("The results are:", 1, false),
            ("I cannot help with that request.", 1, false),
            (long.as_str(), 0, true),
            ("", 1, false),
        ];
        for (said, steps, counts) in table {
            assert_eq!(taken(said, steps).is_some(), counts, "{said:?} after {steps}");
        }
        let Some(NextStep::Submit { submission, .. }) = taken("17.5 % of 2480 is 434.", 1) else { panic!() };
        assert_eq!(submission.ending, Ending::Done);
        let Some(Product::Result(result)) = submission.product else { panic!() };
        assert_eq!((result.conclusion.as_str(), result.body.as_str()), ("17.5 % of 2480 is 434.", ""));
        let Some(NextStep::Submit { submission, .. }) = taken(&long, 0) else { panic!() };
        let Some(Product::Result(result)) = submission.product else { panic!() };
        assert_eq!((result.conclusion.as_str(), result.body.as_str()), ("The limit is eight.", long.trim()));
    }
}
