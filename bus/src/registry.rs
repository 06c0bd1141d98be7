//! The registry: who is on the bus. An agent that stops saying so is forgotten.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::AgentId;
use muster_shared::time::Millis;
use muster_shared::wire::{Body, Heartbeat, Profile};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::backend::Message;
use crate::bus::Core;
use crate::error::BusError;
use crate::kv::{Bucket, KvEntry};
use crate::seal::{About, open_inline};
use crate::subject::{Subject, is_token};
use crate::topology::AGENTS;

const BUCKET: Bucket = Bucket(AGENTS);

/// Changes of load are told at most this often: they are for people, nothing is decided by them.
const LOAD_PAUSE: Duration = Duration::from_secs(2);

/// Who is on the bus.
#[derive(Clone)]
pub struct Registry {
    core: Arc<Core>,
}

/// A change in the registry.
#[derive(Debug, Clone, PartialEq)]
pub enum RegistryChange {
    /// An agent came (or was there when watching began).
    Joined(Profile),
    /// What an agent says of itself changed.
    Changed(Profile),
    /// An agent left, or was not heard of any more.
    Left(AgentId),
}

impl Registry {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core) }
    }

    /// Enters a process into the registry and keeps it there while the handle lives.
    ///
    /// # Errors
    /// When the role is no name, or the bus fails.
    pub async fn announce(&self, mut profile: Profile) -> Result<Announced, BusError> {
        if !is_token(&profile.role) {
            let name = profile.role.chars().take(80).collect();
            return Err(BusError::BadName { name, rule: "a role is letters, digits, - and _" });
        }
        let agent = profile.agent.clone();
        let state = Arc::new(Load { busy: AtomicU32::new(profile.busy), changed: Notify::new() });
        profile.resident_bytes = resident_bytes(profile.pid).unwrap_or(profile.resident_bytes);
        self.core.enter(&profile).await?;
        let beat = tokio::spawn(beat(Arc::clone(&self.core), profile, Arc::clone(&state)));
        Ok(Announced { core: Arc::clone(&self.core), agent, state, beat })
    }

    /// Takes an agent out that is known to be gone. One that lives after all enters itself again with its next
    /// heartbeat.
    ///
    /// # Errors
    /// When the bus fails; the agent is then forgotten when its time is up.
    pub async fn forget(&self, agent: &AgentId) -> Result<(), BusError> {
        BUCKET.remove(&self.core, agent.as_str(), None).await?;
        Ok(())
    }

    /// Everybody on the bus. What cannot be read is left out.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn list(&self) -> Result<Vec<Profile>, BusError> {
        let entries = BUCKET.all(&self.core, "*").await?;
        let newest = entries.iter().map(|entry| entry.at).max().unwrap_or_default();
        let fresh =
            entries.iter().filter(|entry| !is_stale(entry.at, newest, self.core.settings.registry_ttl));
        Ok(fresh.filter_map(profile_in).collect())
    }

    /// Who comes, changes and leaves, beginning with everybody there is.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn watch(&self) -> Result<BoxStream<'static, RegistryChange>, BusError> {
        let entries = BUCKET.watch(&self.core, "*").await?;
        let mut known = Known { ttl: self.core.settings.registry_ttl, ..Known::default() };
        let changes = entries.flat_map(move |entry| futures::stream::iter(known.take(&entry)));
        Ok(changes.boxed())
    }
}

/// Whether an entry is older than the registry keeps any. A server that was killed can bring expired entries back
/// and forget that they expire; whoever lives has written since, so the stamps of the broker tell them apart.
fn is_stale(at: Millis, newest: Millis, ttl: Duration) -> bool {
    newest.since(at) > ttl * 2
}

/// The profiles that somebody who watches knows, each with when it was written.
#[derive(Default)]
struct Known {
    ttl: Duration,
    newest: Millis,
    profiles: BTreeMap<String, (Millis, Profile)>,
}

