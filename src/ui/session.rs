//! Who is logged in: sessions, and addresses that log somebody in once. Pure but for the randomness of names: the time comes in.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use muster_bus::Signatures;
use muster_bus::credentials::DashboardRole;
use muster_shared::ids::AgentId;
use muster_shared::sync::lock;
use muster_shared::time::Millis;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::app::user;

/// Most addresses that wait to be opened.
const MOST_LINKS: usize = 32;

/// Failed log-ins in a minute from which on further ones are refused for the rest of it: a token is too long to be guessed,
/// and nobody needs to try.
const MOST_FAILED: u32 = 30;
const MINUTE: Duration = Duration::from_secs(60);

/// Somebody who is logged in.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    /// What he is called, on the bus too.
    pub(crate) name: AgentId,
    /// What he may do.
    pub(crate) role: DashboardRole,
    /// How he is known.
    pub(crate) by: KnownBy,
}

impl Person {
    /// Name of the person as the author of goals and requests.
    pub(crate) fn author(&self) -> String {
        match &self.by {
            KnownBy::Link => user(),
            KnownBy::Token { .. } => self.name.to_string(),
            KnownBy::Proxy { user, .. } => user.clone(),
        }
    }

    /// Whether the person started the dashboard.
    pub(crate) const fn is_owner(&self) -> bool {
        matches!(self.by, KnownBy::Link)
    }
}

/// How somebody is known, and in whose name what he does is recorded.
#[derive(Debug, Clone)]
pub(crate) enum KnownBy {
    /// He opened an address that the dashboard printed: he is whoever started it.
    Link,
    /// He has a token, or credentials: he signs himself.
    Token {
        /// Signs in his name.
        signatures: Signatures,
        /// By which it is seen whether he was revoked since.
        key: String,
        /// Until when it counts.
        until: Option<Millis>,
    },
    /// A proxy vouches for him. Where the fleet's keys are here, he has credentials for as long as he is logged in.
    Proxy {
        /// What the proxy calls him.
        user: String,
        /// Signs in his name.
        signatures: Option<Signatures>,
    },
}

/// A session.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    /// Whose.
    pub(crate) person: Arc<Person>,
    /// What a request that does something has to bring in a header.
    pub(crate) csrf: String,
}

struct Kept {
    session: Session,
    seen: Instant,
}

/// All that are there.
pub(crate) struct Sessions {
    inner: Mutex<Inner>,
    most: usize,
    idle: Duration,
    login: Duration,
}

#[derive(Default)]
struct Inner {
    /// By a hash of the cookie: what is compared tells nothing by the time that it takes.
    kept: BTreeMap<[u8; 32], Kept>,
    /// Addresses that were printed, by a hash of their tokens, with the role and until when they can be opened.
    links: BTreeMap<[u8; 32], (DashboardRole, Instant)>,
    failed: PeriodCount,
}

/// A name that nobody guesses: 256 bits, in hexadecimal.
pub(crate) fn unguessable() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

impl Sessions {
    /// None yet; at most so many, each for so long without being used. Addresses can be opened for `login`.
    pub(crate) fn new(most: usize, idle: Duration, login: Duration) -> Self {
        Self { inner: Mutex::default(), most: most.max(1), idle, login }
    }

    /// A token that logs somebody in as this role, once.
    pub(crate) fn link(&self, role: DashboardRole, now: Instant) -> String {
        let token = unguessable();
        let mut inner = self.inner();
        inner.links.retain(|_, (_, until)| *until > now);
        if inner.links.len() >= MOST_LINKS
            && let Some(oldest) = inner.links.iter().min_by_key(|(_, (_, until))| *until).map(|(key, _)| *key)
        {
            inner.links.remove(&oldest);
        }
        inner.links.insert(hash(&token), (role, now + self.login));
        token
    }

    /// The role that a token of an address is for, which is used up by that.
    pub(crate) fn open_link(&self, token: &str, now: Instant) -> Option<DashboardRole> {
        let (role, until) = self.inner().links.remove(&hash(token))?;
        (until > now).then_some(role)
    }

    /// Counts a log-in that failed; returns true if too many did in this minute.
    pub(crate) fn fails_too_often(&self, now: Instant) -> bool {
        self.inner().failed.one_more(now, MINUTE, MOST_FAILED).is_err()
    }

    /// Logs somebody in; gives the cookie.
    pub(crate) fn begin(&self, person: Person, now: Instant) -> (String, Session) {
        let cookie = unguessable();
        let session = Session { person: Arc::new(person), csrf: unguessable() };
        let mut inner = self.inner();
        self.drop_idle(&mut inner, now);
        while inner.kept.len() >= self.most {
            // Those of the same person go first, and those of the owner last.
            let order = |(_, kept): &(&[u8; 32], &Kept)| {
                let person = &kept.session.person;
                (person.is_owner(), person.name != session.person.name, kept.seen)
            };
            let Some(oldest) = inner.kept.iter().min_by_key(order).map(|(key, _)| *key) else { break };
            inner.kept.remove(&oldest);
        }
        inner.kept.insert(hash(&cookie), Kept { session: session.clone(), seen: now });
        (cookie, session)
    }

    /// The session of a cookie, which is used by that.
    pub(crate) fn of(&self, cookie: &str, now: Instant) -> Option<Session> {
        let mut inner = self.inner();
        self.drop_idle(&mut inner, now);
        let kept = inner.kept.get_mut(&hash(cookie))?;
        kept.seen = now;
        Some(kept.session.clone())
    }

