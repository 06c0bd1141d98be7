//! `muster doctor`: checks the installation, line by line, and says how to mend what is wrong.

#[cfg(feature = "sandbox")]
mod sandbox;

use std::time::Duration;

use muster_bus::BusError;
use muster_bus::server::{find_binary, version_of};
use muster_orchestrator::decide::{AgentsByRole, WaitsFor, waits_for};
use muster_shared::run::RunState;
use muster_shared::secret::without_passwords;
use muster_shared::text::counted;
use muster_shared::wire::Profile;
use serde_json::json;

#[cfg(not(feature = "sandbox"))]
use crate::absent::sandbox;
use crate::app::{App, now};
use crate::args::JsonArgs;
use crate::exit::{Exit, Failure};
use crate::fleet::{self, own_keys};
use crate::render::checks::{Check, CheckResult, list};
use crate::render::figures;
use crate::settings::Team;
use crate::{mcp_file, output};

/// Consumers of all streams from which on `doctor` names the holders.
const MANY_CONSUMERS: usize = 500;

/// Clocks further apart than this are warned about: deadlines are broker time, waiting is ours.
const MOST_SKEW_MS: u64 = 5_000;

/// Free space below which a warning is given, in bytes.
const LEAST_SPACE: u64 = 1024 * 1024 * 1024;

/// How many runs, newest first, are looked at for those that lack something.
const MOST_RUNS: usize = 20;

/// A round trip above this is warned about.
const SLOW: Duration = Duration::from_millis(100);

/// Checks everything.
pub(super) async fn doctor(app: &App, args: &JsonArgs) -> Result<Exit, Failure> {
    let mut checks = vec![settings(app)];
    checks.extend(app.loaded.warnings.iter().map(|warning| {
        Check::warn("environment", warning.clone(), "unset it, or spell it as `muster config` does")
    }));
    let left_out = app.loaded.left_out.iter();
    checks.extend(
        left_out.map(|left_out| Check::fail("trust", left_out.clone(), "`muster trust` shows it and asks")),
    );
    checks.extend(app.loaded.team.as_ref().map(|one| team(app, one)));
    checks.push(folder(app));
    checks.push(space(app));
    checks.extend(keys(app));
    checks.push(server_program(app).await);
    checks.extend(neighbors(app));
    let mut agents = Vec::new();
    checks.extend(bus(app, &mut agents).await);
    checks.extend(super::models::checks(app, &agents).await);
    checks.push(sandbox::check(app));
    let failed = checks.iter().any(|check| check.verdict == CheckResult::Fail);
    output::json_or_line(
        args.json,
        || json!({ "ok": !failed, "checks": checks }),
        || list(&checks, app.paint()),
    )?;
    Ok(if failed { Exit::Failed } else { Exit::Completed })
}

fn settings(app: &App) -> Check {
    Check::ok(
        "settings",
        match &app.loaded.file {
            Some(file) => file.display().to_string(),
            None => format!("defaults and environment (no {} here or above)", crate::settings::FILE_NAME),
        },
    )
}

fn team(app: &App, team: &Team) -> Check {
    let faults = fleet::team::faults(app);
    if faults.is_empty() {
        let others = match team.specialists.len() {
            0 => "nobody beside the roles that come with Muster".to_owned(),
            _ => figures::list(team.specialists.iter().map(|member| member.role.as_str())),
        };
        return Check::ok("team", format!("{} ({}): {others}", team.name, team.path.display()));
    }
    let reasons: Vec<String> = faults.into_iter().map(|file| file.reason).collect();
    Check::fail("team", reasons.join("; "), "mend the team's file, or what it names")
}

fn folder(app: &App) -> Check {
    let path = app.fleet.path();
    let probe = path.join(format!(".probe-{}", std::process::id()));
    let written = app.fleet.make().and_then(|()| std::fs::write(&probe, b"muster"));
    let _ = std::fs::remove_file(&probe);
    match written {
        Ok(()) => Check::ok("folder", format!("{} can be written", path.display())),
        Err(error) => Check::fail(
            "folder",
            format!("{} cannot be written: {error}", path.display()),
            "go to a folder that is yours, or mend its permissions: a local fleet keeps its record there",
        ),
    }
}

