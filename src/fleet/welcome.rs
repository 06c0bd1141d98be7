//! The desk for machines that join: answers what they ask, by the fleet's keys. Whether somebody may have what he asks for
//! is decided by the ledger of the keys; here it is read, answered and told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::StreamExt;
use muster_bus::credentials::{
    CredentialsError, Equipping, FleetKeys, HolderKind, Joining, Refusal, signing_key_file,
};
use muster_bus::hosts::{
    Answer, Asking, HostQuestion, JoinAnswer, JoinQuestion, Question, StartAnswer, StartQuestion,
};
use muster_bus::registry::host_name;
use muster_bus::{Bus, BusError, HostDoor};
use muster_shared::ids::AgentId;
use muster_shared::time::{Millis, millis};
use serde::Serialize;

use crate::app::{App, new_id, now};
use crate::render::figures;
use crate::settings;

/// Questions of one machine that are answered at once, if it asked nothing for long.
const BURST: u32 = 600;
/// How long it is until one more is answered.
const PACE_MS: u64 = 1_000;
/// How often it is looked whether keys were rotated.
const LOOK: Duration = Duration::from_millis(500);
/// Whose questions are counted at most: of more, those who asked longest ago are forgotten.
const MOST_COUNTED: usize = 1_024;
/// Longest text of others in the log.
const LINE: usize = 120;

/// What the desk of a fleet knows.
pub(crate) struct Welcome {
    keys: Arc<FleetKeys>,
    /// Settings that all processes of the fleet share, as far as they are not the usual ones.
    settings: BTreeMap<String, String>,
    paces: Paces,
}

impl Welcome {
    pub(crate) fn new(app: &App, keys: Arc<FleetKeys>) -> Self {
        let settings = settings::shared_by_all(&app.loaded.effective);
        Self { keys, settings, paces: Paces::default() }
    }

    /// Answers until it is dropped.
    pub(crate) async fn serve(mut self, bus: Bus) {
        let door = bus.hosts();
        let mut questions = match door.serve().await {
            Ok(questions) => questions,
            Err(error) => return tracing::error!(%error, "no other machine can join"),
        };
        let mut look = tokio::time::interval(LOOK);
        let mut keys = self.written();
        loop {
            tokio::select! {
                question = questions.next() => {
                    let Some(question) = question else { return };
                    if let Err(error) = self.take(&door, &question).await {
                        tracing::warn!(%error, "a machine gets no answer");
                    }
                }
                _ = look.tick() => {
                    let now = self.written();
                    if now != keys {
                        keys = now;
                        self.nudge(&door).await;
                    }
                }
            }
        }
    }

    /// When the keys were written that vouch for agents.
    fn written(&self) -> Option<SystemTime> {
        signing_key_file(self.keys.folder()).metadata().and_then(|found| found.modified()).ok()
    }

    /// Tells all machines that the keys are others: who waits for the next of his own accord knows new orchestrators late.
    async fn nudge(&self, door: &HostDoor) {
        let hosts = self.keys.issued().unwrap_or_default();
        for host in hosts.iter().filter(|one| one.kind == HolderKind::Host) {
            if let Err(error) = door.nudge(&host.name).await {
                tracing::warn!(%error, host = %host.name, "it is not told that keys were rotated");
            }
        }
    }

    async fn take(&mut self, door: &HostDoor, question: &Question) -> Result<(), BusError> {
        if !self.paces.may(question.asking.who(), now()) {
            let why: Answer<()> = Answer::Failed("it asks too often".to_owned());
            return door.answer(question, &why).await;
        }
        match &question.asking {
            Asking::Join(invitation) => {
                let answer =
                    read(question).map_or_else(Answer::Refused, |asked| self.join(invitation, &asked));
                told(invitation, &answer);
                door.answer(question, &answer).await
            }
            Asking::Start(host) => {
                let answer = match read(question) {
                    Ok(HostQuestion::Start(asked)) => self.start(host, &asked),
                    Ok(HostQuestion::Stay(key)) => self.stay(host, &key),
                    Err(why) => Answer::Refused(why),
                };
                told(host, &answer);
                door.answer(question, &answer).await
            }
        }
    }

