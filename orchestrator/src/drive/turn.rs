//! One turn of a run: take in what came, decide, write, carry out.
//!
//! A turn runs in a task of its own, so that a fault in it takes nothing else along: the actor reads the record
//! again and goes on from there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use muster_bus::{AppendError, BusError};
use muster_shared::flow::Specialty;
use muster_shared::ids::{AgentId, Queue, RunId, Seq};
use muster_shared::run::{ApplyError, Decided, Entry, FIRST_EVENT_VERSION, Input, RunState};
use muster_shared::time::Millis;
use muster_shared::wire::Encoding;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::context::OrchestratorContext;
use super::deaths;
use super::pace::Took;
use super::perform::perform;
use super::room::{Roomed, decide_with_room};
use super::run_actor::RunMessage;
use super::run_log::{ReadError, RunLog};
use super::silence::{self, Heard};
use super::snapshots;
use crate::decide::{Decision, hand_on_again, next_deadline, next_review};

/// How often a decision is made anew because somebody else wrote first.
const MOST_ATTEMPTS: u32 = 5;

/// When to look again at something that is overdue and cannot be helped now.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How often a run looks by itself whether there is room for what it waits to offer. It is told as soon as there is;
/// should that be missed, it stands for no longer than this.
const LOOK_FOR_ROOM: Duration = Duration::from_secs(5);

/// An order from outside the record, and whom to tell what became of it.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) input: Input,
    pub(crate) answer: oneshot::Sender<OrderReply>,
}

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OrderReply {
    /// It stands in the record, or changes nothing any more.
    Recorded,
    /// There is no such run.
    NoSuchRun,
    /// This orchestrator has the run.
    Elsewhere(AgentId),
    /// Too many runs are going on here.
    Crowded,
    /// Not now: it should be given to somebody again.
    Later,
}

/// How a turn ended.
#[derive(Debug)]
pub(super) struct TurnEnd {
    /// What is known of the run now; nothing if the record must be read again.
    pub(super) run_log: Option<RunLog>,
    pub(super) outcome: TurnOutcome,
    pub(super) took: Took,
}

/// What an actor is woken for if nothing comes before.
#[derive(Debug, Clone, Copy)]
pub(super) enum Alarm {
    /// Something is due then.
    Due(Millis),
    /// There may be room by then for what the run waits to offer.
    Room(Millis),
}

/// What becomes of the actor.
#[derive(Debug)]
pub(super) enum TurnOutcome {
    /// It goes on when something comes, when the alarm rings, or at once if there is more to offer.
    GoOn { wake: Option<Alarm>, more: bool },
    /// There is nothing more to do.
    Ended,
    /// Somebody else owns the run.
    Elsewhere,
    /// The bus failed for now.
    Retry,
    /// The run cannot be handled here.
    GiveUp { reason: String },
}

/// Why a turn could not be finished.
#[derive(Debug, thiserror::Error)]
enum TurnError {
    #[error("{0} has the run")]
    Elsewhere(AgentId),
    #[error("this process has no lease now")]
    NoLease,
    #[error("others kept writing first")]
    Contended,
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl From<ReadError> for TurnError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Bus(error) => Self::Bus(error),
            ReadError::Apply(error) => Self::Apply(error),
        }
    }
}

/// What came in since the last turn, sorted.
#[derive(Debug, Default)]
struct Inbox {
    signals: Vec<Entry>,
    orders: Vec<Order>,
    wakes: Vec<Input>,
    reload: bool,
    news: bool,
}

impl Inbox {
    fn sort(messages: Vec<RunMessage>) -> Self {
        let mut inbox = Self { news: messages.iter().any(RunMessage::is_news), ..Self::default() };
        for messages in messages {
            match messages {
                RunMessage::Signal(entry) => inbox.signals.push(*entry),
                RunMessage::Order(order) => inbox.orders.push(order),
                RunMessage::Wake(input) if inbox.wakes.contains(&input) => {}
                RunMessage::Wake(input) => inbox.wakes.push(input),
                RunMessage::Look if inbox.wakes.contains(&Input::Capacity) => {}
                RunMessage::Look => inbox.wakes.push(Input::Capacity),
                // Seen to before a turn begins.
                RunMessage::Dismiss => {}
                RunMessage::Reload => inbox.reload = true,
            }
        }
        inbox
    }
}

