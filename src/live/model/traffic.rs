//! What passes on the bus, while somebody looks.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use muster_bus::Tapped;
use muster_shared::time::Millis;

use crate::render;
use crate::render::paint::Paint;

/// Seconds of which it is counted how much passed.
const SECONDS: u64 = 10;

/// Most bytes of messages that are kept.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// A message that passed.
#[derive(Debug)]
pub(crate) struct Passed {
    /// Which one it is, from 1 since it is watched.
    pub(crate) number: u64,
    /// The message.
    pub(crate) tapped: Tapped,
    line: OnceLock<String>,
}

impl Passed {
    /// It in a line, plain and harmless.
    pub(crate) fn line(&self) -> &str {
        self.line.get_or_init(|| {
            render::tap::line(self.tapped.at, &self.tapped.subject, &self.tapped.content, Paint::PLAIN)
        })
    }
}

/// The newest messages that passed, and how many there were.
#[derive(Debug)]
pub(crate) struct Traffic {
    most: usize,
    passed: VecDeque<Arc<Passed>>,
    bytes: usize,
    count: u64,
    dropped: u64,
    /// How many passed in which second, the newest last.
    seconds: VecDeque<(u64, u64)>,
}

impl Traffic {
    pub(super) fn new(most: usize) -> Self {
        Self { most, passed: VecDeque::new(), bytes: 0, count: 0, dropped: 0, seconds: VecDeque::new() }
    }

    /// The newest messages, oldest first.
    pub(crate) fn passed(&self) -> impl DoubleEndedIterator<Item = &Arc<Passed>> + ExactSizeIterator {
        self.passed.iter()
    }

    /// How many passed since it is watched.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// How many were dropped, since they came faster than they were taken.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// How many pass in a second, over the last full seconds before this time.
    pub(crate) fn rate(&self, now: Millis) -> u64 {
        let now = now.0 / 1000;
        let newest = self.seconds.iter().filter(|(second, _)| *second < now && second + SECONDS >= now);
        let first = self.seconds.front().map_or(now, |(second, _)| *second);
        let over = now.saturating_sub(first).clamp(1, SECONDS);
        newest.map(|(_, count)| count).sum::<u64>() / over
    }

    pub(super) fn take(&mut self, tapped: Tapped, dropped: u64) -> Arc<Passed> {
        self.count += 1 + dropped;
        self.dropped += dropped;
        let second = tapped.at.0 / 1000;
        match self.seconds.back_mut() {
            Some((last, count)) if *last == second => *count += 1 + dropped,
            _ => self.seconds.push_back((second, 1 + dropped)),
        }
        while self.seconds.len() > SECONDS as usize + 1 {
            self.seconds.pop_front();
        }
        self.bytes += tapped.bytes.len();
        let passed = Arc::new(Passed { number: self.count, tapped, line: OnceLock::new() });
        self.passed.push_back(Arc::clone(&passed));
        while self.passed.len() > self.most || (self.bytes > MOST_BYTES && self.passed.len() > 1) {
            let oldest = self.passed.pop_front();
            self.bytes -= oldest.map_or(0, |oldest| oldest.tapped.bytes.len());
        }
        passed
    }
}
