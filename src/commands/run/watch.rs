//! Following a run by its record until it ends. The record is followed by sequence: the connection may break and
//! come back, and another asker may take over with `muster show`.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use muster_bus::{Bus, RecordFilter};
use muster_shared::flow::Parent;
use muster_shared::ids::{QuestionId, RunId, Seq};
use muster_shared::run::event::RequestRefused;
use muster_shared::run::{RecordEvent, Request, RequestAction, RunEvent, RunState, RunStatus, apply};
use muster_shared::wire::{Command, Encoding, Live, LiveKind};
use tokio::time::{Instant, MissedTickBehavior};
use uuid::Uuid;

use super::fleet::RunFleet;
use super::lacking::Lacking;
use super::outages::Outages;
use super::screen::Screen;
use super::typed::{self, Said, Typed};
use super::within::Within;
use crate::app::{App, bus_failure, now};
use crate::exit::{Exit, Failure};
use crate::fleet::lifeline::News;
use crate::render::progress::Doing;
use crate::render::{self, figures};
use crate::signals::StopSignals;

/// How often the tree is redrawn when nothing happens: the clock in it goes on.
const REDRAW: Duration = Duration::from_millis(250);

/// Longest text kept of what a task is doing.
const DOING: usize = 120;

/// Most tasks of which it is kept what they are doing.
const MOST_DOING: usize = 2_000;

/// How watching ended.
pub(super) enum Watched {
    /// The run ended.
    Ended(Box<RunState>),
    /// The person left before it ended.
    Left {
        /// The run.
        run: RunId,
        /// Whether there is still a fleet that works on it.
        goes_on: bool,
    },
    /// The fleet is up at another address: the run is to be followed there.
    Moved(String),
}

