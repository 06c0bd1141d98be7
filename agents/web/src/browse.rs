//! Getting a page: redirects, robots.txt, kept answers, retries. Each hop is judged anew, also when its answer was kept.

mod known;
mod retry;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use muster_shared::flow::TaskRights;
use muster_shared::flow::rights::HostPattern;
use muster_shared::time::millis;
use reqwest::header::{ACCEPT, HeaderValue};
use url::{Position, Url};

use self::known::KnownRobots;
use crate::cache::policy::{self, Freshness};
use crate::cache::store::Store;
use crate::cache::{Head, Kept, kept_headers};
use crate::client::Clients;
use crate::failure::WebFailure;
use crate::guard::resolver::Resolver;
use crate::guard::{self, Destination, Guard, Refused};
use crate::pace::Pace;
use crate::robots::Rules;
use crate::transfer::{Answer, AnswerLimits, Beyond, Bodies, NoAnswer, Question, exchange};
use muster_tools::settings::WebSettings;

/// Most redirects that are followed, one after the other. Sites need two or three; more are a circle.
const MAX_REDIRECTS: u32 = 5;

/// What is asked for.
const ACCEPTED: &str =
    "text/html,application/xhtml+xml,text/plain,application/json,application/pdf,*/*;q=0.5";

/// Most redirects from a robots.txt, RFC 9309 section 2.3.1.2.
const MOST_ROBOTS_REDIRECTS: usize = 5;

/// The web as an agent reaches it. Nothing is made before the first call.
pub(crate) struct Web {
    pub(crate) settings: Arc<WebSettings>,
    pub(crate) clients: Clients,
    pub(crate) pace: Pace,
    rules: OnceLock<Result<Ruled, String>>,
    store: Option<Arc<Store>>,
    robots: KnownRobots,
}

/// What settings say of hosts.
struct Ruled {
    guard: Guard,
    own: Vec<HostPattern>,
}

/// Where a page came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From its site.
    Site,
    /// From what was kept, which its site lets count.
    Kept,
    /// From what was kept, which its site said is still right.
    Confirmed,
    /// From what was kept, because its site did not answer.
    StandIn,
}

/// A page as it was got.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// Where it is, after redirects.
    pub(crate) url: Url,
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Bytes,
    pub(crate) origin: Origin,
    /// When it came from its site, or was confirmed, in milliseconds of the epoch.
    pub(crate) came_ms: u64,
    /// How old it is, as far as its site and caches on the way say.
    pub(crate) age_ms: u64,
    /// How many redirects led to it.
    pub(crate) redirects: u32,
}

impl Page {
    fn of(url: &Url, head: Head, body: Bytes, origin: Origin) -> Self {
        let age_ms = policy::age_ms(&head, now_ms());
        let Head { status, headers, came_ms, .. } = head;
        Self { url: url.clone(), status, headers, body, origin, came_ms, age_ms, redirects: 0 }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    const fn is_redirect(&self) -> bool {
        matches!(self.status, 301 | 302 | 303 | 307 | 308)
    }
}

impl Web {
    pub(crate) fn new(settings: WebSettings, folder: PathBuf, resolver: Arc<dyn Resolver>) -> Self {
        let settings = Arc::new(settings);
        let store = Store::new(folder, settings.cache, settings.max_bytes);
        Self {
            clients: Clients::new(Arc::clone(&settings), resolver),
            pace: Pace::new(&settings),
            rules: OnceLock::new(),
            store: (settings.cache > 0).then(|| Arc::new(store)),
            robots: KnownRobots::default(),
            settings,
        }
    }

    fn ruled(&self) -> Result<&Ruled, WebFailure> {
        let read = || {
            let own = guard::patterns("tool.web.own_hosts", &self.settings.own_hosts)?;
            Ok(Ruled { guard: Guard::new(&self.settings)?, own })
        };
        self.rules.get_or_init(read).as_ref().map_err(|wrong| WebFailure::Setting(wrong.clone()))
    }

    /// What judges URLs.
    pub(crate) fn guard(&self) -> Result<&Guard, WebFailure> {
        Ok(&self.ruled()?.guard)
    }

