//! What is to be told, until somebody took it: for each destination in order, tried again with growing waits, and bounded. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use muster_shared::backoff::Backoff;
use muster_shared::time::Millis;
use serde::{Deserialize, Serialize};

use super::notice::{Change, Notice};
use super::rule::Rule;

/// Most notices that wait, over all destinations.
pub(crate) const MOST_WAITING: usize = 50;

/// Waits between tries.
const WAITS: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

/// A notice on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Waiting {
    /// What is told.
    pub(crate) notice: Notice,
    /// How often that failed.
    #[serde(default)]
    pub(crate) failures: u32,
    /// When it is tried next.
    #[serde(default)]
    pub(crate) next: Millis,
    /// Why it failed last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) why: String,
}

/// What became of a try that failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failed {
    /// It is tried again.
    Again,
    /// It has been tried for as long as its destination says. It is not told.
    GivenUp(Box<Notice>),
}

/// What is to be told, by destination.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Outbox(BTreeMap<String, VecDeque<Waiting>>);

impl Outbox {
    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many notices wait for each destination, and why the first of them does.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (&str, usize, &str)> {
        self.0.iter().filter_map(|(to, all)| Some((to.as_str(), all.len(), all.front()?.why.as_str())))
    }

    /// Puts notices in for all whom their rules name, and gives those for which there is no room.
    pub(crate) fn put(&mut self, notices: Vec<Notice>, rules: &[Rule]) -> Vec<Notice> {
        let mut lost = Vec::new();
        for notice in notices {
            let to = rules.iter().find(|rule| rule.name == notice.rule).map(|rule| rule.to.as_slice());
            for to in to.unwrap_or_default() {
                if self.count() >= MOST_WAITING {
                    lost.extend(self.make_room());
                }
                let waiting =
                    Waiting { notice: notice.clone(), failures: 0, next: notice.at, why: String::new() };
                self.0.entry(to.clone()).or_default().push_back(waiting);
            }
        }
        lost
    }

    fn count(&self) -> usize {
        self.0.values().map(VecDeque::len).sum()
    }

    /// Takes the oldest of those out that say again what was said, else the oldest, of whichever destination has most.
    fn make_room(&mut self) -> Option<Notice> {
        let (to, all) = self.0.iter_mut().max_by_key(|(_, all)| all.len())?;
        let at = all.iter().position(|one| one.notice.change == Change::Repeated).unwrap_or(0);
        let taken = all.remove(at).map(|one| one.notice);
        if all.is_empty() {
            let to = to.clone();
            self.0.remove(&to);
        }
        taken
    }

    /// The destinations for which something is due, each with what is told first.
    pub(crate) fn due(&self, now: Millis) -> impl Iterator<Item = (&str, &Waiting)> {
        let first = self.0.iter().filter_map(|(to, all)| Some((to.as_str(), all.front()?)));
        // A clock that was set back must not hold up for longer than any wait.
        first.filter(move |(_, one)| one.next <= now || one.next.since(now) > WAITS.after(u32::MAX))
    }

    /// Somebody took it.
    pub(crate) fn taken(&mut self, to: &str, id: &str) {
        self.remove(to, id);
    }

    /// It could not be told: it is tried again, until so much time has passed since it came about.
    pub(crate) fn failed(
        &mut self,
        to: &str,
        id: &str,
        why: &str,
        now: Millis,
        longest: Duration,
    ) -> Option<Failed> {
        let waiting = self.0.get_mut(to)?.iter_mut().find(|one| one.notice.id == id)?;
        waiting.failures = waiting.failures.saturating_add(1);
        why.clone_into(&mut waiting.why);
        let wait = WAITS.after(waiting.failures);
        waiting.next = now.after(wait);
        if now.since(waiting.notice.at) + wait <= longest {
            return Some(Failed::Again);
        }
        self.remove(to, id).map(|notice| Failed::GivenUp(Box::new(notice)))
    }

