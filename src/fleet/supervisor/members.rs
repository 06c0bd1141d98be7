//! Which processes a fleet has, and how each of them is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use muster_shared::ids::Role;

use crate::app::App;
use crate::commands::guard::role_of;
use crate::commands::join::INVITATION;
use crate::exit::{Failure, failed};
use crate::fleet::member::MemberSpec;
use crate::fleet::pass::{Desk, Duty, Pass, TLS};
use crate::fleet::policy::RestartPolicy;
use crate::fleet::process::own_program;
use crate::fleet::scale;
use crate::fleet::team;
use crate::settings::{self, FleetSettings, GuardKind, GuardSettings};
use crate::trust::absolute;

/// How many times as long as before the first restart the wait is at most: ten seconds by default.
const LONGEST_RESTART_WAIT: u32 = 100;

/// The window for counting restarts. What dies again after a minute died of something else.
const RESTART_WINDOW: std::time::Duration = std::time::Duration::from_secs(60);

/// Size at which a log file of a process is rotated, in MiB; one older file is kept. Days of warnings, or minutes of
/// traces.
const MAX_LOG_MIB: u64 = 10;

/// What is for orchestrators alone.
const SYSTEM_ACCOUNT: [&str; 2] = ["MUSTER_BUS_SYSTEM_PASSWORD", "MUSTER_BUS_SYSTEM_CREDENTIALS"];

/// What processes are told of the fleet's own server by what lets them in.
const OF_OUR_SERVER: [&str; 3] = ["bus.tls_ca", "bus.tls_cert", "bus.tls_key"];

/// What all processes of a fleet have in common.
pub(super) struct Common<'a> {
    app: &'a App,
    program: PathBuf,
    url: &'a str,
    /// By what they are let in, where the server is the fleet's own.
    desk: Option<&'a Desk>,
}

/// The processes of a fleet.
pub(super) fn members(
    app: &App,
    url: &str,
    desk: Option<&Desk>,
    scale: &BTreeMap<String, u16>,
) -> Result<Vec<MemberSpec>, Failure> {
    let common = Common::new(app, url, desk)?;
    let count = |role: &str| scale.get(role).copied().unwrap_or(1);
    let mut members = Vec::new();
    let built_in = Role::BUILT_IN.iter().map(Role::to_string);
    for role in std::iter::once(scale::ORCHESTRATOR.to_owned()).chain(built_in) {
        members.extend((1..=count(&role)).filter_map(|n| of_role(&common, &role, n.into())));
    }
    for (name, guard) in app.settings().guards.iter().filter(|(_, guard)| guard.enabled) {
        let words = guard_words(app, name, guard);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if !words.is_empty() {
            let member = format!("{}-1", role_of(name));
            members.push(common.member(&member, &words, Duty::Guard(name.clone())));
        }
    }
    if let Some(team) = &app.loaded.team {
        // A faulty member is left out alone; the watcher reports it.
        for specialist in team.specialists.iter().filter(|one| team::fault(app, team, one).is_none()) {
            let like = |name: &str, words: &[&str], duty: Duty| common.member(name, words, duty);
            // The team file was read with roles in it: another name is none.
            let Ok(role) = specialist.role.parse::<Role>() else { continue };
            members.extend(team::specs(team, specialist, count(&specialist.role), &role, like));
        }
    }
    Ok(members)
}

/// An orchestrator, or an agent of a role that comes with Muster; nothing for another one.
pub(super) fn of_role(common: &Common<'_>, role: &str, number: u32) -> Option<MemberSpec> {
    let name = format!("{role}-{number}");
    if role == scale::ORCHESTRATOR {
        let mut orchestrator = common.member(&name, &["orchestrator"], Duty::Orchestrator);
        orchestrator.hidden.retain(|name| !SYSTEM_ACCOUNT.contains(&name.as_str()));
        return Some(orchestrator);
    }
    let known: Role = Role::BUILT_IN.iter().find(|known| known.to_string() == role)?.clone();
    Some(common.member(&name, &["agent", role], Duty::Agent(known)))
}

