//! The registry: who is on the bus. An agent that stops saying so is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::flow::Presence;
use muster_shared::ids::AgentId;
use muster_shared::sync::lock;
use muster_shared::time::Millis;
use muster_shared::wire::{Body, ExcludedAgent, Heartbeat, Profile, SetAside};
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
    pub(crate) core: Arc<Core>,
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
    /// Enters a process into the registry and keeps it there while the handle lives.
    ///
    /// # Errors
    /// When the role is no name, or the bus fails.
    pub async fn announce(&self, mut profile: Profile) -> Result<Announced, BusError> {
        if !is_token(&profile.role) {
            let name = profile.role.chars().take(80).collect();
            return Err(BusError::BadName { name, rule: "a role is letters, digits, - and _" });
        }
        if let Some(why) = profile.implausible() {
            return Err(BusError::Other { what: "entering the registry".into(), reason: why });
        }
        if let Some(observer) = &self.core.observer {
            profile.metrics = observer.address();
        }
        let agent = profile.agent.clone();
        let state = Arc::new(Load {
            busy: AtomicU32::new(profile.busy),
            aside: Mutex::default(),
            tools: Mutex::default(),
            changed: Notify::new(),
            presence: OnceLock::new(),
        });
        profile.resident_bytes = resident_bytes(profile.pid).unwrap_or(profile.resident_bytes);
        self.core.enter(&profile).await?;
        let beat = tokio::spawn(beat(Arc::clone(&self.core), profile, Arc::clone(&state)));
        Ok(Announced { core: Arc::clone(&self.core), agent, state, beat })
    }

    /// Enters a process that does not do so itself. It is forgotten when its time is up, unless it is entered again.
    ///
    /// # Errors
    /// When it says of itself what cannot be meant, or the bus fails.
    pub async fn keep(&self, profile: &Profile) -> Result<(), BusError> {
        if let Some(why) = profile.implausible() {
            return Err(BusError::Other { what: "entering the registry".into(), reason: why });
        }
        self.core.enter(profile).await
    }

    /// What a process says of itself; nothing when it is not there.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn find(&self, agent: &AgentId) -> Result<Option<Profile>, BusError> {
        Ok(BUCKET.last(&self.core, agent.as_str()).await?.as_ref().and_then(profile_in))
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

    /// Everybody on the bus. What cannot be read, or cannot be meant, is left out.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn list(&self) -> Result<Vec<Profile>, BusError> {
        let entries = BUCKET.all(&self.core, "*").await?;
        let newest = entries.iter().map(|entry| entry.at).max().unwrap_or_default();
        let fresh =
            entries.iter().filter(|entry| !is_stale(entry.at, newest, self.core.settings.registry_ttl()));
        let profiles = fresh.filter_map(profile_in);
        Ok(profiles.filter(|profile| profile.implausible().is_none()).collect())
    }

    /// Who comes, changes and leaves, beginning with everybody there is.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn watch(&self) -> Result<BoxStream<'static, RegistryChange>, BusError> {
        let entries = BUCKET.watch(&self.core, "*").await?;
        let mut known = Known { ttl: self.core.settings.registry_ttl(), ..Known::default() };
        let changes = entries.flat_map(move |entry| futures::stream::iter(known.take(&entry)));
        Ok(changes.boxed())
    }
}

/// Whether an entry is older than the registry keeps any. That one has expired is told by nobody, and a server that was killed
/// can bring expired entries back and forget that they expire; whoever lives has written since, so the stamps of the broker
/// tell them apart.
fn is_stale(at: Millis, newest: Millis, ttl: Duration) -> bool {
    newest.since(at) > ttl + ttl / 4
}

/// The profiles that somebody who watches knows, each with when it was written.
#[derive(Default)]
struct Known {
    ttl: Duration,
    newest: Millis,
    profiles: BTreeMap<String, (Millis, Profile)>,
    /// The same by age: of thousands that beat, only those that are stale are looked at.
    by_age: BTreeSet<(Millis, String)>,
    /// Who was refused, and why: said once.
    refused: BTreeMap<String, String>,
}

/// Most agents of which is remembered that they were refused.
const MOST_REFUSED: usize = 1024;

impl Known {
    /// What an entry means: for its own agent, and for those that should have written since.
    fn take(&mut self, entry: &KvEntry) -> Vec<RegistryChange> {
        self.newest = self.newest.max(entry.at);
        let mut changes: Vec<RegistryChange> = self.change(entry).into_iter().collect();
        while let Some((at, _)) = self.by_age.first()
            && is_stale(*at, self.newest, self.ttl)
            && let Some((_, agent)) = self.by_age.pop_first()
        {
            let known = self.profiles.remove(&agent);
            changes.extend(known.map(|(_, profile)| RegistryChange::Left(profile.agent)));
        }
        changes
    }

