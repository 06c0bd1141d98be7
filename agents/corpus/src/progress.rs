//! How far it is with making a corpus ready.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What is being done to make a corpus ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Documents are read; counted in files.
    Reading,
    /// Packs are sent to the store; counted in packs.
    Sending,
    /// Packs are fetched from the store; counted in packs.
    Fetching,
    /// The index is built; counted in files.
    Indexing,
}

/// How far a phase has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The phase. Sending and indexing go on at the same time.
    pub phase: Phase,
    /// Files or packs done.
    pub done: u64,
    /// Files or packs in all.
    pub total: u64,
    /// Bytes read, sent, fetched or indexed.
    pub bytes: u64,
}

/// Where progress is told. Called from several threads; must return quickly.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;
