//! Which orchestrators are at work, and who takes over what another one left. Pure: it is told of changes and asked.
//!
//! Time is that of the broker's stamps only, which come in one order to everybody. Each orchestrator sees its own
//! renewals among the others', so whoever has not renewed within the time of a lease has lapsed, and a watch that
//! stands still makes nobody lapse.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use muster_bus::{LeaseChange, SeenLease};
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::time::Millis;
use sha2::{Digest, Sha256};

/// The leases of all orchestrators, as far as they were seen.
#[derive(Debug)]
pub(crate) struct Sessions {
    me: AgentId,
    ttl: Duration,
    newest: Millis,
    known: BTreeMap<String, Known>,
}

#[derive(Debug)]
struct Known {
    lease: SeenLease,
    /// Whether the process was said to be gone, and has not renewed since.
    lost: bool,
}

impl Sessions {
    pub(crate) const fn new(me: AgentId, ttl: Duration) -> Self {
        Self { me, ttl, newest: Millis(0), known: BTreeMap::new() }
    }

    /// Takes note of a change.
    pub(crate) fn take(&mut self, change: LeaseChange) {
        match change {
            LeaseChange::Held(lease) => {
                self.newest = self.newest.max(lease.at);
                self.known.insert(lease.key.clone(), Known { lease, lost: false });
            }
            LeaseChange::Gone { key } => drop(self.known.remove(&key)),
        }
    }

    /// Takes note that a process is gone, as others have seen it.
    pub(crate) fn lost(&mut self, agent: &AgentId) {
        for known in self.known.values_mut().filter(|known| known.lease.holder == *agent) {
            known.lost = true;
        }
    }

    /// Whether a process has a lease that holds. This process knows of itself better than it can see here.
    pub(crate) fn is_live(&self, agent: &AgentId) -> bool {
        *agent == self.me || self.live().any(|lease| lease.holder == *agent)
    }

    /// The other processes that have a lease that holds.
    pub(crate) fn others(&self) -> Vec<AgentId> {
        self.live().filter(|lease| lease.holder != self.me).map(|lease| lease.holder.clone()).collect()
    }

    /// Whether a run whose newest decision is by `author`, and stands at `decided`, is left to its author.
    pub(crate) fn is_left_to(&self, author: &AgentId, run: RunId, decided: Seq) -> bool {
        let names = |lease: &SeenLease| lease.holder == *author && has(lease, run);
        // A process that lost its lease and began another one has the runs that the new one names.
        let has_lost = self.lapsed().any(names);
        // What it decided before it said last which runs it has, and does not name, it has let go of. Another may have
        // had the run since, and died before it decided anything.
        let let_go =
            self.live().any(|lease| lease.holder == *author && lease.note.through.covers(run, decided));
        *author != self.me && self.is_live(author) && (self.live().any(names) || !(has_lost || let_go))
    }

    /// Who says that it has the run.
    pub(crate) fn owner(&self, run: RunId) -> Option<&AgentId> {
        self.live().find(|lease| has(lease, run)).map(|lease| &lease.holder)
    }

    /// Leases that hold no more and are not removed yet.
    pub(crate) fn lapsed(&self) -> impl Iterator<Item = &SeenLease> {
        self.known.values().filter(|known| !self.holds(known)).map(|known| &known.lease)
    }

    /// Who is to take a run over: of all that have room the one that a hash of both names, so that everybody comes to the
    /// same answer and every orchestrator gets its share.
    pub(crate) fn successor(&self, run: RunId) -> Option<&AgentId> {
        let able = self.live().filter(|lease| lease.note.room > 0);
        able.map(|lease| &lease.holder).max_by_key(|holder| weight(&run.to_string(), holder))
    }

    /// Who sees to it that a lapsed lease is removed.
    pub(crate) fn reaper(&self, key: &str) -> Option<&AgentId> {
        self.live().map(|lease| &lease.holder).max_by_key(|holder| weight(key, holder))
    }

    /// Another orchestrator that takes new runs, the one with the most room.
    pub(crate) fn with_room(&self) -> Option<&AgentId> {
        let others = self.live().filter(|lease| lease.holder != self.me && lease.note.room > 0);
        others.max_by_key(|lease| lease.note.room).map(|lease| &lease.holder)
    }