impl Known {
    /// What an entry means: for its own agent, and for those that should have written since.
    fn take(&mut self, entry: &KvEntry) -> Vec<RegistryChange> {
        self.newest = self.newest.max(entry.at);
        let mut changes: Vec<RegistryChange> = self.change(entry).into_iter().collect();
        let (newest, ttl) = (self.newest, self.ttl);
        let stale = self.profiles.extract_if(.., |_, (at, _)| is_stale(*at, newest, ttl));
        changes.extend(stale.map(|(_, (_, profile))| RegistryChange::Left(profile.agent)));
        changes
    }

    fn change(&mut self, entry: &KvEntry) -> Option<RegistryChange> {
        if entry.message.is_none() {
            return self.profiles.remove(&entry.key).map(|(_, profile)| RegistryChange::Left(profile.agent));
        }
        if is_stale(entry.at, self.newest, self.ttl) {
            return None;
        }
        let profile = profile_in(entry)?;
        match self.profiles.insert(entry.key.clone(), (entry.at, profile.clone())) {
            None => Some(RegistryChange::Joined(profile)),
            Some((_, before)) if before == profile => None,
            Some(_) => Some(RegistryChange::Changed(profile)),
        }
    }
}

fn profile_in(entry: &KvEntry) -> Option<Profile> {
    match open_inline(entry.message.as_ref()?).ok()?.body {
        Body::Profile(profile) if profile.agent.as_str() == entry.key => Some(profile),
        _ => None,
    }
}

/// A process's place in the registry. Dropped, it is forgotten when its time is up; better [`Announced::leave`].
pub struct Announced {
    core: Arc<Core>,
    agent: AgentId,
    state: Arc<Load>,
    beat: JoinHandle<()>,
}

struct Load {
    busy: AtomicU32,
    changed: Notify,
}

impl Announced {
    /// Says how many tasks are in hand.
    pub fn set_busy(&self, busy: u32) {
        if self.state.busy.swap(busy, Ordering::Relaxed) != busy {
            self.state.changed.notify_one();
        }
    }

    /// Leaves the registry.
    ///
    /// # Errors
    /// When the bus fails; the agent is then forgotten when its time is up.
    pub async fn leave(self) -> Result<(), BusError> {
        self.beat.abort();
        BUCKET.remove(&self.core, self.agent.as_str(), None).await?;
        Ok(())
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        self.beat.abort();
    }
}

impl std::fmt::Debug for Announced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Announced").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// Says that the agent lives, at every beat and when its load changed.
async fn beat(core: Arc<Core>, mut profile: Profile, state: Arc<Load>) {
    let pause = LOAD_PAUSE.min(core.settings.heartbeat);
    loop {
        tokio::select! {
            () = tokio::time::sleep(core.settings.heartbeat) => {}
            () = state.changed.notified() => tokio::time::sleep(pause).await,
        }
        profile.busy = state.busy.load(Ordering::Relaxed);
        if let Some(bytes) = resident_bytes(profile.pid) {
            profile.resident_bytes = bytes;
        }
        if let Err(error) = core.enter(&profile).await {
            tracing::warn!(%error, "a heartbeat is lost");
        }
    }
}

impl Core {
    /// Writes the profile into the registry and tells whoever listens.
    async fn enter(&self, profile: &Profile) -> Result<(), BusError> {
        let key = profile.agent.as_str();
        let encoding = self.settings.encoding;
        let entry = Body::Profile(profile.clone());
        let entry = self.seal(BUCKET.subject(key), entry, About::default(), encoding).await?;
        BUCKET.put(self, entry, Some(self.settings.registry_ttl), None).await?;
        self.backend.publish(self.heartbeat(profile).await?).await
    }

    async fn heartbeat(&self, profile: &Profile) -> Result<Message, BusError> {
        let Profile { agent, role, busy, slots, .. } = profile;
        let subject = Subject::Heartbeat(role.clone(), agent.clone()).to_string();
        let body = Body::Heartbeat(Heartbeat { agent: agent.clone(), busy: *busy, slots: *slots });
        Ok(self.seal(subject, body, About::default(), self.settings.encoding).await?)
    }
}

/// Resident memory of this process, where the system tells.
fn resident_bytes(pid: u32) -> Option<u64> {
    if pid != std::process::id() {
        return None;
    }
    let pages: u64 =
        std::fs::read_to_string("/proc/self/statm").ok()?.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
