//! Weight and boundaries of the workspace: production tokens per crate, test lines, type names with two meanings, import
//! cycles, and imports that decision code must not have. `weights.toml` records the allowed values.

mod cycles;
mod source;
mod weights;

pub use cycles::{modules_in_cycles, top_level_modules_in_cycles};
pub use source::{Crate, Workspace};
pub use weights::{RECORD_FILE, UPDATE_VARIABLE, Weights};
