//! Prompt templates: files, embedded in the program, each of which a folder of the user's may replace.
//!
//! What stands above the line `=== task ===` is the system prompt (who the agent is and how it works), what
//! stands below is what is to be done. What people, tools and documents say goes through `fence(kind, text)`.

mod bounds;

use std::path::{Path, PathBuf};

use minijinja::value::Value as TemplateValue;
use minijinja::{Environment, State, UndefinedBehavior, context};
use muster_shared::flow::{TaskOffered, TemplateRef, Work};
use muster_shared::text::{one_line, quoted};
use sha2::{Digest, Sha256};

use crate::definition::{Definition, Sections};
use crate::react::prompt::Brief;
use crate::roles::{self, RoleRules};

/// What the templates of all roles share.
const COMMON: &str = include_str!("common.md.j2");
/// Parts the system prompt from the task. Nothing from outside stands above it.
const PARTING: &str = "\n=== task ===\n";
/// Longest text that says what is wrong with a template, in characters.
const MAX_REASON: usize = 4_000;
/// Longest kind of a fence, in characters.
const MAX_KIND: usize = 120;
/// Largest template that is read, in bytes.
const MAX_TEMPLATE: u64 = 256 * 1024;

/// Why templates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// A file of the user's cannot be read.
    #[error("template {path} cannot be read: {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A template has a fault.
    #[error("template {name} has a fault: {reason}")]
    Faulty {
        /// The template.
        name: String,
        /// What is wrong, with the line.
        reason: String,
    },
}

/// The templates of all roles. Those that come with the program are made ready when they are first rendered: an agent uses
/// that of its own role.
pub struct Templates {
    environment: Environment<'static>,
    references: Vec<TemplateRef>,
}

impl std::fmt::Debug for Templates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Templates").field("references", &self.references).finish_non_exhaustive()
    }
}

impl Templates {
    /// The built-in templates; `ROLE.md.j2` in `folder` takes the place of the one of that role.
    ///
    /// # Errors
    /// When a file of the folder cannot be read or is no template.
    pub fn load(folder: Option<&Path>) -> Result<Self, TemplateError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        bounds::set(&mut environment);
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.add_function("fence", fence_in_template);
        environment.add_function("as_json", as_json);
        environment.set_loader(|name| Ok(built_in(name).map(str::to_owned)));
        let own_common = own_file(folder, "common")?;
        let common = own_common.as_deref().unwrap_or(COMMON);
        let mut references = Vec::new();
        for rules in roles::all() {
            let own = own_file(folder, rules.name)?;
            references.push(reference(rules.name, own.as_deref().unwrap_or(rules.template), common));
            if let Some(own) = own {
                add(&mut environment, rules.name, own)?;
            }
        }
        if let Some(own) = own_common {
            add(&mut environment, "common", own)?;
        }
        Ok(Self { environment, references })
    }

    /// The parts of a task's prompt that stay the same over its steps, and which template made them.
    ///
    /// # Errors
    /// When the template has a fault.
    pub fn brief(
        &self,
        rules: &RoleRules,
        offer: &TaskOffered,
    ) -> Result<(Brief, TemplateRef), TemplateError> {
        let faulty = |error: minijinja::Error| TemplateError::Faulty {
            name: rules.name.to_owned(),
            reason: quoted(&format!("{error:#}"), MAX_REASON),
        };
        let template = self.environment.get_template(&file_name(rules.name)).map_err(faulty)?;
        let text = bounds::render(&template, context_of(rules, offer)).map_err(faulty)?;
        let (system, task) = text.split_once(PARTING).ok_or_else(|| TemplateError::Faulty {
            name: rules.name.to_owned(),
            reason: "it has no line `=== task ===` between system prompt and task".to_owned(),
        })?;
        // What is common to all tasks of a role comes first, so that providers serve it from their cache.
        let (system, task) = (tidy(system), format!("MARK is {}.\n\n{}", offer.nonce, tidy(task)));
        let reference = self.references.iter().find(|reference| reference.name == rules.name);
        let mut reference = reference.cloned().unwrap_or_default();
        if let Some(definition) = &rules.specialist {
            reference.hash = short_hash([reference.hash.as_str(), &definition.hash]);
        }
        Ok((Brief { system, task }, reference))
    }
}

/// Without the empty lines that conditions leave behind.
fn tidy(text: &str) -> String {
    let mut tidied = String::with_capacity(text.len());
    for line in text.trim().lines() {
        let empty = line.trim().is_empty();
        if !empty || !tidied.ends_with("\n\n") {
            tidied.push_str(if empty { "" } else { line });
            tidied.push('\n');
        }
    }
    tidied.truncate(tidied.trim_end().len());
    tidied
}

