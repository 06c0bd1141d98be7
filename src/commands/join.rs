//! `muster join`: makes this machine a part of a fleet that is elsewhere, and runs agents for it here.

mod line;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use muster_bus::credentials::{Credentials, Invitation, OwnKey};
use muster_bus::hosts::{Answer, Asking, JoinAnswer, JoinQuestion};
use muster_bus::registry::host_name;
use muster_bus::{Asker, BusError, BusSettings, Reply};
use muster_shared::text::counted;
use nix::sys::signal::Signal;
use secrecy::{ExposeSecret, SecretString};

pub(crate) use line::INVITATION;
use line::{given, hide};

use super::up;
use crate::app::{App, current_folder, not_believed, now};
use crate::args::JoinArgs;
use crate::exit::{Exit, Failure, failed, usage};
use crate::fleet::far::{FarDesk, Own};
use crate::fleet::joined::{JoinedFolder, Membership, by_credentials};
use crate::fleet::member::MemberChange;
use crate::fleet::state::FleetFolder;
use crate::fleet::supervisor::Fleet;
use crate::fleet::{background, own_keys};
use crate::output;
use crate::render::figures;
use crate::settings;
use crate::signals::StopSignals;
use crate::trust::Item;

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long after a try that came to nothing the next one is made.
const AGAIN: Duration = Duration::from_millis(250);
/// How long agents have that can do nothing more for the fleet.
const AT_ONCE: Duration = Duration::from_millis(300);

/// Joins, or goes on, and works until told to stop.
pub(super) async fn join(app: &App, args: JoinArgs) -> Result<Exit, Failure> {
    if let Some(line) = args.line.as_deref().filter(|line| *line != "-") {
        hide(line);
    }
    let app = in_this_folder(app)?;
    let is_in_background = args.as_supervisor;
    let ended = Box::pin(begin(&app, args)).await;
    if let Err(failure) = &ended
        && is_in_background
    {
        background::leave_word(&app.fleet, failure);
    }
    ended
}

/// A machine joins in the folder where the command is given, whatever fleet is above it.
fn in_this_folder(app: &App) -> Result<App, Failure> {
    let fleet = FleetFolder::of(&current_folder()?);
    match fleet.fault() {
        None => Ok(App { fleet, ..app.clone() }),
        Some(fault) => {
            Err(not_believed(&format!("what stands in {} is not believed: {fault}", fleet.path().display())))
        }
    }
}

async fn begin(app: &App, args: JoinArgs) -> Result<Exit, Failure> {
    if let Some(state) = app.fleet.live() {
        return Err(failed!("a fleet is already running here (process {})", state.supervisor.pid)
            .help("`muster down` stops it"));
    }
    let folder = JoinedFolder::of(&app.fleet);
    let given = if args.as_supervisor { None } else { given(&args)? };
    let mut joined = match given {
        Some(line) => enter(app, &folder, &line, &args).await?,
        None => known(app, &folder, args.as_supervisor)?,
    };
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    joined.scale = joined.scaled(&args.scale, processors).map_err(|name| {
        let roles = figures::list(&joined.roles);
        usage!("this machine may start {roles} only, and not {name}")
            .help("it has joined: `muster join --scale ROLE=COUNT` without the line continues, and needs no invitation")
    })?;
    folder.write(&joined).map_err(|error| cannot_keep(&folder, &error))?;
    if args.detach && !args.as_supervisor {
        return detach(app, &joined, args.json).await;
    }
    Box::pin(supervise(app, &folder, &joined, args.json)).await
}

/// What is kept here, where it was the user who joined: a folder may be a copy, and work for whoever it likes. Who supervises in
/// the background was started by whoever has looked.
fn known(app: &App, folder: &JoinedFolder, is_looked_at: bool) -> Result<Membership, Failure> {
    let found = folder.read().map_err(|error| {
        usage!("what is kept in {} cannot be read: {error}", folder.path().display())
            .help("join anew, by another invitation")
    })?;
    let joined = found.ok_or_else(|| {
        usage!("this folder joined no fleet yet")
            .help("`muster invite` on the fleet's machine prints a line; `muster join LINE` joins by it")
    })?;
    let is_own = |item: &Item| app.trust.knows(folder.path(), item);
    if is_looked_at || folder.item(&joined).is_some_and(|item| is_own(&item)) {
        return Ok(joined);
    }
    Err(usage!(
        "it is not known that you joined the fleet at {} here: what is in {} came with the folder",
        joined.url,
        folder.path().display()
    )
    .help("`muster trust` shows it and asks you once; or join by another invitation"))
}

