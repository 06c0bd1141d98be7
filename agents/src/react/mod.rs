//! The ReAct loop: pure decisions over a history of steps, and what drives them.
//!
//! [`decide`](decide::decide) says what comes next, [`history`] folds the record, [`prompt`] words the
//! question, [`parse`] reads the answer, and [`record`] keeps what was sent.

mod approval;
mod arriving;
pub mod close;
mod compact;
pub mod consult;
pub mod decide;
pub mod declaration;
pub mod drive;
mod failure;
mod files;
pub mod further;
mod grounds;
pub mod history;
pub mod interrupt;
pub mod journal;
pub mod limits;
pub(crate) mod log_place;
pub mod lookup;
mod loop_detection;
pub mod mailbox;
mod mend;
pub mod model;
pub mod of_programs;
mod opening;
pub mod ownership;
pub mod parse;
pub(crate) mod partial;
mod place;
pub mod progress;
pub mod prompt;
mod prose;
pub mod record;
pub mod replay;
pub mod resources;
pub mod reuse;
pub mod sent;
mod several;
pub mod states;
pub mod submit;
pub mod toolset;
pub mod uncertain;
pub mod verify;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod transitions_tests;
