//! `muster run`: asks a goal, shows how it is worked on, delivers the report.

mod cut_short;
mod deliver;
pub(crate) mod documents;
mod estimate;
#[cfg(feature = "web")]
mod fetched;
mod files;
mod filled;
mod fleet;
mod lacking;
mod outages;
mod rights;
pub(super) mod screen;
mod settings;
mod typed;
mod watch;
mod within;

use std::io::{IsTerminal, Read};
use std::path::Path;

use muster_bus::{Bus, BusError, RecordFilter};
use muster_shared::flow::goal::MAX_GOAL_BYTES;
use muster_shared::flow::{Budget, DraftReviewPolicy, Goal, PlanDraft, Planning, conversation};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::conversation::turn;
use muster_shared::time::millis;
use muster_shared::traces::ParentSpan;
use muster_shared::wire::{Command, Encoding, TraceContext};
use uuid::Uuid;

pub(super) use self::deliver::{Wanted, check as check_output, write};
use self::fleet::RunFleet;
pub(crate) use self::screen::Screen;
pub(super) use self::settings::model_of_fork;
use self::watch::Watched;
use super::{blueprint, select};
#[cfg(not(feature = "web"))]
use crate::absent::fetched;
use crate::app::{App, user};
use crate::args::{DraftReviewChoice, PlanningChoice, RunArgs};
use crate::delivered_file;
use crate::exit::{Exit, Failure, usage};
use crate::render::figures;
use crate::settings::Dollars;
use crate::signals::StopSignals;

/// The span of whoever started this process, by the usual variable; nothing where it says none.
fn traced() -> Option<TraceContext> {
    let said = std::env::var("TRACEPARENT").ok().map(|text| TraceContext(text.trim().to_owned()))?;
    ParentSpan::read(&said).map(|parent| parent.written())
}

/// Asks a goal and waits for its end.
pub(super) async fn run(app: &App, args: RunArgs) -> Result<Exit, Failure> {
    let mut goal = Goal { trace: traced(), ..settled(app, &args)? };
    let wanted = Wanted {
        output: args.output.clone(),
        out: args.out.clone(),
        force: args.force,
        json: args.json,
        quiet: args.quiet,
    };
    // Known before anything is sent: asking again with it never makes a second run.
    let run = RunId::from_uuid(args.run_id.unwrap_or_else(Uuid::now_v7));
    let begin = async |bus: &Bus, screen: &Screen, stop: &mut StopSignals| {
        if !args.docs.is_empty() {
            let sent = tokio::select! {
                sent = documents::send(app, bus, &args.docs, screen) => sent?,
                () = stop.wait() => return Err(stopped_before("the documents were sent")),
            };
            goal = with_documents(goal, sent);
        }
        if let Some(earlier) = &args.follow {
            follow(bus, earlier, &mut goal).await?;
        }
        if !screen.is_quiet() && !super::models::is_offline(app, goal.model.as_deref()) {
            let estimate = estimate::estimate(bus, &goal, &app.settings().limits).await;
            screen.estimate(&estimate.in_words());
        }
        let asked = args.run_id.map(|_| goal.clone());
        submit(bus, run, goal).await?;
        if let Some(asked) = asked {
            check_goal(bus, run, &asked).await?;
        }
        Ok(run)
    };
    wait_for(app, &wanted, begin).await
}

/// Refuses a run id that belongs to another goal.
async fn check_goal(bus: &Bus, run: RunId, asked: &Goal) -> Result<(), Failure> {
    let first = bus.record().first(&RecordFilter::Decisions(run), Seq(0)).await?;
    let known = first.as_ref().and_then(|first| first.event.goal()).filter(|known| !known.is_same(asked));
    known.map_or(Ok(()), |known| {
        let goal = figures::one_line(&known.text, 100);
        let other =
            if known.text == asked.text { "this goal with other documents, plan or limits" } else { "another goal" };
        Err(usage!("run id {} belongs to {other}: {goal}", run.as_uuid()).help(
            "give the new goal another --run-id, or none; the same goal with the same documents follows the existing run",
        ))
    })
}

