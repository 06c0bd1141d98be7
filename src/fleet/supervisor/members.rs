//! Which processes a fleet has, and how each of them is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use muster_bus::server::SystemAccount;
use muster_shared::ids::Role;
use secrecy::ExposeSecret;

use crate::app::App;
use crate::exit::Failure;
use crate::fleet::member::MemberSpec;
use crate::fleet::policy::RestartPolicy;
use crate::fleet::{scale, team};
use crate::settings::{self, FleetSettings};

/// The variable that holds the password of the server's system account.
const SYSTEM_PASSWORD: &str = "MUSTER_BUS_SYSTEM_PASSWORD";

/// The processes of a fleet.
pub(super) fn members(
    app: &App,
    url: &str,
    system: Option<&SystemAccount>,
    scale: &BTreeMap<String, u16>,
) -> Result<Vec<MemberSpec>, Failure> {
    let program = std::env::current_exe().map_err(|e| {
        Failure::failed(format!("cannot find the path of this program: {e}"))
            .help("start it by its full path")
    })?;
    let count = |role: &str| scale.get(role).copied().unwrap_or(1);
    let mut members = Vec::new();
    for n in 1..=count(scale::ORCHESTRATOR) {
        let mut orchestrator = member(app, &program, url, &format!("orchestrator-{n}"), &["orchestrator"]);
        // The system account is for orchestrators alone.
        orchestrator.hidden.clear();
        orchestrator.variables.extend(system.into_iter().flat_map(variables));
        members.push(orchestrator);
    }
    for role in Role::BUILT_IN.map(|role| role.to_string()) {
        for n in 1..=count(&role) {
            members.push(member(app, &program, url, &format!("{role}-{n}"), &["agent", &role]));
        }
    }
    if let Some(team) = &app.loaded.team {
        team::check(team, &app.trust)?;
        for specialist in &team.specialists {
            let like = |name: &str, words: &[&str]| member(app, &program, url, name, words);
            members.extend(team::specs(team, specialist, count(&specialist.role), like));
        }
    }
    Ok(members)
}

pub(super) fn member(app: &App, program: &Path, url: &str, name: &str, command: &[&str]) -> MemberSpec {
    let settings = app.settings();
    let mut arguments = global_words(app);
    arguments.extend(command.iter().map(|&word| word.to_owned()));
    // Not as arguments, which can be read by everybody: a URL may hold a password, and so may what is set.
    let mut variables = vec![
        ("MUSTER_BUS_URL".to_owned(), url.to_owned()),
        ("MUSTER_AGENT_NAME".to_owned(), name.to_owned()),
    ];
    let set: Vec<_> = app.flags.iter().filter(|(key, ..)| key != "bus.url").cloned().collect();
    variables.extend(settings::handed_down(&set));
    variables.extend(app.found_file());
    MemberSpec {
        name: name.to_owned(),
        program: program.to_owned(),
        arguments,
        folder: None,
        variables,
        hidden: vec![SYSTEM_PASSWORD.to_owned()],
        log: app.fleet.log(name),
        max_log_bytes: settings.log.max_file_mib * 1024 * 1024,
        policy: policy(&settings.fleet),
        stop_limit: settings.fleet.stop_limit,
        is_foreign: false,
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

fn variables(system: &SystemAccount) -> [(String, String); 2] {
    let SystemAccount { user, password } = system;
    let password = password.expose_secret().to_owned();
    [("MUSTER_BUS_SYSTEM_USER".to_owned(), user.clone()), (SYSTEM_PASSWORD.to_owned(), password)]
}

pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

pub(super) const fn policy(settings: &FleetSettings) -> RestartPolicy {
    RestartPolicy {
        max_restarts: settings.max_restarts,
        window: settings.restart_window,
        first_wait: settings.restart_wait,
        longest_wait: settings.max_restart_wait,
    }
}
