//! What the server was asked, and how far it got with answering.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use muster_shared::sync::lock;

use super::request::CapturedRequest;

/// The most violations kept; more say nothing new.
const MAX_VIOLATIONS: usize = 100;

/// One request and its fate.
#[derive(Debug, Clone)]
pub struct LogEntry {
    /// What was asked.
    pub request: Arc<CapturedRequest>,
    /// When the reply had been handed over whole, since the start of the server; `None` when it never was: faults,
    /// and askers who went away.
    pub completed: Option<Duration>,
}

pub(super) struct Log {
    begun: Instant,
    keep: usize,
    arrived: AtomicUsize,
    completed: AtomicUsize,
    refused: AtomicUsize,
    entries: Mutex<VecDeque<LogEntry>>,
    violations: Mutex<Vec<String>>,
}

impl Log {
    pub(super) fn new(keep: usize) -> Self {
        Self {
            begun: Instant::now(),
            keep,
            arrived: AtomicUsize::new(0),
            completed: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            entries: Mutex::new(VecDeque::new()),
            violations: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The number of the next request, from 1.
    pub(super) fn next_number(&self) -> usize {
        self.arrived.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(super) fn note(&self, request: &Arc<CapturedRequest>) {
        for violation in &request.violations {
            self.note_violation(format!("request {}: {violation}", request.number));
        }
        if self.keep == 0 {
            return;
        }
        let mut entries = lock(&self.entries);
        if entries.len() == self.keep {
            entries.pop_front();
        }
        entries.push_back(LogEntry { request: Arc::clone(request), completed: None });
    }

    pub(super) fn note_violation(&self, violation: String) {
        let mut violations = lock(&self.violations);
        if violations.len() < MAX_VIOLATIONS {
            violations.push(violation);
        }
    }

    pub(super) fn note_completed(&self, number: usize) {
        self.completed.fetch_add(1, Ordering::SeqCst);
        let now = self.now();
        let mut entries = lock(&self.entries);
        if let Some(entry) = entries.iter_mut().rev().find(|entry| entry.request.number == number) {
            entry.completed = Some(now);
        }
    }

    pub(super) fn entries(&self) -> Vec<LogEntry> {
        lock(&self.entries).iter().cloned().collect()
    }

    pub(super) fn arrived(&self) -> usize {
        self.arrived.load(Ordering::SeqCst)
    }

    pub(super) fn completed(&self) -> usize {
        self.completed.load(Ordering::SeqCst)
    }

    pub(super) fn note_refused(&self) {
        self.refused.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }

    pub(super) fn violations(&self) -> Vec<String> {
        lock(&self.violations).clone()
    }
}
