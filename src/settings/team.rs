//! `fleet.toml`: a team as a file. Who it is made of, and the settings that hold for it.
//!
//! Everything in it but `name`, `description` and `[members]` is a setting, as in `muster.toml`; what `[members]` says of
//! counts and models are settings too, written shorter.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use muster_shared::ids::Role;
use muster_shared::text::nearest_name;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::SettingsError;
use super::file::{self, Reader};
use super::keys::Keys;
use super::layer::Layer;
use super::sections::MOST_PROCESSES;

/// The role under which orchestrators are listed among the members.
const ORCHESTRATOR: &str = "orchestrator";

/// Most members.
const MOST_MEMBERS: usize = 64;

/// What can be said of a member.
const FIELDS: [&str; 4] = ["count", "model", "file", "command"];

/// A team: what `fleet.toml` says beside settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Team {
    /// The file.
    pub(crate) path: PathBuf,
    /// What it is called; the file's name when it says none.
    pub(crate) name: String,
    /// What it is for.
    description: String,
    /// Those of its members that do not come with Muster, in the order of the file.
    pub(crate) specialists: Vec<TeamSpecialist>,
}

/// A member that does not come with Muster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TeamSpecialist {
    /// Its role.
    pub(crate) role: String,
    /// What is started for it.
    pub(crate) source: Source,
    /// Where it stands in the file: the line, from 1.
    pub(crate) line: usize,
}

/// What is started for a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// An agent of Muster with this definition (`NAME.agent.md`).
    File(PathBuf),
    /// A program of any language, with its arguments.
    Command(Vec<String>),
}

/// Reads a team file: the team, and the settings in it. Pure.
pub(super) fn parse(
    path: &Path,
    shown: &str,
    text: &str,
    keys: &Keys,
) -> Result<(Team, Layer), SettingsError> {
    let table = file::table(shown, text)?;
    let named = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let team =
        Team { path: path.to_owned(), name: named, description: String::new(), specialists: Vec::new() };
    let reader = Reader { path: shown, text, keys, layer: Layer::default() };
    let mut reading = TeamReader { reader, team };
    for (part, value) in table.get_ref() {
        let at = part.span();
        match part.get_ref().as_ref() {
            "name" => reading.team.name = reading.text("name", value)?,
            "description" => reading.team.description = reading.text("description", value)?,
            "members" => reading.members(value)?,
            setting => reading.reader.value(&super::keys::written(setting), at, value.get_ref())?,
        }
    }
    Ok((reading.team, reading.reader.layer))
}

struct TeamReader<'a> {
    reader: Reader<'a>,
    team: Team,
}

