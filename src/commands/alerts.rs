//! `muster alerts`: rules, what fires, tests of destinations, silences, and looking after all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use muster_bus::Bus;
use muster_shared::text::nearest_name;
use serde_json::json;
use uuid::Uuid;

use super::bystander::profile;
use super::rejoin::or_rejoin;
use crate::alerts::ROLE;
use crate::alerts::notice::Notice;
use crate::alerts::rule::Rule;
use crate::alerts::send::Receiver;
use crate::alerts::state::{Silence, Silences, State};
use crate::alerts::watch::Watch;
use crate::app::{App, bus_failure, no_fleet, now};
use crate::args::{AlertsAction, AlertsArgs, AlertsSilenceArgs, AlertsTestArgs};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::render::alerts::{Shown, json as in_json, list as in_words};
use crate::render::figures;
use crate::signals::StopSignals;
use crate::telemetry::{self, Telemetry};

/// The longest silence.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
/// The shortest that the bus keeps.
const SHORTEST: Duration = Duration::from_secs(1);

/// Does what was asked.
pub(super) async fn alerts(app: &App, args: &AlertsArgs) -> Result<Exit, Failure> {
    match &args.action {
        None => list(app, args.json).await,
        Some(AlertsAction::List(more)) => list(app, args.json || more.json).await,
        Some(AlertsAction::Test(test)) => try_out(app, test).await,
        Some(AlertsAction::Silence(asked)) => silence(app, asked).await,
        Some(AlertsAction::Watch) => watch(app).await,
    }
}

/// The rules of which somebody is told.
pub(crate) fn told(app: &App) -> Vec<Rule> {
    app.loaded.alerts.iter().filter(|rule| !rule.to.is_empty()).cloned().collect()
}

async fn list(app: &App, as_json: bool) -> Result<Exit, Failure> {
    let rules = &app.loaded.alerts;
    // Rules are there without a fleet; what fires is not.
    let bus = match app.url() {
        Some(url) => Some(app.connect_to(&url, "reader").await?),
        None => None,
    };
    let known = match &bus {
        Some(bus) => Some(look(bus).await?),
        None => None,
    };
    let none = Silences::new();
    let shown = Shown {
        rules,
        state: known.as_ref().map(|known| &known.0),
        silences: known.as_ref().map_or(&none, |known| &known.1),
        holder: known.as_ref().and_then(|known| known.2.as_ref()),
        now: now(),
    };
    if as_json {
        output::json(&in_json(&shown))?;
    } else {
        output::line(&in_words(&shown))?;
        if bus.is_none() {
            output::note("no fleet is running here: what fires is not known");
        }
    }
    Ok(Exit::Completed)
}

async fn look(bus: &Bus) -> Result<(State, Silences, Option<muster_shared::ids::AgentId>), Failure> {
    let alerts = bus.alerts();
    let (state, _) = alerts.state::<State>().await.map_err(bus_failure)?;
    let silences = alerts.silences::<Silence>().await.map_err(bus_failure)?;
    Ok((state, silences, alerts.holder().await.map_err(bus_failure)?))
}

/// What fires, in a line; nothing where nothing does, or where nothing is known.
pub(super) async fn firing(bus: &Bus) -> State {
    bus.alerts().state::<State>().await.map(|(state, _)| state).unwrap_or_default()
}

async fn try_out(app: &App, args: &AlertsTestArgs) -> Result<Exit, Failure> {
    let receivers = Receiver::all(&app.settings().alerts, &app.settings().tool.web);
    let used: BTreeSet<String> = told(app).into_iter().flat_map(|rule| rule.to).collect();
    let names: Vec<String> = match &args.name {
        Some(name) if receivers.contains_key(name) => vec![name.clone()],
        Some(name) => return Err(unknown("destination", name, receivers.keys())),
        None if used.is_empty() => {
            return Err(Failure::usage("no rule has a destination")
                .help("name one with alerts.to in the settings, or say which one to test; docs/alerts.md has examples"));
        }
        None => used.into_iter().collect(),
    };
    let mut all_taken = true;
    let mut results = Vec::new();
    for name in &names {
        let Some(receiver) = receivers.get(name) else { continue };
        let began = Instant::now();
        let notice = Notice::test(format!("test-{}", Uuid::new_v4().simple()), now());
        let came = receiver.tell(&notice).await;
        let took = began.elapsed();
        all_taken &= came.is_ok();
        if args.json {
            let (said, is_taken) = match &came {
                Ok(said) => (said, true),
                Err(why) => (why, false),
            };
            results.push(json!({
                "destination": name, "id": notice.id, "taken": is_taken, "said": app.redactor.redact(said),
                "millis": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            }));
        } else {
            let paint = app.paint();
            let (mark, said) = match &came {
                Ok(said) => (paint.good("taken"), said),
                Err(why) => (paint.bad("failed"), why),
            };
            output::line(&format!("{name} {mark}: {} ({})", app.redactor.redact(said), figures::span(took)))?;
        }
    }
    if args.json {
        output::json(&results)?;
    }
    Ok(if all_taken { Exit::Completed } else { Exit::Failed })
}