/// Puts text that is data, whatever it says, between marks that it cannot know.
#[must_use]
pub fn fence(nonce: &str, kind: &str, text: &str) -> String {
    // Only text that was shown the mark could hold it: a model's own words, or a file it wrote.
    let unmarked =
        |text: &str| if nonce.is_empty() { text.to_owned() } else { text.replace(nonce, "[mark]") };
    // A kind names what a model called, which may be anything.
    let (kind, text) = (one_line(&unmarked(kind), MAX_KIND), unmarked(text));
    format!("<<<{nonce} {kind}\n{}\n{nonce}>>>", text.trim_end())
}

/// Data as a model reads it.
fn as_json(value: &TemplateValue) -> Result<String, minijinja::Error> {
    bounds::fits(value)?;
    Ok(serde_json::to_string(value).unwrap_or_default())
}

fn fence_in_template(state: &State<'_, '_>, kind: &str, text: &str) -> String {
    let nonce = state.lookup("nonce").map(|nonce| nonce.to_string()).unwrap_or_default();
    fence(&nonce, kind, text)
}

fn context_of(rules: &RoleRules, offer: &TaskOffered) -> TemplateValue {
    context! {
        nonce => offer.nonce,
        goal => offer.goal,
        role_name => offer.role_name,
        conversation => TemplateValue::from_serialize(&offer.conversation),
        task_id => offer.task.to_string(),
        background => TemplateValue::from_serialize(&offer.background),
        limits => TemplateValue::from_serialize(&offer.limits),
        corpus => TemplateValue::from_serialize(&offer.corpus),
        work => fields_of(&offer.work),
        wants_claims => roles::wants_claims(offer),
        specialist => rules.specialist.as_deref().map(words_of),
    }
}

/// What a definition says to the model.
fn words_of(definition: &Definition) -> TemplateValue {
    let Sections { instructions, typical_thoughts, specific_actions, done_criteria, escalation_triggers } =
        &definition.sections;
    context! {
        role => definition.role.to_string(),
        description => definition.description,
        promises_data => definition.contract.output.is_some(),
        instructions,
        typical_thoughts,
        specific_actions,
        done_criteria,
        escalation_triggers,
    }
}

/// The fields of the work, whatever its kind: each template knows its own.
fn fields_of(work: &Work) -> TemplateValue {
    let tagged = TemplateValue::from_serialize(work);
    let kind = tagged.try_iter().ok().and_then(|mut kinds| kinds.next());
    kind.and_then(|kind| tagged.get_item(&kind).ok()).unwrap_or_default()
}

/// The template of this file name that comes with the program.
fn built_in(file: &str) -> Option<&'static str> {
    let of_role =
        || roles::all().into_iter().find(|rules| file_name(rules.name) == file).map(|rules| rules.template);
    if file == file_name("common") { Some(COMMON) } else { of_role() }
}

fn file_name(role: &str) -> String {
    format!("{role}.md.j2")
}

fn own_file(folder: Option<&Path>, name: &str) -> Result<Option<String>, TemplateError> {
    let Some(folder) = folder else { return Ok(None) };
    let path = folder.join(file_name(name));
    let unreadable = |reason: String| TemplateError::Unreadable { path: path.clone(), reason };
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(error.to_string())),
        Ok(_) => crate::input::text(&path, MAX_TEMPLATE).map(Some).map_err(unreadable),
    }
}

fn add(environment: &mut Environment<'static>, name: &str, text: String) -> Result<(), TemplateError> {
    let faulty = |reason| TemplateError::Faulty { name: name.to_owned(), reason };
    let work = bounds::checked(&text).map_err(faulty)?;
    environment.set_fuel(environment.fuel().map(|most| most.min(work)));
    let added = environment.add_template_owned(file_name(name), text);
    added.map_err(|error| faulty(quoted(&format!("{error:#}"), MAX_REASON)))
}

/// The version stands in the first line: `{# version 3 #}`.
fn reference(name: &str, text: &str, common: &str) -> TemplateRef {
    let first = text.lines().next().unwrap_or_default();
    let digits: String = first.chars().filter(char::is_ascii_digit).take(6).collect();
    TemplateRef {
        name: name.to_owned(),
        version: digits.parse().unwrap_or_default(),
        hash: short_hash([text, common]),
    }
}

fn short_hash(texts: [&str; 2]) -> String {
    let hash = texts.iter().fold(Sha256::new(), |hash, text| hash.chain_update(text)).finalize();
    hex::encode(hash).chars().take(16).collect()
}

#[cfg(test)]
mod tests;
