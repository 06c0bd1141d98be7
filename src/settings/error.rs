//! What can be wrong with settings.

use std::path::PathBuf;
use std::sync::Arc;

use miette::{Diagnostic, NamedSource, SourceSpan};

use super::Effective;
use super::keys::Keys;

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(crate) enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read the settings file {path}: {reason}", path = path.display())]
    #[diagnostic(help(
        "check the path and its permissions, or leave out --config to use the nearest muster.toml"
    ))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The file is not TOML.
    #[error("the settings file is not valid TOML: {message}")]
    #[diagnostic(help("see deploy/muster.example.toml for how a settings file looks"))]
    Syntax {
        /// What is wrong.
        message: String,
        /// The file.
        #[source_code]
        source_code: Arc<NamedSource<String>>,
        /// Where.
        #[label("here")]
        at: SourceSpan,
    },
    /// A key that does not exist.
    #[error("{key} (line {line}) is not a setting")]
    #[diagnostic(help("{advice}"))]
    UnknownKey {
        /// The key.
        key: String,
        /// Its line, from 1.
        line: usize,
        /// What may have been meant.
        advice: String,
        /// The file.
        #[source_code]
        source_code: Arc<NamedSource<String>>,
        /// Where.
        #[label("not a setting")]
        at: SourceSpan,
    },
    /// A key that does not exist, from a flag.
    #[error("{key} (from {origin}) is not a setting")]
    #[diagnostic(help("{advice}"))]
    UnknownFlagKey {
        /// The key.
        key: String,
        /// Which flag.
        origin: String,
        /// What may have been meant.
        advice: String,
    },
    /// A list from a flag or the environment that is not written as one.
    #[error("{key} (from {origin}) is a list, and {text} is none: {reason}")]
    #[diagnostic(help(
        "write its items with commas between them (a,b), or as a TOML array in single quotes, since a shell takes double \
         ones away: '[\"a\", \"b\"]'"
    ))]
    List {
        /// The key.
        key: String,
        /// Which flag or variable.
        origin: String,
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A secret stands beside other settings.
    #[error("{key} (line {line}) is a secret and does not belong in a settings file")]
    #[diagnostic(help(
        "set it in the environment as {variable}, or keep it in a file of its own where there is a `_file` setting for it"
    ))]
    SecretInFile {
        /// The key.
        key: String,
        /// The variable to use.
        variable: String,
        /// Its line, from 1.
        line: usize,
    },
    /// Something in a team file that is not a setting is wrong.
    #[error("{path}:{line}: {what}")]
    #[diagnostic(help("{advice}"))]
    Team {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
        /// What to do about it.
        advice: String,
        /// The file's text.
        #[source_code]
        source_code: Arc<NamedSource<String>>,
        /// Where.
        #[label("here")]
        at: SourceSpan,
    },
    /// A value with which nothing can work.
    #[error("{key} = {value} (from {origin}) cannot work: {rule}")]
    #[diagnostic(help("`muster config --explain {key}` says what it does and what it may be"))]
    OutOfRange {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// Where it comes from.
        origin: String,
        /// What it must be.
        rule: String,
    },
    /// A secret on the command line, where everybody on the machine can read it.
    #[error(
        "{key} is a secret and does not belong on a command line ({origin}): everybody on this machine can read it there"
    )]
    #[diagnostic(help(
        "set it in the environment as {variable}, or keep it in a file of its own where there is a `_file` setting for it"
    ))]
    SecretInFlag {
        /// The key.
        key: String,
        /// Which flag.
        origin: String,
        /// The variable to use.
        variable: String,
    },
    /// What a process was handed by whoever started it makes no sense.
    #[error("{variable} cannot be read: {reason}")]
    #[diagnostic(help(
        "it is set by `muster up` for the processes that it starts: unset it, and give settings with --set"
    ))]
    HandedDown {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is not the user's own.
    #[error("{path} does not count: {fault}", path = path.display())]
    #[diagnostic(help("{mend}; `muster trust` shows what is in it and lets it count as it is now"))]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Why.
        fault: String,
        /// What to do about it.
        mend: String,
    },
    /// The file asks for what needs the user's word.
    #[error("{path} would do what needs your word:{what}", path = path.display())]
    #[diagnostic(help(
        "`muster trust` shows it and asks you once; or say it yourself, with a flag, a variable (MUSTER_…), or in \
         ~/.config/muster/muster.toml"
    ))]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// What, a line each.
        what: String,
    },
    /// What was trusted cannot be told.
    #[error("{reason}")]
    #[diagnostic(help(
        "what you trust is kept in ~/.local/state/muster/trust: it must be yours, and closed to others"
    ))]
    Trust {
        /// Why not.
        reason: String,
    },
    /// A value of the wrong kind.
    #[error("{problem}")]
    #[diagnostic(help("`muster config --all` shows every setting with its value and where it comes from"))]
    Value {
        /// Which value and what is wrong with it.
        problem: String,
    },
}

impl SettingsError {
    /// A part of a guard or a trial is wrong: the part, and what it has to be.
    pub(super) fn of_part(
        effective: &[Effective],
        section: &str,
        name: &str,
        (part, rule): (&str, String),
    ) -> Self {
        let own = format!("{section}.{}.", super::keys::written(name));
        let key = format!("{own}{part}");
        let found = effective.iter().find(|one| one.key.starts_with(&own) && !super::is_default(one));
        let origin = found.map(|one| one.origin.clone()).unwrap_or_default();
        let value = effective.iter().find(|one| one.key == key).map(|one| one.value.to_string());
        let value = value.unwrap_or_else(|| "nothing".to_owned());
        Self::OutOfRange { key, value, origin, rule }
    }

    /// A section names more guards or trials than there may be.
    pub(super) fn too_many(section: &str, count: usize, most: usize) -> Self {
        Self::OutOfRange {
            key: section.to_owned(),
            value: format!("{count} {section}"),
            origin: "all sources".to_owned(),
            rule: format!("there may be {most} at most"),
        }
    }
}

/// Advice after the name of a group of settings.
fn one_of(group: &str, under: &[String]) -> String {
    const MOST: usize = 6;
    let more = if under.len() > MOST { ", …" } else { "" };
    let named = under.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    format!("{group} is a group of settings: set one of {named}{more}; `muster config {group}` shows them")
}

/// Advice after a name that is no key.
pub(crate) fn advice_for_unknown(name: &str, keys: &Keys) -> String {
    if keys.is_group(name) { one_of(name, &keys.under(name)) } else { did_you_mean(keys.nearest(name)) }
}

/// Advice after an unknown name.
fn did_you_mean(nearest: Option<String>) -> String {
    nearest.map_or_else(
        || "`muster config --all` lists every setting there is".to_owned(),
        |known| format!("did you mean {known}? `muster config --all` lists every setting there is"),
    )
}
