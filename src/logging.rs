//! Logs: to standard error, redacted, as text or JSON.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use muster_shared::secret::Redactor;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::exit::{Failure, usage};
use crate::log_line::{JsonLine, PLACES, Places};
use crate::render::safe;
use crate::settings::{LogFormat, LogSettings};

/// Who logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// A process that stays: its log is read later.
    Process,
    /// A command that a person waits for: what becomes of its connection is told by its own errors.
    Command,
}

/// What a command logs when nobody set a level.
const OF_A_COMMAND: &str = "error,muster=warn,muster_bus=error";

/// Libraries whose errors come as ours.
const QUIET: [&str; 2] = ["genai", "async_nats::connector"];

/// Begins to log.
pub(crate) fn begin(
    settings: &LogSettings,
    redactor: Arc<Redactor>,
    speaker: Speaker,
) -> Result<(), Failure> {
    let unset = settings.level == LogSettings::default().level;
    let level = match speaker {
        Speaker::Command if unset => OF_A_COMMAND,
        Speaker::Command | Speaker::Process => settings.level.as_str(),
    };
    // What they remark on every stream and at every attempt tells nobody anything.
    let quiet = QUIET.iter().filter(|name| !level.contains(**name)).map(|name| format!(",{name}=off"));
    let places = match settings.format {
        LogFormat::Text => String::new(),
        LogFormat::Json => format!(",{PLACES}"),
    };
    let quiet = format!("{level}{}{places}", quiet.collect::<String>());
    let filter = EnvFilter::try_new(quiet).map_err(|error| {
        usage!("log.level = {:?} is not a log filter: {error}", settings.level)
            .help("write a level (error, warn, info, debug, trace) or modules, such as info,muster_bus=debug; MUSTER_LOG sets it too")
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(RedactedStderr { redactor, format: settings.format });
    // A second call in one process can only come from a test harness: the first one stays.
    let _ = match settings.format {
        LogFormat::Text => builder.with_ansi(false).try_init().is_ok(),
        LogFormat::Json => builder.event_format(JsonLine).finish().with(Places).try_init().is_ok(),
    };
    Ok(())
}

/// Lines that wait while something is redrawn in place on the terminal; nothing when they go there at once.
static HELD: Mutex<Option<VecDeque<String>>> = Mutex::new(None);

/// Most lines that wait; the oldest go first.
const MOST_HELD: usize = 100;

/// From now on, lines wait to be taken: written at once, they would stand amid what is redrawn.
pub(crate) fn hold() {
    if let Ok(mut held) = HELD.lock() {
        held.get_or_insert_default();
    }
}

/// The lines that wait.
pub(crate) fn take_held() -> String {
    HELD.lock()
        .ok()
        .and_then(|mut held| held.as_mut().map(|lines| lines.drain(..).collect()))
        .unwrap_or_default()
}

/// Lines go to the terminal again.
pub(crate) fn release() {
    let held = HELD.lock().ok().and_then(|mut held| held.take());
    for line in held.into_iter().flatten() {
        let _ = io::stderr().lock().write_all(line.as_bytes());
    }
}

/// Keeps a line where lines wait.
fn keep(line: &str) -> bool {
    let Ok(mut held) = HELD.lock() else { return false };
    let Some(lines) = held.as_mut() else { return false };
    if lines.len() >= MOST_HELD {
        lines.pop_front();
    }
    lines.push_back(line.to_owned());
    true
}

/// Standard error with every secret taken out of what is written.
struct RedactedStderr {
    redactor: Arc<Redactor>,
    format: LogFormat,
}

impl<'a> MakeWriter<'a> for RedactedStderr {
    type Writer = RedactedLine<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        RedactedLine { redactor: &self.redactor, format: self.format, line: Vec::new() }
    }
}

/// One event: gathered whole, so that a secret cannot hide in the seam of two writes.
struct RedactedLine<'a> {
    redactor: &'a Redactor,
    format: LogFormat,
    line: Vec<u8>,
}

impl Write for RedactedLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for RedactedLine<'_> {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.line);
        let redacted = self.redactor.redact(&text).into_owned();
        let text = match self.format {
            LogFormat::Text => safe::text(&redacted).into_owned(),
            LogFormat::Json => safe::json(redacted),
        };
        if !keep(&text) {
            let _ = io::stderr().lock().write_all(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wait_while_they_are_held_and_not_without_limit() {
        assert!(!keep("at once"));
        hold();
        assert!(keep("one\n") && keep("two\n"));
        assert_eq!(take_held(), "one\ntwo\n");
        for n in 0..=MOST_HELD {
            keep(&format!("{n}\n"));
        }
        assert!(take_held().starts_with("1\n"), "the oldest gives way");
        release();
        assert!(!keep("at once again"));
    }
}
