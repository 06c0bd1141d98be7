//! The guardian of one task: tells the queue that it is worked on, turns a panic into an outcome, and settles
//! with the queue in the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_bus::TakenTask;
use muster_shared::run::AgentKey;
use tokio::task::{JoinError, JoinHandle};

use super::kit::Kit;
use super::late::is_superseded;
use crate::react::close::{Verdict, close_broken};
use crate::react::drive::drive;
use crate::react::history::cut;
use crate::react::interrupt::Interrupts;
use crate::react::journal::Starter;
use crate::react::mailbox::Mailbox;
use crate::react::states::SlotState;
use crate::react::voice::Voice;

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

/// Stops the work when the guardian is dropped.
struct Work(JoinHandle<Verdict>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The broker is not told of progress more often than this.
const SHORTEST_BEAT: Duration = Duration::from_millis(50);

/// Does a task and settles with its queue; tells how it ended.
pub(super) async fn guard(kit: Arc<Kit>, task: TakenTask, reach: Reach) -> Verdict {
    if is_superseded(kit.bus(), &task).await {
        tracing::debug!(run = %task.offer.run, task = %task.offer.task, "dropping an offer that was made again");
        return settle(task, Verdict::Closed).await;
    }
    let starter = starter(&kit, &task);
    let mut work = Work(tokio::spawn(work(Arc::clone(&kit), task.offer.clone(), starter.clone(), reach)));
    // Told in time, whatever settings say: what is heard too late goes to another agent while it is worked on here.
    let often = kit.settings().progress.min(kit.bus().settings().ack_wait / 3);
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
        Err(broken) => close(&kit, &task, &starter, broken).await,
    };
    settle(task, verdict).await
}

async fn work(
    kit: Arc<Kit>,
    offer: muster_shared::flow::TaskOffered,
    starter: Starter,
    Reach { interrupt, mailbox, slot }: Reach,
) -> Verdict {
    let bus = kit.bus();
    let voice = Voice::new(bus.live(), Arc::clone(kit.redactor()), kit.role().clone(), &offer).of_slot(slot);
    let record = (bus.record(), kit.settings().patience);
    let equip = async || kit.equip(&offer).await;
    let time_is_up = kit.time_is_up(&offer);
    let (end, begun) = (voice.end(), Instant::now());
    let work = drive(&offer, &starter, record, (interrupt, mailbox, time_is_up), voice, equip);
    let verdict = Box::pin(work).await;
    // What waited in between or was done elsewhere before tells nothing of how long a task takes.
    if let (Some((ending, usage)), None) = (end.get(), offer.continues) {
        kit.experience().ended(ending.is_success(), begun.elapsed(), *usage);
    }
    verdict
}

fn starter(kit: &Kit, task: &TakenTask) -> Starter {
    let key = AgentKey {
        role: kit.role().clone(),
        agent: kit.bus().who().clone(),
        task: task.offer.task.clone(),
        generation: task.offer.generation,
    };
    Starter { key, ack: task.ack_subject.clone(), host: kit.host().to_owned(), delivered: task.delivered }
}

async fn close(kit: &Kit, task: &TakenTask, starter: &Starter, broken: JoinError) -> Verdict {
    let reason = format!("the agent broke: {}", panic_text(broken));
    tracing::error!(run = %task.offer.run, task = %task.offer.task, reason, "an agent broke");
    let reason = kit.redactor().redact(&reason).into_owned();
    let closed =
        close_broken(kit.bus().record(), &task.offer, starter, kit.settings().patience, reason).await;
    closed.unwrap_or(Verdict::Unwritten)
}

fn panic_text(broken: JoinError) -> String {
    let Ok(panic) = broken.try_into_panic() else {
        return "it was stopped".to_owned();
    };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.map_or_else(|| "it panicked".to_owned(), |text| cut(&text, MAX_PANIC))
}

/// An acknowledgement that comes late still removes a task: who lost it says nothing.
async fn settle(task: TakenTask, verdict: Verdict) -> Verdict {
    let settled = match verdict {
        Verdict::Closed | Verdict::Parked => task.done().await,
        Verdict::Released => task.hand_back(Duration::ZERO).await,
        Verdict::Unwritten => task.hand_back(UNWRITTEN_PAUSE).await,
        Verdict::Lost => Ok(()),
    };
    if let Err(error) = settled {
        tracing::debug!(%error, "the queue gives the task out again when its time is up");
    }
    verdict
}
