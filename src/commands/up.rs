//! `muster up`: a local fleet, watched over until told to stop.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use muster_shared::secret;
use muster_shared::time::millis;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::alerts::Alerts;
use crate::app::App;
use crate::args::UpArgs;
use crate::commands::guard::check_lists;
use crate::commands::metrics::Door;
use crate::exit::{Exit, Failure, failed, usage};
use crate::fleet::member::MemberChange;
use crate::fleet::state::FleetState;
use crate::fleet::supervisor::{Fleet, lost_its_port};
use crate::fleet::{background, process, scale, users};
use crate::output;
use crate::render::figures;
use crate::render::paint::Paint;
use crate::signals::StopSignals;

/// A fleet that comes up faster than this is not worth a word before it is up.
const WORTH_A_WORD: Duration = Duration::from_secs(1);

/// How long whoever just comes to a fleet that ends is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Brings the fleet up.
pub(super) async fn up(app: &App, args: UpArgs) -> Result<Exit, Failure> {
    let in_background = args.in_background;
    let ended = bring_up(app, args).await;
    if let Err(failure) = &ended
        && in_background
    {
        background::leave_word(&app.fleet, failure);
    }
    ended
}

async fn bring_up(app: &App, args: UpArgs) -> Result<Exit, Failure> {
    let scale: BTreeMap<String, u16> = args.scale.iter().cloned().collect();
    if let Some(url) = app.settings().bus.url.as_deref().filter(|_| args.tls || args.listen.is_some()) {
        let url = secret::without_passwords(url);
        return Err(usage!(
            "--tls and --listen are for a server of the fleet's own, and bus.url is set ({url})"
        )
        .help("leave them out, or unset bus.url (MUSTER_BUS_URL, --url)"));
    }
    if args.detach && !args.in_background {
        // Said here: what the process in the background says is in its log.
        scale::of(app, &scale)?;
        check_lists(app)?;
        Alerts::of(app)?;
        return detach(app, &args).await;
    }
    let mut stop = StopSignals::listen()?;
    let door = match app.settings().metrics.listen {
        Some(at) => Some(Door::open(at).await?),
        None => None,
    };
    let mut fleet = tokio::select! {
        started = Fleet::start(app, &scale, args.while_used) => started?,
        // No process of the fleet runs yet. The server ends with what is dropped here.
        () = stop.wait() => return Ok(Exit::Completed),
    };
    if let Some(door) = door {
        serve_figures(app, &fleet, door).await?;
    }
    if !args.json {
        output::note!(
            "bus {}; logs in {}; Ctrl-C stops the fleet",
            secret::without_passwords(fleet.url()),
            app.fleet.path().join("log").display()
        );
    }
    let mut given_up = Vec::new();
    // Kept until this process has ended: who comes meanwhile waits, and begins another fleet.
    let mut gate = None;
    let unused = users::none_left(&app.fleet);
    tokio::pin!(unused);
    let ended_by_itself = loop {
        tokio::select! {
            () = stop.wait() => break false,
            ending = &mut unused, if args.while_used => {
                gate = ending;
                break false;
            }
            change = fleet.change() => match change {
                Some((name, change)) => {
                    if matches!(change, MemberChange::GivenUp { .. }) {
                        given_up.push(name.clone());
                    }
                    tell(&name, &change, args.json, app.paint_notes())?;
                }
                None => break true,
            },
        }
    };
    if !args.json {
        output::note("stopping the fleet …");
    }
    if gate.is_none() {
        gate = users::pass(&app.fleet, PATIENCE).await.ok().flatten();
    }
    fleet.stop().await;
    drop(gate);
    if ended_by_itself && lost_its_port(app) {
        return Err(begin_anew());
    }
    if ended_by_itself {
        return Err(died_too_often(app, &given_up));
    }
    Ok(Exit::Completed)
}

/// Somebody else has taken the server's port in a moment in which it was down. This process begins anew with the same words: the
/// server gets another port, agents are started there, and whoever waits for the fleet finds it. Only returns when it failed.
fn begin_anew() -> Failure {
    output::note(
        "another program listens on the port of this fleet's server: the fleet comes up on another one",
    );
    let failed = |error: std::io::Error| {
        failed!("the port of the fleet is taken, and it cannot restart itself: {error}")
            .help("`muster up` starts it on another port")
    };
    failed(process::begin_anew(std::env::args_os().skip(1), &[]))
}