/// Begins a run in the name of whoever speaks by this bus, and does not wait for its end.
///
/// # Errors
/// As `muster run` until the goal is sent.
pub(crate) async fn begin(app: &App, bus: &Bus, args: &RunArgs, asked_by: String) -> Result<RunId, Failure> {
    let mut goal = Goal { asked_by, attended: false, ..settled(app, args)? };
    let run = RunId::from_uuid(args.run_id.unwrap_or_else(Uuid::now_v7));
    if !args.docs.is_empty() {
        let screen = Screen::new(app.paint_notes(), true);
        goal = with_documents(goal, documents::send(app, bus, &args.docs, &screen).await?);
    }
    if let Some(earlier) = &args.follow {
        follow(bus, earlier, &mut goal).await?;
    }
    submit(bus, run, goal).await
}

/// Has a run begun by the fleet that is up, or by one of its own, and waits for its end.
pub(super) async fn wait_for(
    app: &App,
    wanted: &Wanted,
    begin: impl AsyncFnOnce(&Bus, &Screen, &mut StopSignals) -> Result<RunId, Failure>,
) -> Result<Exit, Failure> {
    deliver::check(wanted.output.as_deref())?;
    wanted.output.as_deref().map_or(Ok(()), |file| delivered_file::check(app, file))?;
    files::check(app, wanted.out.as_deref())?;
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
        // It ends without being waited for.
        () = stop.wait() => {}
    }
    ended
}

/// The person stopped us before there was a run to stop.
fn stopped_before(what: &str) -> Failure {
    Failure::new(Exit::Stopped, format!("stopped before {what}: no run was started"))
}

async fn ask(
    app: &App,
    wanted: &Wanted,
    screen: &Screen,
    fleet: &mut RunFleet,
    stop: &mut StopSignals,
    begin: impl AsyncFnOnce(&Bus, &Screen, &mut StopSignals) -> Result<RunId, Failure>,
) -> Result<Exit, Failure> {
    let mut bus = app.connect_to(fleet.url(), "asker").await?;
    let run = begin(&bus, screen, stop).await?;
    let watched = loop {
        match Box::pin(watch::watch(app, &bus, run, screen, fleet, stop)).await? {
            Watched::Moved(url) => {
                screen.warn(&format!("the fleet is up again, at {url}; following run {} there", run.short()));
                bus = app.connect_to(&url, "asker").await?;
                fleet.follow(&url);
            }
            watched @ (Watched::Ended(_) | Watched::Left { .. }) => break watched,
        }
    };
    screen.end();
    let files = match &watched {
        Watched::Ended(ended) => {
            let mut files = files::choose(app, &bus, wanted, &ended.state).await;
            // First the report: a file of the same name does not take its place.
            deliver::write_report(wanted, &ended.state, &files)?;
            files::bring(&bus, wanted, ended.state.id, &mut files).await;
            files
        }
        Watched::Left { .. } | Watched::Moved(_) => files::Files::default(),
    };
    deliver::deliver(app, wanted, screen, &watched, &files)
}

/// The goal as it was asked, with the settings and rights that go with it.
fn settled(app: &App, args: &RunArgs) -> Result<Goal, Failure> {
    let mut goal = goal(app, args)?;
    documents::check(&args.docs)?;
    settings::settle(app, &mut goal)?;
    rights::narrow(&mut goal, &rights::wished(&args.rights)?);
    Ok(goal)
}

fn with_documents(goal: Goal, sent: documents::Sent) -> Goal {
    let documents::Sent { corpus, unread, fetched } = sent;
    Goal { corpus: Some(corpus), unread, fetched, ..goal }
}

/// The goal as it was asked, checked before anything is started for it.
fn goal(app: &App, args: &RunArgs) -> Result<Goal, Failure> {
    let filled = filled::filled(app, args)?;
    let text = match (&filled, args.goal.as_deref()) {
        (Some(filled), _) => filled.goal(),
        (None, Some("-")) => read_goal(std::io::stdin())?,
        (None, given) => given.unwrap_or_default().to_owned(),
    };
    // Asked for by name, a model that cannot be made out is better refused here than by every agent.
    if let Some(model) = &args.model {
        super::models::check(app, model)?;
    }
    let goal = Goal {
        model: args.model.clone(),
        deadline_ms: args.deadline.map(millis),
        asked_by: user(),
        encoding: Encoding::MessagePack,
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
        wait_for_role_ms: args.wait_for_role.map(millis),
        priority: args.priority.unwrap_or(0),
        domain: args.domain.clone(),
        plan: args.plan.as_deref().map(|file| brought(app, file)).transpose()?.map(Box::new),
        // Questions are answered where the run is watched.
        attended: !args.quiet
            && !args.json
            && std::io::stdin().is_terminal()
            && std::io::stderr().is_terminal(),
        role_name: app.redactor.redact(args.role_name.as_deref().unwrap_or_default().trim()).into_owned(),
        ..Goal::new(app.redactor.redact(text.trim()))
    };
    goal.check().map_err(Failure::usage)?;
    Ok(goal)
}

