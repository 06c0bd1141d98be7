//! Pure rules about plans: check, repair, refine, order, progress, references.

mod blueprints;
pub mod check;
pub mod complexity;
pub mod matching;
pub mod nearest;
pub mod order;
pub mod progress;
pub mod reference;
pub mod refine;
pub mod repair;
pub mod replan;
pub mod summary;
pub mod tools;
pub mod values;

mod draft;
mod reworded;
mod rights;
mod tree;

pub use check::{MAX_ITEMS, MAX_NAME_BYTES, MAX_TEXT_BYTES, PlanProblem, check, check_plan};
pub(crate) use draft::normal;
pub use draft::{as_draft, as_given, goal_with_indices};
pub use nearest::unknown_task;
pub use progress::{Mark, ProgressLine};
pub use refine::{RefineRules, Refined, refine, refine_by};
pub use repair::{repair, repair_knowing};
pub use replan::{Replanned, Rigour, replan};
pub use reworded::{reworded, shown};
pub use values::Values;
