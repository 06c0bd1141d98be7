//! The guardian of one task: tells the queue that it is worked on, turns a panic into an outcome, and settles
//! with the queue in the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_bus::TakenTask;
use muster_shared::flow::{TaskOffered, Voucher};
use muster_shared::run::AgentKey;
use muster_shared::text::first_line;
use muster_tools::why_broken;
use tokio::task::{JoinError, JoinHandle};
use tracing::Instrument;

use super::context::AgentContext;
use crate::react::close::{CloseOutcome, close_broken};
use crate::react::drive::{Connections, drive};
use crate::react::interrupt::Interrupts;
use crate::react::journal::Starter;
use crate::react::log_place;
use crate::react::mailbox::Mailbox;
use crate::react::progress::ProgressStream;
use crate::react::states::SlotState;

/// Interval of progress reports of a task to the broker. A third of the default of `bus.ack_wait`.
const PROGRESS: Duration = Duration::from_secs(10);

/// A task whose record could not be written goes back to its queue after this time.
const UNWRITTEN_PAUSE: Duration = Duration::from_secs(2);

/// Longest text of a panic that is kept, in characters.
const MAX_PANIC: usize = 300;

/// How a task in hand is reached from outside.
pub(super) struct Reach {
    pub(super) interrupt: Interrupts,
    pub(super) mailbox: Mailbox,
    /// Where it is told what is done.
    pub(super) slot: SlotState,
}

/// What is to be done, and who vouches for what it may use.
struct Taken {
    offer: TaskOffered,
    voucher: Option<Arc<Voucher>>,
}

/// Stops the work when the guardian is dropped.
struct Work(JoinHandle<CloseOutcome>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The broker is not told of progress more often than this.
const SHORTEST_BEAT: Duration = Duration::from_millis(50);

/// Does a task and settles with its queue; tells how it ended.
pub(super) async fn guard(context: Arc<AgentContext>, task: TakenTask, reach: Reach) -> CloseOutcome {
    let starter = starter(&context, &task);
    let taken = Taken { offer: task.offer.clone(), voucher: task.voucher().map(Arc::new) };
    let mut work = Work(tokio::spawn(
        work(Arc::clone(&context), taken, starter.clone(), reach).instrument(log_place::of_task(&task.offer)),
    ));
    // Told in time, whatever settings say: what is heard too late goes to another agent while it is worked on here.
    let often = PROGRESS.min(context.bus().settings().ack_wait / 3);
    let mut beat = tokio::time::interval(often.max(SHORTEST_BEAT));
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    beat.tick().await;
    let ended = loop {
        tokio::select! {
            ended = &mut work.0 => break ended,
            _ = beat.tick() => {
                if let Err(error) = task.progress().await {
                    tracing::debug!(%error, "the queue could not be told of progress");
                }
            }
        }
    };
    let verdict = match ended {
        Ok(verdict) => verdict,
        Err(broken) => close(&context, &task, &starter, broken).await,
    };
    settle(task, verdict).await
}

async fn work(
    context: Arc<AgentContext>,
    Taken { offer, voucher }: Taken,
    starter: Starter,
    Reach { interrupt, mailbox, slot }: Reach,
) -> CloseOutcome {
    let bus = context.bus();
    let progress =
        ProgressStream::new(bus.live(), Arc::clone(context.redactor()), context.role().clone(), &offer)
            .of_slot(slot);
    let equip = async || context.equip(&offer, voucher.clone()).await;
    let (end, begun) = (progress.end(), Instant::now());
    let connections = Connections {
        record: match &offer.trace {
            Some(trace) => bus.traced(trace.clone()).record(),
            None => bus.record(),
        },
        patience: crate::settings::LOG_WRITE_TIMEOUT,
        interrupt,
        mailbox,
        time_is_up: context.time_is_up(&offer),
        progress,
    };
    let verdict = Box::pin(drive(&offer, &starter, connections, equip)).await;
    tracing::debug!(run = %offer.run, task = %offer.task, took = ?begun.elapsed(), "the task is out of hand");
    // What waited in between or was done elsewhere before tells nothing of how long a task takes.
    if let (Some((ending, usage)), None) = (end.get(), offer.continues) {
        context.experience().ended(ending.is_success(), begun.elapsed(), *usage);
    }
    verdict
}

fn starter(context: &AgentContext, task: &TakenTask) -> Starter {
    let key = AgentKey {
        role: context.role().clone(),
        agent: context.bus().who().clone(),
        task: task.offer.task.clone(),
        generation: task.offer.generation,
    };
    let (ack, host) = (task.ack_subject.clone(), context.host().to_owned());
    Starter { key, ack, host, delivered: task.delivered, waited: task.waited }
}

async fn close(
    context: &AgentContext,
    task: &TakenTask,
    starter: &Starter,
    broken: JoinError,
) -> CloseOutcome {
    let reason = format!("the agent broke: {}", first_line(&why_broken(broken), MAX_PANIC));
    tracing::error!(run = %task.offer.run, task = %task.offer.task, reason, "an agent broke");
    let reason = context.redactor().redact(&reason).into_owned();
    let closed = close_broken(
        context.bus().record(),
        &task.offer,
        starter,
        crate::settings::LOG_WRITE_TIMEOUT,
        reason,
    )
    .await;
    closed.unwrap_or(CloseOutcome::Unwritten)
}

/// An acknowledgement that comes late still removes a task: who lost it says nothing.
async fn settle(task: TakenTask, verdict: CloseOutcome) -> CloseOutcome {
    let settled = match verdict {
        CloseOutcome::Closed | CloseOutcome::Parked => task.done().await,
        CloseOutcome::Released => task.hand_back(Duration::ZERO).await,
        CloseOutcome::Unwritten => task.hand_back(UNWRITTEN_PAUSE).await,
        CloseOutcome::Lost => Ok(()),
    };
    if let Err(error) = settled {
        tracing::debug!(%error, "the queue gives the task out again when its time is up");
    }
    verdict
}