const fn planning(args: &RunArgs) -> Option<Planning> {
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
    super::plan_file::read(file, &app.settings().limits)
}

/// Gives a goal the turns of an earlier run that it follows, and what was used there where nothing else is given. All of
/// it stands in the new run's record.
async fn follow(bus: &Bus, earlier: &str, goal: &mut Goal) -> Result<(), Failure> {
    let state = select::wanted(bus, earlier).await?;
    let run = state.id;
    if !state.status.is_ended() {
        return Err(usage!("run {} has not ended: it cannot be continued yet", run.short())
            .help(format!("wait for it (`muster trace {} --follow`), or cancel it", run.short())));
    }
    goal.conversation = conversation::follow(&state.goal.conversation, turn(&state));
    if goal.corpus.is_none() {
        goal.unread.clone_from(&state.goal.unread);
        goal.fetched.clone_from(&state.goal.fetched);
    }
    goal.corpus = goal.corpus.take().or_else(|| state.goal.corpus.clone());
    goal.model = goal.model.take().or_else(|| state.goal.model.clone());
    if goal.role_name.is_empty() {
        goal.role_name.clone_from(&state.goal.role_name);
    }
    Ok(())
}

/// A goal that is whole, or none: what is too long is refused, however it would be cut.
fn read_goal(from: impl Read) -> Result<String, Failure> {
    let cannot = |why: String| usage!("cannot read the goal from standard input: {why}");
    let mut bytes = Vec::new();
    // Spaces around it do not count, so more is read than a goal may have; what is longer still is never gathered.
    let most = MAX_GOAL_BYTES * 4;
    from.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|error| cannot(error.to_string()))?;
    let too_long = |bytes: String| {
        usage!("the goal has {bytes} bytes, {MAX_GOAL_BYTES} is the most").help(
            "put long material in a file and give its folder with --docs; the goal says what is to be done with it",
        )
    };
    if bytes.len() > most {
        return Err(too_long(format!("more than {most}")));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| cannot("it is not UTF-8".to_owned()).help("it must be UTF-8 text"))?;
    let bytes = text.trim().len();
    if bytes > MAX_GOAL_BYTES { Err(too_long(bytes.to_string())) } else { Ok(text) }
}

/// How often a goal is sent of which it is not known whether it arrived.
const SUBMIT_TRIES: u32 = 3;

/// Has the goal begun as this run. Sent again, it is still one run: the queue and the record know it by its id.
async fn submit(bus: &Bus, run: RunId, goal: Goal) -> Result<RunId, Failure> {
    let encoding = goal.encoding;
    let command = Command::Submit { run, goal: Box::new(goal) };
    let mut tries = 1;
    loop {
        match bus.commands().send(&command, encoding).await {
            Ok(_) => return Ok(run),
            Err(BusError::TimedOut { .. }) if tries < SUBMIT_TRIES => tries += 1,
            Err(error @ BusError::TimedOut { .. }) => {
                let id = run.as_uuid();
                return Err(Failure::from(error).help(format!(
                    "the goal may have arrived: try again with --run-id {id}; that never starts a second run"
                )));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_from_standard_input_is_whole_or_refused() {
        let whole = "x".repeat(MAX_GOAL_BYTES);
        let spaced = format!("{whole}\n\n");
        assert_eq!(read_goal(spaced.as_bytes()).unwrap().trim(), whole);
        let umlauts = "ü".repeat(MAX_GOAL_BYTES / 2 + 1);
        // The cut would have fallen on a space: what came before it looked like a whole goal.
        let at_a_space = format!("{} and never delete the backup", "y".repeat(MAX_GOAL_BYTES));
        for (text, part) in [
            (umlauts, "has 16386 bytes"),
            (at_a_space, "has 16412 bytes"),
            ("z".repeat(MAX_GOAL_BYTES * 5), "more than 65536 bytes"),
        ] {
            let failure = read_goal(text.as_bytes()).unwrap_err();
            assert!(failure.to_string().contains(part), "{failure}");
            assert_eq!(failure.exit(), Exit::Usage);
        }
        assert!(read_goal(&b"caf\xe9"[..]).unwrap_err().to_string().contains("not UTF-8"));
    }
}
