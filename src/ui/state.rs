//! What all requests share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use axum::http::{Method, StatusCode};
use muster_bus::credentials::Token;
use muster_bus::{Bus, Signatures};
use muster_shared::ids::AgentId;
use muster_shared::sync::lock;

use super::briefs::Briefs;
use super::hub::{Hub, Way};
use super::records::Records;
use super::reply::Problem;
use super::session::{KnownBy, PeriodCount, Person, Sessions};
use crate::app::App;
use crate::settings::UiSettings;

/// For how long an address that was printed can be opened, once. Time to copy it to another machine.
const LOGIN_TIME: Duration = Duration::from_secs(600);

/// Most sessions at once; the session with the longest idle time is evicted. A dashboard serves one team.
const MAX_SESSIONS: usize = 100;

/// Most pages with live updates at once; further ones are refused. Each of them reads the fleet separately.
const MAX_STREAMS: usize = 32;

/// Most requests in progress at once; further ones are refused. With the pages, persons other than the owner take fewer connections
/// than there are.
const MAX_REQUESTS: usize = 128;

/// Longest time for an answer. Asking a model in the playground, and sending documents, may take ten times as
/// long. What takes longer has stopped, as a browser would say.
const REQUEST_TIME: Duration = Duration::from_secs(30);

/// Most model calls from the playground in an hour, of all users: one a minute. It bounds the cost of a loop.
const PLAYGROUND_CALLS: u32 = 60;

const HOUR: Duration = Duration::from_secs(3_600);
/// How much longer something may take that asks a model, or sends documents.
const LONG: u32 = 10;

/// What all requests share.
pub(crate) struct Ui {
    pub(crate) app: App,
    pub(crate) settings: UiSettings,
    /// Where it listens.
    pub(crate) port: u16,
    pub(crate) sessions: Sessions,
    pub(crate) hub: Hub,
    pub(crate) records: Records,
    pub(crate) briefs: Briefs,
    /// One for each page that is kept up to date.
    pub(crate) streams: Quota,
    /// One for each request in progress.
    pub(crate) requests: Quota,
    asked: Mutex<PeriodCount>,
    /// Credentials that the dashboard issued to proxy users, by name.
    pub(crate) tokens: Mutex<BTreeMap<AgentId, Token>>,
}

impl Ui {
    /// For a dashboard that listens on this port.
    pub(crate) fn new(app: &App, port: u16) -> Self {
        let settings = app.settings().ui.clone();
        Self {
            app: app.clone(),
            port,
            sessions: Sessions::new(MAX_SESSIONS, crate::settings::SESSION_TIME, LOGIN_TIME),
            hub: Hub::begin(app),
            records: Records::default(),
            briefs: Briefs::default(),
            streams: Quota::new(MAX_STREAMS),
            requests: Quota::new(MAX_REQUESTS),
            asked: Mutex::default(),
            tokens: Mutex::default(),
            settings,
        }
    }

    /// The bus of the fleet.
    ///
    /// # Errors
    /// When there is none to be reached.
    pub(crate) fn bus(&self) -> Result<Arc<Bus>, Problem> {
        match self.hub.way() {
            Way::Open(bus) => Ok(bus),
            Way::Closed(why) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, why)
                .help("`muster up` brings a fleet up; this page goes on by itself when it is there")),
        }
    }

    /// The bus, on which somebody speaks in his own name.
    ///
    /// # Errors
    /// As [`Self::bus`].
    pub(crate) fn bus_for(&self, person: &Person) -> Result<Bus, Problem> {
        let bus = self.bus()?;
        let own = |signatures: &Signatures| bus.as_agent(&person.name).signed_by(signatures.clone());
        Ok(match &person.by {
            // He is whoever started the dashboard, whose credentials these are.
            KnownBy::Link | KnownBy::Proxy { signatures: None, .. } => (*bus).clone(),
            KnownBy::Token { signatures, .. } | KnownBy::Proxy { signatures: Some(signatures), .. } => {
                own(signatures)
            }
        })
    }

    /// A reason as it is recorded: with who gives it, where the record would not tell.
    pub(crate) fn reason(&self, person: &Person, reason: &str) -> String {
        let reason = self.app.redactor.redact(reason.trim());
        match &person.by {
            KnownBy::Proxy { user, signatures: None } if reason.is_empty() => format!("asked by {user}"),
            KnownBy::Proxy { user, signatures: None } => format!("{reason} (asked by {user})"),
            KnownBy::Link | KnownBy::Token { .. } | KnownBy::Proxy { .. } => reason.into_owned(),
        }
    }

    /// How long a request may take.
    pub(crate) fn limit_of(&self, method: &Method, path: &str) -> Duration {
        let usual = REQUEST_TIME;
        match (method, path) {
            (&Method::POST, "/api/playground" | "/api/runs") => usual * LONG,
            (_, _) => usual,
        }
    }

    /// Counts a question to a model from the playground.
    ///
    /// # Errors
    /// When there were too many in the last hour.
    pub(crate) fn count_question(&self) -> Result<u32, Problem> {
        let most = PLAYGROUND_CALLS;
        let mut asked = lock(&self.asked);
        asked.one_more(Instant::now(), HOUR, most).map_err(|()| {
            Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                format!("the playground may ask {most} questions an hour"),
            )
            .help("wait: they are counted by the hour")
        })
    }
}

/// A limited number of places, held by persons: a quarter of them at most by one, and the last quarter by the owner only.
pub(crate) struct Quota {
    most: usize,
    held: Mutex<Vec<(AgentId, Weak<()>)>>,
}

impl Quota {
    fn new(most: usize) -> Self {
        Self { most, held: Mutex::default() }
    }

    /// Gives a person a place, until the result is dropped.
    ///
    /// # Errors
    /// If the person has too many, or none is left.
    pub(crate) fn take(&self, person: &Person) -> Result<Arc<()>, Problem> {
        let mut held = lock(&self.held);
        held.retain(|(_, place)| place.strong_count() > 0);
        let own = held.iter().filter(|(name, _)| *name == person.name).count();
        let quarter = self.most / 4;
        let most = if person.is_owner() { self.most } else { self.most - quarter };
        if held.len() >= most || !person.is_owner() && own >= quarter {
            let error = "too many pages or requests at once";
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, error).help("close a page, or wait"));
        }
        let place = Arc::default();
        held.push((person.name.clone(), Arc::downgrade(&place)));
        Ok(place)
    }
}