    /// Logs somebody out.
    pub(crate) fn end(&self, cookie: &str) {
        self.inner().kept.remove(&hash(cookie));
    }

    fn drop_idle(&self, inner: &mut Inner, now: Instant) {
        inner.kept.retain(|_, kept| now.duration_since(kept.seen) < self.idle);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Every change of it is whole.
        lock(&self.inner)
    }
}

/// Number of events in a period.
#[derive(Debug, Default)]
pub(crate) struct PeriodCount {
    since: Option<Instant>,
    count: u32,
}

impl PeriodCount {
    /// Number that is left of `most` in this period after one more.
    pub(crate) fn one_more(&mut self, now: Instant, period: Duration, most: u32) -> Result<u32, ()> {
        if self.since.is_none_or(|since| now.duration_since(since) >= period) {
            *self = Self { since: Some(now), count: 0 };
        }
        if self.count >= most {
            return Err(());
        }
        self.count += 1;
        Ok(most - self.count)
    }
}

/// Whether a header has what the session was given. Compared by hashes: how long it takes tells nothing.
pub(crate) fn is_same(given: &str, wanted: &str) -> bool {
    hash(given) == hash(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn person(name: &str, role: DashboardRole) -> Person {
        Person { name: name.parse().unwrap(), role, by: KnownBy::Link }
    }

    #[test]
    fn a_session_lasts_while_it_is_used() {
        let sessions = Sessions::new(10, SECOND * 10, SECOND);
        let now = Instant::now();
        let (cookie, begun) = sessions.begin(person("ann", DashboardRole::Viewer), now);
        let found = sessions.of(&cookie, now + SECOND * 9).unwrap();
        assert_eq!((found.person.name.as_str(), found.csrf == begun.csrf), ("ann", true));
        assert!(sessions.of(&cookie, now + SECOND * 18).is_some(), "used in between");
        assert!(sessions.of(&cookie, now + SECOND * 28).is_none());
        let (cookie, _) = sessions.begin(person("ann", DashboardRole::Viewer), now);
        assert!(sessions.of("", now).is_none() && sessions.of(&cookie[1..], now).is_none());
        sessions.end(&cookie);
        assert!(sessions.of(&cookie, now).is_none());
    }

    #[test]
    fn whoever_was_idle_longest_gives_way() {
        let sessions = Sessions::new(2, SECOND * 100, SECOND);
        let now = Instant::now();
        let log_in =
            |name: &str, at: u32| sessions.begin(person(name, DashboardRole::Viewer), now + SECOND * at).0;
        let (ann, bob) = (log_in("ann", 0), log_in("bob", 1));
        assert!(sessions.of(&ann, now + SECOND * 2).is_some());
        let eve = log_in("eve", 3);
        let there = [&ann, &bob, &eve].map(|cookie| sessions.of(cookie, now + SECOND * 4).is_some());
        assert_eq!(there, [true, false, true]);
        // The owner stays logged in while a viewer starts one session after the other.
        let by = KnownBy::Proxy { user: "val".into(), signatures: None };
        let viewer = || Person { by: by.clone(), ..person("val", DashboardRole::Viewer) };
        let mut last = String::new();
        assert!(sessions.of(&eve, now + SECOND * 5).is_some());
        for at in 6..9 {
            last = sessions.begin(viewer(), now + SECOND * at).0;
        }
        let there = [&ann, &eve, &last].map(|cookie| sessions.of(cookie, now + SECOND * 9).is_some());
        assert_eq!(there, [false, true, true]);
    }

    #[test]
    fn an_address_logs_in_once_and_in_time() {
        let sessions = Sessions::new(2, SECOND, SECOND * 5);
        let now = Instant::now();
        let token = sessions.link(DashboardRole::Auditor, now);
        assert_eq!(sessions.open_link("other", now), None);
        assert_eq!(sessions.open_link(&token, now + SECOND), Some(DashboardRole::Auditor));
        assert_eq!(sessions.open_link(&token, now + SECOND), None, "used up");
        let late = sessions.link(DashboardRole::Admin, now);
        assert_eq!(sessions.open_link(&late, now + SECOND * 5), None);
        let first = sessions.link(DashboardRole::Admin, now);
        for n in 1..=u32::try_from(MOST_LINKS).unwrap() {
            sessions.link(DashboardRole::Admin, now + Duration::from_millis(n.into()));
        }
        assert_eq!(sessions.open_link(&first, now + SECOND), None, "the oldest gives way");
    }

    #[test]
    fn who_fails_too_often_waits_for_the_next_minute() {
        let (mut count, now) = (PeriodCount::default(), Instant::now());
        assert_eq!([(); 3].map(|()| count.one_more(now, MINUTE, 2)), [Ok(1), Ok(0), Err(())]);
        assert_eq!(count.one_more(now + MINUTE, MINUTE, 2), Ok(1));
        assert_eq!(PeriodCount::default().one_more(now, MINUTE, 0), Err(()));
    }

    #[test]
    fn names_are_long_and_never_the_same() {
        let (one, other) = (unguessable(), unguessable());
        assert!(one.len() == 64 && one != other);
        assert!(is_same(&one, &one.clone()) && !is_same(&one, &other) && !is_same("", &one));
    }
}