    /// Another orchestrator to which a new run of this domain rather belongs than to this one, which is of the domains
    /// `own`: one of the domain, else one of none. Of several, the one with the most room.
    pub(crate) fn better_for(&self, domain: Option<&str>, own: &[String]) -> Option<&AgentId> {
        let others = self.live().filter(|lease| lease.holder != self.me && lease.note.room > 0);
        let better = others.filter(|lease| fit(&lease.note.domains, domain) < fit(own, domain));
        let best = better.min_by_key(|lease| (fit(&lease.note.domains, domain), Reverse(lease.note.room)));
        best.map(|lease| &lease.holder)
    }

    fn live(&self) -> impl Iterator<Item = &SeenLease> {
        self.known.values().filter(|known| self.holds(known)).map(|known| &known.lease)
    }

    fn holds(&self, known: &Known) -> bool {
        let lease = &known.lease;
        let newer = |other: &&Known| other.lease.holder == lease.holder && other.lease.epoch > lease.epoch;
        !known.lost
            && !lease.note.given_up
            && self.newest.since(lease.at) <= self.ttl
            && !self.known.values().any(|other| newer(&other))
    }
}

/// How well a run of a domain fits whoever is of these domains. The better comes first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// It is what they are there for.
    Own,
    /// They see to whatever nobody else is there for.
    Any,
    /// They are there for others.
    Other,
}

fn fit(domains: &[String], domain: Option<&str>) -> Fit {
    match domain {
        Some(domain) if domains.iter().any(|own| own == domain) => Fit::Own,
        Some(_) if domains.is_empty() => Fit::Any,
        None if domains.is_empty() => Fit::Own,
        Some(_) | None => Fit::Other,
    }
}

fn has(lease: &SeenLease, run: RunId) -> bool {
    lease.note.runs.contains(&run)
}