    fn forget(&mut self, agent: &str) -> Option<Profile> {
        let (at, profile) = self.profiles.remove(agent)?;
        self.by_age.remove(&(at, agent.to_owned()));
        Some(profile)
    }

    /// Takes a profile in and gives the one that was known before.
    fn learn(&mut self, agent: &str, at: Millis, profile: Profile) -> Option<Profile> {
        let before = self.profiles.insert(agent.to_owned(), (at, profile));
        self.by_age.insert((at, agent.to_owned()));
        let (known_at, before) = before?;
        if known_at != at {
            self.by_age.remove(&(known_at, agent.to_owned()));
        }
        Some(before)
    }

    fn change(&mut self, entry: &KvEntry) -> Option<RegistryChange> {
        if entry.message.is_none() {
            return self.forget(&entry.key).map(|profile| RegistryChange::Left(profile.agent));
        }
        if is_stale(entry.at, self.newest, self.ttl) {
            return None;
        }
        let profile = profile_in(entry)?;
        if let Some(why) = profile.implausible() {
            self.refuse(&entry.key, why);
            // Whoever said something better of itself before is not taken at that either.
            return self.forget(&entry.key).map(|known| RegistryChange::Left(known.agent));
        }
        self.refused.remove(&entry.key);
        match self.learn(&entry.key, entry.at, profile.clone()) {
            None => Some(RegistryChange::Joined(profile)),
            Some(before) if before == profile => None,
            Some(_) => Some(RegistryChange::Changed(profile)),
        }
    }
}

