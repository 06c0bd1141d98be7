//! Which answer a request gets.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::limit::RateLimit;
use super::reply::Reply;
use super::request::CapturedRequest;

type Matcher = Box<dyn Fn(&CapturedRequest) -> bool + Send + Sync>;
type Responder = Box<dyn Fn(&CapturedRequest) -> Reply + Send + Sync>;

/// Rules in order; the first that fits and is not used up answers.
pub struct Script {
    rules: Vec<Rule>,
    pub(super) delay: Duration,
    pub(super) keep: usize,
    pub(super) limit: Option<RateLimit>,
}

struct Rule {
    fits: Matcher,
    respond: Responder,
    left: AtomicUsize,
}

impl Default for Script {
    fn default() -> Self {
        Self { rules: Vec::new(), delay: Duration::ZERO, keep: 10_000, limit: None }
    }
}

impl Script {
    /// A script without rules.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A script that answers everything by `respond`.
    #[must_use]
    pub fn answering(respond: impl Fn(&CapturedRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self::new().when_with(|_| true, respond)
    }

    /// A script that gives `replies` one after the other, whatever is asked.
    #[must_use]
    pub fn sequence(replies: impl IntoIterator<Item = Reply>) -> Self {
        replies.into_iter().fold(Self::new(), |script, reply| script.when(|_| true, reply).once())
    }

    /// Answers requests that fit with `reply`.
    #[must_use]
    pub fn when(self, fits: impl Fn(&CapturedRequest) -> bool + Send + Sync + 'static, reply: Reply) -> Self {
        self.when_with(fits, move |_| reply.clone())
    }

    /// Answers requests that hold `text` anywhere (system prompt included) with `reply`.
    #[must_use]
    pub fn when_text(self, text: impl Into<String>, reply: Reply) -> Self {
        let text = text.into();
        self.when(move |request| request.holds(&text), reply)
    }

    /// Answers requests that fit by `respond`.
    #[must_use]
    pub fn when_with(
        mut self,
        fits: impl Fn(&CapturedRequest) -> bool + Send + Sync + 'static,
        respond: impl Fn(&CapturedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        self.rules.push(Rule {
            fits: Box::new(fits),
            respond: Box::new(respond),
            left: AtomicUsize::new(usize::MAX),
        });
        self
    }

    /// Answers everything that no rule before fits.
    #[must_use]
    pub fn otherwise(self, reply: Reply) -> Self {
        self.when(|_| true, reply)
    }

    /// Lets the rule added last answer `times` requests only.
    #[must_use]
    pub fn times(self, times: usize) -> Self {
        if let Some(rule) = self.rules.last() {
            rule.left.store(times, Ordering::SeqCst);
        }
        self
    }

    /// Lets the rule added last answer one request only.
    #[must_use]
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Waits before each answer.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Keeps the latest `entries` requests in the log (10,000 otherwise); 0 for benchmarks.
    #[must_use]
    pub fn keeping(mut self, entries: usize) -> Self {
        self.keep = entries;
        self
    }

    /// Refuses what is more than `most` requests within any `window`: status 429, with the time to wait.
    #[must_use]
    pub fn limited(mut self, most: usize, window: Duration) -> Self {
        self.limit = Some(RateLimit::new(most, window));
        self
    }

    pub(super) fn reply(&self, request: &CapturedRequest) -> Option<Reply> {
        self.rules.iter().find(|rule| (rule.fits)(request) && rule.take()).map(|rule| (rule.respond)(request))
    }
}

impl Rule {
    /// Uses the rule once; `false` when it is used up.
    fn take(&self) -> bool {
        self.left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| match left {
                0 => None,
                usize::MAX => Some(usize::MAX),
                more => Some(more - 1),
            })
            .is_ok()
    }
}