/// Serves the figures of the fleet for as long as this process lives.
async fn serve_figures(app: &App, fleet: &Fleet, door: Door) -> Result<(), Failure> {
    let bus = app.connect_to(fleet.url(), "supervisor").await?;
    output::note!("figures at http://{0}/metrics, targets at http://{0}/targets", door.at());
    drop(door.serve(app.clone(), bus, CancellationToken::new()));
    Ok(())
}

/// Nothing is left to be watched over.
pub(super) fn died_too_often(app: &App, given_up: &[String]) -> Failure {
    failed!("the fleet stopped: {} died too often", given_up.join(", "))
        .help(format!("see why in {}", app.fleet.path().join("log").display()))
}

pub(super) fn tell(name: &str, change: &MemberChange, as_json: bool, paint: Paint) -> Result<(), Failure> {
    if as_json {
        return output::json_line(&change_json(name, change));
    }
    output::note(&match change {
        MemberChange::Started(process) => format!("{} {name} (pid {})", paint.good("started"), process.pid),
        MemberChange::Died { how, again_after } => {
            format!(
                "{} {name} {how}; starting it again in {}",
                paint.warn("died"),
                figures::span(*again_after)
            )
        }
        MemberChange::GivenUp { how } => {
            format!("{} {name} {how}, and too often: it is not started again", paint.bad("given up"))
        }
        MemberChange::Stopped => format!("{} {name}", paint.dim("stopped")),
        MemberChange::Refused { reason } => format!("{} {reason}", paint.warn("refused")),
    });
    Ok(())
}

fn change_json(name: &str, change: &MemberChange) -> Value {
    match change {
        MemberChange::Started(process) => json!({ "name": name, "change": "started", "pid": process.pid }),
        MemberChange::Died { how, again_after } => {
            json!({ "name": name, "change": "died", "how": how, "again_after_ms": millis(*again_after) })
        }
        MemberChange::GivenUp { how } => json!({ "name": name, "change": "given_up", "how": how }),
        MemberChange::Stopped => json!({ "name": name, "change": "stopped" }),
        MemberChange::Refused { reason } => json!({ "name": name, "change": "refused", "reason": reason }),
    }
}

/// Starts this same command in a session of its own, and waits until the fleet is up.
async fn detach(app: &App, args: &UpArgs) -> Result<Exit, Failure> {
    if let Some(state) = app.fleet.live() {
        return Err(failed!("a fleet is already running (process {}, {})", state.supervisor.pid, state.url)
            .help("use it as it is, or stop it with `muster down`"));
    }
    let began = Instant::now();
    let mut told = String::new();
    let progress = |state: &FleetState| {
        let news = awaited(state);
        if !args.json && news != told && began.elapsed() >= WORTH_A_WORD {
            output::note(&news);
            told = news;
        }
    };
    let state = background::start(app, &words(args), |state| state.ready, progress).await?;
    let given_up = state.members.iter().filter(|member| member.given_up);
    for member in given_up {
        let how = member.how.as_deref().unwrap_or("died");
        output::note!("{} {how}, and too often: it is not started again", member.name);
    }
    state.refused.iter().for_each(|refused| output::note(&format!("left out: {}", refused.reason)));
    let url = secret::without_passwords(&state.url).into_owned();
    let state = FleetState { url, ..state };
    let in_words = || {
        let listen = state.listen.as_ref().map_or_else(String::new, |at| format!(", listening on {at}"));
        format!(
            "the fleet is up: {} processes on {}{listen} (supervisor {}); `muster down` stops it",
            state.members.len(),
            state.url,
            state.supervisor.pid
        )
    };
    output::json_or_line(args.json, || &state, in_words)
}

/// The words for the supervisor in the background.
fn words(args: &UpArgs) -> Vec<String> {
    let scale = args.scale.iter().flat_map(|(name, count)| ["--scale".to_owned(), format!("{name}={count}")]);
    let json = args.json.then(|| "--json".to_owned());
    ["up".to_owned(), "--in-background".to_owned()].into_iter().chain(scale).chain(json).collect()
}

/// Who is not there yet, in a line.
fn awaited(state: &FleetState) -> String {
    if state.up {
        format!("waiting for {} to join …", state.awaited.join(", "))
    } else {
        "starting the processes …".to_owned()
    }
}
