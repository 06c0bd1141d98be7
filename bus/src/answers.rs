//! Answers that may serve again: of models, to identical questions (L5), and of pure tools, to identical calls. There is one for
//! each question and each call of a role, the oldest giving way when there is no more room.

use std::sync::Arc;

use bytes::Bytes;
use muster_shared::ids::Role;
use muster_shared::time::Millis;

use crate::backend::{Headers, Message};
use crate::bus::Core;
use crate::error::BusError;
use crate::kv::Bucket;
use crate::topology::ANSWERS;

const BUCKET: Bucket = Bucket(ANSWERS);

/// Largest answer that is kept, in bytes.
pub const LARGEST_ANSWER: usize = 256 * 1024;

/// The answers that agents of one role had.
#[derive(Clone)]
pub struct Answers {
    core: Arc<Core>,
    role: Role,
}

/// An answer as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// What was kept.
    pub bytes: Bytes,
    /// When, by the broker's clock.
    pub at: Millis,
}

impl Answers {
    pub(crate) fn new(core: &Arc<Core>, role: Role) -> Self {
        Self { core: Arc::clone(core), role }
    }

    /// The answer to the question with this hash, where one is kept.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn find(&self, hash: &str) -> Result<Option<KeptAnswer>, BusError> {
        let last = BUCKET.last(&self.core, &self.key(hash)).await?;
        let kept = |entry: crate::kv::KvEntry| {
            let at = entry.at;
            entry.message.map(|message| KeptAnswer { bytes: message.payload, at })
        };
        Ok(last.and_then(kept))
    }

    /// Keeps an answer, in place of an older one. One that is too large is not kept.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn keep(&self, hash: &str, answer: Bytes) -> Result<(), BusError> {
        if answer.len() > LARGEST_ANSWER || self.core.redactor.hits(&answer) {
            return Ok(());
        }
        let subject = BUCKET.subject(&self.key(hash));
        let message = Message { subject, headers: Headers::default(), payload: answer };
        BUCKET.put(&self.core, message, None, None).await?;
        Ok(())
    }

    /// Agents of a role write those of their role alone: the broker sees to it.
    fn key(&self, hash: &str) -> String {
        format!("{}.{hash}", self.role)
    }
}
