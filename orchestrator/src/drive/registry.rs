//! Which runs are driven here, and by which actor.

use std::sync::Arc;
use std::time::Duration;

use actix::dev::SendError;
use actix::{Actor, Addr};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use muster_shared::ids::RunId;

use super::office::Office;
use super::run_actor::{Mail, RunActor};

/// Longest wait for room in an actor's mailbox.
const MAILBOX_WAIT: Duration = Duration::from_secs(5);

/// The actors of runs, by run.
#[derive(Default)]
pub(crate) struct Registry {
    actors: DashMap<RunId, Addr<RunActor>>,
}

impl Registry {
    /// Number of runs that are driven here.
    pub(crate) fn len(&self) -> usize {
        self.actors.len()
    }

    /// Whether the run is driven here.
    pub(crate) fn has(&self, run: RunId) -> bool {
        self.actors.get(&run).is_some_and(|actor| actor.connected())
    }

    /// Hands something to the actor of a run, if it is driven here. Never waits: when the mailbox is full, a task
    /// of its own waits for room, and asks the actor to read the record again if there was none in time.
    pub(crate) fn tell(&self, run: RunId, mail: Mail) {
        let Some(actor) = self.actors.get(&run).map(|actor| actor.clone()) else { return };
        if let Err(SendError::Full(mail)) = actor.try_send(mail) {
            tokio::spawn(async move {
                if actor.send(mail).timeout(MAILBOX_WAIT).await.is_err() {
                    tracing::warn!(%run, "the mailbox of a run stayed full; its record will be read again");
                    // The actor is gone if this fails; then there is nobody to tell.
                    let _gone = actor.send(Mail::Reload).await;
                }
            });
        }
    }

    /// The actor of a run, started if there is none.
    pub(crate) fn open(office: &Arc<Office>, run: RunId) -> Addr<RunActor> {
        let start = || {
            let inside = Arc::clone(office);
            RunActor::start_in_arbiter(&office.arbiter, move |_| RunActor::new(inside, run))
        };
        match office.registry.actors.entry(run) {
            Entry::Occupied(mut known) => {
                if !known.get().connected() {
                    known.insert(start());
                }
                known.get().clone()
            }
            Entry::Vacant(free) => free.insert(start()).clone(),
        }
    }

    /// Forgets an actor that stops, unless another has taken its place.
    pub(crate) fn close(&self, run: RunId, actor: &Addr<RunActor>) {
        self.actors.remove_if(&run, |_, known| known == actor);
    }
}
