//! Following a run by its record until it ends. The record is followed by sequence: the connection may break and
//! come back, and another asker may take over with `muster show`.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use muster_bus::{Bus, BusError, RecordFilter, Unreadable};
use muster_shared::flow::Parent;
use muster_shared::ids::{QuestionId, RunId, Seq};
use muster_shared::run::event::RequestRefused;
use muster_shared::run::unguarded::Unguarded;
use muster_shared::run::{
    AgentEvent, Entry, RecordEvent, Request, RequestAction, RunEvent, RunState, RunStatus, apply,
    note_waiting,
};
use muster_shared::wire::{Command, Encoding};
use tokio::time::{Instant, MissedTickBehavior};
use uuid::Uuid;

use super::super::refused::{Given, refused};
use super::cut_short::{cannot_follow, cut_off, lost, too_late};
use super::fleet::RunFleet;
use super::lacking::Lacking;
use super::outages::Outages;
use super::screen::{SILENCE, Screen};
use super::typed::{self, Said, Typed};
use super::within::Within;
use crate::app::{App, now, user};
use crate::exit::Failure;
use crate::fleet::lifeline::News;
use crate::render::progress::Doing;
use crate::render::{self, doing, figures};
use crate::signals::StopSignals;

/// Longest wait until an orchestrator accepts a goal. A restarted orchestrator needs a few seconds.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);

/// Time beyond a run's deadline after which the asker stops waiting for its end. Time for the last entries of a
/// run to come.
const GRACE: Duration = Duration::from_secs(30);

/// How often the tree is redrawn when nothing happens: the clock in it goes on.
const REDRAW: Duration = Duration::from_millis(250);

/// How watching ended.
pub(super) enum Watched {
    /// The run ended.
    Ended(Box<EndedRun>),
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

/// A run that has ended, as its record tells.
pub(super) struct EndedRun {
    pub(super) state: RunState,
    /// What was refused in it, and in those within it, for want of a guard's verdict.
    pub(super) unguarded: Unguarded,
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
    let mut record = bus.record().follow(&RecordFilter::Run(run), Seq(0)).await?;
    let mut live = bus.live().watch(Some(run)).await?;
    let mut agents = bus.registry().watch().await?;
    let mut outages = Outages::follow(bus).await;
    let mut typed = Typed::new(screen.is_live());
    let mut view = RunView::new(app, bus, run, screen);
    let mut redraw = tokio::time::interval(REDRAW);
    redraw.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut still = tokio::time::interval(SILENCE / 6);
    still.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            entry = record.next() => {
                view.take_in(entry.ok_or_else(|| cut_off(run))?, &mut typed).await?;
                if view.has_ended() {
                    return view.end();
                }
            }
            Some((child, entry)) = view.within.next() => view.take_in_child(child, &entry, &mut typed).await,
            Some(change) = agents.next() => view.lacking.take(change),
            () = view.lacking.look() => view.tell_lacking(),
            Some(happening) = live.next() => {
                if let Some(line) = outages.silence(&happening).filter(|_| !screen.is_live()) {
                    screen.say(&line);
                }
                doing::note(&mut view.doing, happening);
            }
            line = outages.next() => screen.say(&line),
            line = typed.next() => view.answer(&line).await?,
            _ = redraw.tick(), if screen.is_live() => view.redraw(&typed),
            _ = still.tick(), if !screen.is_live() => view.still(),
            news = fleet.news(bus) => if let Some(left) = view.hear(news, fleet.is_for_runs())? {
                return Ok(left);
            },
            () = stop.wait() => if let Some(left) = view.interrupted(fleet.stays()).await? {
                return Ok(left);
            },
            () = tokio::time::sleep_until(view.patience) => return Err(view.too_late().await),
            error = bus.failed() => return Err(error.into()),
        }
    }
}

/// A run as whoever asked for it sees it.
struct RunView<'a> {
    app: &'a App,
    bus: &'a Bus,
    run: RunId,
    screen: &'a Screen,
    state: Option<RunState>,
    /// What tasks say they are doing.
    doing: Doing,
    /// Questions that were told.
    told: BTreeSet<(RunId, QuestionId, u32, usize)>,
    /// Answers that were sent.
    sent: BTreeSet<Uuid>,
    /// The runs within it.
    within: Within,
    unguarded: Unguarded,
    /// Who is missing.
    lacking: Lacking,
    /// How often the person asked to leave.
    interrupts: u32,
    /// Until when something has to come of it.
    patience: Instant,
}

impl<'a> RunView<'a> {
    fn new(app: &'a App, bus: &'a Bus, run: RunId, screen: &'a Screen) -> Self {
        Self {
            app,
            bus,
            run,
            screen,
            state: None,
            doing: Doing::new(),
            told: BTreeSet::new(),
            sent: BTreeSet::new(),
            within: Within::default(),
            unguarded: Unguarded::default(),
            lacking: Lacking::default(),
            interrupts: 0,
            patience: Instant::now() + ACCEPT_TIMEOUT,
        }
    }