async fn silence(app: &App, args: &AlertsSilenceArgs) -> Result<Exit, Failure> {
    let names = app.loaded.alerts.iter().map(|rule| &rule.name);
    if !names.clone().any(|name| *name == args.rule) {
        return Err(unknown("rule", &args.rule, names));
    }
    let bus = app.connect("cli").await?;
    let Some(time) = args.time.filter(|_| !args.lift) else {
        bus.alerts().end_silence(&args.rule).await.map_err(bus_failure)?;
        return said(args, None, &format!("{} is told of again", args.rule));
    };
    if !(SHORTEST..=LONGEST).contains(&time) {
        return Err(Failure::usage(format!("a silence of {} cannot be", figures::span(time)))
            .help("give a time from 1s to 30d, or --lift to end one"));
    }
    let silence = Silence {
        until: now().after(time),
        by: figures::one_line(bus.who().as_str(), 60),
        because: figures::one_line(&args.because, 200),
    };
    bus.alerts().silence(&args.rule, &silence, time).await.map_err(bus_failure)?;
    let words = format!("nothing is told about {} for {}", args.rule, figures::span(time));
    said(args, Some(&silence), &words)
}

fn said(args: &AlertsSilenceArgs, silence: Option<&Silence>, words: &str) -> Result<Exit, Failure> {
    if args.json {
        output::json(&json!({ "rule": args.rule, "silenced": silence }))?;
    } else {
        output::line(words)?;
    }
    Ok(Exit::Completed)
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a String> + Clone) -> Failure {
    let near = nearest_name(name, known.clone().map(String::as_str));
    let near = near.map(|near| format!("did you mean {near}? ")).unwrap_or_default();
    let all: Vec<&str> = known.map(String::as_str).collect();
    Failure::usage(format!("there is no {what} {name:?}")).help(format!("{near}There are {}", all.join(", ")))
}

/// Looks after alerts until told to stop.
async fn watch(app: &App) -> Result<Exit, Failure> {
    let rules = told(app);
    if rules.is_empty() {
        return Err(Failure::usage("nobody is to be told of any alert").help(
            "name a destination, or log, with alerts.to in the settings; docs/alerts.md has examples",
        ));
    }
    let settings = &app.settings().alerts;
    let retry_for: BTreeMap<_, _> =
        settings.destinations.iter().map(|(name, to)| (name.clone(), to.retry_for)).collect();
    let watch = Watch {
        rules,
        receivers: Receiver::all(settings, &app.settings().tool.web),
        retry_for,
        every: settings.every,
        fleet: app.settings().fleet.whole_budget(),
    };
    let stop = StopSignals::listen()?.into_token();
    let url = app.url().ok_or_else(no_fleet)?;
    let bus = app.connect_to(&url, ROLE).await?;
    let (bus, telemetry) = Telemetry::begin(app, bus, telemetry::Role::Alerts).await?;
    let work = async {
        bus.provision().await.map_err(bus_failure)?;
        let announced = bus
            .registry()
            .announce(profile(app, &bus, ROLE.to_owned(), Vec::new()))
            .await
            .map_err(bus_failure)?;
        tokio::select! {
            () = watch.keep(&bus, &stop) => {}
            error = bus.failed() => return Err(bus_failure(error)),
        }
        announced.leave().await.map_err(bus_failure)
    };
    let ended = Box::pin(or_rejoin(app, (&bus, &url), work)).await;
    telemetry.end().await;
    ended?;
    Ok(Exit::Completed)
}