    /// Nobody is there to be told any more.
    pub(crate) fn keep_only(&mut self, is_known: impl Fn(&str) -> bool) {
        self.0.retain(|to, _| is_known(to));
    }

    fn remove(&mut self, to: &str, id: &str) -> Option<Notice> {
        let all = self.0.get_mut(to)?;
        let at = all.iter().position(|one| one.notice.id == id)?;
        let taken = all.remove(at);
        if all.is_empty() {
            self.0.remove(to);
        }
        taken.map(|one| one.notice)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::evaluate::tests::{rule, test_notice};
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn ids(outbox: &Outbox, now: u64) -> Vec<(String, String)> {
        outbox.due(Millis(now)).map(|(to, one)| (to.to_owned(), one.notice.id.clone())).collect()
    }

    #[test]
    fn each_destination_is_told_in_order_and_one_that_fails_holds_up_nobody_else() {
        let mut rules = vec![rule("r")];
        rules[0].to = vec!["a".into(), "b".into()];
        let mut outbox = Outbox::default();
        let notices = vec![test_notice("1", "r", Change::Fired), test_notice("2", "r", Change::Resolved)];
        assert!(outbox.put(notices, &rules).is_empty());
        let pair = |to: &str, id: &str| (to.to_owned(), id.to_owned());
        assert_eq!(ids(&outbox, 1000), [pair("a", "1"), pair("b", "1")]);
        outbox.taken("b", "1");
        assert_eq!(outbox.failed("a", "1", "it hangs", Millis(1000), HOUR), Some(Failed::Again));
        assert_eq!(ids(&outbox, 1500), [pair("b", "2")], "the second waits for the first");
        outbox.taken("b", "2");
        assert_eq!(ids(&outbox, 2000), [pair("a", "1")]);
        assert_eq!(outbox.waiting().collect::<Vec<_>>(), [("a", 2, "it hangs")]);
        let Some(Failed::GivenUp(notice)) = outbox.failed("a", "1", "no", Millis(3_600_500), HOUR) else {
            unreachable!("it is tried for an hour and no longer")
        };
        assert_eq!(notice.id, "1");
        assert_eq!(ids(&outbox, 3_700_000), [pair("a", "2")]);
        outbox.keep_only(|_| false);
        assert!(outbox.is_empty());
    }

    #[test]
    fn waits_grow_to_a_minute_and_a_clock_that_is_set_back_holds_nothing_up() {
        let mut rules = vec![rule("r")];
        rules[0].to = vec!["a".into()];
        let mut outbox = Outbox::default();
        outbox.put(vec![test_notice("1", "r", Change::Fired)], &rules);
        let mut now = Millis(1000);
        let mut waits = Vec::new();
        for _ in 0..9 {
            assert_eq!(outbox.failed("a", "1", "no", now, 24 * HOUR), Some(Failed::Again));
            let next = outbox.0["a"][0].next;
            waits.push(next.since(now).as_secs());
            now = next;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert!(ids(&outbox, now.0 - 1).is_empty());
        assert_eq!(ids(&outbox, 5).len(), 1, "an hour earlier by the clock");
    }

    #[test]
    fn what_repeats_gives_way_when_there_is_no_room() {
        let mut rules = vec![rule("r")];
        rules[0].to = vec!["a".into()];
        let mut outbox = Outbox::default();
        let change = |n: usize| if n == 3 { Change::Repeated } else { Change::Fired };
        let all = (0..MOST_WAITING).map(|n| test_notice(&n.to_string(), "r", change(n))).collect();
        assert!(outbox.put(all, &rules).is_empty());
        let lost = outbox
            .put(vec![test_notice("x", "r", Change::Fired), test_notice("y", "r", Change::Fired)], &rules);
        assert_eq!(lost.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["3", "0"]);
        assert_eq!(outbox.count(), MOST_WAITING);
    }
}
