//! How a call ended, before it is cut to size.

use std::time::Duration;

use muster_shared::flow::{CachedAnswer, Refusal, Wait};
use muster_shared::time::millis;
use serde_json::Value;

use super::kept::KeptAnswer;
use crate::keeper::{KeptResult, MOST_KEPT, ResultKeeper};
use crate::spec::{ToolFailure, ToolOutput, ToolResult, ToolStatus};

/// What a call that gave nothing failed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing: it gave what it was to give, or was not let.
    None,
    /// Something that may pass: the tool cannot be reached, or took too long.
    Passing,
    /// The tool broke.
    Broken,
    /// Anything else.
    Lasting,
}

/// How a call ended.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) status: ToolStatus,
    pub(super) content: String,
    pub(super) data: Option<Value>,
    pub(super) fault: Fault,
    pub(super) wait: Option<Box<Wait>>,
    pub(super) denied: Option<Box<Refusal>>,
    pub(super) tries: u32,
    pub(super) by: Option<String>,
    pub(super) age: Option<Duration>,
    pub(super) cached: Option<CachedAnswer>,
    /// By which it is read on where it is cut.
    pub(super) kept_as: Option<String>,
}

impl Ending {
    pub(super) fn of_status(status: ToolStatus, content: String, fault: Fault) -> Self {
        let (data, wait, denied, by, kept_as) = (None, None, None, None, None);
        let (age, cached) = (None, None);
        Self { status, content, data, fault, wait, denied, tries: 0, by, age, cached, kept_as }
    }

    pub(super) fn refused(content: String) -> Self {
        Self::of_status(ToolStatus::Refused, content, Fault::None)
    }

    /// The tool broke.
    pub(super) fn broken(name: &str, reason: &str) -> Self {
        tracing::error!(tool = name, reason, "a tool broke");
        let content = format!("`{name}` broke: {reason}. This is a fault in the tool; use another way.");
        Self::of_status(ToolStatus::Error, content, Fault::Broken)
    }

    /// Nobody calls the tool for so long.
    pub(super) fn left_alone(name: &str, left: Duration) -> Self {
        let seconds = left.as_secs_f64().ceil();
        let content = format!(
            "`{name}` was not called: it failed several times in a row, and is left alone for {seconds} s. Use another way, \
             or come back to it later."
        );
        Self::of_status(ToolStatus::Error, content, Fault::Passing)
    }

    /// Its time was up.
    pub(super) fn timed_out(name: &str, limit: Duration) -> Self {
        let content = format!(
            "`{name}` was given up after {} ms, its time limit. Ask for less, or use another way.",
            limit.as_millis()
        );
        Self::of_status(ToolStatus::Timeout, content, Fault::Passing)
    }

    /// Something that passes kept it from being called.
    pub(super) fn unavailable(content: String) -> Self {
        Self::of_status(ToolStatus::Error, content, Fault::Passing)
    }

    pub(super) fn of(ended: Result<ToolOutput, ToolFailure>) -> Self {
        match ended {
            Ok(ToolOutput { content, data, wait }) => {
                Self { data, wait, ..Self::of_status(ToolStatus::Success, content, Fault::None) }
            }
            Err(failure) => Self::of_failure(&failure),
        }
    }

    pub(super) fn of_failure(failure: &ToolFailure) -> Self {
        let content = failure.to_string();
        match failure {
            // The tool is not to blame for how it was asked.
            ToolFailure::InvalidArguments(_) | ToolFailure::NotFound(_) | ToolFailure::Refused(_) => {
                Self::refused(content)
            }
            ToolFailure::NoRight(refusal) => Self { denied: Some(refusal.clone()), ..Self::refused(content) },
            ToolFailure::Failed(_) => Self::of_status(ToolStatus::Error, content, Fault::Lasting),
            ToolFailure::Unavailable(_) => Self::of_status(ToolStatus::Error, content, Fault::Passing),
        }
    }

    /// The last good answer of the same call, in the place of this failure.
    pub(super) fn or_kept(self, kept: &KeptAnswer, age: Duration) -> Self {
        let why = self.content;
        let content = format!(
            "[This is the answer of {} s ago to the same call; it may have changed since. Now: {why}]\n{}",
            age.as_secs(),
            kept.content
        );
        let ending = Self::of_status(ToolStatus::Success, content, Fault::None);
        Self { data: kept.data.clone(), tries: self.tries, age: Some(age), ..ending }
    }

    /// What another tool gave in the place of this failure.
    pub(super) fn stood_in(self, failed: &str, other: &str, given: Self) -> Self {
        let content =
            format!("[`{other}` answered in place of `{failed}`: {}]\n{}", self.content, given.content);
        let tries = self.tries.saturating_add(given.tries);
        Self { content, tries, by: Some(other.to_owned()), ..given }
    }

    /// Says after how many tries.
    pub(super) fn after(mut self, tries: u32) -> Self {
        if tries > 1 && self.fault != Fault::None {
            self.content.push_str(&format!(" It was tried {tries} times."));
        }
        self.tries = tries;
        self
    }

    /// Keeps what is longer than `most`, so that it can be read on. What cannot be kept is cut all the same.
    pub(super) async fn kept_by(mut self, keeper: &dyn ResultKeeper, most: usize) -> Self {
        if self.content.len() <= most {
            return self;
        }
        let mut whole = std::mem::take(&mut self.content);
        whole.truncate(whole.floor_char_boundary(MOST_KEPT));
        match keeper.keep(whole.clone()).await {
            Ok(KeptResult { id, text }) => Self { content: text, kept_as: Some(id), ..self },
            Err(error) => {
                tracing::warn!(error, "a result that is cut is not kept");
                Self { content: whole, ..self }
            }
        }
    }

    /// Cut to size: at most `most` bytes of words, and `most_data` bytes of data.
    pub(super) fn cut(self, most: usize, most_data: usize, took: Duration) -> ToolResult {
        let Self { status, mut content, mut data, fault, wait, denied, tries, by, age, cached, kept_as } =
            self;
        let mut truncated = false;
        if content.len() > most {
            let whole = content.len();
            content.truncate(content.floor_char_boundary(most));
            let shown = content.len();
            let rest = match kept_as {
                Some(id) => {
                    format!("read on with `read_result` {{\"id\": \"{id}\", \"offset\": {shown}}}")
                }
                None => "ask for less at a time to see the rest".to_owned(),
            };
            content.push_str(&format!("\n[cut: {shown} of {whole} bytes shown; {rest}]"));
            truncated = true;
        }
        if data.as_ref().is_some_and(|data| json_size(data) > most_data) {
            data = None;
            truncated = true;
        }
        let transient = fault == Fault::Passing;
        let (millis, age_ms) = (millis(took), age.map(millis));
        ToolResult {
            status,
            content,
            data,
            millis,
            truncated,
            transient,
            wait,
            denied,
            tries,
            answered_by: by,
            age_ms,
            cached,
        }
    }
}

/// Bytes of the JSON form, counted without building it.
pub(super) fn json_size(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}
