//! Takes turns of a run on the bus: does what a [`Turn`] asks for and gives it the result.
//!
//! A turn runs in a task of its own, so that a fault in it takes nothing else along: the actor reads the record
//! again and goes on from there.

use std::collections::BTreeSet;
use std::sync::Arc;

use muster_bus::{
    AppendError, AppendedDecision, BusError, LinkedDecision, RecordFilter, RunProgress, RunRecord,
};
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::run::{Entry, Input};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::context::OrchestratorContext;
use super::perform::perform;
use super::room::decide_with_room;
use super::run_actor::RunMessage;
use super::snapshots;
use crate::turn::{
    self, Appending, Failure, Next, ReadLastStep, ReadLastWord, RunLog, Turn, TurnEnd, TurnRules, View,
    Written, WrittenAt,
};

pub(crate) use crate::turn::OrderReply;

/// An order from outside the record, and whom to tell what became of it.
pub(crate) type Order = turn::Order<oneshot::Sender<OrderReply>>;

/// What came in since the last turn.
pub(super) type Inbox = turn::Inbox<Box<Entry>, oneshot::Sender<OrderReply>>;

/// What a turn needs next.
type Need = Next<Box<Entry>>;

impl From<BusError> for Failure {
    fn from(error: BusError) -> Self {
        Self { is_transient: error.is_transient(), reason: error.to_string() }
    }
}

/// A turn, and under which lease it was begun.
struct Place<'a> {
    context: &'a Arc<OrchestratorContext>,
    run: RunId,
    epoch: Option<Seq>,
}

/// Takes one turn.
pub(super) async fn turn(
    context: Arc<OrchestratorContext>,
    id: RunId,
    log: Option<RunLog>,
    mut inbox: Inbox,
) -> TurnEnd {
    if !inbox.news {
        // Whoever is woken over and over must not keep others from the bus: what they wait for there comes first.
        tokio::task::yield_now().await;
    }
    let waiting = std::mem::take(&mut inbox.waiting);
    let epoch = context.ownership.epoch().filter(|_| !context.closed.is_cancelled());
    let place = Place { context: &context, run: id, epoch };
    let rules = TurnRules {
        by: context.bus.who().clone(),
        max_deferred: context.settings.max_deferred,
        snapshot_every: context.settings.snapshot_every,
    };
    let mut next = Turn::begin(id, rules, log, inbox, &place.view());
    let end = loop {
        next = match next {
            Next::Done(end) => break end,
            // The state of a run is large, and lives on the heap while others are waited for.
            next => Box::pin(place.go_on(next)).await,
        };
    };
    for waiting in waiting {
        // Whoever asked may have stopped waiting; the order is then given to somebody again, which is harmless.
        let _gone = waiting.send(end.answer.clone());
    }
    if let Some(observer) = context.bus.observer()
        && let Some(run) = end.log.as_ref().and_then(|log| log.run.as_ref())
    {
        observer.progressed(id, RunProgress::of(run));
    }
    if end.keeps_snapshot {
        snapshots::keep(Arc::clone(&context), id);
    }
    *end
}

impl Place<'_> {
    fn view(&self) -> View<'_> {
        View {
            now: self.context.now(),
            fleet: &self.context.capacity,
            holds_lease: self.epoch.is_some_and(|epoch| self.context.ownership.holds(epoch)),
            batch: Uuid::new_v4(),
            decide: decide_with_room,
        }
    }

    async fn go_on(&self, next: Need) -> Need {
        match next {
            Next::Read(step) => {
                let log = read_log(self.context, self.run).await;
                step.read(log, &self.view())
            }
            Next::Claim(step) => {
                let sessions = self.context.ownership.sessions();
                let left_to = step
                    .author
                    .as_ref()
                    .filter(|(author, decided)| sessions.is_left_to(author, self.run, *decided));
                let left_to = left_to.map(|(author, _)| author.clone());
                drop(sessions);
                if let Some(author) = left_to {
                    return step.is_left_to(author);
                }
                self.context.registry.own(self.run);
                self.context.is_in_hand(self.run);
                step.is_ours(&self.view())
            }
            Next::FindAgents(step) => {
                let there = agents_there(self.context).await;
                step.found(there, &self.view())
            }
            Next::LastStep(step) => {
                let written = self.written_about(&step).await;
                step.read(written, &self.view())
            }
            Next::LastWord(step) => {
                let last = self.last_word(&step).await;
                step.read(last, &self.view())
            }
            Next::Tell(step) => {
                tell_others(self.context, &step.woken, &step.look);
                step.told(&self.view())
            }
            Next::Append(step) => {
                let (written, in_hand) = step.hand_over();
                let appending = self.append(written).await;
                in_hand.went(appending, &self.view())
            }
            Next::Perform(step) => {
                perform(self.context, self.run, &step.effect).await;
                step.performed(&self.view())
            }
            Next::Done(end) => Next::Done(end),
        }
    }

    async fn written_about(&self, step: &ReadLastStep<Box<Entry>>) -> Result<Vec<Entry>, Failure> {
        let (task, generation) = step.task();
        let filter = RecordFilter::Task { run: self.run, task: task.clone(), generation };
        Ok(self.context.bus.record().read(&filter, Seq(0)).await?)
    }

    async fn last_word(
        &self,
        step: &ReadLastWord<Box<Entry>>,
    ) -> Result<Option<muster_shared::time::Millis>, Failure> {
        let (task, generation) = step.task();
        let last = self.context.bus.record().last_word(self.run, task, generation).await?;
        Ok(last.map(|(_, at)| at))
    }

    async fn append(&self, written: Written) -> Appending {
        let Written { after, decided, offers, link, encoding } = written;
        let new = LinkedDecision { after, decided, offers, link, encoding };
        match self.context.bus.record().append_linked(self.run, new).await {
            Ok(AppendedDecision { first, link }) => {
                self.context.ownership.reached(self.run, first);
                Appending::Appended(WrittenAt { first, link })
            }
            Err(AppendError::Conflict) => Appending::Conflict,
            Err(AppendError::Ambiguous { .. }) => Appending::Ambiguous,
            Err(error @ AppendError::TooLarge { .. }) => Appending::Failed(BusError::from(error).into()),
            Err(AppendError::Bus(error)) => Appending::Failed(error.into()),
        }
    }
}

/// Reads the record of a run and folds it, from the newest snapshot on if there is one.
pub(super) async fn read_log(context: &OrchestratorContext, id: RunId) -> Result<RunLog, Failure> {
    let log = snapshots::newest(context, id).await.unwrap_or_default();
    let RunRecord { entries, chain } = context.bus.record().read_deciding(id, log.folded()).await?;
    Ok(log.read(&entries)?.chained(chain))
}

/// The agents that are on the bus: one may have come a moment ago.
async fn agents_there(context: &OrchestratorContext) -> Result<Vec<AgentId>, Failure> {
    let listed = context.bus.registry().list().await?.into_iter().map(|profile| profile.agent);
    Ok(listed.filter(|agent| !context.is_missing(agent)).collect())
}

/// Wakes runs whose turn it is to offer something, and those for which there may be another agent now.
pub(super) fn wake_others(context: &OrchestratorContext, runs: &[RunId]) {
    tell_others(context, runs, &context.capacity.may_look_again());
}

fn tell_others(context: &OrchestratorContext, runs: &[RunId], look: &BTreeSet<RunId>) {
    for run in runs {
        context.registry.tell(*run, RunMessage::Wake(Input::Capacity));
    }
    for run in look {
        context.registry.tell(*run, RunMessage::Look);
    }
}
