//! Standard output and standard error, written so that a reader who leaves early does no harm.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::exit::{Exit, Failure, failed};
use crate::redaction::{redacted, redacted_json};
use crate::render::safe;

/// Writes text and a line end to standard output. What could steer a terminal is shown as what it is, whoever wrote it.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out
        .write_all(safe::painted(text).as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::reader_gone(),
        _ => failed!("cannot write to standard output: {error}")
            .help("check that the disk or the program that reads the output has room"),
    })
}

/// Forms of [`line()`] and [`note()`] that take the arguments of `format!`.
mod formatted {
    macro_rules! line {
        ($($text:tt)*) => { $crate::output::line(&format!($($text)*)) };
    }
    macro_rules! note {
        ($($text:tt)*) => { $crate::output::note(&format!($($text)*)) };
    }
    pub(crate) use {line, note};
}

pub(crate) use formatted::{line, note};

/// Writes text that may or may not end its last line.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    line(text.strip_suffix('\n').unwrap_or(text))
}

/// Writes a value as indented JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> Result<(), Failure> {
    pretty(&value)
}

/// Writes a value as JSON, or else the text of it for people.
pub(crate) fn json_or_line<T: Serialize, S: AsRef<str>>(
    as_json: bool,
    value: impl FnOnce() -> T,
    text: impl FnOnce() -> S,
) -> Result<Exit, Failure> {
    if as_json {
        json(&value())?
    } else {
        line(text().as_ref())?
    }
    Ok(Exit::Completed)
}

/// Once for all types: what is generic is compiled again for each.
fn pretty(value: &dyn erased_serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(not_json)?;
    line(&safe::json(redacted_json(text, serde_json::to_string_pretty)))
}

/// Writes a value as JSON on one line, for streams of values.
pub(crate) fn json_line<T: Serialize>(value: &T) -> Result<(), Failure> {
    on_one_line(&value)
}

fn on_one_line(value: &dyn erased_serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(not_json)?;
    line(&safe::json(redacted_json(text, serde_json::to_string)))
}

/// Tells the person something beside the result. Losing it harms nothing, so errors are ignored.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", safe::painted(&redacted(text)));
}

/// Tells the person what went wrong, its beginning in colour where that is wanted.
pub(crate) fn fault(report: &str) {
    let report = redacted(report);
    let paint = crate::app::paint(io::stderr().is_terminal());
    let line = |line: &str| match line.trim_start() {
        words if words.starts_with('×') => paint.bad(line),
        words if words.starts_with("help:") => paint.busy(line),
        _ => line.to_owned(),
    };
    note(&report.lines().map(line).collect::<Vec<_>>().join("\n"));
}

/// Tells the person what is wrong with the command line, its beginning in colour where that is wanted.
pub(crate) fn misread(text: &str) {
    let paint = crate::app::paint(io::stderr().is_terminal());
    let text = text.trim_end();
    match text.strip_prefix(MISREAD) {
        Some(rest) => note(&format!("{}{rest}", paint.bad(MISREAD))),
        None => note(text),
    }
}

/// How errors of the command line begin.
const MISREAD: &str = "error:";

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Columns of the terminal, within what can be read.
pub(crate) fn columns() -> usize {
    terminal().0.clamp(20, 400)
}

/// Rows of the terminal.
pub(crate) fn rows() -> usize {
    terminal().1.max(2)
}

fn terminal() -> (usize, usize) {
    let size = terminal_size::terminal_size();
    size.map_or((80, 24), |(columns, rows)| (columns.0.into(), rows.0.into()))
}

fn not_json(error: impl std::fmt::Display) -> Failure {
    failed!("cannot write the result as JSON: {error}")
}
