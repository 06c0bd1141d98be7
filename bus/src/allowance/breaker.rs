//! A circuit breaker: whether a provider of models answers, known to the whole fleet. Pure.
//!
//! Failures in a row, of all processes together, open it: nobody asks then. When the pause is over one process tries,
//! and what comes of that closes it for all, or makes the next pause longer.

use std::time::Duration;

use muster_shared::backoff::Backoff;
use muster_shared::settings;
use muster_shared::time::Millis;
use serde::{Deserialize, Serialize};

/// Longest pause of a circuit breaker, unless the provider requests more. Short enough to notice a recovered
/// provider.
const MAX_PAUSE: Duration = Duration::from_secs(30);

settings! {
    /// When a provider is left alone, and for how long.
    #[derive(Copy, PartialEq, Eq)]
    pub struct BreakerRules {
        /// Failed calls in a row, of the whole fleet, after which a provider is left alone for a while; 0 for never. A call
        /// without an answer in time counts as three.
        pub failures: u32 = 5 => internal(),
        /// The first pause; it doubles with each try that fails.
        #[serde(with = "muster_shared::span")]
        pub pause: Duration = Duration::from_secs(1) => internal(),
        /// How long calls wait for a provider that does not answer, from its first failure on, before they fail; less where
        /// a task has less time. Where there are fallback models these are asked at once.
        #[serde(with = "muster_shared::span")]
        pub patience: Duration = Duration::from_secs(300) => span(0, DAY); Fleet Harmless,
    }
}

/// A provider that only refuses for its rate is down when it has let nobody through for so long.
const REFUSES: Duration = Duration::from_secs(2);
/// What failed longer ago than this, and then the longest pause, is of no account any more.
const FORGOTTEN: Duration = Duration::from_secs(120);
/// Longest text kept of a failure, in characters.
const SHOWN: usize = 120;

/// How a call failed that a provider did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// In a few words.
    pub why: String,
    /// What kind of failure it was.
    pub kind: OutageKind,
}

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageKind {
    /// It refused for its rate, and may ask to wait.
    Refused(Option<Duration>),
    /// It did not answer in time.
    Silent,
    /// It could not be reached, or failed on its side, and may ask to wait.
    Down(Option<Duration>),
}

impl OutageKind {
    /// As how many failures it counts.
    const fn weight(self) -> u32 {
        if matches!(self, Self::Silent) { 3 } else { 1 }
    }

    const fn asked(self) -> Option<Duration> {
        match self {
            Self::Refused(asked) | Self::Down(asked) => asked,
            Self::Silent => None,
        }
    }
}

/// What is known of a provider. Times are the broker's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BreakerState {
    /// The provider.
    pub provider: String,
    /// Calls that failed, one after the other.
    pub calls: u32,
    /// What these count as.
    counted: u32,
    /// When the first of them failed.
    pub since: Millis,
    /// When the last of them did.
    last: Millis,
    /// How the last of them failed.
    pub why: String,
    /// Nobody asks before then; 0 where it is not left alone.
    pub open_until: Millis,
    /// Tries that failed since it was left alone.
    tries: u32,
    /// Who tries now, and until when that is waited for.
    probe: Option<(String, Millis)>,
}

/// What is to be done with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may be made.
    Go,
    /// It may be made by whoever takes the try.
    Try,
    /// It has to wait until then, or until something changes.
    Wait(Millis),
    /// It was waited for long enough.
    GivenUp,
}

