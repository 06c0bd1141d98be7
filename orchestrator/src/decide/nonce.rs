//! The nonce that guards the fences in a task's prompts.

use hmac::{Hmac, Mac};
use muster_shared::ids::{Generation, TaskId};
use sha2::Sha256;

/// Digits of a nonce: 64 bits cannot be guessed by a document that gets one try.
const DIGITS: usize = 16;

/// HMAC-SHA256 of task and generation under the run's secret, cut to 16 hexadecimal digits: unguessable to
/// documents, and the same for every step, attempt and process, so that prompts keep a byte-stable prefix.
pub(super) fn nonce(secret: &str, task: &TaskId, generation: Generation) -> String {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes any key");
    mac.update(format!("{task}/{generation}").as_bytes());
    let mut text = hex::encode(mac.finalize().into_bytes());
    text.truncate(DIGITS);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nonce_depends_on_secret_task_and_generation_only() {
        let one = nonce("secret", &TaskId::Plan, Generation(1));
        assert_eq!(one.len(), DIGITS);
        assert_eq!(one, nonce("secret", &TaskId::Plan, Generation(1)));
        assert_ne!(one, nonce("secret", &TaskId::Plan, Generation(2)));
        assert_ne!(one, nonce("secret", &TaskId::Write, Generation(1)));
        assert_ne!(one, nonce("other", &TaskId::Plan, Generation(1)));
    }
}
