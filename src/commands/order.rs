//! What the commands that steer a run have in common: the run is found, the durable command is sent, and its record is
//! followed until the command stands in it.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_bus::{Bus, RecordFilter, Unreadable};
use muster_shared::flow::TaskStatus;
use muster_shared::ids::{RunId, Seq, TaskId, TaskIndex};
use muster_shared::plan::unknown_task;
use muster_shared::run::event::RequestRefused;
use muster_shared::run::{Decided, Entry, RecordEvent, RunEvent, RunState, apply};
use muster_shared::wire::{Command, Encoding};
use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

use super::{select, within};
use crate::app::{App, bus_failure};
use crate::args::OrderArgs;
use crate::exit::{Exit, Failure};
use crate::{output, render};

/// A run that something is asked of, as it stands.
pub(super) struct Target {
    bus: Bus,
    /// The run.
    pub(super) run: RunId,
    /// What its record tells. Large: commands hold it while they wait.
    pub(super) state: Box<RunState>,
}

/// What became of a command.
struct Recorded {
    seq: Seq,
    events: Vec<RunEvent>,
}

impl Target {
    /// Finds the run that is meant. One that has ended is none, nor is one within a task that does not wait for it.
    pub(super) async fn find(app: &App, run: &str) -> Result<Self, Failure> {
        let found = Self::read(app, run).await?;
        within::check_above(&found.bus, &found.state).await?;
        found.open()
    }

    /// The same, where it makes no difference whether anybody waits for it.
    pub(super) async fn find_any(app: &App, run: &str) -> Result<Self, Failure> {
        Self::read(app, run).await?.open()
    }

    /// Finds whoever asks what somebody has a say in: the run that is meant, else the only run within it that does.
    pub(super) async fn find_asking(
        app: &App,
        run: &str,
        asks: impl Fn(&RunState) -> bool,
    ) -> Result<Self, Failure> {
        let found = Self::find(app, run).await?;
        if asks(&found.state) {
            return Ok(found);
        }
        let within = within::all(&found.bus, &found.state).await?;
        let asking = within.into_iter().filter(|child| !child.status.is_ended() && asks(child));
        let mut asking: Vec<RunState> = asking.collect();
        match asking.len() {
            // The run itself says what is wrong.
            0 => Ok(found),
            1 => {
                let state = Box::new(asking.remove(0));
                within::check_above(&found.bus, &state).await?;
                Ok(Self { run: state.id, state, ..found })
            }
            many => {
                let named: Vec<String> = asking.iter().map(|child| child.id.short()).collect();
                Err(Failure::usage(format!(
                    "{many} runs within run {} ask for that: {}",
                    found.run.short(),
                    named.join(", ")
                ))
                .help(format!("`muster questions {}` shows them; name the one you mean", found.run.short())))
            }
        }
    }

    async fn read(app: &App, run: &str) -> Result<Self, Failure> {
        let bus = app.connect("cli").await?;
        let run = select::run(&bus, run).await?;
        let state = Box::new(select::fold(run, &select::entries(&bus, run).await?)?);
        Ok(Self { bus, run, state })
    }

    fn open(self) -> Result<Self, Failure> {
        if self.state.status.is_ended() { Err(has_ended(&self.state)) } else { Ok(self) }
    }

    /// Refuses a task that is not in the plan, and names those that may be meant.
    pub(super) fn check(&self, task: &TaskIndex) -> Result<(), Failure> {
        match &self.state.plan {
            Some(plan) if !plan.tasks.contains_key(task) => Err(Failure::usage(unknown_task(plan, task))
                .help(format!("`muster show {}` shows the whole plan", self.run.short()))),
            Some(_) | None => Ok(()),
        }
    }

    /// Sends the command, waits until it stands in the record, and says what happened.
    pub(super) async fn order(self, args: &OrderArgs, command: Command) -> Result<Exit, Failure> {
        let Self { bus, run, state } = self;
        let id = Uuid::now_v7();
        let until = Instant::now() + args.wait;
        let record = bus.record().follow(&RecordFilter::Run(run), state.folded).await.map_err(bus_failure)?;
        bus.commands().send(&command.with_id(id), Encoding::default()).await.map_err(bus_failure)?;
        let mut watch = RunWatch { record, state: Box::new(Some(*state)) };
        let recorded =
            watch.until_recorded(id, until).await.ok_or_else(|| not_recorded(run, args.wait))??;
        if let Some(reason) = refusal(&recorded.events, id) {
            return Err(Failure::failed(format!("run {}: {reason}", run.short()))
                .help(format!("`muster show {}` shows how it stands", run.short())));
        }
        if recorded.events.iter().any(|event| matches!(event, RunEvent::RunPaused(_))) {
            watch.until_put_down(until).await;
        }
        tell(args, watch.state.as_ref().as_ref(), run, id, &recorded)
    }
}

