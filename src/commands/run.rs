//! `muster run`: asks a goal, shows how it is worked on, delivers the report.

mod deliver;
mod documents;
mod filled;
mod fleet;
mod screen;
mod typed;
mod watch;

use std::io::Read;
use std::path::Path;

use muster_bus::Bus;
use muster_shared::flow::goal::MAX_GOAL_BYTES;
use muster_shared::flow::{Budget, DraftReviewPolicy, Goal, PlanDraft, Planning, RunLimits, conversation};
use muster_shared::ids::RunId;
use muster_shared::run::conversation::turn;
use muster_shared::wire::Command;
use uuid::Uuid;

pub(super) use self::deliver::{Wanted, check as check_output, write};
use self::fleet::RunFleet;
pub(super) use self::screen::Screen;
use super::{blueprint, select};
use crate::app::{App, bus_failure};
use crate::args::{DraftReviewChoice, PlanningChoice, RunArgs};
use crate::exit::{Exit, Failure};
use crate::settings::Dollars;
use crate::signals::StopSignals;

/// Asks a goal and waits for its end.
pub(super) async fn run(app: &App, args: RunArgs) -> Result<Exit, Failure> {
    let mut goal = goal(app, &args)?;
    documents::check(&args.docs)?;
    let wanted = Wanted { output: args.output.clone(), json: args.json, quiet: args.quiet };
    let begin = async |bus: &Bus, screen: &Screen, stop: &mut StopSignals| {
        if !args.docs.is_empty() {
            goal.corpus = Some(tokio::select! {
                sent = documents::send(app, bus, &args.docs, screen) => sent?,
                () = stop.wait() => return Err(stopped_before("the documents were sent")),
            });
        }
        if let Some(earlier) = &args.follow {
            follow(bus, earlier, &mut goal).await?;
        }
        submit(bus, goal).await
    };
    wait_for(app, &wanted, begin).await
}

/// Has a run begun by the fleet that is up, or by one of its own, and waits for its end.
pub(super) async fn wait_for(
    app: &App,
    wanted: &Wanted,
    begin: impl AsyncFnOnce(&Bus, &Screen, &mut StopSignals) -> Result<RunId, Failure>,
) -> Result<Exit, Failure> {
    deliver::check(wanted.output.as_deref())?;
    let screen = Screen::new(app.paint_notes(), wanted.quiet || wanted.json);
    let mut stop = StopSignals::listen()?;
    let mut fleet = tokio::select! {
        fleet = RunFleet::find_or_start(app, &screen) => fleet?,
        () = stop.wait() => return Err(stopped_before("the fleet was up")),
    };
    let ended = ask(app, wanted, &screen, &mut fleet, &mut stop, begin).await;
    screen.end();
    tokio::select! {
        () = fleet.leave() => {}
        // Dropped, what is left of the fleet is killed.
        () = stop.wait() => {}
    }
    ended
}

/// The person stopped us before there was a run to stop.
fn stopped_before(what: &str) -> Failure {
    Failure::new(Exit::Stopped, format!("stopped before {what}: no run was begun"))
}

async fn ask(
    app: &App,
    wanted: &Wanted,
    screen: &Screen,
    fleet: &mut RunFleet,
    stop: &mut StopSignals,
    begin: impl AsyncFnOnce(&Bus, &Screen, &mut StopSignals) -> Result<RunId, Failure>,
) -> Result<Exit, Failure> {
    let bus = app.connect_to(fleet.url(), "asker").await?;
    let run = begin(&bus, screen, stop).await?;
    let watched = watch::watch(app, &bus, run, screen, fleet, stop).await?;
    screen.end();
    deliver::deliver(app, wanted, screen, &watched)
}