/// The keys of the fleet here, and the credentials that are used, where others could take them.
fn keys(app: &App) -> Option<Check> {
    const MEND: &str = "`chmod -R go= FOLDER` closes it, and `muster keys rotate --grace 0s` makes what was read of no use; a key that is gone \
                        comes from a copy";
    let folder = app.keys_folder().ok()?;
    if let Some(fault) = own_keys::fault(&folder) {
        return Some(Check::fail("keys", fault, MEND));
    }
    let named = &app.settings().bus.credentials;
    if let Some(path) = named.as_deref().filter(|path| own_keys::is_open(path)) {
        let found = format!("{} can be read by others: whoever has it is who it names", path.display());
        return Some(Check::warn(
            "keys",
            found,
            "`chmod go= FILE` closes it; have others made where somebody may have read it",
        ));
    }
    folder.is_dir().then(|| Check::ok("keys", format!("{} is closed to others", folder.display())))
}

/// Files and servers that are left out, tools that are held back, and processes of the fleet here that are not restarted.
fn neighbors(app: &App) -> Vec<Check> {
    const REMEDY: &str = "correct it, or `muster trust` what needs your consent: a running fleet reads a changed file again, and `muster down`, \
                          then `muster up`, starts a server or a member of a team again";
    let left_out = super::agent::left_out(app);
    let members = app.fleet.live().into_iter().flat_map(|state| state.members);
    let given_up = members.filter(|member| member.given_up).map(|member| {
        let log = app.fleet.log(&member.name);
        let how = member.how.unwrap_or_else(|| "ended too often".to_owned());
        let remedy = format!("{} has the reason", log.display());
        Check::warn("process", format!("{} {how} and is not restarted", member.name), remedy)
    });
    let held = mcp_file::held(app).into_iter().map(|one| {
        Check::warn(
            "tools",
            format!("the tool {} is held back", one.name),
            format!("`{}` shows what changed", one.look),
        )
    });
    left_out
        .into_iter()
        .map(|line| Check::warn("left out", line, REMEDY))
        .chain(held)
        .chain(given_up)
        .collect()
}

/// Room on the disk that the store is on, which need not be that of the fleet's folder.
fn space(app: &App) -> Check {
    let folder = app.store_dir();
    let place = folder.display();
    match fleet::store::free_space(&folder) {
        Some(free) if free < LEAST_SPACE => Check::warn(
            "disk",
            format!("{} free for {place}", figures::bytes(free)),
            "make room: the record of runs is kept here, and writes stop when it is full",
        ),
        Some(free) => Check::ok("disk", format!("{} free for {place}", figures::bytes(free))),
        None => Check::warn("disk", format!("free space for {place} is not known"), "look at it by hand"),
    }
}

async fn server_program(app: &App) -> Check {
    const WHAT: &str = "nats-server";
    const MEND: &str =
        "run deploy/install-nats.sh, or set MUSTER_NATS_SERVER to a nats-server of 2.14 or newer";
    let found = match fleet::server_program::of(app) {
        Ok(program) => program.map_or_else(find_binary, Ok),
        Err(failure) => return Check::fail(WHAT, failure.to_string(), "`muster trust`"),
    };
    let elsewhere = app.settings().bus.url.is_some();
    match found {
        Ok(path) => match version_of(&path).await {
            Ok(version) if is_recent(&version) => Check::ok(WHAT, format!("{version} at {}", path.display())),
            Ok(version) => Check::fail(WHAT, format!("{version} at {} is too old", path.display()), MEND),
            Err(error) => Check::fail(WHAT, error.to_string(), MEND),
        },
        Err(error) if elsewhere => {
            Check::ok(WHAT, format!("none here, and none needed: bus.url is set ({error})"))
        }
        Err(error) => Check::fail(WHAT, error.to_string(), MEND),
    }
}