    fn has_ended(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.status.is_ended())
    }

    /// The run and those within it, as far as they are known.
    fn runs(&self) -> impl Iterator<Item = &RunState> {
        self.state.iter().chain(self.within.states())
    }

    /// Folds the next entry of the record, and shows what it changes.
    async fn take_in(&mut self, entry: Result<Entry, Unreadable>, typed: &mut Typed) -> Result<(), Failure> {
        let entry = match entry {
            Err(stray) if stray.of_nobody => return Ok(()),
            entry => entry.map_err(BusError::from)?,
        };
        if let Some(text) = render::trace::unreadable(&entry) {
            self.screen.say(&text);
        }
        let deadline = self.state.as_ref().map(|state| state.deadline);
        apply(&mut self.state, &entry).map_err(|error| cannot_follow(self.run, &error))?;
        self.unguarded.note(&entry);
        let Some(state) = &self.state else { return Ok(()) };
        // It moves when a pause ends with a new one.
        if deadline != Some(state.deadline) {
            self.patience = Instant::now() + left(state) + GRACE;
        }
        self.screen.show(state, &self.doing, now());
        if let RecordEvent::Agent(key, AgentEvent::Step(step)) = &entry.event {
            self.screen.step(state, &key.task, step, now());
        }
        tell_questions(state, None, &mut self.told, self.screen, typed);
        tell_refusals(&entry.event, &self.sent, self.screen);
        self.within.follow(self.bus, state).await;
        Ok(())
    }

    /// The same of a run within.
    async fn take_in_child(&mut self, child: RunId, entry: &Entry, typed: &mut Typed) {
        self.unguarded.note(entry);
        if let Some(child) = self.within.take_in(child, entry) {
            tell_questions(child, child.goal.parent.as_deref(), &mut self.told, self.screen, typed);
            tell_refusals(&entry.event, &self.sent, self.screen);
        }
        self.within.follow_children(self.bus, child).await;
        note_waiting(&mut self.state.iter_mut().chain(self.within.states_mut()).collect::<Vec<_>>());
    }

    fn tell_lacking(&mut self) {
        let child = |run: RunId| self.within.state(run);
        for line in self.lacking.news(self.state.as_ref(), &child, std::time::Instant::now()) {
            self.screen.warn(&line);
        }
        self.screen.waits(self.lacking.lines());
    }

    /// Sends what a person typed.
    async fn answer(&mut self, line: &str) -> Result<(), Failure> {
        if self.state.is_some() {
            let sent = answer(self.app, self.bus, self.screen, self.runs(), line).await?;
            self.sent.extend(sent);
        }
        Ok(())
    }

    fn still(&self) {
        if let Some(state) = &self.state {
            self.screen.still(state, &self.doing, now());
        }
    }

    fn redraw(&self, typed: &Typed) {
        match &self.state {
            // What somebody is typing is not written over.
            Some(_) if typed.is_awaited(self.runs()) => {}
            Some(state) => self.screen.show(state, &self.doing, now()),
            None => self.screen.stage("waiting for an orchestrator to take up the goal …"),
        }
    }

    /// What became of the fleet. Gives how watching ends, if it does.
    fn hear(&self, news: News, is_for_runs: bool) -> Result<Option<Watched>, Failure> {
        match news {
            News::Said(text) => self.screen.say(&text),
            News::Warned(text) => self.screen.warn(&text),
            // In a fleet that stays somebody may start another one; that it lacks is told.
            News::Crippled { name, how } if is_for_runs => {
                let what = format!("{name} {how} too often; the run cannot continue without it");
                let log = self.app.fleet.log(&name);
                return Err(Failure::failed(what).help(format!("see why in {}", log.display())));
            }
            News::Crippled { .. } => {}
            News::Moved(url) => return Ok(Some(Watched::Moved(url))),
            News::Lost(why) => return Err(lost(self.run, &why)),
        }
        Ok(None)
    }

    /// The person wants to leave: the first time the run is asked to stop.
    async fn interrupted(&mut self, stays: bool) -> Result<Option<Watched>, Failure> {
        self.interrupts += 1;
        if self.interrupts > 1 {
            return Ok(Some(Watched::Left { run: self.run, goes_on: stays }));
        }
        cancel(self.bus, self.run, self.screen, stays).await?;
        self.patience = Instant::now() + GRACE;
        Ok(None)
    }

    async fn too_late(&self) -> Failure {
        let refused = match &self.state {
            None => refused(self.bus, Given::Goal(self.run)).await,
            Some(_) => None,
        };
        refused.unwrap_or_else(|| too_late(self.run, self.state.as_ref(), self.lacking.lines()))
    }

    /// The run has ended.
    fn end(self) -> Result<Watched, Failure> {
        if self.state.as_ref().is_some_and(|state| state.status != RunStatus::Completed) {
            for line in self.lacking.lines() {
                self.screen.warn(&format!("at its end it still waited for {line}"));
            }
        }
        let unguarded = self.unguarded;
        let ended = self.state.map(|state| Watched::Ended(Box::new(EndedRun { state, unguarded })));
        ended.ok_or_else(|| cut_off(self.run))
    }
}

/// Says what is asked and was not told before; of a run within, for which task.
fn tell_questions(
    state: &RunState,
    within: Option<&Parent>,
    told: &mut BTreeSet<(RunId, QuestionId, u32, usize)>,
    screen: &Screen,
    typed: &mut Typed,
) {
    for (id, asked) in state.open_questions() {
        if told.insert((state.id, id, asked.passed_on, asked.feedback.len())) {
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
            bus.commands().send(&command, Encoding::default()).await?;
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
    let request = Request { by: user(), ..Request::new(run, RequestAction::Cancel) };
    let command = Command::Request(request.because("interrupted at the terminal"));
    bus.commands().send(&command, Encoding::default()).await?;
    screen.say(if stays {
        "asked the run to stop; Ctrl-C again leaves it as it is"
    } else {
        "asked the run to stop; Ctrl-C again ends its fleet at once"
    });
    Ok(())
}