    fn join(&self, invitation: &AgentId, asked: &JoinQuestion) -> Answer<JoinAnswer> {
        let here = host_name().unwrap_or_default();
        let joining = Joining { invitation, key: &asked.key, machine: &asked.machine, here: &here };
        answered(self.keys().and_then(|keys| keys.let_join(&joining)), |(joined, jwt)| {
            let theirs = figures::one_line(&asked.version, LINE);
            tracing::info!(host = %joined.host, %invitation, version = theirs, "a machine joined");
            let (host, roles, settings) = (joined.host, joined.roles, self.settings.clone());
            JoinAnswer { host, roles, jwt, settings, version: env!("CARGO_PKG_VERSION").to_owned() }
        })
    }

    fn start(&self, host: &AgentId, asked: &StartQuestion) -> Answer<StartAnswer> {
        let StartQuestion { key, role, member } = asked;
        let equipping = Equipping { host, key, role, member };
        let named = self.keys().and_then(|keys| {
            let fleet = keys.trust()?;
            let named = keys.let_start(&equipping, new_id(&role.to_string()))?;
            Ok(named.map(|(id, jwt)| StartAnswer { id, jwt, fleet: Some(fleet) }))
        });
        answered(named, |answer| answer)
    }

    fn stay(&self, host: &AgentId, key: &str) -> Answer<StartAnswer> {
        let stays = self.keys().and_then(|keys| keys.let_stay(host, key));
        answered(stays, |jwt| StartAnswer { id: host.clone(), jwt, fleet: None })
    }

    /// The keys as they are now: `muster keys rotate` puts others in their place.
    fn keys(&self) -> Result<FleetKeys, CredentialsError> {
        FleetKeys::open_or_make(self.keys.folder())
    }
}

fn read<T: serde::de::DeserializeOwned>(question: &Question) -> Result<T, String> {
    question.content().map_err(|why| figures::one_line(&format!("the question cannot be read: {why}"), LINE))
}

fn answered<T, A>(
    decided: Result<Result<T, Refusal>, CredentialsError>,
    granted: impl FnOnce(T) -> A,
) -> Answer<A> {
    match decided {
        Ok(Ok(given)) => Answer::Granted(granted(given)),
        Ok(Err(refusal)) => Answer::Refused(refusal.to_string()),
        Err(error) => {
            // Paths of this machine are nobody else's business.
            tracing::error!(%error, "the keys of the fleet cannot be used");
            Answer::Failed("the keys of the fleet cannot be used now; its log says why".to_owned())
        }
    }
}

fn told<T: Serialize>(who: &AgentId, answer: &Answer<T>) {
    if let Answer::Refused(why) = answer {
        tracing::warn!(%who, why, "a machine is refused");
    }
}

/// How often each may ask: whoever floods the desk is answered shortly, and nothing is read or written for him.
#[derive(Debug, Default)]
struct Paces {
    left: BTreeMap<AgentId, Pace>,
}

#[derive(Debug)]
struct Pace {
    left: u32,
    at: Millis,
}

impl Paces {
    /// Whether a question of somebody is seen to at a time.
    fn may(&mut self, who: &AgentId, now: Millis) -> bool {
        if self.left.len() >= MOST_COUNTED && !self.left.contains_key(who) {
            let oldest = self.left.iter().min_by_key(|(_, pace)| pace.at).map(|(name, _)| name.clone());
            oldest.map(|name| self.left.remove(&name));
        }
        let pace = self.left.entry(who.clone()).or_insert(Pace { left: BURST, at: now });
        let since = millis(now.since(pace.at));
        let more = since / PACE_MS;
        if more > 0 {
            pace.left = pace.left.saturating_add(u32::try_from(more).unwrap_or(u32::MAX)).min(BURST);
            pace.at = now;
        }
        let may = pace.left > 0;
        pace.left = pace.left.saturating_sub(1);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_floods_the_desk_is_answered_at_a_pace_and_others_as_before() {
        let (mut paces, mill, other) =
            (Paces::default(), "mill".parse::<AgentId>().unwrap(), "other".parse::<AgentId>().unwrap());
        let mut may = |who: &AgentId, at: u64| paces.may(who, Millis(at));
        assert_eq!((0..1000).filter(|_| may(&mill, 0)).count(), 600);
        assert!(may(&other, 0));
        assert!(!may(&mill, 999) && may(&mill, 1_000) && !may(&mill, 1_000));
        assert_eq!((0..10).filter(|_| may(&mill, 4_000)).count(), 3);
        for n in 0..2_000_u32 {
            may(&AgentId::new("guest", n), 5_000);
        }
        assert!(may(&other, 5_000));
        assert!(paces.left.len() <= MOST_COUNTED);
    }
}
