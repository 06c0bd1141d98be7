//! Who watches: what happens right now is said only where somebody listens.
//!
//! Whoever watches says so when it begins, when it is asked, and every few seconds. Who speaks asks once, when it is about
//! to speak for the first time, and speaks until the answers can have come.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use muster_shared::ids::RunId;
use muster_shared::sync::lock;
use tokio::task::AbortHandle;

use crate::backend::{Headers, Message};
use crate::bus::Core;
use crate::subject::Subject;

/// How often a watcher says that it watches.
const BEAT: Duration = Duration::from_secs(5);
/// For how long its word holds: two beats may be lost.
const HOLDS: Duration = Duration::from_secs(16);
/// How long answers may take to the question who watches. Until then it is taken that somebody does.
const ANSWERS: Duration = Duration::from_secs(1);
/// Pause before listening for watchers is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Most runs that are kept apart. With more of them, all are taken to be watched.
const MOST_RUNS: usize = 1_000;

/// What is watched: one run, or all.
type Watched = Option<RunId>;

/// What was heard of watchers.
#[derive(Debug, Default)]
struct Heard {
    /// When it was asked who watches; nothing while nobody listens for the answers.
    asked: Option<Instant>,
    /// Until when what is watched.
    until: BTreeMap<Watched, Instant>,
}

impl Heard {
    fn beat(&mut self, watched: Watched, now: Instant) {
        self.until.retain(|_, until| *until > now);
        let is_full = self.until.len() >= MOST_RUNS && !self.until.contains_key(&watched);
        self.until.insert(watched.filter(|_| !is_full), now + HOLDS);
    }

    fn is_watched(&self, run: RunId, now: Instant) -> bool {
        let holds = |watched: &Watched| self.until.get(watched).is_some_and(|until| *until > now);
        self.asked.is_none_or(|asked| now < asked + ANSWERS) || holds(&None) || holds(&Some(run))
    }
}

/// What one process knows of those who watch.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    heard: Mutex<Heard>,
    listener: Mutex<Option<AbortHandle>>,
}

impl Watchers {
    /// Whether anybody listens to what happens in a run, as far as is known. Begins to find out with the first question.
    pub(crate) fn is_watched(self: &Arc<Self>, run: RunId, core: &Core) -> bool {
        self.listen(core);
        self.heard(|heard| heard.is_watched(run, Instant::now()))
    }

    fn heard<T>(&self, of: impl FnOnce(&mut Heard) -> T) -> T {
        of(&mut lock(&self.heard))
    }

    /// Has a task listen for watchers, where none does. Outside a runtime nobody can.
    fn listen(self: &Arc<Self>, core: &Core) {
        let mut listener = lock(&self.listener);
        if listener.as_ref().is_some_and(|listener| !listener.is_finished()) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        self.heard(|heard| *heard = Heard::default());
        // Whoever listens must not keep alive what ends the listening.
        let backend = Core { live: crate::live::LiveSender::default(), ..core.clone() };
        *listener = Some(runtime.spawn(listen(backend, Arc::downgrade(self))).abort_handle());
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        let listener = self.listener.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = listener.take() {
            listener.abort();
        }
    }
}

async fn listen(core: Core, watchers: Weak<Watchers>) {
    loop {
        match core.backend.subscribe("watch.>").await {
            Ok(mut beats) => {
                tell(&core, &Subject::WhoWatches).await;
                let Some(asking) = watchers.upgrade() else { return };
                asking.heard(|heard| heard.asked = Some(Instant::now()));
                drop(asking);
                while let Some(beat) = beats.next().await {
                    let Some(watchers) = watchers.upgrade() else { return };
                    if let Ok(Subject::Watch(watched)) = Subject::parse(&beat.subject) {
                        watchers.heard(|heard| heard.beat(watched, Instant::now()));
                    }
                }
                let Some(watchers) = watchers.upgrade() else { return };
                watchers.heard(|heard| heard.asked = None);
            }
            Err(error) => tracing::debug!(%error, "it is not known who watches"),
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Says that something is watched, for as long as it is kept.
pub(crate) struct Watch(AbortHandle);

impl Watch {
    /// Begins to watch one run, or all. Those who speak hear of it before anything that is sent after this has returned.
    pub(crate) async fn begin(core: &Arc<Core>, run: Option<RunId>) -> Self {
        let questions = core.backend.subscribe(&Subject::WhoWatches.to_string()).await;
        let subject = Subject::Watch(run);
        tell(core, &subject).await;
        let core = Arc::clone(core);
        let keeps = async move {
            let mut questions = match questions {
                Ok(questions) => questions,
                Err(error) => {
                    tracing::debug!(%error, "questions who watches are not heard");
                    futures::stream::pending().boxed()
                }
            };
            loop {
                // What wakes it says no more than that it is time to say so again.
                let _asked = tokio::time::timeout(BEAT, questions.next()).await;
                tell(&core, &subject).await;
            }
        };
        Self(tokio::spawn(keeps).abort_handle())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn tell(core: &Core, subject: &Subject) {
    let message =
        Message { subject: subject.to_string(), headers: Headers::default(), payload: Bytes::new() };
    if let Err(error) = core.backend.publish(message).await {
        tracing::debug!(%error, %subject, "a word to or of watchers is lost");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn run(n: u128) -> RunId {
        RunId::from_uuid(Uuid::from_u128(n))
    }

    #[test]
    fn it_is_spoken_until_answers_can_have_come_and_then_to_watchers_only() {
        let begun = Instant::now();
        let mut heard = Heard::default();
        assert!(heard.is_watched(run(1), begun), "nobody listens for answers");
        heard.asked = Some(begun);
        assert!(heard.is_watched(run(1), begun + ANSWERS / 2));
        let after = begun + ANSWERS;
        assert!(!heard.is_watched(run(1), after));
        heard.beat(Some(run(1)), after);
        assert!(heard.is_watched(run(1), after) && !heard.is_watched(run(2), after));
        heard.beat(None, after);
        assert!(heard.is_watched(run(2), after));
        assert!(!heard.is_watched(run(1), after + HOLDS), "a word holds for a while only");
    }

    #[test]
    fn a_watcher_may_miss_two_beats() {
        let begun = Instant::now();
        let mut heard = Heard { asked: Some(begun), ..Heard::default() };
        heard.beat(Some(run(1)), begun);
        assert!(heard.is_watched(run(1), begun + 3 * BEAT));
    }

    #[test]
    fn no_number_of_watchers_fills_the_memory_or_goes_unheard() {
        let begun = Instant::now();
        let mut heard = Heard { asked: Some(begun), ..Heard::default() };
        for n in 0..10_000 {
            heard.beat(Some(run(n)), begun);
        }
        assert!(heard.until.len() <= MOST_RUNS + 1);
        assert!(heard.is_watched(run(9_999), begun + ANSWERS), "all are taken to be watched");
    }
}
