//! Types and pure rules that every Muster process shares.
//!
//! Read [`flow`] in order (goal, plan, task, step, outcome, reflection, refinement, report) to follow a run,
//! then [`run`] for the record and how it is folded. No clock, randomness, network or runtime lives here:
//! whatever depends on those comes in as an argument.

pub mod backoff;
pub mod blueprint;
pub mod claim;
pub mod conflict;
pub mod contract;
pub mod explain;
pub mod facts;
pub mod flow;
pub mod ids;
pub mod plan;
pub mod recall;
pub mod run;
pub mod secret;
pub mod setting;
pub mod span;
pub mod sync;
pub mod text;
pub mod time;
pub mod traces;
pub mod track_record;
pub mod trial_state;
pub mod wire;

mod number_keys;
mod text_form;

/// Whether a field is left out when it is written: it has the default value of its type.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Whether a field is left out when it is written: it has the usual value.
pub(crate) fn is_usual<T: Copy + Into<u64>, const USUAL: u64>(value: &T) -> bool {
    (*value).into() == USUAL
}

/// Whether a field is left out when it is written: it is set.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) const fn is_true(flag: &bool) -> bool {
    *flag
}
