//! What grows as the work grows: agents, old runs, steps, runs at once. Each is a table with one line for each size.
//!
//! `cargo bench --bench figures -- scale [idle|past|agents|steps|together]`. It takes about half an hour.

mod agents;
mod cost;
mod disk;
mod idle;
mod past;
mod steps;
mod table;
mod together;

/// The tables by name.
const ALL: [(&str, fn()); 6] = [
    ("disk", disk::measure),
    ("steps", steps::measure),
    ("agents", agents::measure),
    ("together", together::measure),
    ("idle", idle::measure),
    ("past", past::measure),
];

/// Prints the tables that are named, or all.
pub(crate) fn measure(only: &[String]) {
    for (name, measure) in ALL {
        if only.is_empty() || only.iter().any(|one| one == name) {
            measure();
        }
    }
}