fn cannot_keep(folder: &JoinedFolder, error: &std::io::Error) -> Failure {
    failed!("cannot write to {}: {error}", folder.path().display())
        .help("change to a folder of your own: what this machine is in the fleet is kept there")
}

/// Joins by an invitation.
async fn enter(
    app: &App,
    folder: &JoinedFolder,
    line: &SecretString,
    args: &JoinArgs,
) -> Result<Membership, Failure> {
    let invited = Invitation::from_line(line.expose_secret())
        .map_err(|error| Failure::usage(error).help("`muster invite` prints the line"))?;
    if invited.until <= now() {
        let (until, now) = (figures::date(invited.until), figures::date(now()));
        return Err(usage!("this invitation ended at {until} UTC, and by this machine's clock it is {now}")
            .help("ask for another one: `muster invite` on the fleet's machine; or set the clock by NTP, if it is wrong"));
    }
    folder.create(&app.fleet).map_err(|error| cannot_keep(folder, &error))?;
    let wrong = |error| failed!("{error}");
    let key = OwnKey::in_file(&folder.key_file(&invited.name)).map_err(wrong)?;
    let guest = folder.guest_file(&invited.name);
    invited.credentials().write(&guest).map_err(wrong)?;
    let of_url = |url: String| by_credentials(&app.settings().bus, &url, Some(guest.clone()), None);
    let ways: Vec<BusSettings> = invited.urls().into_iter().map(of_url).collect();
    let mut wait = Wait::new(app, args.json);
    let came = async {
        let (url, asker) = connect_as_guest(&ways, &invited, &mut wait).await?;
        let answer = ask(&asker, &invited, &key, &mut wait).await?;
        Ok::<_, Failure>((url, asker, answer))
    };
    let came = came.await;
    // It is of no more use, or was of none: with the line it is made again.
    let _ = std::fs::remove_file(&guest);
    let (url, asker, answer) = came?;
    let credentials = Credentials::of_own(&key, answer.jwt, None).map_err(wrong)?;
    let joined = Membership {
        host: answer.host,
        invitation: invited.name.clone(),
        roles: answer.roles,
        url,
        is_encrypted: invited.authority.is_some(),
        settings: answer.settings,
        scale: std::collections::BTreeMap::new(),
    };
    let kept = folder.keep(&joined, &credentials, asker.authority().as_deref());
    kept.map_err(|error| cannot_keep(folder, &error))?;
    if let Some(item) = folder.item(&joined) {
        own_keys::keep(app, folder.path(), item);
    }
    if !args.json {
        let Membership { host, url, .. } = &joined;
        output::note!("joined the fleet at {url} as {host}; `muster join` alone goes on another time");
    }
    Ok(joined)
}

/// Waits for a fleet that is not there yet, and says so.
struct Wait {
    until: Instant,
    limit: Duration,
    quiet: bool,
    told: String,
}

impl Wait {
    fn new(app: &App, quiet: bool) -> Self {
        let limit = app.settings().fleet.start_limit;
        Self { until: Instant::now() + limit, limit, quiet, told: String::new() }
    }

    /// Waits a little after a try that came to nothing.
    ///
    /// # Errors
    /// When that was the last one.
    async fn after(&mut self, why: String) -> Result<(), Failure> {
        if Instant::now() >= self.until {
            return Err(Failure::bus(format!("{why} (waited {})", figures::span(self.limit))).help(
                "see that the fleet is up (`muster up` on its machine) and can be reached from here; fleet.start_limit \
                 gives it more time",
            ));
        }
        if why != self.told {
            if !self.quiet {
                output::note!("{why}; waiting …");
            }
            self.told = why;
        }
        tokio::time::sleep(AGAIN).await;
        Ok(())
    }
}

