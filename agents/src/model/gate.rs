//! Leave to call a model. It is asked for before every single call, retries and calls to fallbacks included, so that
//! no limit is passed unseen.

use async_trait::async_trait;

use super::chat::{ChatAnswer, ChatRequest, ModelError};

/// Gives leave to call a model, and hears how the call ended.
#[async_trait]
pub trait CallGate: Send {
    /// Waits for leave to send `request` to `target` (`provider/model`). Gives the most answer tokens of this call,
    /// where it may have fewer than the request says. Dropping the future gives the place in the row up.
    ///
    /// # Errors
    /// When there will be no leave; the model is then not called.
    async fn admit(&mut self, target: &str, request: &ChatRequest) -> Result<Option<u32>, ModelError>;

    /// Takes note of how the call that was admitted last ended.
    fn settle(&mut self, target: &str, ended: Result<&ChatAnswer, &ModelError>);

    /// Why `target` is not to be asked for now, where it is known not to answer.
    fn shut(&self, _target: &str) -> Option<String> {
        None
    }

    /// Whether it keeps away from providers that do not answer.
    fn keeps_away(&self) -> bool {
        false
    }

    /// Says in a line what is waited for.
    fn tell(&self, _text: &str) {}

    /// Whether it keeps a provider's rate: being refused for it is then no failure of the model.
    fn paces(&self) -> bool {
        false
    }
}

/// Tells whether a task is still in the hands of whoever is about to pay for a call.
#[async_trait]
pub trait Ownership: Send + Sync {
    /// Looks whether it is. Quick where nobody can have taken it.
    ///
    /// # Errors
    /// When it is in other hands, or nobody can tell; in words.
    async fn holds(&self) -> Result<(), String>;
}

/// A gate that is always open.
#[derive(Debug, Clone, Copy, Default)]
pub struct Open;

#[async_trait]
impl CallGate for Open {
    async fn admit(&mut self, _: &str, _: &ChatRequest) -> Result<Option<u32>, ModelError> {
        Ok(None)
    }

    fn settle(&mut self, _: &str, _: Result<&ChatAnswer, &ModelError>) {}
}
