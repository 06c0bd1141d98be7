//! What is kept of runs: the file in which a run goes to another fleet, what stays of one whose time is over, and which that is.
//! Pure.

pub(crate) mod file;
pub(crate) mod policy;
pub(crate) mod summary;