/// Takes one turn.
pub(super) async fn turn(
    context: Arc<OrchestratorContext>,
    id: RunId,
    run_log: Option<RunLog>,
    messages: Vec<RunMessage>,
) -> TurnEnd {
    let Inbox { signals, orders, wakes, reload, news } = Inbox::sort(messages);
    if !news {
        // Whoever is woken over and over must not keep others from the bus: what they wait for there comes first.
        tokio::task::yield_now().await;
    }
    let commands: Vec<Input> = orders.iter().map(|order| order.input.clone()).collect();
    let work = go(&context, id, run_log.filter(|_| !reload), &signals, commands, wakes);
    // The state of a run is large, and lives on the heap while others are waited for.
    let done = Box::pin(work).await;
    let answer = match &done {
        Ok(Done { run_log, .. }) if run_log.run.is_none() => OrderReply::NoSuchRun,
        Ok(_) => OrderReply::Recorded,
        Err(TurnError::Elsewhere(owner)) => OrderReply::Elsewhere(owner.clone()),
        Err(TurnError::NoLease | TurnError::Contended | TurnError::Bus(_) | TurnError::Apply(_)) => {
            OrderReply::Later
        }
    };
    for order in orders {
        // Whoever asked may have stopped waiting; the order is then given to somebody again, which is harmless.
        let _gone = order.answer.send(answer.clone());
    }
    match done {
        Ok(Done { run_log, wake, more, wrote }) => {
            let over = run_log.run.as_ref().is_none_or(|run| run.status.is_ended());
            let outcome = if over { TurnOutcome::Ended } else { TurnOutcome::GoOn { wake, more } };
            TurnEnd { run_log: Some(run_log), outcome, took: Took { news, wrote } }
        }
        Err(error) => {
            TurnEnd { run_log: None, outcome: outcome_after(error), took: Took { news, wrote: false } }
        }
    }
}

fn outcome_after(error: TurnError) -> TurnOutcome {
    match error {
        TurnError::Elsewhere(_) => TurnOutcome::Elsewhere,
        // Its lease names the run for as long as the run is known here: were it let go of now, a renewal on its way would
        // not name it, and nobody would know that it was left. All runs are dismissed once the lease is gone.
        TurnError::NoLease | TurnError::Contended => TurnOutcome::Retry,
        TurnError::Bus(error) if error.is_transient() => TurnOutcome::Retry,
        TurnError::Bus(error) => TurnOutcome::GiveUp { reason: error.to_string() },
        TurnError::Apply(error) => TurnOutcome::GiveUp { reason: error.to_string() },
    }
}

/// How a turn was finished.
struct Done {
    run_log: RunLog,
    wake: Option<Alarm>,
    more: bool,
    wrote: bool,
}

async fn go(
    context: &Arc<OrchestratorContext>,
    id: RunId,
    run_log: Option<RunLog>,
    signals: &[Entry],
    commands: Vec<Input>,
    wakes: Vec<Input>,
) -> Result<Done, TurnError> {
    let epoch = context.ownership.epoch().filter(|_| !context.closed.is_cancelled());
    let epoch = epoch.ok_or(TurnError::NoLease)?;
    let fresh = run_log.is_none();
    let mut run_log = match run_log {
        Some(run_log) => run_log,
        // The fence tells if the run is there already.
        None => match commands.iter().find_map(version_to_begin) {
            Some(version) => {
                context.registry.own(id, version);
                RunLog::default()
            }
            None => read_ours(context, id).await?,
        },
    };
    let mut agents = if fresh { run_log.left_over() } else { std::mem::take(&mut run_log.deferred) };
    agents.extend(signals.iter().filter_map(|entry| run_log.take_in(entry)));
    let mut wakes = deaths::witness(context, run_log.run.as_ref(), fresh, wakes).await?;
    if let Some(run) = &run_log.run {
        let silent = silence::look(context, run, &mut run_log.heard).await?;
        wakes.extend(silent);
    }
    if let Some(run) = run_log.run.as_ref().filter(|run| fresh && !run.status.is_ended()) {
        perform(context, id, epoch, hand_on_again(run)).await;
    }
    for _ in 0..MOST_ATTEMPTS {
        let inputs: Vec<Input> = agents.iter().chain(&commands).chain(&wakes).cloned().collect();
        let draft = Draft::make(context, id, run_log.run.as_ref(), inputs)?;
        let (wake, more) = (draft.wake(context, &run_log.heard), draft.decision.more);
        if draft.can_wait(context) {
            run_log.deferred = draft.inputs.into_iter().filter(is_of_agent).collect();
            return Ok(Done { run_log, wake, more, wrote: false });
        }
        match Box::pin(draft.write(context, id, epoch, &mut run_log)).await? {
            Written::Done => {
                if run_log.snapshot_is_due(context.settings.snapshot_every) {
                    snapshots::keep(Arc::clone(context), id);
                }
                return Ok(Done { run_log, wake, more, wrote: true });
            }
            Written::Again => {
                run_log = read_ours(context, id).await?;
                agents = run_log.left_over();
            }
        }
    }
    Err(TurnError::Contended)
}