/// Follows a run until it ends or the person leaves.
pub(super) async fn watch(
    app: &App,
    bus: &Bus,
    run: RunId,
    screen: &Screen,
    fleet: &mut RunFleet,
    stop: &mut StopSignals,
) -> Result<Watched, Failure> {
    let ask = &app.settings().ask;
    let mut record = bus.record().follow(&RecordFilter::Run(run), Seq(0)).await.map_err(bus_failure)?;
    let mut live = bus.live().watch(Some(run)).await.map_err(bus_failure)?;
    let mut agents = bus.registry().watch().await.map_err(bus_failure)?;
    let mut lacking = Lacking::default();
    let mut outages = Outages::follow(bus).await;
    let mut state: Option<RunState> = None;
    let mut doing = Doing::new();
    let mut told = BTreeSet::new();
    let mut sent = BTreeSet::new();
    let mut within = Within::default();
    let mut typed = Typed::new(screen.is_live());
    let mut interrupts = 0_u32;
    let mut patience = Instant::now() + ask.accept_limit;
    let mut redraw = tokio::time::interval(REDRAW);
    redraw.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            entry = record.next() => {
                let entry = match entry.ok_or_else(|| cut_off(run))? {
                    Err(stray) if stray.of_nobody => continue,
                    entry => entry.map_err(|error| bus_failure(error.into()))?,
                };
                if let Some(text) = render::trace::unreadable(&entry) {
                    screen.say(&text);
                }
                let deadline = state.as_ref().map(|state| state.deadline);
                apply(&mut state, &entry).map_err(|error| cannot_follow(run, &error))?;
                if let Some(state) = &state {
                    // It moves when a pause ends with a new one.
                    if deadline != Some(state.deadline) {
                        patience = Instant::now() + left(state) + ask.grace;
                    }
                    screen.show(state, &doing, now());
                    tell_questions(state, None, &mut told, screen, &mut typed);
                    tell_refusals(&entry.event, &sent, screen);
                    within.follow(bus, state).await;
                    if state.status.is_ended() {
                        break;
                    }
                }
            }
            Some((child, entry)) = within.next() => {
                if let Some(child) = within.take_in(child, &entry) {
                    tell_questions(child, child.goal.parent.as_deref(), &mut told, screen, &mut typed);
                    tell_refusals(&entry.event, &sent, screen);
                }
                within.follow_children(bus, child).await;
            }
            Some(change) = agents.next() => lacking.take(change),
            () = lacking.look() => {
                for line in lacking.news(state.as_ref(), std::time::Instant::now()) {
                    screen.warn(&line);
                }
                screen.waits(lacking.lines());
            }
            Some(happening) = live.next() => {
                if let Some(line) = outages.silence(&happening).filter(|_| !screen.is_live()) {
                    screen.say(&line);
                }
                note(&mut doing, happening);
            }
            line = outages.next() => screen.say(&line),
            line = typed.next() => if let Some(state) = &state {
                let all = std::iter::once(state).chain(within.states());
                sent.extend(answer(app, bus, screen, all, &line).await?);
            },
            _ = redraw.tick(), if screen.is_live() => {
                if let Some(state) = &state {
                    // What somebody is typing is not written over.
                    if !typed.is_awaited(std::iter::once(state).chain(within.states())) {
                        screen.show(state, &doing, now());
                    }
                } else {
                    screen.stage("waiting for an orchestrator to take up the goal …");
                }
            }
            news = fleet.news(bus) => match news {
                News::Said(text) => screen.say(&text),
                News::Warned(text) => screen.warn(&text),
                // In a fleet that stays somebody may start another one; that it lacks is told.
                News::Crippled { name, how } => if fleet.is_for_runs() {
                    return Err(Failure::failed(format!("{name} {how} too often; the run cannot continue without it"))
                        .help(format!("see why in {}", app.fleet.log(&name).display())));
                }
                News::Moved(url) => return Ok(Watched::Moved(url)),
                News::Lost(why) => return Err(lost(run, &why)),
            },
            () = stop.wait() => {
                interrupts += 1;
                if interrupts > 1 {
                    return Ok(Watched::Left { run, goes_on: fleet.stays() });
                }
                cancel(bus, run, screen, fleet.stays()).await?;
                patience = Instant::now() + ask.grace;
            }
            () = tokio::time::sleep_until(patience) => return Err(too_late(run, state.as_ref(), lacking.lines())),
            error = bus.failed() => return Err(bus_failure(error)),
        }
    }
    if state.as_ref().is_some_and(|state| state.status != RunStatus::Completed) {
        for line in lacking.lines() {
            screen.warn(&format!("at its end it still waited for {line}"));
        }
    }
    state.map(|state| Watched::Ended(Box::new(state))).ok_or_else(|| cut_off(run))
}

/// Says what is asked and was not told before; of a run within, for which task.
fn tell_questions(
    state: &RunState,
    within: Option<&Parent>,
    told: &mut BTreeSet<(RunId, QuestionId, u32)>,
    screen: &Screen,
    typed: &mut Typed,
) {
    for (id, asked) in state.open_questions() {
        if told.insert((state.id, id, asked.passed_on)) {
            let news = render::questions::news(state, id, asked);
            screen.say(&match within {
                Some(parent) => format!("within {}: {news}", parent.task),
                None => news,
            });
            if typed.listen() {
                screen.say(&typed::hint(asked));
            }
        }
    }
}

/// Says which of the answers typed here were refused, and why: the question waits on.
fn tell_refusals(event: &RecordEvent, sent: &BTreeSet<Uuid>, screen: &Screen) {
    let RecordEvent::Decided(decided) = event else { return };
    for event in &decided.events {
        if let RunEvent::RequestRefused(RequestRefused { id, reason }) = event
            && sent.contains(id)
        {
            screen.say(&format!("not taken: {}", figures::one_line(reason, 400)));
        }
    }
}

