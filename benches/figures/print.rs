//! A table of figures: what was measured, the aim, and the ratio to the bare counterpart.

use std::time::Duration;

/// One line of the table.
#[derive(Clone)]
pub(crate) struct Figure {
    /// What it is.
    pub(crate) what: String,
    /// What was measured, with its unit.
    pub(crate) value: String,
    /// What is aimed at.
    pub(crate) aim: &'static str,
    /// Whether the aim is reached.
    pub(crate) reached: Option<bool>,
    /// The bare counterpart, and how many times it this is.
    pub(crate) bare: Option<(String, f64)>,
}

impl Figure {
    /// A figure with an aim.
    pub(crate) fn new(what: &str, value: String, aim: &'static str, reached: bool) -> Self {
        Self { what: what.to_owned(), value, aim, reached: Some(reached), bare: None }
    }

    /// A figure without an aim.
    pub(crate) fn plain(what: &str, value: String) -> Self {
        Self { what: what.to_owned(), value, aim: "", reached: None, bare: None }
    }

    /// Adds the bare counterpart.
    pub(crate) fn against(mut self, bare: String, ratio: f64) -> Self {
        self.bare = Some((bare, ratio));
        self
    }

    /// Prints the line.
    pub(crate) fn print(&self) {
        let verdict = match self.reached {
            Some(true) => "reached",
            Some(false) => "MISSED",
            None => "",
        };
        let bare =
            self.bare.as_ref().map_or_else(String::new, |(bare, ratio)| format!("{ratio:.2} x {bare}"));
        println!("{:<58} {:>16}  {:<14} {:<8} {bare}", self.what, self.value, self.aim, verdict);
    }
}

/// Prints the head of the table.
pub(crate) fn head() {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    println!(
        "release build, {cores} cores, nats-server counted in, every write on disk (sync always) unless said\n"
    );
    println!("{:<58} {:>16}  {:<14} {:<8} ratio to the bare counterpart", "figure", "measured", "aim", "");
}

/// A time in milliseconds.
pub(crate) fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}

/// A size in MiB.
pub(crate) fn mib(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let mib = bytes as f64 / (1024.0 * 1024.0);
    format!("{mib:.1} MiB")
}

/// The median. Sorts its argument.
pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// How many times `bare` goes into `ours`.
pub(crate) fn ratio(ours: Duration, bare: Duration) -> f64 {
    ours.as_secs_f64() / bare.as_secs_f64()
}