/// Reads a run's record, if the run is ours: nobody else's newest decision stands under a lease that holds.
async fn read_ours(context: &OrchestratorContext, id: RunId) -> Result<RunLog, TurnError> {
    let run_log = RunLog::read(context, id).await?;
    if let Some(author) = &run_log.author
        && let Some(run) = &run_log.run
        && context.ownership.sessions().is_left_to(author, id, run.decided)
    {
        return Err(TurnError::Elsewhere(author.clone()));
    }
    if let Some(run) = &run_log.run {
        context.registry.own(id, run.event_version);
    }
    Ok(run_log)
}

/// Whether an input stands in the record as what an agent wrote.
const fn is_of_agent(input: &Input) -> bool {
    matches!(input, Input::Agent { .. } | Input::Unreadable { .. })
}

/// The version of the events of the run that an input begins.
const fn version_to_begin(input: &Input) -> Option<u32> {
    match input {
        Input::Goal { event_version, .. } | Input::Fork { event_version, .. } => Some(*event_version),
        Input::Refuse { .. } => Some(FIRST_EVENT_VERSION),
        Input::Agent { .. }
        | Input::Unreadable { .. }
        | Input::Capacity
        | Input::Timer
        | Input::AgentLost { .. }
        | Input::Silent { .. }
        | Input::Cancel { .. }
        | Input::Pause { .. }
        | Input::Resume { .. }
        | Input::Skip { .. }
        | Input::Redo { .. }
        | Input::ChildEnded { .. }
        | Input::ContractBroken { .. }
        | Input::Bids { .. }
        | Input::Edit { .. }
        | Input::Answer { .. }
        | Input::SetContext { .. }
        | Input::Approve { .. }
        | Input::Reject { .. } => None,
    }
}

/// A decision with what it was made from.
struct Draft {
    inputs: Vec<Input>,
    now: Millis,
    basis: Seq,
    after: Seq,
    capacity: BTreeMap<Queue, u32>,
    specialists: Vec<Specialty>,
    decision: Decision,
}

/// What became of a write.
enum Written {
    Done,
    Again,
}

impl Draft {
    /// Decides with what the queues have room for.
    fn make(
        context: &OrchestratorContext,
        id: RunId,
        run: Option<&RunState>,
        inputs: Vec<Input>,
    ) -> Result<Self, ApplyError> {
        let now = run.map_or(Millis(0), |run| run.decided_at).max(context.now());
        let inputs = context.capacity.held_to_contracts(run, inputs);
        let Roomed { decision, capacity, specialists, woken } =
            decide_with_room(&context.capacity, id, run, &inputs, now)?;
        wake_others(context, woken);
        let (basis, after) = run.map_or((Seq(0), Seq(0)), |run| (run.folded, run.decided));
        let specialists = if decision.told_of_specialists { specialists } else { Vec::new() };
        Ok(Self { inputs, now, basis, after, capacity, specialists, decision })
    }

