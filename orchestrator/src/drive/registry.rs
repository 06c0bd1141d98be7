//! Which runs are driven here, and by which actor.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use actix::dev::SendError;
use actix::{Actor, Addr};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use muster_shared::ids::RunId;
use muster_shared::run::Covered;

use super::context::OrchestratorContext;
use super::run_actor::{Dismiss, RunActor, RunMessage};
use crate::turn::Hashed;

/// Longest wait for room in an actor's mailbox.
const MAILBOX_WAIT: Duration = Duration::from_secs(5);

/// The actors of runs, by run.
#[derive(Default)]
pub(crate) struct Registry {
    actors: DashMap<RunId, Driven>,
}

/// The actor of a run.
struct Driven {
    actor: Addr<RunActor>,
    /// Whether it is certain that the run is ours to decide.
    owned: bool,
    /// Whether it is about to be asked to read its record again, since its mailbox was full.
    behind: Arc<AtomicBool>,
    /// How many words of what agents wrote found its mailbox full.
    missed: Arc<AtomicU64>,
}

impl Registry {
    /// Number of runs that are driven here.
    pub(crate) fn len(&self) -> usize {
        self.actors.len()
    }

    /// Whether the run is driven here.
    pub(crate) fn has(&self, run: RunId) -> bool {
        self.actors.get(&run).is_some_and(|driven| driven.actor.connected())
    }

    /// Takes note that the run is ours. Must come before the first write to it: the lease names the run from then on.
    pub(crate) fn own(&self, run: RunId) {
        if let Some(mut driven) = self.actors.get_mut(&run) {
            driven.owned = true;
        }
    }

    /// The runs that are ours.
    pub(crate) fn owned(&self) -> Vec<RunId> {
        self.actors.iter().filter(|driven| driven.owned).map(|driven| *driven.key()).collect()
    }

    /// Hands something to the actor of a run, if it is driven here. Never waits: when the mailbox is full, a task
    /// of its own waits for room, and asks the actor to read the record again if there was none in time. What stands
    /// in the record anyway is not kept for it: one such task a run asks for it to be read.
    pub(crate) fn tell(&self, run: RunId, messages: RunMessage) {
        let driven = self.actors.get(&run).map(|driven| (driven.actor.clone(), Arc::clone(&driven.behind)));
        let Some((actor, behind)) = driven else { return };
        let Err(SendError::Full(messages)) = actor.try_send(messages) else { return };
        if matches!(messages, RunMessage::Signal(_)) {
            if behind.swap(true, Ordering::AcqRel) {
                return;
            }
            tokio::spawn(async move {
                // The actor is gone if this fails; then there is nobody to tell.
                let _gone = actor.send(RunMessage::Reload).await;
                behind.store(false, Ordering::Release);
            });
        } else {
            tokio::spawn(async move {
                if actor.send(messages).timeout(MAILBOX_WAIT).await.is_err() {
                    tracing::warn!(%run, "the mailbox of a run stayed full; its record will be read again");
                    // The actor is gone if this fails; then there is nobody to tell.
                    let _gone = actor.send(RunMessage::Reload).await;
                }
            });
        }
    }

    /// Tells the actor of a run what an agent wrote, for its hash chain. Never waits: when the mailbox is full, the next such
    /// word says that one is missing.
    pub(crate) fn tell_covered(&self, run: RunId, entry: Covered) {
        let driven = self.actors.get(&run).map(|driven| (driven.actor.clone(), Arc::clone(&driven.missed)));
        let Some((actor, missed)) = driven else { return };
        let hashed = Hashed { entry, missed: missed.load(Ordering::Acquire) };
        if let Err(SendError::Full(_)) = actor.try_send(RunMessage::Covered(hashed)) {
            missed.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Lets all actors go: this process may not decide anything any more. None of them counts from now on, and what
    /// they still do is held back by the lease under which they began it.
    pub(crate) fn dismiss_all(&self) -> Vec<RunId> {
        let runs: Vec<RunId> = self.actors.iter().map(|driven| *driven.key()).collect();
        for run in &runs {
            if let Some((_, driven)) = self.actors.remove(run) {
                driven.actor.do_send(Dismiss);
            }
        }
        runs
    }

    /// Hands the same to all actors.
    pub(crate) fn tell_all(&self, messages: impl Fn() -> RunMessage) {
        // Telling looks an actor up itself, which must not happen while the map is gone through.
        let runs: Vec<RunId> = self.actors.iter().map(|actor| *actor.key()).collect();
        for run in runs {
            self.tell(run, messages());
        }
    }

    /// The actor of a run, started if there is none.
    pub(crate) fn open(context: &Arc<OrchestratorContext>, run: RunId) -> Addr<RunActor> {
        let start = || {
            let inside = Arc::clone(context);
            let actor = RunActor::start_in_arbiter(&context.arbiter, move |_| RunActor::new(inside, run));
            Driven { actor, owned: false, behind: Arc::default(), missed: Arc::default() }
        };
        match context.registry.actors.entry(run) {
            Entry::Occupied(mut known) => {
                if !known.get().actor.connected() {
                    known.insert(start());
                }
                known.get().actor.clone()
            }
            Entry::Vacant(free) => free.insert(start()).actor.clone(),
        }
    }

    /// Forgets an actor that stops, unless another has taken its place. Says whether it was forgotten.
    pub(crate) fn close(&self, run: RunId, actor: &Addr<RunActor>) -> bool {
        self.actors.remove_if(&run, |_, known| known.actor == *actor).is_some()
    }
}
