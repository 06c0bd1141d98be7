//! Following a run by its record until it ends. The record is followed by sequence: the connection may break and
//! come back, and another asker may take over with `muster show`.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use muster_bus::{Bus, RecordFilter};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::{RunState, apply};
use muster_shared::wire::{Command, Encoding, Live, LiveKind};
use tokio::time::{Instant, MissedTickBehavior};
use uuid::Uuid;

use super::fleet::{RunFleet, news};
use super::screen::Screen;
use super::typed::{self, Said, Typed};
use crate::app::{App, bus_failure, now};
use crate::exit::{Exit, Failure};
use crate::fleet::member::Change;
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
    let mut state: Option<RunState> = None;
    let mut doing = Doing::new();
    let mut told = BTreeSet::new();
    let mut typed = Typed::new(screen.is_live());
    let mut interrupts = 0_u32;
    let mut patience = Instant::now() + ask.accept_limit;
    let mut redraw = tokio::time::interval(REDRAW);
    redraw.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            entry = record.next() => {
                let entry = entry.ok_or_else(|| lost(run))?.map_err(|error| bus_failure(error.into()))?;
                let deadline = state.as_ref().map(|state| state.deadline);
                apply(&mut state, &entry).map_err(|error| cannot_follow(run, &error))?;
                if let Some(state) = &state {
                    // It moves when a pause ends with a new one.
                    if deadline != Some(state.deadline) {
                        patience = Instant::now() + left(state) + ask.grace;
                    }
                    screen.show(state, &doing, now());
                    for (id, asked) in state.open_questions() {
                        if told.insert((id, asked.passed_on)) {
                            screen.say(&render::questions::news(state, id, asked));
                            if typed.listen() {
                                screen.say(&typed::hint(asked));
                            }
                        }
                    }
                    if state.status.is_ended() {
                        break;
                    }
                }
            }
            Some(happening) = live.next() => note(&mut doing, happening),
            line = typed.next() => if let Some(state) = &state {
                answer(app, bus, screen, state, &line).await?;
            },
            _ = redraw.tick(), if screen.is_live() => {
                if let Some(state) = &state {
                    // What somebody is typing is not written over.
                    if !typed.is_awaited(state) {
                        screen.show(state, &doing, now());
                    }
                } else {
                    screen.stage("waiting for an orchestrator to take up the goal …");
                }
            }
            change = fleet.change() => match change {
                Some(change) => {
                    if let Some(text) = news(&change) {
                        screen.say(&text);
                    }
                    if let (name, Change::GivenUp { how }) = &change && is_needed(name) {
                        return Err(Failure::failed(format!("{name} {how}, and too often; without it the run cannot go on"))
                            .help(format!("see why in {}", app.fleet.log(name).display())));
                    }
                }
                None => return Err(Failure::failed("the fleet of this run has ended before the run")),
            },
            () = stop.wait() => {
                interrupts += 1;
                if interrupts > 1 {
                    return Ok(Watched::Left { run, goes_on: fleet.stays() });
                }
                cancel(bus, run, screen, fleet.stays()).await?;
                patience = Instant::now() + ask.grace;
            }
            () = tokio::time::sleep_until(patience) => return Err(too_late(run, state.as_ref())),
            error = bus.failed() => return Err(bus_failure(error)),
        }
    }
    state.map(|state| Watched::Ended(Box::new(state))).ok_or_else(|| lost(run))
}

/// Sends what a person typed as the answer to what is asked.
async fn answer(app: &App, bus: &Bus, screen: &Screen, state: &RunState, line: &str) -> Result<(), Failure> {
    match typed::understand(state, &app.redactor.redact(line)) {
        Said::Answer(question, command) => {
            let command = command.with_id(Uuid::now_v7());
            bus.commands().send(&command, Encoding::default()).await.map_err(bus_failure)?;
            screen.say(&format!("sent as the answer to question {question}"));
        }
        Said::Nothing(why) => screen.say(why),
    }
    Ok(())
}

/// Processes without which no run can end.
fn is_needed(name: &str) -> bool {
    name.starts_with("orchestrator") || name.starts_with("nats-server")
}

/// The time that the run has, counted by the clock that set its deadline.
fn left(state: &RunState) -> Duration {
    state.deadline.since(state.created_at).min(Duration::from_secs(365 * 24 * 3600))
}

async fn cancel(bus: &Bus, run: RunId, screen: &Screen, stays: bool) -> Result<(), Failure> {
    let command = Command::Cancel { run, reason: "interrupted at the terminal".to_owned(), id: None };
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

fn lost(run: RunId) -> Failure {
    Failure::bus(format!("the connection to the bus was lost while run {} went on", run.short()))
        .help(format!("it goes on without us: `muster show {}` tells how far it is", run.short()))
}

fn too_late(run: RunId, state: Option<&RunState>) -> Failure {
    match state {
        None => Failure::new(Exit::BusUnreachable, "no orchestrator has taken up the goal")
            .help("`muster ps` lists the processes of the fleet: start one with `muster orchestrator`, or a whole fleet with `muster up`"),
        Some(_) => Failure::failed(format!("run {} should have ended by now and has not", run.short()))
            .help(format!("`muster show {}` tells how far it is, `muster ps` whether anybody works", run.short())),
    }
}
