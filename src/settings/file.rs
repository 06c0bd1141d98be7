//! `muster.toml`: found upward from a folder, read with the line of every value.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::ValueKind;
use toml::de::{DeTable, DeValue};

use super::error::SettingsError;
use super::keys::Keys;
use super::layer::{Layer, Origin};

/// The name that is looked for.
pub(crate) const FILE_NAME: &str = "muster.toml";

/// The largest settings file that is read, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The nearest settings file in a folder or above it.
pub(crate) fn nearest(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().map(|above| above.join(FILE_NAME)).find(|file| file.is_file())
}

/// Reads a settings file.
pub(crate) fn read(path: &Path) -> Result<String, SettingsError> {
    muster_agents::input::text(path, MAX_BYTES)
        .map_err(|reason| SettingsError::Unreadable { path: path.to_owned(), reason })
}

/// The values of a settings file, each with its line. Pure.
pub(crate) fn parse(path: &str, text: &str, keys: &Keys) -> Result<Layer, SettingsError> {
    let table = table(path, text)?;
    let mut reader = Reader { path, text, keys, layer: Layer::default() };
    reader.table(table.get_ref(), "")?;
    Ok(reader.layer)
}

/// A file as TOML, with the place of everything in it.
pub(super) fn table<'a>(path: &str, text: &'a str) -> Result<toml::Spanned<DeTable<'a>>, SettingsError> {
    DeTable::parse(text).map_err(|error| SettingsError::Syntax {
        message: error.message().to_owned(),
        source_code: Arc::new(miette::NamedSource::new(path, text.to_owned())),
        at: span(error.span().unwrap_or(0..0), text),
    })
}

/// Reads settings out of a file.
pub(super) struct Reader<'a> {
    /// The file as it was named.
    pub(super) path: &'a str,
    /// What stands in it.
    pub(super) text: &'a str,
    /// The keys there are.
    pub(super) keys: &'a Keys,
    /// What was read so far.
    pub(super) layer: Layer,
}

impl Reader<'_> {
    fn table(&mut self, table: &DeTable<'_>, above: &str) -> Result<(), SettingsError> {
        for (part, value) in table {
            let own = super::keys::written(part.get_ref());
            let name = if above.is_empty() { own } else { format!("{above}.{own}") };
            self.value(&name, part.span(), value.get_ref())?;
        }
        Ok(())
    }

    /// Reads one value, or a group of them. `at` is where its name stands.
    pub(super) fn value(
        &mut self,
        name: &str,
        at: Range<usize>,
        value: &DeValue<'_>,
    ) -> Result<(), SettingsError> {
        match value {
            DeValue::Table(inner) if self.keys.is_group(name) => {
                // To name one is enough.
                let says = |part: &str| inner.iter().any(|(key, _)| key.get_ref() == part);
                if super::guards::named(name).is_some() && !says("enabled") {
                    self.set(&format!("{name}.enabled"), true, at.start);
                }
                self.table(inner, name)
            }
            plain => {
                let Some(key) = self.keys.find(name) else { return Err(self.unknown(name, at)) };
                if key.is_secret() {
                    return Err(self.secret(name, &key.variable(), at));
                }
                self.set(name, plain_value(plain, 0), at.start);
                Ok(())
            }
        }
    }

    /// Sets a value that stands at this byte.
    pub(super) fn set(&mut self, name: &str, value: impl Into<ValueKind>, byte: usize) {
        let line = line_of(self.text, byte);
        self.layer.set(name, value, Origin::File { path: self.path.to_owned(), line });
    }

    fn unknown(&self, name: &str, at: Range<usize>) -> SettingsError {
        let known_group = self.keys.is_group(name);
        SettingsError::UnknownKey {
            key: name.to_owned(),
            line: line_of(self.text, at.start),
            advice: if known_group {
                format!("{name} is a group of settings: write it as [{name}]")
            } else {
                super::error::advice_for_unknown(name, self.keys)
            },
            source_code: Arc::new(miette::NamedSource::new(self.path, self.text.to_owned())),
            at: span(at, self.text),
        }
    }

    fn secret(&self, name: &str, variable: &str, at: Range<usize>) -> SettingsError {
        SettingsError::SecretInFile {
            key: name.to_owned(),
            variable: variable.to_owned(),
            line: line_of(self.text, at.start),
        }
    }
}

/// The line of a byte, from 1.
pub(super) fn line_of(text: &str, byte: usize) -> usize {
    text.as_bytes().iter().take(byte).filter(|b| **b == b'\n').count() + 1
}

pub(super) fn span(at: Range<usize>, text: &str) -> miette::SourceSpan {
    let start = at.start.min(text.len());
    (start, at.end.min(text.len()).saturating_sub(start)).into()
}

/// A value without its places in the file. Nesting is limited by the parser; ours is a second line of defence.
pub(super) fn plain_value(value: &DeValue<'_>, depth: usize) -> ValueKind {
    const MAX_DEPTH: usize = 32;
    if depth > MAX_DEPTH {
        return ValueKind::Nil;
    }
    match value {
        DeValue::String(text) => ValueKind::String(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| ValueKind::String(number.as_str().to_owned()), ValueKind::I64),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or_else(|_| ValueKind::String(number.as_str().to_owned()), ValueKind::Float),
        DeValue::Boolean(flag) => ValueKind::Boolean(*flag),
        DeValue::Datetime(time) => ValueKind::String(time.to_string()),
        DeValue::Array(items) => ValueKind::Array(
            items
                .iter()
                .map(|item| config::Value::new(None, plain_value(item.get_ref(), depth + 1)))
                .collect(),
        ),
        DeValue::Table(table) => ValueKind::Table(
            table
                .iter()
                .map(|(k, v)| {
                    (k.get_ref().to_string(), config::Value::new(None, plain_value(v.get_ref(), depth + 1)))
                })
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, dead_code)]
    use muster_shared::settings;

    use super::*;

    settings! {
        struct Sample {
            limits: Limits,
            bus: Bus,
        }
    }
    settings! {
        struct Limits {
            max_steps: u32 = 1 => whole(0, 9); Project Harmless,
        }
    }
    settings! {
        struct Bus {
            url: String = String::new() => text(); Project Harmless,
            token: String = String::new() => secret(); Project Harmless,
        }
    }

    fn parse_sample(text: &str) -> Result<Layer, SettingsError> {
        parse("muster.toml", text, &Keys::of(Sample::SETTINGS))
    }

    #[test]
    fn every_value_knows_its_line() {
        let layer = parse_sample("# top\n[limits]\nmax_steps = 4\n\n[bus]\nurl = \"x\"\n").unwrap();
        let mut origins: Vec<String> = layer.origins().map(|(key, at)| format!("{key} {at}")).collect();
        origins.sort();
        assert_eq!(origins, ["bus.url muster.toml:6", "limits.max_steps muster.toml:3"]);
    }

    #[test]
    fn a_secret_does_not_stand_in_the_file() {
        let error = parse_sample("[bus]\ntoken = \"hunter2\"\n").unwrap_err();
        assert!(matches!(&error, SettingsError::SecretInFile { line: 2, .. }), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}