    /// Gets a page within the time of one call.
    pub(crate) async fn get(&self, rights: &TaskRights, url: &str) -> Result<Page, WebFailure> {
        let seconds = self.settings.total.as_secs();
        let got = tokio::time::timeout(self.settings.total, self.follow(rights, url)).await;
        got.unwrap_or(Err(WebFailure::TimedOut { seconds }))
    }

    async fn follow(&self, rights: &TaskRights, url: &str) -> Result<Page, WebFailure> {
        let guard = self.guard()?;
        let refused = |url: &str| {
            let url = url.to_owned();
            move |why| WebFailure::Refused { url, why }
        };
        let mut at = guard.destination(url).map_err(refused(url))?;
        for redirects in 0..=MAX_REDIRECTS {
            guard::allowed(rights, &at).map_err(refused(at.url.as_str()))?;
            self.heed_robots(rights, &at).await?;
            let page = self.visit(&at).await?;
            if !page.is_redirect() {
                return Ok(Page { redirects, ..page });
            }
            at = guard.redirected(&at.url, page.header("location")).map_err(refused(at.url.as_str()))?;
        }
        Err(refused(url)(Refused::TooManyRedirects(MAX_REDIRECTS)))
    }

    async fn heed_robots(&self, rights: &TaskRights, at: &Destination) -> Result<(), WebFailure> {
        let is_own = self.ruled()?.own.iter().any(|own| guard::means(own, &at.host));
        if !self.settings.robots || is_own {
            return Ok(());
        }
        let origin = &at.url[..Position::BeforePath];
        let rules = match self.robots.of(origin) {
            Some(rules) => rules,
            None => self.robots.learnt(origin, self.ask_for_robots(rights, at).await?),
        };
        let path = &at.url[Position::BeforePath..Position::AfterQuery];
        if rules.allow(path) { Ok(()) } else { Err(WebFailure::Robots { url: at.url.to_string() }) }
    }

    /// What a site says to programs. One that does not say anything is open; one that fails to say it is closed.
    async fn ask_for_robots(&self, rights: &TaskRights, site: &Destination) -> Result<Rules, WebFailure> {
        let guard = self.guard()?;
        let refused = |why| WebFailure::Refused { url: site.url.to_string(), why };
        let mut at = guard.redirected(&site.url, Some("/robots.txt")).map_err(refused)?;
        for _ in 0..=MOST_ROBOTS_REDIRECTS {
            let page = match self.visit(&at).await {
                Ok(page) => page,
                // These would stop the page as well, and say more than that it must not be read.
                Err(failure) if failure.keeps_from_site() => return Err(failure),
                Err(_) => return Ok(Rules::closed()),
            };
            match page.status {
                200..=299 => return Ok(Rules::read(&page.body)),
                500..=599 => return Ok(Rules::closed()),
                _ if page.is_redirect() => {}
                _ => return Ok(Rules::open()),
            }
            // A file that cannot be got to is none.
            match guard.redirected(&at.url, page.header("location")) {
                Ok(to) if guard::allowed(rights, &to).is_ok() => at = to,
                _ => return Ok(Rules::open()),
            }
        }
        Ok(Rules::open())
    }