/// Whether a run asks about something that is approved or rejected.
pub(super) fn asks_for_verdict(state: &RunState) -> bool {
    state.open_questions().any(|(_, asked)| asked.about.is_approved())
}

fn tell(
    args: &OrderArgs,
    state: Option<&RunState>,
    run: RunId,
    id: Uuid,
    Recorded { seq, events }: &Recorded,
) -> Result<Exit, Failure> {
    let at_work = state.map_or(0, at_work);
    if args.json {
        output::json(&json!({
            "run": run, "request": id, "seq": seq, "events": events, "at_work": at_work,
            "status": state.map(|state| state.status), "paused": state.and_then(|state| state.control.paused.as_ref()),
        }))?;
    } else {
        output::line(&render::orders::told(run, events, at_work))?;
    }
    Ok(Exit::Completed)
}

/// The record of a run while it is followed.
struct RunWatch {
    record: BoxStream<'static, Result<Entry, Unreadable>>,
    state: Box<Option<RunState>>,
}

impl RunWatch {
    /// What was decided upon the request; nothing when it is not on record in time.
    async fn until_recorded(&mut self, id: Uuid, until: Instant) -> Option<Result<Recorded, Failure>> {
        loop {
            let entry = match self.next(until).await? {
                Ok(entry) => entry,
                Err(failure) => return Some(Err(failure)),
            };
            if let RecordEvent::Decided(Decided { inputs, events, .. }) = entry.event
                && inputs.iter().any(|input| input.request() == Some(id))
            {
                return Some(Ok(Recorded { seq: entry.seq, events }));
            }
            if let Some(state) =
                self.state.as_ref().as_ref().filter(|state: &&RunState| state.status.is_ended())
            {
                return Some(Err(has_ended(state)));
            }
        }
    }

    /// Waits until agents have put down what they had in hand, as long as there is time.
    async fn until_put_down(&mut self, until: Instant) {
        while self
            .state
            .as_ref()
            .as_ref()
            .is_some_and(|state: &RunState| at_work(state) > 0 && state.control.paused.is_some())
        {
            if !matches!(self.next(until).await, Some(Ok(_))) {
                return;
            }
        }
    }

    async fn next(&mut self, until: Instant) -> Option<Result<Entry, Failure>> {
        let entry = loop {
            match tokio::time::timeout_at(until, self.record.next()).await.ok()?? {
                Err(stray) if stray.of_nobody => {}
                entry => break entry,
            }
        };
        let folded = entry.map_err(|error| bus_failure(error.into())).and_then(|entry| {
            apply(&mut self.state, &entry).map_err(|error| {
                Failure::failed(format!("the record cannot be followed: {error}"))
                    .help("a newer muster may have written it; `muster trace` shows it entry by entry")
            })?;
            Ok(entry)
        });
        Some(folded)
    }
}

/// How many tasks agents have in hand.
fn at_work(state: &RunState) -> usize {
    // A parent only reflects its leaves.
    let executed = |task: &TaskId| match task {
        TaskId::Leaf(index) => {
            state.plan.as_ref().is_some_and(|plan| plan.is_leaf(&index.planned())) && !state.is_shared(task)
        }
        TaskId::Plan
        | TaskId::Reflect(_)
        | TaskId::Refine(_)
        | TaskId::Settle(_)
        | TaskId::Write
        | TaskId::DraftReview(_) => true,
    };
    let in_hand = state.tasks.iter().filter(|(task, _)| executed(task));
    in_hand.filter(|(_, found)| found.status == TaskStatus::Processing).count()
}

fn refusal(events: &[RunEvent], wanted: Uuid) -> Option<&str> {
    events.iter().find_map(|event| match event {
        RunEvent::RequestRefused(RequestRefused { id, reason }) if *id == wanted => Some(reason.as_str()),
        _ => None,
    })
}

fn has_ended(state: &RunState) -> Failure {
    Failure::usage(format!(
        "run {} has ended ({}): nothing more can be asked of it",
        state.id.short(),
        render::runs::word(state)
    ))
    .help(format!("`muster show {}` tells how; ask anew with `muster run`", state.id.short()))
}

fn not_recorded(run: RunId, wait: Duration) -> Failure {
    Failure::failed(format!("run {}: not on record within {}", run.short(), render::figures::span(wait)))
        .help("the command is kept, and carried out as soon as an orchestrator takes it: see with `muster ps` whether one is there")
}