impl BreakerState {
    /// Whether it is left alone.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.open_until.0 > 0
    }

    /// Whether calls wait for it now. A pause that no call followed remains stored.
    #[must_use]
    pub fn is_open_at(&self, now: Millis) -> bool {
        now < self.open_until || self.probe.as_ref().is_some_and(|(_, until)| now < *until)
    }

    /// Takes note of a call that failed.
    pub fn fail(&mut self, provider: &str, outage: &Outage, now: Millis, rules: &BreakerRules) {
        if now.since(self.last) > FORGOTTEN + MAX_PAUSE {
            *self = Self::default();
        }
        if self.calls == 0 {
            provider.clone_into(&mut self.provider);
            self.since = now;
        }
        self.calls = self.calls.saturating_add(1);
        self.counted = self.counted.saturating_add(outage.kind.weight());
        self.last = now;
        self.why = outage.why.chars().take(SHOWN).collect();
        let refuses = matches!(outage.kind, OutageKind::Refused(_)) && now.since(self.since) < REFUSES;
        if rules.failures == 0 || self.counted < rules.failures || (refuses && !self.is_open()) {
            return;
        }
        // Calls that were on their way when it was opened tell nothing new.
        if now < self.open_until {
            return;
        }
        self.tries = self.tries.saturating_add(1);
        let pause = Backoff::new(rules.pause, MAX_PAUSE).after(self.tries);
        let pause = pause.max(outage.kind.asked().unwrap_or_default());
        self.open_until = now.after(pause);
        self.probe = None;
    }

    /// Takes note of a call that was answered. Gives nothing when that is no news.
    pub fn succeed(&mut self) -> Option<()> {
        if self.calls == 0 {
            return None;
        }
        let provider = std::mem::take(&mut self.provider);
        *self = Self { provider, ..Self::default() };
        Some(())
    }

    /// Until when a task waits that has to end by `deadline`: as long as more time is left than was waited.
    fn waits_until(&self, rules: &BreakerRules, deadline: Option<Millis>) -> Millis {
        let most = self.since.after(rules.patience);
        deadline.map_or(most, |deadline| most.min(self.since.after(deadline.since(self.since) / 2)))
    }

    /// What is to be done with a call now, of a task that has to end by `deadline`.
    #[must_use]
    pub fn admit(&self, now: Millis, rules: &BreakerRules, deadline: Option<Millis>) -> Admission {
        if !self.is_open() {
            return Admission::Go;
        }
        let tried_until = self.probe.as_ref().map(|(_, until)| *until).filter(|until| *until > now);
        let until = if now < self.open_until { Some(self.open_until) } else { tried_until };
        let most = self.waits_until(rules, deadline);
        match until {
            None => Admission::Try,
            Some(_) if now >= most => Admission::GivenUp,
            Some(until) => Admission::Wait(until.min(most)),
        }
    }

    /// Takes the try, which is waited for until `until`. Gives nothing when another has it, or it is not time.
    pub fn take_try(&mut self, who: &str, now: Millis, until: Millis, rules: &BreakerRules) -> Option<()> {
        (self.admit(now, rules, None) == Admission::Try).then(|| self.probe = Some((who.to_owned(), until)))
    }

    /// Gives the try back, which came to nothing. Gives nothing when another has it.
    pub fn let_go(&mut self, who: &str) -> Option<()> {
        self.probe.take_if(|(trier, _)| trier == who).map(|_| ())
    }

    /// In a sentence, for people.
    #[must_use]
    pub fn in_words(&self, now: Millis) -> String {
        let times = if self.calls == 1 { "once".to_owned() } else { format!("{} times", self.calls) };
        let lasting = now.since(self.since).as_secs();
        let next = match self.open_until.since(now).as_secs() {
            0 => "trying again now".to_owned(),
            seconds => format!("trying again in {seconds} s"),
        };
        format!("{} does not answer ({}, {times} within {lasting} s); {next}", self.provider, self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Millis = Millis(1_000_000);

    fn rules() -> BreakerRules {
        BreakerRules::default()
    }

    fn at(seconds: u64) -> Millis {
        START.after(Duration::from_secs(seconds))
    }

    fn down() -> Outage {
        Outage { why: "503".into(), kind: OutageKind::Down(None) }
    }

    fn refused() -> Outage {
        Outage { why: "429".into(), kind: OutageKind::Refused(None) }
    }

    #[test]
    fn failures_in_a_row_open_it_and_one_at_a_time_tries() {
        let mut state = BreakerState::default();
        for failure in 1..=5 {
            assert_eq!(state.admit(at(0), &rules(), None), Admission::Go, "before failure {failure}");
            state.fail("openai", &down(), at(0), &rules());
        }
        assert_eq!(state.admit(at(0), &rules(), None), Admission::Wait(at(1)));
        state.fail("openai", &down(), at(0), &rules());
        assert_eq!(
            state.admit(at(0), &rules(), None),
            Admission::Wait(at(1)),
            "what was on its way changes nothing"
        );
        assert_eq!(state.take_try("worker-1", at(0), at(60), &rules()), None, "not yet");
        assert_eq!(state.admit(at(1), &rules(), None), Admission::Try);
        assert_eq!(state.take_try("worker-1", at(1), at(60), &rules()), Some(()));
        assert_eq!(state.take_try("worker-2", at(1), at(60), &rules()), None, "one at a time");
        assert_eq!(state.admit(at(1), &rules(), None), Admission::Wait(at(60)));
        // It fails: the next pause is longer, and the next one tries after it.
        state.fail("openai", &down(), at(2), &rules());
        assert_eq!(state.admit(at(3), &rules(), None), Admission::Wait(at(4)));
        assert_eq!(state.take_try("worker-2", at(4), at(60), &rules()), Some(()));
        assert_eq!(
            state.in_words(at(3)),
            "openai does not answer (503, 7 times within 3 s); trying again in 1 s"
        );
        assert_eq!(state.succeed(), Some(()));
        assert_eq!((state.succeed(), state.admit(at(5), &rules(), None)), (None, Admission::Go));
    }

    #[test]
    fn whoever_dies_while_trying_keeps_nobody() {
        let mut state = BreakerState::default();
        (0..5).for_each(|_| state.fail("openai", &down(), at(0), &rules()));
        let open = |state: &BreakerState| [at(0), at(1), at(8), at(9)].map(|now| state.is_open_at(now));
        assert_eq!(open(&state), [true, false, false, false], "a pause after which nobody called is over");
        assert_eq!(state.take_try("worker-1", at(1), at(9), &rules()), Some(()));
        assert_eq!(open(&state), [true, true, true, false]);
        assert_eq!(state.take_try("worker-2", at(9), at(18), &rules()), Some(()));
        // Whoever is told to stop meanwhile gives it back.
        assert_eq!((state.let_go("worker-1"), state.let_go("worker-2")), (None, Some(())));
        assert_eq!(state.take_try("worker-3", at(10), at(18), &rules()), Some(()));
    }

    #[test]
    fn an_answer_in_between_keeps_it_closed() {
        let mut state = BreakerState::default();
        for second in 0..50 {
            state.fail("openai", &down(), at(second), &rules());
            if second % 4 == 3 {
                assert_eq!(state.succeed(), Some(()));
            }
            assert_eq!(state.admit(at(second), &rules(), None), Admission::Go);
        }
    }

    #[test]
    fn a_burst_that_is_over_the_rate_is_no_outage() {
        let mut state = BreakerState::default();
        (0..50).for_each(|_| state.fail("openai", &refused(), at(0), &rules()));
        assert_eq!(state.admit(at(0), &rules(), None), Admission::Go);
        state.fail("openai", &refused(), at(3), &rules());
        assert_eq!(state.admit(at(3), &rules(), None), Admission::Wait(at(4)));
    }

    #[test]
    fn silence_opens_it_soon_and_what_a_provider_asks_for_is_kept() {
        let mut state = BreakerState::default();
        let silent = Outage { why: "no answer in time".into(), kind: OutageKind::Silent };
        state.fail("openai", &silent, at(0), &rules());
        assert_eq!(state.admit(at(0), &rules(), None), Admission::Go, "once is nothing");
        state.fail("openai", &silent, at(0), &rules());
        assert_eq!(state.admit(at(0), &rules(), None), Admission::Wait(at(1)));
        let asked = Outage { why: "503".into(), kind: OutageKind::Down(Some(Duration::from_secs(50))) };
        state.fail("openai", &asked, at(10), &rules());
        assert_eq!(state.admit(at(10), &rules(), None), Admission::Wait(at(60)));
    }

    #[test]
    fn it_is_waited_for_so_long_and_tried_all_the_same() {
        let mut state = BreakerState::default();
        (0..5).for_each(|_| state.fail("openai", &down(), at(0), &rules()));
        let mut now = 1;
        // The one who tries fails each time.
        while now < 299 {
            assert_eq!(state.admit(at(now), &rules(), None), Admission::Try, "{now}");
            state.fail("openai", &down(), at(now), &rules());
            now += state.open_until.since(at(now)).as_secs();
        }
        assert_eq!(state.admit(at(now), &rules(), None), Admission::Try, "tried after that, too");
        state.fail("openai", &down(), at(now), &rules());
        assert_eq!(state.admit(at(now + 1), &rules(), None), Admission::GivenUp);
        // Long after, nobody has asked meanwhile: it begins anew.
        state.fail("openai", &down(), at(now + 1000), &rules());
        assert_eq!((state.calls, state.admit(at(now + 1000), &rules(), None)), (1, Admission::Go));
    }

    #[test]
    fn a_task_with_little_time_waits_half_of_it() {
        let mut state = BreakerState::default();
        let asked = Outage { why: "503".into(), kind: OutageKind::Down(Some(Duration::from_secs(200))) };
        (0..5).for_each(|_| state.fail("openai", &asked, at(0), &rules()));
        assert_eq!(state.admit(at(1), &rules(), None), Admission::Wait(at(200)));
        assert_eq!(state.admit(at(1), &rules(), Some(at(90))), Admission::Wait(at(45)));
        assert_eq!(state.admit(at(45), &rules(), Some(at(90))), Admission::GivenUp);
        assert_eq!(state.admit(at(45), &rules(), Some(at(3600))), Admission::Wait(at(200)));
    }

    #[test]
    fn it_can_be_turned_off() {
        let rules = BreakerRules { failures: 0, ..rules() };
        let mut state = BreakerState::default();
        (0..500).for_each(|_| state.fail("openai", &down(), at(0), &rules));
        assert_eq!(state.admit(at(0), &rules, None), Admission::Go);
    }
}
