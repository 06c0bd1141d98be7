//! `muster doctor`: checks the installation, line by line, and says how to mend what is wrong.

use std::path::Path;
use std::time::Duration;

use muster_bus::server::{find_binary, version_of};
use nix::sys::statvfs::statvfs;
use serde_json::json;

use crate::app::App;
use crate::args::JsonArgs;
use crate::exit::{Exit, Failure};
use crate::fleet;
use crate::output;
use crate::render::checks::{Check, Verdict, list};
use crate::render::figures;
use crate::settings::Team;

/// Clocks further apart than this are warned about: deadlines are broker time, waiting is ours.
const MOST_SKEW_MS: u64 = 5_000;

/// Free space below which a warning is given, in bytes.
const LEAST_SPACE: u64 = 1024 * 1024 * 1024;

/// A round trip above this is warned about.
const SLOW: Duration = Duration::from_millis(100);

/// Checks everything.
pub(super) async fn doctor(app: &App, args: &JsonArgs) -> Result<Exit, Failure> {
    let mut checks = vec![settings(app)];
    checks.extend(app.loaded.warnings.iter().map(|warning| {
        Check::warn("environment", warning.clone(), "unset it, or spell it as `muster config` does")
    }));
    checks.extend(app.loaded.team.as_ref().map(team));
    checks.push(folder(app));
    checks.push(space(app));
    checks.push(server_program(app).await);
    checks.extend(bus(app).await);
    checks.extend(super::models::checks(app).await);
    let failed = checks.iter().any(|check| check.verdict == Verdict::Fail);
    if args.json {
        output::json(&json!({ "ok": !failed, "checks": checks }))?;
    } else {
        output::line(&list(&checks, app.paint()))?;
    }
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

fn team(team: &Team) -> Check {
    let faults = fleet::team::faults(team);
    if faults.is_empty() {
        let others = match team.specialists.len() {
            0 => "nobody beside the roles that come with Muster".to_owned(),
            _ => team.specialists.iter().map(|member| member.role.as_str()).collect::<Vec<_>>().join(", "),
        };
        return Check::ok("team", format!("{} ({}): {others}", team.name, team.path.display()));
    }
    Check::fail("team", faults.join("; "), "mend the team's file, or what it names")
}

fn folder(app: &App) -> Check {
    let path = app.fleet.path();
    let probe = path.join(format!(".probe-{}", std::process::id()));
    let written = std::fs::create_dir_all(path).and_then(|()| std::fs::write(&probe, b"muster"));
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

fn space(app: &App) -> Check {
    let existing: &Path = app.fleet.path().ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    match statvfs(existing) {
        Ok(disk) => {
            #[allow(
                clippy::useless_conversion,
                clippy::unnecessary_cast,
                reason = "the widths differ by system"
            )]
            let free = (disk.blocks_available() as u64).saturating_mul(disk.fragment_size() as u64);
            if free < LEAST_SPACE {
                let found = format!("{} free", figures::bytes(free));
                Check::warn(
                    "disk",
                    found,
                    "make room: the record of runs is kept here, and writes stop when it is full",
                )
            } else {
                Check::ok("disk", format!("{} free", figures::bytes(free)))
            }
        }
        Err(error) => Check::warn("disk", format!("free space is not known: {error}"), "look at it by hand"),
    }
}

async fn server_program(app: &App) -> Check {
    const WHAT: &str = "nats-server";
    const MEND: &str =
        "run deploy/install-nats.sh, or set MUSTER_NATS_SERVER to a nats-server of 2.14 or newer";
    let found = app.settings().server.binary.clone().map_or_else(find_binary, Ok);
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

async fn bus(app: &App) -> Vec<Check> {
    let Some(url) = app.url() else {
        return vec![Check::ok("bus", "no fleet is up here; `muster run` and `muster up` start one")];
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
        url_shown(app, &url),
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
    checks.push(deaths(&bus).await);
    checks.push(fleet(&bus).await);
    checks
}

/// How the death of an agent is noticed.
async fn deaths(bus: &muster_bus::Bus) -> Check {
    const WHAT: &str = "deaths";
    const MEND: &str = "set bus.system_user and MUSTER_BUS_SYSTEM_PASSWORD, for orchestrators alone, to a user of the \
                        server's system account that may subscribe to $SYS.ACCOUNT.*.CONNECT and .DISCONNECT and publish to \
                        $SYS.REQ.SERVER.PING.CONNZ";
    match bus.presence().await {
        Ok(Some(_)) => Check::ok(WHAT, "the death of an agent is noticed at once (by the system account)"),
        Ok(None) => {
            let settings = bus.settings();
            let found = format!(
                "without a system account the death of an agent is noticed when the registry forgets it ({}) or its \
                 tasks' time is up ({})",
                figures::span(settings.registry_ttl),
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
            let found = format!("{} processes, {orchestrators} of them orchestrators", profiles.len());
            if orchestrators == 0 {
                Check::warn(
                    "fleet",
                    found,
                    "nobody takes up goals: start `muster orchestrator`, or `muster up`",
                )
            } else {
                Check::ok("fleet", found)
            }
        }
        Err(error) => {
            Check::warn("fleet", error.to_string(), "start a fleet with `muster up`: it sets the bus up")
        }
    }
}

/// A URL without a password that may stand in it.
fn url_shown(app: &App, url: &str) -> String {
    let shown = match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}://…@{}", &url[..scheme], &url[at + 1..]),
        (_, _) => url.to_owned(),
    };
    app.redactor.redact(&shown).into_owned()
}
