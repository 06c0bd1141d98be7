//! Results of programs in other languages: what they cite is looked up by the rules by which those of our own agents are.

use muster_corpus::CitedPlace;
use muster_shared::flow::response::NOT_LOOKED_UP;
use muster_shared::flow::{Note, TaskOffered};

use super::history::History;
use super::lookup::{Looked, corrected, left_out, look, not_looked_up};
use crate::roles::Submission;

/// The places in documents that have to be looked up before a result counts.
#[must_use]
pub fn to_look_up(history: &History, offer: &TaskOffered, submission: &Submission) -> Vec<CitedPlace> {
    if offer.corpus.is_none() || !submission.ending.is_success() {
        return Vec::new();
    }
    match look(history, &[], submission, offer) {
        Looked::ToAsk(asked) => asked,
        Looked::Known(_) => Vec::new(),
    }
}

/// A result by what was found of its places. With `as_it_stands`, what does not hold is left out.
///
/// # Errors
/// What does not hold, one line each.
pub fn held(
    history: &History,
    offer: &TaskOffered,
    submission: Submission,
    note: &Note,
    as_it_stands: bool,
) -> Result<Submission, Vec<String>> {
    let notes = std::slice::from_ref(note);
    if let Some(why) = not_looked_up(notes) {
        let said = format!("{NOT_LOOKED_UP}: {why}");
        let reason =
            if submission.reason.is_empty() { said } else { format!("{}; {said}", submission.reason) };
        return Ok(Submission { reason, ..submission });
    }
    match look(history, notes, &submission, offer) {
        Looked::ToAsk(_) => Ok(submission),
        Looked::Known(judged) => {
            let faults: Vec<String> = judged.faults().into_iter().map(|fault| fault.why).collect();
            match (faults.is_empty(), as_it_stands) {
                (true, _) => Ok(corrected(submission, &judged)),
                (false, true) => Ok(left_out(submission, &judged)),
                (false, false) => Err(faults),
            }
        }
    }
}
