//! A result that was written as plain text instead of being submitted. Pure.

use muster_shared::flow::{Action, Thought};

use super::decide::{ChosenAction, NextStep, StepContext};
use super::history::History;
use super::submit::arguments_of_product;
use super::verify::verified;
use crate::roles::Submission;

/// Characters above which a text is taken as a result without asking again.
const LONG: usize = 600;

/// Takes a long text without an action as the result. A short one is requested again as a submission: it may be a result, an
/// announcement or a refusal, and no rule distinguishes these.
pub(super) fn taken_as_text(history: &History, said: &str, case: &StepContext<'_>) -> Option<NextStep> {
    let text = said.trim();
    if !case.has_model || !is_long(text) {
        return None;
    }
    let product = (case.rules.from_prose?)(case.offer, text);
    let arguments = arguments_of_product(serde_json::to_value(&product).ok()?);
    let action = Action { name: Action::SUBMIT.to_owned(), arguments };
    let chosen = ChosenAction { thought: Thought::default(), action, more: Vec::new(), notes: Vec::new() };
    Some(verified(history, chosen, Submission::done(product), case))
}

/// Whether a text is so long that it is taken as a result.
pub(super) fn is_long(text: &str) -> bool {
    text.chars().nth(LONG).is_some()
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::{ObservationStatus, Product};
    use muster_shared::ids::Role;
    use serde_json::json;

    use super::*;
    use crate::react::limits::StepLimits;
    use crate::react::testing::in_case;
    use crate::testing::{leaf, step};

    #[test]
    fn only_long_text_is_taken_as_a_result() {
        let offer = leaf(Role::Worker);
        let mut history = History::default();
        history.push(step(1, "calculator", json!({"expression": 1}), ObservationStatus::Success), false);
        let taken =
            |said: &str| in_case(&offer, true, StepLimits::USUAL, |case| taken_as_text(&history, said, case));
        let long = "The limit is eight. ".repeat(40);
        for short in ["", "17.5 % of 2480 is 434.", "Let me check the second file.", "I cannot help."] {
            assert_eq!(taken(short), None, "{short:?}");
        }
        let Some(NextStep::Submit { submission, .. }) = taken(&long) else { panic!("not taken") };
        let Some(Product::Result(result)) = submission.product else { panic!("no result") };
        assert_eq!((result.conclusion.as_str(), result.body.as_str()), ("The limit is eight.", long.trim()));
    }
}
