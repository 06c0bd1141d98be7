//! Messages that a model is sent in other words than the task has for them: guards changed them.

use muster_shared::flow::{Note, Reworded};
use sha2::{Digest, Sha256};

use super::Conversation;
use crate::model::chat::ChatMessage;
use crate::model::kept::Kept;

impl Conversation {
    /// The messages that no request held yet.
    #[must_use]
    pub fn unsent(&self) -> &[Kept<ChatMessage>] {
        self.request.messages.get(self.recorded.saturating_sub(1)..).unwrap_or_default()
    }

    /// Puts these texts in the place of the messages that no request held yet, and tells which of them are others.
    pub fn reword(&mut self, to: Vec<String>) -> Vec<Reworded> {
        let unsent = self.unsent().iter().zip(to).filter(|(message, to)| message.content != *to);
        let reworded = unsent.map(|(message, to)| Reworded { of: hash_of(&message.content), to });
        let reworded: Vec<Reworded> = reworded.collect();
        self.take_over(&reworded);
        reworded
    }

    /// Sends from now on what guards made of messages, as these notes have it.
    pub fn learn(&mut self, notes: &[Note]) {
        let known = Note::reworded(notes).filter(|one| !self.reworded.contains_key(&one.of));
        let new: Vec<Reworded> = known.cloned().collect();
        self.take_over(&new);
    }

    fn take_over(&mut self, new: &[Reworded]) {
        if new.is_empty() {
            return;
        }
        self.reworded.extend(new.iter().map(|one| (one.of.clone(), one.to.clone())));
        self.put_in_place(0);
        self.hash = self.head.clone();
        for message in &self.request.messages[..self.hashed] {
            self.hash.chat(message);
        }
    }

    /// Sends what guards made of the messages from this one on.
    pub(super) fn put_in_place(&mut self, from: usize) {
        if self.reworded.is_empty() {
            return;
        }
        for message in self.request.messages.iter_mut().skip(from) {
            if let Some(to) = self.reworded.get(&hash_of(&message.content)) {
                *message = ChatMessage { content: to.clone(), ..ChatMessage::clone(message) }.into();
            }
        }
    }
}

/// By which a text is known again.
fn hash_of(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}