/// Connects where the fleet answers first; says where that is.
async fn connect_as_guest(
    ways: &[BusSettings],
    invited: &Invitation,
    wait: &mut Wait,
) -> Result<(String, Asker), Failure> {
    loop {
        let (mut away, mut another) = (None, None);
        let connect = |way: &BusSettings| {
            let way = way.clone();
            async move {
                let asker = Asker::connect(&way, invited.authority).await;
                (way.url.unwrap_or_default(), asker)
            }
        };
        let mut tries: FuturesUnordered<_> = ways.iter().map(connect).collect();
        while let Some((url, tried)) = tries.next().await {
            match tried {
                Ok(asker) => return Ok((url, asker)),
                Err(BusError::Unauthorized { url, .. }) => return Err(unknown(&url)),
                Err(BusError::Unreachable { url, reason }) => {
                    away = Some(format!("no fleet answers at {url} ({reason})"));
                }
                // Of several addresses, one may be that of a machine nearer by.
                Err(BusError::Tls { url, reason }) => another = Some(not_meant(&url, &reason)),
                Err(error) => return Err(error.into()),
            }
        }
        match (away, another) {
            (None, Some(another)) => return Err(another),
            (Some(away), _) => wait.after(away).await?,
            (None, None) => return Err(usage!("this invitation names no address")),
        }
    }
}

fn unknown(url: &str) -> Failure {
    usage!(
        "the fleet at {url} does not know this invitation: it ended, was withdrawn, or is of another fleet"
    )
    .help("ask for another one: `muster invite` on the fleet's machine")
}

fn not_meant(url: &str, reason: &str) -> Failure {
    usage!("the server at {url} is not the one of this invitation: {reason}")
        .help("see that the address is the fleet's (`muster invite --address`), and ask for another line")
}

async fn ask(
    asker: &Asker,
    invited: &Invitation,
    key: &OwnKey,
    wait: &mut Wait,
) -> Result<JoinAnswer, Failure> {
    let asking = Asking::Join(invited.name.clone());
    let (machine, version) = (host_name().unwrap_or_default(), env!("CARGO_PKG_VERSION").to_owned());
    let question = JoinQuestion { key: key.public(), machine, version };
    loop {
        match asker.ask::<_, Answer<JoinAnswer>>(&asking, &question, PATIENCE).await? {
            Reply::Answered(Answer::Granted(answer)) => return Ok(answer),
            Reply::Answered(Answer::Refused(why)) => {
                return Err(usage!("the fleet refuses: {why}")
                    .help("`muster invite` on the fleet's machine makes another invitation"));
            }
            Reply::Answered(Answer::Failed(why)) => {
                wait.after(format!("the fleet cannot answer: {why}")).await?
            }
            Reply::Nobody => {
                wait.after("the fleet's server is up, and no `muster up` supervises it".to_owned()).await?;
            }
            Reply::Silence => wait.after("the fleet does not answer".to_owned()).await?,
        }
    }
}

/// Connects as what this machine is in the fleet.
async fn connect_as_host(
    app: &App,
    way: &BusSettings,
    joined: &Membership,
    quiet: bool,
) -> Result<Asker, Failure> {
    let mut wait = Wait::new(app, quiet);
    loop {
        match Asker::connect(way, None).await {
            Ok(asker) => return Ok(asker),
            Err(BusError::Unreachable { url, reason }) => {
                wait.after(format!("no fleet answers at {url} ({reason})")).await?;
            }
            Err(error) => return Err(ended_by(joined, error)),
        }
    }
}

/// Why this machine can do nothing more for the fleet.
fn ended_by(joined: &Membership, error: BusError) -> Failure {
    let Membership { host, url, .. } = joined;
    match error {
        BusError::Unauthorized { .. } => {
            Failure::bus(format!("the fleet at {url} lets this machine in no more: {host} was thrown out"))
                .help("join again by another invitation (`muster invite` on the fleet's machine)")
        }
        other => other.into(),
    }
}

