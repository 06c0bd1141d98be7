//! The run that something is asked of: it is found, the request is sent, and its record is followed until the request
//! stands in it.

use std::time::Duration;

use muster_bus::{Bus, RecordFilter};
use muster_shared::ids::{RunId, TaskIndex};
use muster_shared::plan::unknown_task;
use muster_shared::run::event::{AskedAbout, GuardsAsked, RequestRefused};
use muster_shared::run::{Decided, Request, RequestAction, RunEvent, RunState, RunStatus};
use muster_shared::wire::{Command, Encoding};
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::super::refused::{Given, refused};
use super::super::{select, within};
use super::follow::{Following, Recorded, at_work, has_ended};
use crate::args::OrderArgs;
use crate::exit::{Exit, Failure, failed, usage};
use crate::{output, render};

/// A run that something is asked of, as it stands.
pub(in super::super) struct Target {
    bus: Bus,
    /// The run.
    run: RunId,
    /// What its record tells. Large: commands hold it while they wait.
    pub(in super::super) state: Box<RunState>,
}

impl Target {
    /// Finds the run that is meant. One that has ended is none, nor is one within a task that does not wait for it.
    pub(in super::super) async fn find(bus: &Bus, run: &str) -> Result<Self, Failure> {
        let found = Self::read(bus, run).await?;
        within::check_above(&found.bus, &found.state).await?;
        found.open()
    }

    /// The same, where it makes no difference whether anybody waits for it.
    pub(in super::super) async fn find_any(bus: &Bus, run: &str) -> Result<Self, Failure> {
        Self::read(bus, run).await?.open()
    }

    /// Finds whoever asks what somebody has a say in: the run that is meant, else the only run within it that does.
    pub(in super::super) async fn find_asking(
        bus: &Bus,
        run: &str,
        asks: impl Fn(&RunState) -> bool,
    ) -> Result<Self, Failure> {
        let found = Self::find(bus, run).await?;
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
                let named = render::figures::list(asking.iter().map(|child| child.id.short()));
                Err(usage!("{many} child runs of {} wait for that: {named}", found.run.short()).help(
                    format!("`muster questions {}` shows them; name the one you mean", found.run.short()),
                ))
            }
        }
    }

    async fn read(bus: &Bus, run: &str) -> Result<Self, Failure> {
        let state = Box::new(select::wanted(bus, run).await?);
        Ok(Self { bus: bus.clone(), run: state.id, state })
    }

    fn open(self) -> Result<Self, Failure> {
        if self.state.status.is_ended() { Err(has_ended(&self.state)) } else { Ok(self) }
    }

    /// Refuses a task that is not in the plan, and names those that may be meant.
    pub(in super::super) fn check(&self, task: &TaskIndex) -> Result<(), Failure> {
        match &self.state.plan {
            Some(plan) if !plan.tasks.contains_key(task) => Err(Failure::usage(unknown_task(plan, task))
                .help(format!("`muster show {}` shows the whole plan", self.run.short()))),
            _ => Ok(()),
        }
    }

    /// Sends a request, waits so long until it stands in the record, and says what happened.
    pub(in super::super) async fn ask(
        self,
        order: &OrderArgs,
        action: RequestAction,
        reason: String,
    ) -> Result<Answered, Failure> {
        let wait = order.wait;
        let Self { bus, run, state } = self;
        let id = Uuid::now_v7();
        let until = Instant::now() + wait;
        let record = bus.record().follow(&RecordFilter::Run(run), state.folded).await?;
        let request = Request { by: order.by.clone(), ..Request::new(run, action) };
        let command = Command::Request(request.because(reason).with_id(id));
        bus.commands().send(&command, Encoding::default()).await?;
        let mut following = Following::new(record, *state);
        let asked = |decided: &Decided| decided.inputs.iter().any(|input| input.request() == Some(id));
        let Some(recorded) = following.until_decided(until, asked).await else {
            let refused = refused(&bus, Given::Request(run, id)).await;
            return Err(refused.unwrap_or_else(|| not_recorded(run, wait)));
        };
        let mut recorded = recorded?;
        if let Some(number) = asked_of_guards(&recorded.events, id) {
            let answers = |event: &RunEvent| matches!(event, RunEvent::GuardsAnswered(answered) if answered.number == number);
            let answered = |decided: &Decided| decided.events.iter().any(answers);
            let answered = following.until_decided(until, answered).await;
            recorded = answered.ok_or_else(|| not_answered(run, wait))??;
        }
        if let Some(reason) = refusal(&recorded.events, id) {
            return Err(failed!("run {}: {reason}", run.short())
                .help(format!("`muster show {}` shows how it stands", run.short())));
        }
        if recorded.events.iter().any(|event| matches!(event, RunEvent::RunPaused { .. })) {
            following.until_put_down(until).await;
        }
        let state = following.state();
        let paused = json!(state.and_then(|state| state.control.paused.as_ref()));
        let status = state.map(|state| state.status);
        Ok(Answered { run, id, recorded, status, paused, at_work: state.map_or(0, at_work) })
    }
}

/// What came of a request.
pub(crate) struct Answered {
    run: RunId,
    id: Uuid,
    recorded: Recorded,
    status: Option<RunStatus>,
    paused: Value,
    at_work: usize,
}

impl Answered {
    /// As the commands that steer print it with --json.
    pub(crate) fn in_json(&self) -> Value {
        let Recorded { seq, events } = &self.recorded;
        json!({
            "run": self.run, "request": self.id, "seq": seq, "events": events, "at_work": self.at_work,
            "status": self.status, "paused": self.paused,
        })
    }

    /// Prints it.
    pub(in super::super) fn tell(&self, as_json: bool) -> Result<Exit, Failure> {
        output::json_or_line(
            as_json,
            || self.in_json(),
            || render::orders::told(self.run, &self.recorded.events, self.at_work),
        )
    }
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
    failed!(
        "run {short}: guards are asked about the change, and have not answered within {}",
        render::figures::span(wait)
    )
    .help(format!("it is made as soon as they let it through; `muster trace {short}` shows what they say"))
}

fn refusal(events: &[RunEvent], wanted: Uuid) -> Option<&str> {
    events.iter().find_map(|event| match event {
        RunEvent::RequestRefused(RequestRefused { id, reason }) if *id == wanted => Some(reason.as_str()),
        _ => None,
    })
}

fn not_recorded(run: RunId, wait: Duration) -> Failure {
    failed!(
        "run {}: the request was not in the log within {}",
        run.short(),
        render::figures::span(wait)
    )
    .help("the request stays queued until an orchestrator takes it: `muster ps` shows whether one is running")
}
