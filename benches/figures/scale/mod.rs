//! What grows as the work grows: agents, old runs, steps, runs at once. Each is a table with one line for each size.
//!
//! `cargo bench --bench figures -- scale [disk|steps|agents|together|idle|past|fleet] [SIZE…]`: tables by name, or all, with
//! the usual sizes or those given. All together take about half an hour.

mod agents;
mod cost;
mod disk;
mod fleet;
mod idle;
mod past;
mod steps;
mod table;
mod together;

/// A measurement by name, which takes the sizes that it is made for.
type Part = (&'static str, fn(&[usize]));

/// The tables by name.
const ALL: [Part; 7] = [
    ("disk", disk::measure),
    ("steps", steps::measure),
    ("agents", agents::measure),
    ("together", together::measure),
    ("idle", idle::measure),
    ("past", past::measure),
    ("fleet", fleet::measure),
];

/// Prints the tables that are named, or all.
pub(crate) fn measure(only: &[String]) {
    let sizes: Vec<usize> = only.iter().filter_map(|word| word.parse().ok()).collect();
    let names: Vec<&String> = only.iter().filter(|word| word.parse::<usize>().is_err()).collect();
    for (name, measure) in ALL {
        if names.is_empty() || names.iter().any(|one| *one == name) {
            measure(&sizes);
        }
    }
}

/// The sizes that are wanted, or the usual ones.
fn sizes(wanted: &[usize], usual: &[usize]) -> Vec<usize> {
    if wanted.is_empty() { usual.to_vec() } else { wanted.to_vec() }
}
