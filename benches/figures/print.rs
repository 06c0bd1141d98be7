//! A table of figures: what was measured, the aim, and the ratio to the bare counterpart.

use std::time::Duration;

use muster_support::figures::Figure;

/// Prints one line of the table.
pub(crate) fn figure(figure: &Figure) {
    let verdict = match figure.reached() {
        Some(true) => "reached",
        Some(false) => "MISSED",
        None => "",
    };
    let Figure { what, measured, .. } = figure;
    println!("{what:<62} {measured:>13}  {:<12} {verdict:<8} {}", figure.aim(), bare(figure));
}

/// The ratio to the bare counterpart, and what that is.
pub(crate) fn bare(figure: &Figure) -> String {
    match (&figure.bare, figure.ratio()) {
        (Some(bare), Some(ratio)) => format!("{ratio:.2} x {} ({})", bare.what, bare.measured),
        _ => String::new(),
    }
}

/// Prints the head of the table.
pub(crate) fn head() {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    println!(
        "release build, {cores} cores, nats-server counted in, every write on disk (sync always) unless said\n"
    );
    println!("{:<62} {:>13}  {:<12} {:<8} ratio to the bare counterpart", "figure", "measured", "aim", "");
}

/// The median. Sorts its argument.
pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