impl Known {
    /// Says once why an agent does not count as there.
    fn refuse(&mut self, agent: &str, why: String) {
        if self.refused.get(agent) == Some(&why) {
            return;
        }
        tracing::warn!(
            agent,
            why,
            "an agent is refused: nothing is offered to it until it says something else of itself"
        );
        if self.refused.len() < MOST_REFUSED {
            self.refused.insert(agent.to_owned(), why);
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

/// Says how a process is.
type TellPresence = Box<dyn Fn(&mut Presence) + Send + Sync>;

struct Load {
    busy: AtomicU32,
    /// Runs that are left alone, how often that happened, and agents that get no tasks.
    aside: Mutex<(Vec<SetAside>, u64, Vec<ExcludedAgent>)>,
    /// The tools, where they are others than were told last.
    tools: Mutex<Option<Vec<String>>>,
    changed: Notify,
    presence: OnceLock<TellPresence>,
}

impl Announced {
    /// Says how many tasks are in hand.
    pub fn set_busy(&self, busy: u32) {
        if self.state.busy.swap(busy, Ordering::Relaxed) != busy {
            self.state.changed.notify_one();
        }
    }

    /// Reports the runs that are left alone, how often that happened, and the agents that get no tasks.
    pub fn set_aside(&self, runs: Vec<SetAside>, times: u64, excluded: Vec<ExcludedAgent>) {
        let aside = (runs, times, excluded);
        let mut told = lock(&self.state.aside);
        if *told != aside {
            *told = aside;
            self.state.changed.notify_one();
        }
    }

    /// Says which tools the process has now.
    pub fn set_tools(&self, mut tools: Vec<String>) {
        tools.truncate(Profile::MAX_TOOLS);
        *lock(&self.state.tools) = Some(tools);
        self.state.changed.notify_one();
    }

    /// Says how the process is whenever a heartbeat is told: no message more than these is sent for it. The first one
    /// who is to say it does.
    pub fn tell_with(&self, presence: impl Fn(&mut Presence) + Send + Sync + 'static) {
        let _said_already = self.state.presence.set(Box::new(presence));
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

/// Says that the agent lives, at every beat and when its load changed.
async fn beat(core: Arc<Core>, mut profile: Profile, state: Arc<Load>) {
    let pause = LOAD_PAUSE.min(core.settings.heartbeat);
    let mut told = Instant::now();
    loop {
        tokio::select! {
            () = tokio::time::sleep(core.settings.heartbeat) => {}
            // The first change after a while is told at once, those that follow it together.
            () = state.changed.notified() => tokio::time::sleep(pause.saturating_sub(told.elapsed())).await,
        }
        told = Instant::now();
        profile.busy = state.busy.load(Ordering::Relaxed);
        (profile.set_aside, profile.times_set_aside, profile.excluded) = lock(&state.aside).clone();
        if let Some(tools) = lock(&state.tools).take() {
            profile.tools = tools;
        }
        if let Some(tell) = state.presence.get() {
            tell(&mut profile.presence);
        }
        profile.busy = profile.in_hand();
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
        let encoding = crate::settings::ENCODING;
        let entry = Body::Profile(profile.clone());
        let entry = self.seal(BUCKET.subject(key), entry, About::default(), encoding).await?;
        // Nobody answers the heartbeat: sent first, it goes out together with the entry.
        self.backend.publish(self.heartbeat(profile).await?).await?;
        BUCKET.put(self, entry, Some(self.settings.registry_ttl()), None).await?;
        Ok(())
    }

    async fn heartbeat(&self, profile: &Profile) -> Result<Message, BusError> {
        let Profile { agent, role, slots, presence, .. } = profile;
        let subject = Subject::Heartbeat(role.clone(), agent.clone()).to_string();
        let body = Body::Heartbeat(Heartbeat {
            agent: agent.clone(),
            busy: profile.in_hand(),
            slots: *slots,
            states: presence.states.clone(),
        });
        Ok(self.seal(subject, body, About::default(), crate::settings::ENCODING).await?)
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

/// What this machine is called; nothing where it has no name. What one that joined is called in the fleet (`MUSTER_HOST`) comes
/// before what it is called by itself: two may be called the same.
#[must_use]
pub fn host_name() -> Option<String> {
    let told = std::env::var("MUSTER_HOST").ok();
    let told = told.or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    let name = told.or_else(|| std::env::var("HOSTNAME").ok())?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use muster_shared::ids::Seq;
    use serde_json::json;

    use super::*;
    use crate::backend::Headers;

    fn entry(slots: u64, at: u64) -> KvEntry {
        let profile = json!({ "agent": "worker-1", "role": "worker", "slots": slots });
        let envelope = json!({ "body": { "type": "profile", "content": profile } });
        let message = Message {
            subject: "$KV.AGENTS.worker-1".to_owned(),
            headers: Headers::default(),
            payload: serde_json::to_vec(&envelope).unwrap().into(),
        };
        KvEntry { key: "worker-1".to_owned(), revision: Seq(at), at: Millis(at), message: Some(message) }
    }

    #[test]
    fn who_claims_what_cannot_be_does_not_count_as_there() {
        let mut known = Known { ttl: Duration::from_secs(15), ..Known::default() };
        assert!(known.take(&entry(u64::from(u32::MAX), 1)).is_empty(), "4,294,967,295 slots");
        assert!(known.take(&entry(0, 2)).is_empty(), "no slots");
        assert!(known.refused["worker-1"].contains("0 slots"), "{:?}", known.refused);
        assert!(
            matches!(known.take(&entry(8, 3))[..], [RegistryChange::Joined(_)]),
            "it thinks better of it"
        );
        assert!(known.refused.is_empty());
        assert!(matches!(known.take(&entry(2_000, 4))[..], [RegistryChange::Left(_)]));
        assert!(known.take(&entry(2_000, 5)).is_empty(), "it is told once");
        assert!(known.by_age.is_empty());
    }

    #[test]
    fn only_those_that_are_stale_leave_and_nobody_is_kept_twice() {
        let mut known = Known { ttl: Duration::from_millis(100), ..Known::default() };
        let of = |agent: &str, at: u64| {
            let mut entry = entry(1, at);
            let message = entry.message.take().unwrap();
            let payload = String::from_utf8(message.payload.to_vec()).unwrap().replace("worker-1", agent);
            let message = Message { payload: payload.into(), ..message };
            KvEntry { key: agent.to_owned(), message: Some(message), ..entry }
        };
        for at in 0..50 {
            known.take(&of("worker-a", at));
            known.take(&of("worker-b", at / 2));
        }
        assert_eq!((known.profiles.len(), known.by_age.len()), (2, 2));
        assert_eq!(known.take(&of("worker-a", 149)), [], "the other is as old as may be");
        let left: AgentId = "worker-b".parse().unwrap();
        let changes = known.take(&of("worker-a", 150));
        assert_eq!(changes, [RegistryChange::Left(left)]);
        assert_eq!((known.profiles.len(), known.by_age.len()), (1, 1));
        assert!(known.take(&of("worker-b", 20)).is_empty(), "what is old is no news");
    }
}