fn is_recent(version: &str) -> bool {
    let (major, minor, _) = muster_bus::server::MIN_SERVER_VERSION;
    let mut parts = version.split('.').map(|part| part.parse::<u64>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (major, minor)
}

async fn bus(app: &App, agents: &mut Vec<Profile>) -> Vec<Check> {
    let Some(url) = app.url() else {
        let mut checks =
            vec![Check::ok("bus", "no fleet is running here; `muster run` and `muster up` start one")];
        checks.extend(super::integrity::check_at_rest(app).await);
        return checks;
    };
    let bus = match app.connect_with_system(&url, "doctor").await {
        Ok(bus) => bus,
        Err(failure) => {
            return vec![Check::fail(
                "bus",
                failure.to_string(),
                "start the server, or mend bus.url (MUSTER_BUS_URL, --url)",
            )];
        }
    };
    let info = match bus.server().await {
        Ok(info) => info,
        Err(error) => return vec![Check::fail("bus", error.to_string(), "look at the server's own log")],
    };
    let trip = info.round_trip;
    let found = format!(
        "{} {} (round trip {:.1} ms)",
        app.redactor.redact(&without_passwords(&url)),
        info.version,
        trip.as_secs_f64() * 1000.0
    );
    let mut checks = vec![if trip > SLOW {
        Check::warn(
            "bus",
            found,
            "a slow network or an overloaded server: every step of an agent waits for it",
        )
    } else {
        Check::ok("bus", found)
    }];
    checks.push(if info.jetstream {
        Check::ok("JetStream", "on")
    } else {
        Check::fail("JetStream", "off", "start the server with -js, or enable JetStream for this account")
    });
    if let Some(skew) = info.clock_skew {
        let found = format!("{skew} ms between this machine and the server");
        checks.push(if skew.unsigned_abs() > MOST_SKEW_MS {
            Check::warn("clock", found, "set the clocks by NTP: deadlines are kept by the server's clock")
        } else {
            Check::ok("clock", found)
        });
    }
    checks.push(store(&bus).await);
    checks.extend(readers(&bus).await);
    checks.push(deaths(&bus).await);
    *agents = bus.registry().list().await.unwrap_or_default();
    checks.push(fleet(&bus).await);
    checks.push(super::integrity::check(&bus).await);
    checks.extend(waiting(&bus).await);
    checks.extend(providers(&bus).await);
    checks.extend(guards(app, &bus).await);
    checks
}

/// Whether the server still writes.
async fn store(bus: &muster_bus::Bus) -> Check {
    const WHAT: &str = "store";
    const MEND: &str = "make room on the disk of the store; the supervisor of a local fleet then starts the server again by \
                        itself, another server has to be restarted by hand";
    let failed = bus.failed_streams().await.unwrap_or_default();
    match bus.probe_store().await {
        Ok(_) if !failed.is_empty() => {
            let failed = failed.iter().map(|(stream, why)| format!("{stream} stores nothing: {why}"));
            Check::fail(WHAT, failed.collect::<Vec<_>>().join("; "), MEND)
        }
        Ok(took) if took > SLOW * 5 => Check::warn(
            WHAT,
            format!("a write took {}", figures::span(took)),
            "every step of an agent waits for such a write: look at what else the disk does",
        ),
        Ok(took) => Check::ok(WHAT, format!("a write took {:.1} ms", took.as_secs_f64() * 1000.0)),
        Err(BusError::NotProvisioned { what }) => {
            Check::warn(WHAT, format!("{what} is not there yet"), "`muster up` sets the bus up")
        }
        Err(error) => Check::fail(WHAT, format!("nothing can be written: {error}"), MEND),
    }
}

/// Holders with so many consumers that others may find no room to read.
async fn readers(bus: &muster_bus::Bus) -> Option<Check> {
    let counts = bus.consumers_by_holder().await.ok()?;
    let total: usize = counts.values().sum();
    if total < MANY_CONSUMERS {
        return None;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let most: Vec<String> =
        counts.iter().take(3).map(|(holder, count)| format!("{holder} has {count}")).collect();
    Some(Check::warn(
        "readers",
        format!("{total} consumers read the streams: {}", most.join(", ")),
        "a stream has room for a limited number of them: revoke a holder that you do not know (`muster keys revoke NAME`)",
    ))
}

/// The runs that wait for somebody who is not there.
async fn waiting(bus: &muster_bus::Bus) -> Option<Check> {
    let agents: AgentsByRole = bus.registry().list().await.ok()?.iter().collect();
    let runs = super::runs::newest(bus, MOST_RUNS).await.ok()?;
    let lacking = |run: &RunState| {
        let waits = waits_for(run, &agents).into_iter().filter(WaitsFor::is_lacking);
        let waits: Vec<String> = waits.map(|waits| waits.to_string()).collect();
        (!waits.is_empty()).then(|| format!("run {} waits for {}", run.id.short(), waits.join("; ")))
    };
    let lines: Vec<String> = runs.runs.iter().filter_map(lacking).collect();
    (!lines.is_empty())
        .then(|| Check::warn("runs", lines.join("; "), "start who is missing; the runs go on by themselves"))
}

/// Providers of models that do not answer.
async fn providers(bus: &muster_bus::Bus) -> Vec<Check> {
    const MEND: &str = "mend the provider, its address or its key, or name other models in agent.fallback_models; it is \
                        tried again by itself";
    let breakers = bus.allowances().breakers().await.unwrap_or_default();
    let open = breakers.iter().filter(|breaker| breaker.is_open_at(now()));
    open.map(|breaker| Check::warn("provider", breaker.in_words(now()), MEND)).collect()
}

/// Guards that give no verdict, or that all do.
async fn guards(app: &App, bus: &muster_bus::Bus) -> Vec<Check> {
    const WHAT: &str = "guards";
    const MEND: &str = "`muster up` starts those that come with Muster, their logs are in .muster/log; start your own by hand";
    let asked = app.settings().limits.guards.len();
    let silent = super::guard::silent(app, bus).await;
    match silent.is_empty() {
        true if asked == 0 => Vec::new(),
        true => vec![Check::ok(WHAT, format!("{} answer", counted(asked, "guard", "guards")))],
        false => silent.into_iter().map(|line| Check::fail(WHAT, line, MEND)).collect(),
    }
}

/// How the death of an agent is noticed.
async fn deaths(bus: &muster_bus::Bus) -> Check {
    const WHAT: &str = "deaths";
    const MEND: &str = "set bus.system_credentials (or bus.system_user and MUSTER_BUS_SYSTEM_PASSWORD), for orchestrators alone, to a user of the \
                        server's system account that may subscribe to $SYS.ACCOUNT.*.CONNECT and .DISCONNECT and publish to \
                        $SYS.REQ.SERVER.PING.CONNZ and $SYS.REQ.SERVER.PING.HEALTHZ";
    match bus.presence().await {
        Ok(Some(_)) => Check::ok(WHAT, "the death of an agent is noticed at once (by the system account)"),
        Ok(None) => {
            let settings = bus.settings();
            let found = format!(
                "without a system account the death of an agent is noticed when the registry forgets it ({}) or its \
                 tasks' time is up ({})",
                figures::span(settings.registry_ttl()),
                figures::span(settings.ack_wait)
            );
            Check::warn(WHAT, found, MEND)
        }
        Err(error) => Check::warn(WHAT, format!("the system account cannot be used: {error}"), MEND),
    }
}

async fn fleet(bus: &muster_bus::Bus) -> Check {
    match bus.registry().list().await {
        Ok(profiles) => {
            let orchestrators = profiles.iter().filter(|profile| profile.role == "orchestrator").count();
            let found = format!(
                "{}, {}",
                counted(profiles.len(), "process", "processes"),
                counted(orchestrators, "of them an orchestrator", "of them orchestrators")
            );
            if orchestrators == 0 {
                Check::warn(
                    "fleet",
                    found,
                    "nobody takes up goals: start `muster orchestrator`, or `muster up`",
                )
            } else if let [first, ..] = missing(&profiles).as_slice() {
                let found = format!("{found}; there is no {}", missing(&profiles).join(", no "));
                let mend =
                    format!("runs that need one wait for it: start one, such as `muster agent {first}`");
                Check::warn("fleet", found, mend)
            } else {
                Check::ok("fleet", found)
            }
        }
        Err(error) => {
            Check::warn("fleet", error.to_string(), "start a fleet with `muster up`: it sets the bus up")
        }
    }
}

/// The roles that come with Muster of which nobody is there.
fn missing(profiles: &[Profile]) -> Vec<String> {
    profiles.iter().collect::<AgentsByRole>().missing()
}