    /// One hop: what was kept if it counts, else what the site says.
    async fn visit(&self, at: &Destination) -> Result<Page, WebFailure> {
        let kept = self.find(at).await;
        if let Some(kept) = &kept
            && policy::freshness(&kept.head, now_ms()) == Freshness::Fresh
        {
            return Ok(Page::of(&at.url, kept.head.clone(), kept.body.clone(), Origin::Kept));
        }
        let asked_ms = now_ms();
        let answer = self.ask(at, kept.as_ref()).await;
        match (answer, kept) {
            (Ok(answer), Some(kept)) if answer.status == 304 => {
                let said = kept_headers(&answer.headers);
                let head = policy::confirmed(kept.head, said, asked_ms, now_ms());
                let kept = Kept { head, body: kept.body };
                self.keep(at, &kept).await;
                Ok(Page::of(&at.url, kept.head, kept.body, Origin::Confirmed))
            }
            (Ok(answer), Some(kept)) if answer.status >= 500 && self.may_stand_in(&kept) => {
                Ok(Page::of(&at.url, kept.head, kept.body, Origin::StandIn))
            }
            (Ok(Answer { status, headers, body, .. }), _) => {
                let url = at.url.to_string();
                let head = Head { url, status, headers: kept_headers(&headers), asked_ms, came_ms: now_ms() };
                if policy::may_keep(status, &head.headers) {
                    self.keep(at, &Kept { head: head.clone(), body: body.clone() }).await;
                }
                Ok(Page::of(&at.url, head, body, Origin::Site))
            }
            (Err(failure), Some(kept)) if failure.is_passing() && self.may_stand_in(&kept) => {
                Ok(Page::of(&at.url, kept.head, kept.body, Origin::StandIn))
            }
            (Err(failure), _) => Err(failure),
        }
    }

    fn may_stand_in(&self, kept: &Kept) -> bool {
        policy::may_stand_in(&kept.head, now_ms(), self.settings.cache_stale)
    }

    /// Asks a site, again where it says that it is busy, and once where nobody could be connected to.
    async fn ask(&self, at: &Destination, kept: Option<&Kept>) -> Result<Answer, WebFailure> {
        let client = self.clients.of(at.reach).map_err(WebFailure::Setting)?;
        let limits = AnswerLimits {
            max_bytes: self.settings.max_bytes,
            bodies: Bodies::NotOfRedirects,
            beyond: Beyond::Refused,
        };
        let mut question = Question::get(at.url.clone());
        question.headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
        for (name, value) in kept.into_iter().flat_map(|kept| policy::conditions(&kept.head)) {
            if let Ok(value) = HeaderValue::from_str(&value) {
                question.headers.insert(name, value);
            }
        }
        let mut asked = 0;
        loop {
            let turn = self.pace.turn(&at.host).await;
            let answer = exchange(client, question.clone(), limits).await;
            drop(turn);
            match retry::after(&answer, asked, SystemTime::now()) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return answer.map_err(|why| WebFailure::NoAnswer { host: at.host.clone(), why }),
            }
            asked += 1;
        }
    }

    async fn find(&self, at: &Destination) -> Option<Kept> {
        let store = Arc::clone(self.store.as_ref()?);
        let (url, reach) = (at.url.to_string(), at.reach);
        tokio::task::spawn_blocking(move || store.find(&url, reach)).await.ok()?
    }

    /// Keeps an answer. That it could not be kept is nobody's trouble.
    async fn keep(&self, at: &Destination, kept: &Kept) {
        let Some(store) = self.store.clone() else { return };
        let (kept, reach) = (kept.clone(), at.reach);
        match tokio::task::spawn_blocking(move || store.keep(&kept, reach)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "an answer of the web could not be kept"),
            Err(error) => tracing::warn!(%error, "keeping an answer of the web broke"),
        }
    }
}

impl WebFailure {
    /// Whether the site itself cannot be reached, so that nothing of it can.
    const fn keeps_from_site(&self) -> bool {
        match self {
            Self::NoAnswer { why, .. } => matches!(
                why,
                NoAnswer::Refused(_)
                    | NoAnswer::NotConnected(_)
                    | NoAnswer::Certificate(_)
                    | NoAnswer::TimedOut
            ),
            Self::Setting(_) | Self::TimedOut { .. } => true,
            Self::Refused { .. } | Self::Robots { .. } => false,
        }
    }

    /// Whether the same may work later.
    const fn is_passing(&self) -> bool {
        match self {
            Self::NoAnswer { why, .. } => {
                matches!(why, NoAnswer::NotConnected(_) | NoAnswer::TimedOut | NoAnswer::Broken(_))
            }
            Self::TimedOut { .. } => true,
            Self::Refused { .. } | Self::Robots { .. } | Self::Setting(_) => false,
        }
    }
}

/// Milliseconds of the epoch.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    millis(since)
}