/// Agents of these roles, for a fleet that is elsewhere.
pub(super) fn agents(
    app: &App,
    url: &str,
    desk: &Desk,
    scale: &BTreeMap<Role, u16>,
) -> Result<Vec<MemberSpec>, Failure> {
    let common = Common::new(app, url, Some(desk))?;
    let each = scale.iter().flat_map(|(role, count)| (1..=*count).map(move |n| (role, n)));
    let member = |(role, n): (&Role, u16)| {
        let (name, word) = (format!("{role}-{n}"), role.to_string());
        common.member(&name, &["agent", &word], Duty::Agent(role.clone()))
    };
    Ok(each.map(member).collect())
}

/// The words that start a guard; none for a program of the user's.
fn guard_words(app: &App, name: &str, guard: &GuardSettings) -> Vec<String> {
    let words: Vec<String> = match guard.kind(name) {
        GuardKind::Secrets => vec!["secrets".to_owned()],
        GuardKind::AllowList => {
            let file = guard.file.as_deref().unwrap_or(Path::new(""));
            vec!["allow-list".to_owned(), app.beside_fleet(file).display().to_string()]
        }
        GuardKind::Program => return Vec::new(),
    };
    let named = ["--name".to_owned(), name.to_owned()];
    std::iter::once("guard".to_owned()).chain(words).chain(named).collect()
}

impl<'a> Common<'a> {
    /// Finds the path of this program, which all of them run.
    pub(super) fn new(app: &'a App, url: &'a str, desk: Option<&'a Desk>) -> Result<Self, Failure> {
        let program = own_program().map_err(|e| {
            failed!("cannot find the path of this program: {e}").help("start it by its full path")
        })?;
        Ok(Self { app, program: program.to_owned(), url, desk })
    }

    pub(super) fn member(&self, name: &str, command: &[&str], duty: Duty) -> MemberSpec {
        let app = self.app;
        let settings = app.settings();
        let mut arguments = global_words(app);
        arguments.extend(command.iter().map(|&word| word.to_owned()));
        // Not as arguments, which can be read by everybody: a URL may hold a password, and so may what is set.
        let mut variables = vec![
            ("MUSTER_BUS_URL".to_owned(), self.url.to_owned()),
            ("MUSTER_AGENT_NAME".to_owned(), name.to_owned()),
        ];
        // One address cannot be everybody's: it is the supervisor's, and the others take free ports beside it.
        let metrics = settings.metrics.listen.map(|listen| std::net::SocketAddr::new(listen.ip(), 0));
        variables.extend(metrics.map(|listen| ("MUSTER_METRICS_LISTEN".to_owned(), listen.to_string())));
        let is_ours = |key: &str| {
            matches!(key, "bus.url" | "metrics.listen" | "alerts.webhook")
                || (self.desk.is_some() && OF_OUR_SERVER.contains(&key))
        };
        let set: Vec<_> = app.flags.iter().filter(|(key, ..)| !is_ours(key)).cloned().collect();
        variables.extend(settings::handed_down(&set));
        variables.extend(app.found_file());
        let of_elsewhere = TLS.into_iter().filter(|_| self.desk.is_some());
        MemberSpec {
            name: name.to_owned(),
            program: self.program.clone(),
            arguments,
            folder: None,
            variables,
            pass: self.desk.map(|desk| Pass { desk: desk.clone(), duty, member: name.to_owned() }),
            hidden: SYSTEM_ACCOUNT
                .into_iter()
                .chain(of_elsewhere)
                .chain([INVITATION, crate::alerts::WEBHOOK_VARIABLE])
                .map(str::to_owned)
                .collect(),
            log: app.fleet.log(name),
            max_log_bytes: MAX_LOG_MIB * 1024 * 1024,
            policy: policy(&settings.fleet),
            stop_limit: crate::settings::STOP_TIMEOUT,
            is_foreign: false,
        }
    }
}

/// The options of every command, as this process was given them, for one that it starts.
pub(crate) fn global_words(app: &App) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    if let Some(file) = &app.loaded.file {
        words.extend(["--config".to_owned(), absolute(file).display().to_string()]);
    }
    if let Some(team) = &app.loaded.team {
        words.extend(["--fleet".to_owned(), absolute(&team.path).display().to_string()]);
    }
    words
}

pub(super) const fn policy(settings: &FleetSettings) -> RestartPolicy {
    RestartPolicy {
        max_restarts: settings.max_restarts,
        window: RESTART_WINDOW,
        first_wait: settings.restart_wait,
        longest_wait: settings.restart_wait.saturating_mul(LONGEST_RESTART_WAIT),
    }
}
