//! How the program ends: exit codes, and failures with what to do about them.

use std::fmt;
use std::process::ExitCode;

use miette::Diagnostic;
use muster_shared::secret;

/// How the program ends. The numbers are part of the interface: scripts rely on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::FromRepr)]
#[repr(u8)]
pub(crate) enum Exit {
    /// What was asked was done; for `run`, the run completed.
    Completed = 0,
    /// The run failed, or what was asked could not be done.
    Failed = 1,
    /// The command line, the settings or the input are wrong.
    Usage = 2,
    /// The bus cannot be reached or used.
    BusUnreachable = 3,
    /// The run was stopped: cancelled, its deadline passed, or its budget was used up.
    Stopped = 4,
    /// The fleet has too much to do and did not take the goal up.
    Refused = 5,
    /// The run ended with a report, and a task failed or was done in part, a rule or a new plan left a task out, a part of
    /// the report is missing, or no part of the goal was answered.
    InPart = 6,
    /// All was done, and a check of an eval did not pass, an audit found something, or a file was not copied over another.
    Unmet = 7,
}

impl Exit {
    /// The number given to the shell.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    /// The end that a number stands for; one that is not known counts as a failure.
    pub(crate) fn of(code: u8) -> Self {
        Self::from_repr(code).unwrap_or(Self::Failed)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// A failure as a person sees it: what happened, and what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
    help: Option<String>,
    /// Whoever read our output went away; nothing is left to be said to them.
    reader_gone: bool,
}

impl Failure {
    /// A failure that ends the program with `exit`.
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: shown(&message.to_string()), help: None, reader_gone: false }
    }

    /// The command line, the settings or the input are wrong.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// What was asked could not be done.
    pub(crate) fn failed(message: impl fmt::Display) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// The bus cannot be reached or used.
    pub(crate) fn bus(message: impl fmt::Display) -> Self {
        Self::new(Exit::BusUnreachable, message)
    }

    /// Nobody reads our output any more (`muster … | head`): a quiet, good end.
    pub(crate) fn reader_gone() -> Self {
        Self { exit: Exit::Completed, message: "output closed".into(), help: None, reader_gone: true }
    }

    /// Adds what to do about it.
    pub(crate) fn help(mut self, help: impl fmt::Display) -> Self {
        self.help = Some(shown(&help.to_string()));
        self
    }

    /// How the program ends.
    pub(crate) const fn exit(&self) -> Exit {
        self.exit
    }

    /// Whether there is nobody to tell.
    pub(crate) const fn is_reader_gone(&self) -> bool {
        self.reader_gone
    }
}

/// Forms of [`Failure::usage`] and [`Failure::failed`] that take the arguments of `format!`.
mod formatted {
    macro_rules! usage {
        ($($text:tt)*) => { $crate::exit::Failure::usage(format_args!($($text)*)) };
    }
    macro_rules! failed {
        ($($text:tt)*) => { $crate::exit::Failure::failed(format_args!($($text)*)) };
    }
    pub(crate) use {failed, usage};
}

pub(crate) use formatted::{failed, usage};

/// Text without secrets: passwords in addresses, values that this process knows, and known forms.
fn shown(text: &str) -> String {
    crate::redaction::redacted(&secret::without_passwords(text))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Diagnostic for Failure {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_what_the_manual_and_the_help_say() {
        use clap::CommandFactory;

        let manual = include_str!("../docs/running.md");
        let help = crate::args::Cli::command().render_long_help().to_string();
        for code in 0..=7 {
            assert_eq!(Exit::of(code).code(), code);
            assert!(manual.contains(&format!("\n| {code} | ")), "{code} in docs/running.md");
            assert!(help.contains(&format!("\n  {code}  ")), "{code} in the help: {help}");
        }
        assert!(help.contains("A task that a person skipped does not change the exit code"), "{help}");
        assert_eq!(Exit::of(99), Exit::Failed);
    }
}
