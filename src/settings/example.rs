//! The example of a settings file: every setting with its help and its default, commented out.

use std::fmt::Write;

use muster_shared::setting::{Kind, Setting};

use super::effort;
use super::explain::toml;
use super::sections::Settings;

/// Longest line of help, in characters.
const WIDTH: usize = 118;

const HEAD: &str = "\
# An example of muster.toml. Every line is optional. What is commented out shows the default, or an example where
# nothing is set by default. `muster config --example` prints it.
# Muster reads the nearest muster.toml upward from the folder a command is given in (or --config FILE).
# `muster config --all` shows every setting with its value and where it comes from; `muster config --explain KEY` says
# what it may be. The environment overrides this file: limits.max_steps is MUSTER_LIMITS_MAX_STEPS. Flags override both.
# Found in a project, what runs a program, says where keys are sent or points at a bus counts after `muster trust`; in
# your own ~/.config/muster/muster.toml at once.
# Secrets do not belong here: set MUSTER_BUS_TOKEN, MUSTER_BUS_PASSWORD, OPENAI_API_KEY, … in the environment,
# or keep them in files of their own (bus.credentials, agent.key_file, OPENAI_API_KEY_FILE).
";

/// The example.
pub(crate) fn example() -> String {
    let mut text = HEAD.to_owned();
    for section in Settings::SETTINGS {
        match section.takes.kind {
            Kind::Group(settings) => group(&mut text, section.name(), section.help(), settings),
            Kind::Named(takes) => {
                if let Kind::Group(settings) = takes.kind {
                    let path = format!("{}.{}", section.name(), quoted(section.takes.example));
                    one_of_many(&mut text, &path, section.help(), settings);
                }
            }
            _ => {}
        }
    }
    text
}

/// A group with its values, then what has names, then the groups within: TOML wants values before tables.
fn group(text: &mut String, path: &str, help: &str, settings: &[Setting]) {
    heading(text, path, help);
    for setting in settings {
        value(text, path, setting);
    }
    for setting in settings {
        let path = format!("{path}.{}", setting.name());
        match setting.takes.kind {
            Kind::Group(inner) if !has_settings(inner) => {}
            Kind::Group(inner) => group(text, &path, setting.help(), inner),
            Kind::Named(takes) => {
                let name = quoted(setting.takes.example);
                match takes.kind {
                    Kind::Group(inner) => group(text, &format!("{path}.{name}"), setting.help(), inner),
                    _ => {
                        heading(text, &path, setting.help());
                        line(text, &name, takes.example);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Whether anything of a group can be set.
fn has_settings(group: &[Setting]) -> bool {
    group.iter().any(|setting| match setting.takes.kind {
        Kind::Group(inner) => has_settings(inner),
        Kind::Internal => false,
        _ => true,
    })
}

/// One of those that people name, and the groups within it. There is none by default, so that its headings are comments too.
fn one_of_many(text: &mut String, path: &str, help: &str, settings: &[Setting]) {
    text.push('\n');
    comment(text, help);
    // Writing into a text does not fail.
    let _ = writeln!(text, "# [{path}]");
    for setting in settings {
        value(text, path, setting);
    }
    for setting in settings {
        if let Kind::Group(inner) = setting.takes.kind {
            one_of_many(text, &format!("{path}.{}", setting.name()), setting.help(), inner);
        }
    }
}

fn value(text: &mut String, path: &str, setting: &Setting) {
    if matches!(setting.takes.kind, Kind::Group(_) | Kind::Named(_) | Kind::Secret | Kind::Internal) {
        return;
    }
    comment(text, setting.help());
    match setting.takes.example {
        "" => {
            let by_effort = effort::usual(&format!("{path}.{}", setting.name()));
            line(text, setting.name(), &toml(&by_effort.unwrap_or_else(|| setting.written(None))));
        }
        example => line(text, setting.name(), example),
    }
}

fn heading(text: &mut String, path: &str, help: &str) {
    text.push('\n');
    comment(text, help);
    // Writing into a text does not fail.
    let _ = writeln!(text, "[{path}]");
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "# {name} = {value}");
}

/// A text as comments, broken between words.
fn comment(text: &mut String, help: &str) {
    let mut width = 0;
    for word in help.split_whitespace() {
        let length = word.chars().count();
        if width == 0 || width + 1 + length > WIDTH {
            if width > 0 {
                text.push('\n');
            }
            text.push('#');
            width = 1;
        }
        text.push(' ');
        text.push_str(word);
        width += 1 + length;
    }
    text.push('\n');
}

/// A name as a part of a TOML key.
fn quoted(name: &str) -> String {
    let is_bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_bare { name.to_owned() } else { format!("\"{name}\"") }
}