/// Why the agents here ended.
enum End {
    Stopped,
    Of(BusError),
    DiedTooOften,
}

async fn supervise(
    app: &App,
    folder: &JoinedFolder,
    joined: &Membership,
    as_json: bool,
) -> Result<Exit, Failure> {
    let app = &with_shared(app, joined);
    let mut stop = StopSignals::listen()?;
    let way = folder.way(joined, &app.settings().bus);
    let asker = tokio::select! {
        asker = connect_as_host(app, &way, joined, as_json) => asker?,
        () = stop.wait() => return Ok(Exit::Completed),
    };
    let key = OwnKey::in_file(&folder.key_file(&joined.invitation));
    let key = key.map_err(Failure::failed)?;
    let own = Own { key, file: folder.host_file() };
    let desk = Arc::new(FarDesk::new(asker, own, folder.path(), folder.authority(joined)));
    let mut fleet = Fleet::start_agents(app, joined, Arc::clone(&desk), &joined.scale).await?;
    if !as_json {
        output::note!(
            "agents of the fleet at {}; logs in {}; Ctrl-C stops them",
            fleet.url(),
            app.fleet.path().join("log").display()
        );
    }
    let mut given_up = Vec::new();
    let renewing = desk.renew();
    tokio::pin!(renewing);
    let end = loop {
        tokio::select! {
            () = stop.wait() => break End::Stopped,
            error = desk.failed() => break End::Of(error),
            () = &mut renewing => {}
            change = fleet.change() => match change {
                Some((name, change)) => {
                    if matches!(change, MemberChange::GivenUp { .. }) {
                        given_up.push(name.clone());
                    }
                    up::tell(&name, &change, as_json, app.paint_notes())?;
                }
                None => break End::DiedTooOften,
            },
        }
    };
    if !as_json && !matches!(end, End::DiedTooOften) {
        output::note("stopping the agents …");
    }
    if matches!(end, End::Of(_)) {
        // What they have in hand counts for nothing any more, and costs.
        end_at_once(app).await;
    }
    fleet.stop().await;
    match end {
        End::Stopped => Ok(Exit::Completed),
        End::Of(error) => Err(ended_by(joined, error)),
        End::DiedTooOften => Err(up::died_too_often(app, &given_up)),
    }
}

/// Ends the agents without waiting for what they have in hand.
async fn end_at_once(app: &App) {
    let state = app.fleet.read();
    let members = state.iter().flat_map(|state| &state.members).filter_map(|member| member.process.as_ref());
    let members: Vec<_> = members.collect();
    members.iter().for_each(|process| process.signal(Signal::SIGTERM));
    for process in members {
        if !process.gone_within(AT_ONCE).await {
            process.signal(Signal::SIGKILL);
        }
    }
}

/// With what the fleet's processes share, over what is set here: how long a task may be held, say, is no machine's own affair.
fn with_shared(app: &App, joined: &Membership) -> App {
    let shared = joined.settings.iter().filter(|(key, _)| settings::is_shared_by_all(key));
    let shared = shared.map(|(key, value)| (key.clone(), value.clone(), "the fleet".to_owned()));
    let flags = app.flags.iter().cloned().chain(shared).collect();
    App { flags: Arc::new(flags), ..app.clone() }
}

/// Starts this same command in a session of its own, and waits until the agents are started.
async fn detach(app: &App, joined: &Membership, as_json: bool) -> Result<Exit, Failure> {
    let words = ["join".to_owned(), "--as-supervisor".to_owned()];
    let words: Vec<String> = words.into_iter().chain(as_json.then(|| "--json".to_owned())).collect();
    let state = background::start(app, &words, |state| state.ready, |_| {}).await?;
    let in_words = || {
        format!(
            "{}, as {} for the fleet at {} (supervisor {}); `muster down` stops them",
            counted(state.members.len(), "agent is started", "agents are started"),
            joined.host,
            state.url,
            state.supervisor.pid
        )
    };
    output::json_or_line(as_json, || &state, in_words)
}
