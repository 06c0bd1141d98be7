//! `sql`: queries over the tables that stand in files. Nothing is changed by them.
//!
//! A call is one walk: list the files, choose those that the query names, read them, load them into a database in
//! memory, bound it ([`guard`]), ask it. The last three are made on a thread that may block; it ends soon after nobody
//! waits any more.

mod functions;
mod guard;
mod load;
mod names;
mod problem;
mod queries;
mod run;
mod table;
mod tool;
mod types;

pub(crate) use queries::file_query;
pub use queries::{Answer, Queries, Query};
pub(crate) use tool::sql_tools;

#[cfg(test)]
mod tests;