/// The goal as it was asked, checked before anything is started for it.
fn goal(app: &App, args: &RunArgs) -> Result<Goal, Failure> {
    let filled = filled::filled(app, args)?;
    let text = match (&filled, args.goal.as_deref()) {
        (Some(filled), _) => filled.goal(),
        (None, Some("-")) => from_standard_input()?,
        (None, given) => given.unwrap_or_default().to_owned(),
    };
    // Asked for by name, a model that cannot be made out is better refused here than by every agent.
    if let Some(model) = &args.model {
        super::models::check(app, model)?;
    }
    let goal = Goal {
        model: args.model.clone(),
        deadline_ms: args.deadline.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
        asked_by: std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default(),
        encoding: app.settings().bus.encoding,
        budget: Budget {
            model_calls: args.max_calls,
            tokens: args.max_tokens,
            cost_micros: args.max_cost.map(Dollars::micros),
            steps: None,
        },
        limits: None,
        blueprints: if filled.is_some() { Vec::new() } else { blueprint::briefs(app) },
        blueprint: filled,
        review: args.review,
        planning: planning(args),
        draft_review: args.draft_review.map(draft_review),
        priority: args.priority.unwrap_or(0),
        domain: args.domain.clone(),
        plan: args.plan.as_deref().map(|file| brought(app, file)).transpose()?.map(Box::new),
        role_name: app.redactor.redact(args.role_name.as_deref().unwrap_or_default().trim()).into_owned(),
        ..Goal::new(app.redactor.redact(text.trim()))
    };
    goal.check().map_err(|error| Failure::usage(error.to_string()))?;
    Ok(goal)
}

const fn planning(args: &RunArgs) -> Option<Planning> {
    if args.no_plan {
        return Some(Planning::Never);
    }
    match args.planning {
        Some(PlanningChoice::Auto) => Some(Planning::Auto),
        Some(PlanningChoice::Always) => Some(Planning::Always),
        Some(PlanningChoice::Never) => Some(Planning::Never),
        None => None,
    }
}

const fn draft_review(choice: DraftReviewChoice) -> DraftReviewPolicy {
    match choice {
        DraftReviewChoice::Off => DraftReviewPolicy::Off,
        DraftReviewChoice::On => DraftReviewPolicy::On,
    }
}

/// The plan that the person brings, checked before anything is started for it.
fn brought(app: &App, file: &Path) -> Result<PlanDraft, Failure> {
    super::plan_file::read(file, &RunLimits::from(&app.settings().limits))
}

/// Gives a goal the turns of an earlier run that it follows, and what was used there where nothing else is given. All of
/// it stands in the new run's record.
async fn follow(bus: &Bus, earlier: &str, goal: &mut Goal) -> Result<(), Failure> {
    let run = select::run(bus, earlier).await?;
    let state = select::fold(run, &select::entries(bus, run).await?)?;
    if !state.status.is_ended() {
        return Err(Failure::usage(format!(
            "run {} has not ended: there is no answer to follow yet",
            run.short()
        ))
        .help(format!("wait for it (`muster trace {} --follow`), or cancel it", run.short())));
    }
    goal.conversation = conversation::follow(&state.goal.conversation, turn(&state));
    goal.corpus = goal.corpus.take().or_else(|| state.goal.corpus.clone());
    goal.model = goal.model.take().or_else(|| state.goal.model.clone());
    if goal.role_name.is_empty() {
        goal.role_name.clone_from(&state.goal.role_name);
    }
    Ok(())
}

fn from_standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    // One byte more than may be, so that too much is noticed and never gathered.
    let most = MAX_GOAL_BYTES as u64 + 1;
    std::io::stdin().take(most).read_to_string(&mut text).map_err(|error| {
        Failure::usage(format!("cannot read the goal from standard input: {error}"))
            .help("it must be UTF-8 text")
    })?;
    Ok(text)
}

async fn submit(bus: &Bus, goal: Goal) -> Result<RunId, Failure> {
    let run = RunId::from_uuid(Uuid::now_v7());
    let encoding = goal.encoding;
    let command = Command::Submit { run, goal: Box::new(goal) };
    bus.commands().send(&command, encoding).await.map_err(bus_failure)?;
    Ok(run)
}