/// Sends what a person typed as the answer to what is asked. Gives the id that it was sent by.
async fn answer<'a>(
    app: &App,
    bus: &Bus,
    screen: &Screen,
    runs: impl Iterator<Item = &'a RunState>,
    line: &str,
) -> Result<Option<Uuid>, Failure> {
    match typed::understand(runs, &app.redactor.redact(line)) {
        Said::Answer(question, request) => {
            let id = Uuid::now_v7();
            let command = Command::Request(request.with_id(id));
            bus.commands().send(&command, Encoding::default()).await.map_err(bus_failure)?;
            screen.say(&format!("sent as the answer to question {question}"));
            Ok(Some(id))
        }
        Said::Nothing(why) => {
            screen.say(why);
            Ok(None)
        }
    }
}

/// The time that the run has, counted by the clock that set its deadline.
fn left(state: &RunState) -> Duration {
    state.deadline.since(state.created_at).min(Duration::from_secs(365 * 24 * 3600))
}

async fn cancel(bus: &Bus, run: RunId, screen: &Screen, stays: bool) -> Result<(), Failure> {
    let request = Request::new(run, RequestAction::Cancel).because("interrupted at the terminal");
    let command = Command::Request(request);
    bus.commands().send(&command, Encoding::default()).await.map_err(bus_failure)?;
    screen.say(if stays {
        "asked the run to stop; Ctrl-C again leaves it as it is"
    } else {
        "asked the run to stop; Ctrl-C again ends its fleet at once"
    });
    Ok(())
}

/// Keeps what a task says it is doing.
fn note(doing: &mut Doing, live: Live) {
    let text = match live.kind {
        LiveKind::Status { text, .. } => figures::one_line(&text, DOING),
        // Streams of words: the newest of them, on the line of the task.
        LiveKind::Thought { text } | LiveKind::Answer { text } => {
            let before = doing.get(&live.task).cloned().unwrap_or_default();
            tail(&figures::one_line(&format!("{before} {text}"), usize::MAX), DOING / 2)
        }
    };
    // Anybody can name tasks here: only so many are kept.
    if doing.len() < MOST_DOING || doing.contains_key(&live.task) {
        doing.insert(live.task, text);
    }
}

fn tail(text: &str, most: usize) -> String {
    let length = text.chars().count();
    text.chars().skip(length.saturating_sub(most)).collect()
}

fn cannot_follow(run: RunId, error: &muster_shared::run::ApplyError) -> Failure {
    Failure::failed(format!("the record of run {} cannot be followed: {error}", run.short()))
        .help("a newer muster may have written it; `muster trace` shows it entry by entry")
}

fn lost(run: RunId, why: &str) -> Failure {
    let short = run.short();
    Failure::bus(format!("{why}, and run {short} has not ended")).help(format!(
        "`muster up` restarts the fleet, and the run continues; `muster show {short}` shows its progress"
    ))
}

fn cut_off(run: RunId) -> Failure {
    Failure::bus(format!("the connection to the bus was lost while run {} went on", run.short()))
        .help(format!("the run continues: `muster show {}` shows its progress", run.short()))
}

fn too_late(run: RunId, state: Option<&RunState>, lacking: &[String]) -> Failure {
    match state {
        None => Failure::new(Exit::BusUnreachable, format!("no orchestrator has accepted the goal yet; it stays queued as run {}", run.short()))
            .help(format!(
                "it starts as soon as an orchestrator is running: `muster ps` lists the processes of the fleet, `muster \
                 orchestrator` starts one, `muster up` starts a fleet. To follow it, run the command again with \
                 --run-id {}; that starts no second run",
                run.as_uuid()
            )),
        Some(_) if !lacking.is_empty() => {
            Failure::failed(format!("run {} is past its deadline and has not ended: it waits for {}", run.short(), lacking.join("; ")))
                .help(format!("`muster show {}` shows its progress", run.short()))
        }
        Some(_) => Failure::failed(format!("run {} is past its deadline and has not ended", run.short()))
            .help(format!("`muster show {}` shows its progress, `muster ps` the agents at work", run.short())),
    }
}
