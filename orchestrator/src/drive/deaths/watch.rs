//! Who is connected, and who may be dead.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use muster_bus::{Instance, RegistryChange};
use muster_shared::ids::AgentId;

/// How long a process whose connection ended may take to make another.
const GRACE: Duration = Duration::from_millis(150);

/// The same where its side ended the connection, and nobody else's ended lately: that is how the end of a process looks. One
/// that lives and makes another at once is there before. Should it be late, the fence decides, and what it did meanwhile was
/// in vain.
const SHORT_GRACE: Duration = Duration::from_millis(40);

/// Reasons of the server where the other side ended the connection, in good order or not.
const ENDED_THERE: [&str; 2] = ["Client Closed", "Read Error"];

/// An agent that is taken for dead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) agent: AgentId,
    pub(super) reason: String,
    /// Whether its connection told, so that the registry does not know yet.
    pub(super) of_connection: bool,
}

impl Lost {
    fn of_connection(agent: AgentId, reason: String) -> Self {
        Self { agent, reason, of_connection: true }
    }
}

/// Somebody who may be dead.
#[derive(Debug)]
struct Suspect {
    since: Instant,
    /// When it is taken for dead.
    at: Instant,
    lost: Lost,
}

/// Who is connected, and who may be dead. Knows of no clock: the time is given.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The connections of each process, as far as they were told of.
    connected: HashMap<AgentId, HashSet<Instance>>,
    suspects: HashMap<AgentId, Suspect>,
    /// Whose connection ended last, and when.
    ended: Option<(AgentId, Instant)>,
    /// Those that were lost and that the registry is about to forget for it.
    forgotten: HashSet<AgentId>,
    /// Connections that the last roll did not name although they had been told of.
    unnamed: HashSet<Instance>,
    /// Agents that the last roll did not name, and that gave no sign of life since.
    absent: HashSet<AgentId>,
    /// Agents that were lost by the roll.
    rolled: HashSet<AgentId>,
    /// Agents that live without a connection of their name: the roll tells nothing of them.
    nameless: HashSet<AgentId>,
    /// How long a process that the registry forgot may take to enter itself again, as after an outage of the bus.
    heartbeat: Duration,
}

impl Watch {
    pub(super) fn new(heartbeat: Duration) -> Self {
        Self { heartbeat, ..Self::default() }
    }

    /// A connection was made.
    pub(super) fn came(&mut self, agent: AgentId, instance: Instance) {
        self.suspects.remove(&agent);
        self.forgotten.remove(&agent);
        self.absent.remove(&agent);
        self.rolled.remove(&agent);
        self.nameless.remove(&agent);
        self.connected.entry(agent).or_default().insert(instance);
    }

    /// A connection ended. Only agents that are `known` can be lost.
    pub(super) fn went(
        &mut self,
        agent: AgentId,
        instance: &Instance,
        reason: &str,
        known: bool,
        now: Instant,
    ) {
        if let Some(others) = self.connected.get_mut(&agent) {
            others.remove(instance);
            if !others.is_empty() {
                return;
            }
            self.connected.remove(&agent);
        }
        if known {
            let grace = self.grace(&agent, reason, now);
            let lost = Lost::of_connection(agent, format!("its connection ended ({reason})"));
            self.suspect(lost, now, grace);
        }
    }

    /// How long somebody may take whose connection ended. Where several end at the same time it is the server or the way to
    /// it rather than all of them, and they may all take their time.
    fn grace(&mut self, agent: &AgentId, reason: &str, now: Instant) -> Duration {
        let before = self.ended.replace((agent.clone(), now));
        let is_alone =
            before.is_none_or(|(other, at)| other == *agent || now.saturating_duration_since(at) > GRACE);
        if is_alone && ENDED_THERE.contains(&reason) {
            return SHORT_GRACE;
        }
        if !is_alone {
            for suspect in self.suspects.values_mut().filter(|suspect| suspect.lost.of_connection) {
                suspect.at = suspect.at.max(suspect.since + GRACE);
            }
        }
        GRACE
    }

    /// Takes note of all connections there are, and of the `agents` that should be among them. What two rolls in a row
    /// do not name is gone: a single one may be older than what was told meanwhile, or lack a server's answer.
    pub(super) fn roll(&mut self, here: Vec<(AgentId, Instance)>, agents: Vec<AgentId>, now: Instant) {
        let named: HashSet<&Instance> = here.iter().map(|(_, instance)| instance).collect();
        let unnamed = self.connected.values().flatten().filter(|instance| !named.contains(instance));
        let unnamed: HashSet<Instance> = unnamed.cloned().collect();
        self.connected.retain(|_, instances| {
            instances.retain(|instance| !unnamed.contains(instance) || !self.unnamed.contains(instance));
            !instances.is_empty()
        });
        self.unnamed = unnamed;
        let before = std::mem::take(&mut self.absent);
        for (agent, instance) in here {
            self.rolled.remove(&agent);
            self.nameless.remove(&agent);
            self.connected.entry(agent).or_default().insert(instance);
        }
        self.nameless.retain(|agent| agents.contains(agent));
        for agent in agents {
            let is_here = self
                .connected
                .get(&agent)
                .is_some_and(|all| all.iter().any(|one| !self.unnamed.contains(one)));
            if is_here || self.nameless.contains(&agent) {
                continue;
            }
            if before.contains(&agent) {
                self.connected.remove(&agent);
                self.rolled.insert(agent.clone());
                let lost = Lost::of_connection(agent, "it has no connection".to_owned());
                self.suspect(lost, now, Duration::ZERO);
            } else {
                self.absent.insert(agent);
            }
        }
    }

    fn suspect(&mut self, lost: Lost, since: Instant, grace: Duration) {
        self.suspects.insert(lost.agent.clone(), Suspect { since, at: since + grace, lost });
    }

    /// Takes note of what the registry says. Whoever is connected lives, whatever the registry says.
    pub(super) fn registry_changed(&mut self, change: &RegistryChange, now: Instant) {
        match change {
            RegistryChange::Joined(profile) | RegistryChange::Changed(profile) => {
                self.suspects.retain(|agent, suspect| *agent != profile.agent || suspect.lost.of_connection);
                let has_none = profile.by_gateway && !self.connected.contains_key(&profile.agent);
                if self.rolled.remove(&profile.agent) || has_none {
                    self.nameless.insert(profile.agent.clone());
                }
                if matches!(change, RegistryChange::Changed(_)) {
                    self.absent.remove(&profile.agent);
                }
            }
            RegistryChange::Left(agent)
                if self.forgotten.remove(agent) || self.connected.contains_key(agent) => {}
            RegistryChange::Left(agent) => {
                let reason = "it left the registry".to_owned();
                let lost = Lost { agent: agent.clone(), reason, of_connection: false };
                let at = now + self.heartbeat;
                self.suspects.entry(agent.clone()).or_insert(Suspect { since: now, at, lost });
            }
        }
    }

    /// When the next suspect is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.suspects.values().map(|suspect| suspect.at).min()
    }

    /// Those who are lost by now.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Lost> {
        let due = self.suspects.extract_if(|_, suspect| suspect.at <= now);
        let due: Vec<Lost> = due.map(|(_, suspect)| suspect.lost).collect();
        self.forgotten.extend(due.iter().filter(|lost| lost.of_connection).map(|lost| lost.agent.clone()));
        due
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
