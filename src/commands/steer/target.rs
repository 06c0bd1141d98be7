//! The run that something is asked of: it is found, the request is sent, and its record is followed until the request
//! stands in it.

use std::time::Duration;

use muster_bus::{Bus, RecordFilter};
use muster_shared::ids::{RunId, TaskIndex};
use muster_shared::plan::unknown_task;
use muster_shared::run::event::{AskedAbout, GuardsAsked, RequestRefused};
use muster_shared::run::{Request, RequestAction, RunEvent, RunState};
use muster_shared::wire::{Command, Encoding};
use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

use super::super::refused::{Given, refused};
use super::super::{select, within};
use super::follow::{Following, Recorded, at_work, has_ended};
use crate::app::{App, bus_failure};
use crate::args::OrderArgs;
use crate::exit::{Exit, Failure};
use crate::{output, render};

/// A run that something is asked of, as it stands.
pub(in super::super) struct Target {
    bus: Bus,
    /// The run.
    pub(in super::super) run: RunId,
    /// What its record tells. Large: commands hold it while they wait.
    pub(in super::super) state: Box<RunState>,
}

impl Target {
    /// Finds the run that is meant. One that has ended is none, nor is one within a task that does not wait for it.
    pub(in super::super) async fn find(app: &App, run: &str) -> Result<Self, Failure> {
        let found = Self::read(app, run).await?;
        within::check_above(&found.bus, &found.state).await?;
        found.open()
    }

    /// The same, where it makes no difference whether anybody waits for it.
    pub(in super::super) async fn find_any(app: &App, run: &str) -> Result<Self, Failure> {
        Self::read(app, run).await?.open()
    }

    /// Finds whoever asks what somebody has a say in: the run that is meant, else the only run within it that does.
    pub(in super::super) async fn find_asking(
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
                    "{many} child runs of {} wait for that: {}",
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
    pub(in super::super) fn check(&self, task: &TaskIndex) -> Result<(), Failure> {
        match &self.state.plan {
            Some(plan) if !plan.tasks.contains_key(task) => Err(Failure::usage(unknown_task(plan, task))
                .help(format!("`muster show {}` shows the whole plan", self.run.short()))),
            Some(_) | None => Ok(()),
        }
    }

    /// Sends a request, waits until it stands in the record, and says what happened.
    pub(in super::super) async fn ask(
        self,
        args: &OrderArgs,
        action: RequestAction,
        reason: String,
    ) -> Result<Exit, Failure> {
        let Self { bus, run, state } = self;
        let id = Uuid::now_v7();
        let until = Instant::now() + args.wait;
        let record = bus.record().follow(&RecordFilter::Run(run), state.folded).await.map_err(bus_failure)?;
        let command = Command::Request(Request::new(run, action).because(reason).with_id(id));
        bus.commands().send(&command, Encoding::default()).await.map_err(bus_failure)?;
        let mut following = Following::new(record, *state);
        let Some(recorded) = following.until_recorded(id, until).await else {
            let refused = refused(&bus, Given::Request(run, id)).await;
            return Err(refused.unwrap_or_else(|| not_recorded(run, args.wait)));
        };
        let mut recorded = recorded?;
        if let Some(number) = asked_of_guards(&recorded.events, id) {
            let answered = following.until_answered(number, until).await;
            recorded = answered.ok_or_else(|| not_answered(run, args.wait))??;
        }
        if let Some(reason) = refusal(&recorded.events, id) {
            return Err(Failure::failed(format!("run {}: {reason}", run.short()))
                .help(format!("`muster show {}` shows how it stands", run.short())));
        }
        if recorded.events.iter().any(|event| matches!(event, RunEvent::RunPaused { .. })) {
            following.until_put_down(until).await;
        }
        tell(args, following.state(), run, id, &recorded)
    }
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

/// The question that guards are asked about the request.
fn asked_of_guards(events: &[RunEvent], wanted: Uuid) -> Option<u32> {
    events.iter().find_map(|event| match event {
        RunEvent::GuardsAsked(GuardsAsked { number, about: Some(AskedAbout::Edit(request)), .. })
            if request.id == wanted =>
        {
            Some(*number)
        }
        _ => None,
    })
}

fn not_answered(run: RunId, wait: Duration) -> Failure {
    let short = run.short();
    Failure::failed(format!(
        "run {short}: guards are asked about the change, and have not answered within {}",
        render::figures::span(wait)
    ))
    .help(format!("it is made as soon as they let it through; `muster trace {short}` shows what they say"))
}

fn refusal(events: &[RunEvent], wanted: Uuid) -> Option<&str> {
    events.iter().find_map(|event| match event {
        RunEvent::RequestRefused(RequestRefused { id, reason }) if *id == wanted => Some(reason.as_str()),
        _ => None,
    })
}

fn not_recorded(run: RunId, wait: Duration) -> Failure {
    Failure::failed(format!(
        "run {}: the request was not in the log within {}",
        run.short(),
        render::figures::span(wait)
    ))
    .help("the request stays queued until an orchestrator takes it: `muster ps` shows whether one is running")
}