impl TeamReader<'_> {
    fn members(&mut self, members: &Spanned<DeValue<'_>>) -> Result<(), SettingsError> {
        let table = self.table("members", members)?;
        if table.len() > MOST_MEMBERS {
            let what = format!("there are {} members, {MOST_MEMBERS} is the most", table.len());
            return Err(self.wrong(members.span(), what, "leave some out"));
        }
        for (role, member) in table {
            self.member(role.get_ref(), role.span(), member)?;
        }
        Ok(())
    }

    fn member(
        &mut self,
        role: &str,
        at: Range<usize>,
        member: &Spanned<DeValue<'_>>,
    ) -> Result<(), SettingsError> {
        let known = match role.parse::<Role>() {
            _ if role == ORCHESTRATOR => None,
            Ok(known) => Some(known),
            Err(error) => {
                return Err(self.wrong(at, error.to_string(), "name a role, such as [members.worker]"));
            }
        };
        let mut source = None;
        for (field, value) in self.table(&format!("members.{role}"), member)? {
            match field.get_ref().as_ref() {
                "count" => self.count(role, value)?,
                "model" if known.is_some() => {
                    let model = self.text("model", value)?;
                    self.reader.set(&format!("agent.models.{role}"), model, value.span().start);
                }
                "file" => {
                    source = Some((Source::File(self.beside(&self.text("file", value)?)), field.span()))
                }
                "command" => source = Some((self.command(value)?, field.span())),
                other => return Err(self.unknown_field(role, other, field.span())),
            }
        }
        match (known, source) {
            (Some(Role::Specialist(_)), Some((source, _))) => {
                let line = file::line_of(self.reader.text, at.start);
                self.team.specialists.push(TeamSpecialist { role: role.to_owned(), source, line });
                Ok(())
            }
            (Some(Role::Specialist(_)), None) => {
                Err(self.wrong(at, format!("{role} does not come with Muster"), &advice_for_unknown(role)))
            }
            (_, Some((_, at))) => {
                let what = format!("{role} comes with Muster and has no file or command of its own");
                Err(self.wrong(at, what, "leave it out, or give the member another name"))
            }
            (_, None) => Ok(()),
        }
    }

    fn count(&mut self, role: &str, value: &Spanned<DeValue<'_>>) -> Result<(), SettingsError> {
        let read = match value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let Some(count) = read.filter(|count| (0..=i64::from(MOST_PROCESSES)).contains(count)) else {
            let what = format!("count must be a number from 0 to {MOST_PROCESSES}");
            return Err(self.wrong(value.span(), what, "write count = 2"));
        };
        self.reader.set(&format!("fleet.scale.{role}"), count, value.span().start);
        Ok(())
    }

    fn command(&self, value: &Spanned<DeValue<'_>>) -> Result<Source, SettingsError> {
        let words = value.get_ref().as_array().map(|words| {
            words.iter().map(|word| word.get_ref().as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        match words.flatten() {
            Some(words) if words.first().is_some_and(|program| !program.is_empty()) => {
                Ok(Source::Command(words))
            }
            _ => Err(self.wrong(
                value.span(),
                "command must be a program and its arguments".to_owned(),
                "write command = [\"python3\", \"scout.py\"]",
            )),
        }
    }

    /// A path of the file: relative ones lie beside it.
    fn beside(&self, path: &str) -> PathBuf {
        self.team.path.parent().map_or_else(|| PathBuf::from(path), |folder| folder.join(path))
    }

    fn text(&self, field: &str, value: &Spanned<DeValue<'_>>) -> Result<String, SettingsError> {
        value.get_ref().as_str().map(str::to_owned).ok_or_else(|| {
            self.wrong(value.span(), format!("{field} must be a text"), &format!("write {field} = \"…\""))
        })
    }

    fn table<'v>(
        &self,
        name: &str,
        value: &'v Spanned<DeValue<'v>>,
    ) -> Result<&'v DeTable<'v>, SettingsError> {
        value.get_ref().as_table().ok_or_else(|| {
            self.wrong(value.span(), format!("{name} must be a table"), &format!("write it as [{name}]"))
        })
    }

    fn unknown_field(&self, role: &str, field: &str, at: Range<usize>) -> SettingsError {
        let nearest = nearest_name(field, FIELDS.into_iter());
        let advice = nearest.map_or_else(String::new, |known| format!("did you mean {known}? "));
        let what = format!("members.{role}.{field} is not known");
        self.wrong(at, what, &format!("{advice}A member has {}", FIELDS.join(", ")))
    }

    fn wrong(&self, at: Range<usize>, what: String, advice: &str) -> SettingsError {
        SettingsError::Team {
            path: self.reader.path.to_owned(),
            line: file::line_of(self.reader.text, at.start),
            what,
            advice: advice.to_owned(),
            source_code: Arc::new(miette::NamedSource::new(self.reader.path, self.reader.text.to_owned())),
            at: file::span(at, self.reader.text),
        }
    }
}

fn advice_for_unknown(role: &str) -> String {
    let names = Role::BUILT_IN.map(|known| known.to_string());
    let nearest = nearest_name(role, names.iter().map(String::as_str));
    let meant = nearest.map_or_else(String::new, |known| format!("did you mean {known}? Else "));
    format!("{meant}say what it is: file = \"{role}.agent.md\", or command = [\"python3\", \"{role}.py\"]")
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;

    fn read(text: &str) -> Result<(Team, Layer), SettingsError> {
        parse(Path::new("teams/fleet.toml"), "fleet.toml", text, &Keys::of(Settings::SETTINGS))
    }

    fn refused(text: &str) -> (String, usize, String) {
        match read(text) {
            Err(SettingsError::Team { what, line, advice, .. }) => (what, line, advice),
            other => panic!("{other:?}"),
        }
    }

    const DESK: &str = r#"
name = "weather desk"
description = "Says what the weather will be."

[members.worker]
count = 3
model = "openai/gpt-4.1-mini"

[members.orchestrator]
count = 2

[members.fact_checker]
file = "agents/fact-checker.agent.md"
count = 2

[members.scout]
command = ["python3", "scout.py"]

[limits]
max_steps = 7

[limits.people]
review = "ask"
"#;

    #[test]
    fn a_team_is_its_members_and_its_settings() {
        let (team, layer) = read(DESK).unwrap();
        assert_eq!(
            (team.name.as_str(), team.description.as_str()),
            ("weather desk", "Says what the weather will be.")
        );
        let specialists: Vec<(&str, &Source)> =
            team.specialists.iter().map(|member| (member.role.as_str(), &member.source)).collect();
        let file = Source::File(PathBuf::from("teams/agents/fact-checker.agent.md"));
        let command = Source::Command(vec!["python3".into(), "scout.py".into()]);
        assert_eq!(specialists, [("fact_checker", &file), ("scout", &command)]);
        let mut set: Vec<String> = layer.origins().map(|(key, at)| format!("{key} {at}")).collect();
        set.sort();
        assert_eq!(
            set,
            [
                "agent.models.worker fleet.toml:7",
                "fleet.scale.fact_checker fleet.toml:14",
                "fleet.scale.orchestrator fleet.toml:10",
                "fleet.scale.worker fleet.toml:6",
                "limits.max_steps fleet.toml:20",
                "limits.people.review fleet.toml:23",
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_what_to_do() {
        for (text, what, line, advice) in [
            ("name = 3", "name must be a text", 1, "name = "),
            ("\n[members.wroker]\ncount = 1", "wroker does not come with Muster", 2, "did you mean worker?"),
            ("[members.scout]\ncount = 1", "scout does not come", 1, "scout.agent.md"),
            ("[members.worker]\ncuont = 1", "members.worker.cuont is not known", 2, "did you mean count?"),
            ("[members.worker]\ncount = -1", "count must be a number from 0 to 256", 2, "count = 2"),
            ("[members.worker]\ncount = \"two\"", "count must be a number", 2, "count = 2"),
            ("[members.worker]\nfile = \"x.agent.md\"", "worker comes with Muster", 2, "another name"),
            ("[members.scout]\ncommand = []", "command must be a program", 2, "python3"),
            ("[members.\"Fact Checker\"]\ncount = 1", "Fact Checker", 1, "[members.worker]"),
            ("members = 3", "members must be a table", 1, "[members]"),
            ("[members]\nworker = 3", "members.worker must be a table", 2, "[members.worker]"),
        ] {
            let (said, at, help) = refused(text);
            assert!(said.contains(what), "{text}: {said}");
            assert_eq!(at, line, "{text}");
            assert!(help.contains(advice), "{text}: {help}");
        }
    }

    #[test]
    fn its_settings_are_checked_as_those_of_any_file() {
        let error = read("[limits]\nmax_stepz = 3").unwrap_err();
        assert!(matches!(error, SettingsError::UnknownKey { line: 2, .. }), "{error:?}");
        let error = read("[bus]\ntoken = \"hunter2\"").unwrap_err();
        assert!(matches!(error, SettingsError::SecretInFile { line: 2, .. }), "{error:?}");
    }
}
