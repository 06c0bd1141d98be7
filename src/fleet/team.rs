//! The processes of a team: who it names beside the roles that come with Muster.

use std::path::{Path, PathBuf};

use miette::Diagnostic;
use muster_agents::model::target::TargetError;
use muster_shared::ids::Role;

use super::member::MemberSpec;
use super::pass::Duty;
use super::state::RefusedFile;
use crate::app::App;
use crate::commands::agent::definition;
use crate::commands::models::resolve;
use crate::settings::{MemberSource, Team, TeamSpecialist};
use crate::trust::{absolute, real};

/// Members that cannot be started, each with the reason and the remedy.
pub(crate) fn faults(app: &App) -> Vec<RefusedFile> {
    let Some(team) = &app.loaded.team else { return Vec::new() };
    let reasons = team.specialists.iter().filter_map(|member| fault(app, team, member));
    reasons.map(|reason| RefusedFile { path: team.path.clone(), reason }).collect()
}

/// The reason why a member of a team cannot be started, and the remedy.
pub(crate) fn fault(app: &App, team: &Team, member: &TeamSpecialist) -> Option<String> {
    let TeamSpecialist { role, source, line } = member;
    let place = format!("{}:{line}", team.path.display());
    match source {
        MemberSource::File(path) => match definition(app, path) {
            Ok(definition) if definition.role.to_string() == *role => {
                let models = &app.settings().agent.models;
                let model = models.get(&definition.role).or(definition.model.as_ref())?;
                // A key that is missing is told where the model is asked: a run may name another model.
                let fault = resolve(app, Some(model.as_str())).err()?;
                matches!(fault, TargetError::UnknownModel { .. }).then(|| format!("{place}: {role}: {fault}"))
            }
            Ok(definition) => Some(format!(
                "{place}: {} defines {}, not {role}: write [members.{}]",
                path.display(),
                definition.role,
                definition.role
            )),
            Err(error) => {
                let remedy = error.help().map_or_else(String::new, |help| format!("; {help}"));
                Some(format!("{place}: {error}{remedy}"))
            }
        },
        MemberSource::Command(words) => {
            let program = words.first()?;
            let found = program_of(&team.path, program).is_some();
            (!found).then(|| format!("{place}: there is no program {program} to start for {role}"))
        }
    }
}

/// Whether the team has a member with this definition.
pub(crate) fn lists(team: &Team, path: &Path) -> bool {
    team.specialists.iter().any(|member| match &member.source {
        MemberSource::File(file) => real(file) == real(path),
        MemberSource::Command(_) => false,
    })
}

/// The processes of one member, made from one of the fleet's own: `like` gives it for a name and the words after
/// `muster`.
pub(crate) fn specs(
    team: &Team,
    member: &TeamSpecialist,
    count: u16,
    role: &Role,
    like: impl Fn(&str, &[&str], Duty) -> MemberSpec,
) -> Vec<MemberSpec> {
    let spec = |n: u16| {
        let name = format!("{}-{n}", member.role);
        match &member.source {
            MemberSource::File(path) => {
                let words = ["agent", &absolute(path).display().to_string()];
                like(&name, &words, Duty::Agent(role.clone()))
            }
            MemberSource::Command(words) => {
                foreign(team, member, words, like(&name, &[], Duty::Program(role.clone())))
            }
        }
    };
    (1..=count).map(spec).collect()
}

/// A program that is not ours: it is told where the bus is and what it is to be, and runs beside the team's file.
fn foreign(team: &Team, member: &TeamSpecialist, words: &[String], like: MemberSpec) -> MemberSpec {
    let mut words = words.iter();
    let program = words.next().map(String::as_str).unwrap_or_default();
    let mut spec = MemberSpec {
        program: program_of(&team.path, program).unwrap_or_else(|| PathBuf::from(program)),
        arguments: words.cloned().collect(),
        folder: Some(folder_of(&team.path)),
        is_foreign: true,
        ..like
    };
    let url = spec.variables.iter().find(|(name, _)| name == "MUSTER_BUS_URL").map(|(_, url)| url.clone());
    spec.variables.extend(url.map(|url| ("NATS_URL".to_owned(), url)));
    spec.variables.push(("MUSTER_AGENT_ROLE".to_owned(), member.role.clone()));
    spec
}

/// Where a program is: beside the team's file when it is named by a path, else on the search path.
fn program_of(team: &Path, program: &str) -> Option<PathBuf> {
    let is_file = |path: &PathBuf| path.is_file();
    if program.contains('/') {
        return Some(folder_of(team).join(program)).filter(is_file);
    }
    let search = std::env::var_os("PATH")?;
    std::env::split_paths(&search).map(|folder| folder.join(program)).find(is_file)
}

fn folder_of(team: &Path) -> PathBuf {
    absolute(team).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