    /// Whether nothing is lost when this is decided again with what comes next.
    fn can_wait(&self, context: &OrchestratorContext) -> bool {
        self.decision.is_empty() && !self.names_agents()
            || self.decision.deferrable && self.inputs.len() <= context.settings.max_deferred
    }

    fn names_agents(&self) -> bool {
        self.inputs.iter().any(is_of_agent)
    }

    /// When the run should be looked at again if nothing comes.
    fn wake(&self, context: &OrchestratorContext, heard: &Heard) -> Option<Alarm> {
        let run = self.decision.after.as_ref().filter(|run| !run.status.is_ended())?;
        let silent = silence::next(context, run, heard);
        let due = next_deadline(run).into_iter().chain(next_review(run)).chain(silent).min();
        let due = due.map(|at| if at <= self.now { self.now.after(LOOK_AGAIN) } else { at });
        let room = (!self.decision.wanted.is_empty()).then(|| self.now.after(LOOK_FOR_ROOM));
        match (due, room) {
            (Some(due), Some(room)) if room < due => Some(Alarm::Room(room)),
            (Some(due), _) => Some(Alarm::Due(due)),
            (None, room) => room.map(Alarm::Room),
        }
    }

    /// Writes the decision if nobody else has written, folds it, and carries its effects out.
    async fn write(
        self,
        context: &Arc<OrchestratorContext>,
        id: RunId,
        epoch: Seq,
        run_log: &mut RunLog,
    ) -> Result<Written, TurnError> {
        if !context.ownership.holds(epoch) {
            return Err(TurnError::NoLease);
        }
        let Self { inputs, now, basis, after, capacity, specialists, decision } = self;
        let encoding = encoding_of(context, &decision);
        let Decision { events, offers, effects, placements, .. } = decision;
        let batch = Uuid::new_v4();
        let decided = Decided {
            batch,
            by: context.bus.who().clone(),
            inputs,
            now,
            basis,
            after: Some(after),
            capacity,
            offers: 0,
            continues: false,
            specialists,
            placements,
            events,
            offer: None,
        };
        let (decided, offers) = decided.with_offers(offers);
        let record = context.bus.record();
        match record.append_decision(id, after, &decided, &offers, encoding).await {
            Ok(appended) => {
                context.ownership.reached(appended.first);
                run_log.wrote(id, appended, decided, offers)?;
            }
            Err(AppendError::Conflict) => return Ok(Written::Again),
            Err(AppendError::Ambiguous { .. }) => {
                *run_log = RunLog::read(context, id).await?;
                let landed =
                    run_log.run.as_ref().and_then(|run| run.batch).is_some_and(|(last, _)| last == batch);
                if !landed {
                    return Ok(Written::Again);
                }
                run_log.deferred = run_log.left_over();
            }
            Err(error @ AppendError::TooLarge { .. }) => return Err(BusError::from(error).into()),
            Err(AppendError::Bus(error)) => return Err(error.into()),
        }
        perform(context, id, epoch, effects).await;
        Ok(Written::Done)
    }
}

/// How a decision is written: as the goal asks, unless it makes an offer to agents that read JSON only.
fn encoding_of(context: &OrchestratorContext, decision: &Decision) -> Encoding {
    if decision.offers.iter().any(|offer| context.capacity.reads_json_only(&offer.queue)) {
        return Encoding::Json;
    }
    decision.after.as_ref().map_or(Encoding::default(), |run| run.goal.encoding)
}

/// Wakes runs whose turn it is to offer something, and those for which there may be another agent now.
pub(super) fn wake_others(context: &OrchestratorContext, runs: Vec<RunId>) {
    for run in runs {
        context.registry.tell(run, RunMessage::Wake(Input::Capacity));
    }
    for run in context.capacity.may_look_again() {
        context.registry.tell(run, RunMessage::Look);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that stood still let go of its runs when it woke, renewed its lease too late and without them, and
    /// nobody knew that they were left.
    #[test]
    fn a_run_is_not_let_go_of_for_want_of_a_lease() {
        assert!(matches!(outcome_after(TurnError::NoLease), TurnOutcome::Retry));
        let other = AgentId::new("orchestrator", 2);
        assert!(matches!(outcome_after(TurnError::Elsewhere(other)), TurnOutcome::Elsewhere));
    }
}
