//! A result that was written as plain text instead of being submitted. Pure.

use std::collections::HashSet;

use muster_shared::flow::{Action, Observation, ObservationStatus, Thought};
use muster_shared::text::numerals;

use super::decide::{ChosenAction, NextStep, StepContext};
use super::history::History;
use super::submit::arguments_of_product;
use super::verify::verified;
use crate::roles::Submission;

/// Characters above which a text is taken as a result without asking again.
const LONG: usize = 600;

/// Takes a long text without an action as the result. A short one is requested once more as a submission: it may be a
/// result, an announcement or a refusal, and no rule distinguishes these. It is the result if it comes again with a number
/// that a tool returned.
pub(super) fn taken_as_text(
    history: &History,
    said: &str,
    asked: u32,
    case: &StepContext<'_>,
) -> Option<NextStep> {
    let text = said.trim();
    let insists = asked > 1 && has_value(history, text);
    if !case.has_model || text.is_empty() || !(is_long(text) || insists) {
        return None;
    }
    let product = (case.rules.from_prose?)(case.offer, text);
    let arguments = arguments_of_product(serde_json::to_value(&product).ok()?);
    let action = Action { name: Action::SUBMIT.to_owned(), arguments };
    let chosen = ChosenAction { thought: Thought::default(), action, more: Vec::new(), notes: Vec::new() };
    Some(verified(history, chosen, Submission::done(product), case))
}

/// Whether a text contains a number that a tool returned.
fn has_value(history: &History, text: &str) -> bool {
    let digits = |text: &str| numerals(text).into_iter().map(|number| number.digits).collect::<HashSet<_>>();
    let stated = digits(text);
    let good = |seen: &&Observation| seen.status == ObservationStatus::Success;
    let mut seen = history.steps().iter().flat_map(|step| step.observations().filter(good));
    !stated.is_empty() && seen.any(|seen| !digits(&seen.content).is_disjoint(&stated))
}

/// Whether a text is so long that it is taken as a result.
pub(super) fn is_long(text: &str) -> bool {
    text.chars().nth(LONG).is_some()
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::Product;
    use muster_shared::ids::Role;
    use serde_json::json;

    use super::*;
    use crate::react::limits::StepLimits;
    use crate::react::testing::in_case;
    use crate::testing::{leaf, step};

    #[test]
    fn text_is_taken_as_a_result_if_it_is_long_or_comes_again() {
        let offer = leaf(Role::Worker);
        let mut history = History::default();
        history.push(step(1, "calculator", json!({"expression": 1}), ObservationStatus::Success), false);
        let taken = |said: &str, asked| {
            in_case(&offer, true, StepLimits::USUAL, |case| taken_as_text(&history, said, asked, case))
        };
        let long = "The limit is eight. ".repeat(40);
        for (short, again) in [("", false), ("There is 1 of them.", true), ("Let me check it.", false)] {
            assert_eq!((taken(short, 1), taken(short, 2).is_some()), (None, again), "{short:?}");
        }
        let Some(NextStep::Submit { submission, .. }) = taken(&long, 1) else { panic!("not taken") };
        let Some(Product::Result(result)) = submission.product else { panic!("no result") };
        assert_eq!((result.conclusion.as_str(), result.body.as_str()), ("The limit is eight.", long.trim()));
    }
}
