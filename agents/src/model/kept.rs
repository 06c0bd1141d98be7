//! What goes into many requests as it is: a message, the declared tools, the system prompt. It never changes, so that it
//! is measured once, and written once for each provider's form.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The forms in which providers want a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireForm {
    /// OpenAI's chat completions.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `generateContent`.
    Gemini,
    /// The same for Gemini 3, which wants a signature with every first call.
    Gemini3,
}

impl WireForm {
    const COUNT: usize = 4;

    const fn place(self) -> usize {
        match self {
            Self::OpenAi => 0,
            Self::Anthropic => 1,
            Self::Gemini => 2,
            Self::Gemini3 => 3,
        }
    }
}

/// What has a length that requests are estimated by.
pub trait Measured {
    /// Bytes of its texts.
    fn measure(&self) -> usize;
}

impl Measured for String {
    fn measure(&self) -> usize {
        self.len()
    }
}

/// A part of requests: shared, unchanging, and written once for each form. Cloning is cheap.
pub struct Kept<T>(Arc<Inner<T>>);

struct Inner<T> {
    value: T,
    bytes: u64,
    written: [OnceLock<Box<[u8]>>; WireForm::COUNT],
}

impl<T> Kept<T> {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Its bytes in this form, written now unless they were before.
    pub fn written(&self, form: WireForm, write: impl FnOnce(&T, &mut Vec<u8>)) -> &[u8] {
        self.0.written[form.place()].get_or_init(|| {
            let mut into = Vec::new();
            write(&self.0.value, &mut into);
            into.into_boxed_slice()
        })
    }

    /// Whether it was written in this form.
    #[must_use]
    pub fn is_written(&self, form: WireForm) -> bool {
        self.0.written[form.place()].get().is_some()
    }
}

impl<T: Measured> From<T> for Kept<T> {
    fn from(value: T) -> Self {
        let bytes = u64::try_from(value.measure()).unwrap_or(u64::MAX);
        Self(Arc::new(Inner { value, bytes, written: Default::default() }))
    }
}

impl From<&str> for Kept<String> {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl<T: Measured + Default> Default for Kept<T> {
    fn default() -> Self {
        Self::from(T::default())
    }
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T: PartialEq> PartialEq for Kept<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.value == other.0.value
    }
}

impl<T: fmt::Display> fmt::Display for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.value.fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.value.fmt(f)
    }
}

impl<T: Serialize> Serialize for Kept<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.value.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de> + Measured> Deserialize<'de> for Kept<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_written_once_for_all_copies() {
        let text = Kept::from("said");
        let copy = text.clone();
        assert_eq!(text.bytes(), 4);
        assert!(!text.is_written(WireForm::OpenAi));
        let write = |text: &String, into: &mut Vec<u8>| into.extend_from_slice(text.as_bytes());
        assert_eq!(text.written(WireForm::OpenAi, write), b"said");
        assert!(copy.is_written(WireForm::OpenAi) && !copy.is_written(WireForm::Gemini));
        let again = |_: &String, _: &mut Vec<u8>| unreachable!("it is there");
        assert_eq!(copy.written(WireForm::OpenAi, again), b"said");
    }
}