/// Rendezvous hashing: each holder's weight depends on it and the key alone, so when one comes or goes nothing moves
/// between the others.
fn weight(key: &str, holder: &AgentId) -> u64 {
    let digest = Sha256::new().chain_update(key).chain_update([0]).chain_update(holder.as_str()).finalize();
    digest.iter().take(8).fold(0, |weight, byte| weight << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_bus::{LeaseNote, Places};
    use uuid::Uuid;

    const TTL: Duration = Duration::from_secs(2);

    fn run(n: u128) -> RunId {
        RunId::from_uuid(Uuid::from_u128(n))
    }

    fn agent(n: u32) -> AgentId {
        AgentId::new("orchestrator", n)
    }

    fn lease(holder: u32, epoch: u64, at: u64, runs: &[RunId]) -> SeenLease {
        let note = LeaseNote {
            room: 10,
            runs: runs.to_vec(),
            through: Places::default(),
            domains: Vec::new(),
            left_alone: Vec::new(),
            given_up: false,
        };
        let (key, holder) = (format!("{holder}.{epoch}"), agent(holder));
        SeenLease { key, holder, epoch: Seq(epoch), revision: Seq(at), at: Millis(at), note }
    }

    fn sessions(leases: impl IntoIterator<Item = SeenLease>) -> Sessions {
        let mut sessions = Sessions::new(agent(1), TTL);
        leases.into_iter().for_each(|lease| sessions.take(LeaseChange::Held(lease)));
        sessions
    }

    fn lapsed(sessions: &Sessions) -> Vec<&str> {
        sessions.lapsed().map(|lease| lease.key.as_str()).collect()
    }

    #[test]
    fn a_lease_lapses_by_the_stamps_of_the_others_renewals() {
        let mut sessions = sessions([lease(1, 1, 1000, &[]), lease(2, 2, 1000, &[run(7)])]);
        assert!(lapsed(&sessions).is_empty());
        assert!(sessions.is_left_to(&agent(2), run(7), Seq(9)));
        sessions.take(LeaseChange::Held(lease(1, 1, 3000, &[])));
        assert!(sessions.is_live(&agent(2)), "just within its time");
        sessions.take(LeaseChange::Held(lease(1, 1, 3001, &[])));
        assert_eq!(lapsed(&sessions), ["2.2"]);
        assert!(!sessions.is_left_to(&agent(2), run(7), Seq(9)));
        sessions.take(LeaseChange::Held(lease(2, 2, 3100, &[run(7)])));
        assert!(sessions.is_live(&agent(2)), "it was only late");
        sessions.take(LeaseChange::Gone { key: "2.2".into() });
        assert!(!sessions.is_live(&agent(2)) && lapsed(&sessions).is_empty());
    }

    #[test]
    fn who_is_said_to_be_gone_or_gives_up_is_waited_for_no_longer() {
        let mut sessions = sessions([lease(1, 1, 1000, &[]), lease(2, 2, 1000, &[run(7)])]);
        sessions.lost(&agent(2));
        assert_eq!(lapsed(&sessions), ["2.2"]);
        sessions.take(LeaseChange::Held(lease(2, 2, 1100, &[run(7)])));
        assert!(lapsed(&sessions).is_empty(), "it is there all the same");
        let mut last = lease(2, 2, 1200, &[run(7)]);
        last.note.given_up = true;
        sessions.take(LeaseChange::Held(last));
        assert_eq!(lapsed(&sessions), ["2.2"]);
    }

    #[test]
    fn who_begins_again_has_only_what_it_took_up_again() {
        let mut sessions = sessions([lease(1, 1, 1000, &[]), lease(2, 2, 1000, &[run(7), run(8)])]);
        sessions.take(LeaseChange::Held(lease(2, 5, 1300, &[run(8)])));
        assert_eq!(lapsed(&sessions), ["2.2"]);
        assert!(!sessions.is_left_to(&agent(2), run(7), Seq(9)));
        assert!(sessions.is_left_to(&agent(2), run(8), Seq(9)));
        assert!(sessions.is_left_to(&agent(2), run(9), Seq(9)), "a run of which nothing is known yet");
    }

    /// A process stood still and lost its run to another, which died before it decided anything.
    #[test]
    fn what_a_process_decided_and_names_no_more_is_not_left_to_it() {
        let mut sessions = sessions([lease(1, 1, 1000, &[]), lease(2, 2, 1000, &[])]);
        assert!(sessions.is_left_to(&agent(2), run(7), Seq(9)), "decided after its lease was renewed");
        let mut later = lease(2, 2, 1100, &[run(8)]);
        later.note.through = Seq(9).into();
        sessions.take(LeaseChange::Held(later.clone()));
        assert!(!sessions.is_left_to(&agent(2), run(7), Seq(9)));
        assert!(sessions.is_left_to(&agent(2), run(8), Seq(9)));
        assert!(sessions.is_left_to(&agent(2), run(7), Seq(10)), "it took it over just now");
    }

    #[test]
    fn every_run_has_one_heir_and_all_get_their_share() {
        let sessions = sessions((1..=4).map(|n| lease(n, n.into(), 1000, &[])));
        let mut shares: BTreeMap<AgentId, u32> = BTreeMap::new();
        for n in 0..400 {
            *shares
                .entry(sessions.successor(run(n)).cloned().unwrap_or_else(AgentId::anonymous))
                .or_default() += 1;
        }
        assert_eq!(shares.len(), 4);
        assert!(shares.values().all(|share| (60..140).contains(share)), "{shares:?}");
    }

    #[test]
    fn the_heir_has_room() {
        let mut full = lease(1, 1, 1000, &[]);
        full.note.room = 0;
        let sessions = sessions([full, lease(2, 2, 1000, &[])]);
        assert!((0..50).all(|n| sessions.successor(run(n)) == Some(&agent(2))));
    }

    #[test]
    fn a_new_run_belongs_to_whoever_is_of_its_domain() {
        let of = |holder: u32, room: u32, domains: &[&str]| {
            let mut lease = lease(holder, holder.into(), 1000, &[]);
            lease.note.room = room;
            lease.note.domains = domains.iter().map(|name| (*name).to_owned()).collect();
            lease
        };
        let all = || [of(1, 9, &[]), of(2, 9, &["law"]), of(3, 20, &["law", "tax"]), of(4, 0, &["tea"])];
        // The run's domain, our own domains, and who has it instead.
        let cases: [(Option<&str>, &[&str], Option<u32>); 8] = [
            (Some("law"), &[], Some(3)),
            (Some("tax"), &["law"], Some(3)),
            (Some("law"), &["law"], None),
            (Some("tea"), &[], None),
            (Some("art"), &[], None),
            (None, &[], None),
            (None, &["law"], Some(5)),
            (Some("art"), &["law"], Some(5)),
        ];
        for (domain, own, expected) in cases {
            let mut sessions = sessions(all());
            if expected == Some(5) {
                sessions.take(LeaseChange::Held(of(5, 1, &[])));
            }
            let own: Vec<String> = own.iter().map(|name| (*name).to_owned()).collect();
            let found = sessions.better_for(domain, &own).cloned();
            assert_eq!(found, expected.map(agent), "{domain:?} {own:?}");
        }
    }
}
