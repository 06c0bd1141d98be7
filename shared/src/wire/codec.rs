//! MessagePack by default, JSON accepted everywhere. Size and depth are checked before anything is built.

use std::str::FromStr;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::envelope::{Body, Envelope};
use super::fault::at_fault;
use crate::flow::Goal;
use crate::run::Snapshot;

/// Deepest nesting that is accepted in anything that comes in.
pub const MAX_DEPTH: usize = 64;

/// Most characters of what is wrong with a message.
const MOST_SAID: usize = 4_000;

/// Largest message that is accepted or made, in bytes: the broker's limit as we configure it.
pub const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// How a message is encoded. The `Content-Type` header names it.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
    strum::Display,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Encoding {
    /// MessagePack with field names, human-readable forms.
    #[default]
    MessagePack,
    /// JSON.
    Json,
}

impl Encoding {
    /// The value of the `Content-Type` header.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::MessagePack => "application/msgpack",
            Self::Json => "application/json",
        }
    }

    /// The encoding of a message: by its `Content-Type`, or by its first byte when it has none
    /// (no envelope in MessagePack begins with `{` or white space).
    #[must_use]
    pub fn of(content_type: Option<&str>, bytes: &[u8]) -> Self {
        match content_type {
            Some(name) if name.contains("json") => Self::Json,
            Some(_) => Self::MessagePack,
            None => match bytes.first() {
                Some(b'{' | b' ' | b'\n' | b'\r' | b'\t') => Self::Json,
                _ => Self::MessagePack,
            },
        }
    }
}

impl FromStr for Encoding {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "message_pack" | "msgpack" => Ok(Self::MessagePack),
            "json" => Ok(Self::Json),
            _ => Err(format!("{text:?} is not an encoding: message_pack or json")),
        }
    }
}

/// Why bytes are not a message.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// More bytes than a message may have.
    #[error("the message has {bytes} bytes, {MAX_MESSAGE_BYTES} is the most")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// Nested deeper than is accepted.
    #[error("the message is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// A part of it is not what the schema has.
    #[error("field {field}: {reason}")]
    Field {
        /// The way to it from the outside, such as `body.content.usage.steps`.
        field: String,
        /// What is wrong.
        reason: String,
    },
    /// The bytes are not what they claim to be.
    #[error("the message is not valid {encoding}: {reason}")]
    Malformed {
        /// What they claim to be.
        encoding: Encoding,
        /// What is wrong.
        reason: String,
    },
}

/// What passes between processes or is kept by them. How it is read and written is compiled here, once for both
/// encodings: in each crate and for each format it would be a third of the program.
pub trait Coded: Sized {
    /// See [`encode`].
    ///
    /// # Errors
    /// As [`encode`].
    fn encoded(&self, encoding: Encoding) -> Result<Vec<u8>, CodecError>;

    /// See [`decode_unbounded`].
    ///
    /// # Errors
    /// As [`decode_unbounded`].
    fn decoded(bytes: &[u8], encoding: Encoding) -> Result<Self, CodecError>;
}

macro_rules! coded {
    ($($type:ty),*) => {
        $(impl Coded for $type {
            fn encoded(&self, encoding: Encoding) -> Result<Vec<u8>, CodecError> {
                write(self, encoding)
            }

            fn decoded(bytes: &[u8], encoding: Encoding) -> Result<Self, CodecError> {
                read(bytes, encoding)
            }
        })*
    };
}

coded!(Envelope, Body, Snapshot, Goal, Value, String);

/// Encodes a value.
///
/// # Errors
/// When the value cannot be represented.
pub fn encode<T: Coded>(value: &T, encoding: Encoding) -> Result<Vec<u8>, CodecError> {
    value.encoded(encoding)
}

/// Decodes a value.
///
/// # Errors
/// When the bytes are too many, nested too deep, or not such a value.
pub fn decode<T: Coded>(bytes: &[u8], encoding: Encoding) -> Result<T, CodecError> {
    if bytes.len() > MAX_MESSAGE_BYTES {
        return Err(CodecError::TooLarge { bytes: bytes.len() });
    }
    T::decoded(bytes, encoding)
}

/// Decodes a body that lay in the object store: depth is limited, size is the store's affair.
///
/// # Errors
/// When the bytes are nested too deep, or not such a value.
pub fn decode_unbounded<T: Coded>(bytes: &[u8], encoding: Encoding) -> Result<T, CodecError> {
    T::decoded(bytes, encoding)
}

/// Encodes anything that can be. Compiled anew for each type in each crate that calls it: for what is not [`Coded`].
///
/// # Errors
/// When the value cannot be represented.
pub fn write(value: &dyn erased_serde::Serialize, encoding: Encoding) -> Result<Vec<u8>, CodecError> {
    let malformed = |reason: String| CodecError::Malformed { encoding, reason };
    match encoding {
        Encoding::Json => serde_json::to_vec(value).map_err(|error| malformed(error.to_string())),
        Encoding::MessagePack => {
            let mut bytes = Vec::with_capacity(512);
            let mut serializer =
                rmp_serde::Serializer::new(&mut bytes).with_struct_map().with_human_readable();
            value.serialize(&mut serializer).map_err(|error| malformed(error.to_string()))?;
            Ok(bytes)
        }
    }
}

/// Decodes anything that can be, as [`write`] encodes it.
///
/// # Errors
/// When the bytes are nested too deep, or not such a value.
pub fn read<T: DeserializeOwned>(bytes: &[u8], encoding: Encoding) -> Result<T, CodecError> {
    let mut value = None;
    take(bytes, encoding, &mut |from| {
        value = Some(T::deserialize(from)?);
        Ok(())
    })?;
    value.ok_or_else(|| CodecError::Malformed { encoding, reason: "it is empty".to_owned() })
}

/// Takes a value from what either format holds.
pub(super) type Take<'a> =
    dyn FnMut(&mut dyn erased_serde::Deserializer<'_>) -> Result<(), erased_serde::Error> + 'a;

fn take(bytes: &[u8], encoding: Encoding, take: &mut Take<'_>) -> Result<(), CodecError> {
    let taken = match encoding {
        Encoding::Json => {
            check_json_depth(bytes)?;
            from_json(bytes, take).map_err(|error| error.to_string())
        }
        Encoding::MessagePack => from_message_pack(bytes, take).map_err(|error| error.to_string()),
    };
    match taken {
        Err(reason) if reason == rmp_serde::decode::Error::DepthLimitExceeded.to_string() => {
            Err(CodecError::TooDeep)
        }
        Err(reason) => Err(faulty(bytes, encoding, &reason, take)),
        Ok(()) => Ok(()),
    }
}

/// What is wrong, in as many characters as somebody reads: it may quote all of a message.
pub(super) fn said(reason: &str) -> String {
    crate::text::beginning(reason, MOST_SAID)
}

/// The error says where the text stopped to be such a value.
pub(super) fn from_json(text: &[u8], take: &mut Take<'_>) -> Result<(), serde_json::Error> {
    let mut from = serde_json::Deserializer::from_slice(text);
    take(&mut <dyn erased_serde::Deserializer<'_>>::erase(&mut from)).map_err(serde_json::Error::custom)?;
    from.end()
}

fn from_message_pack(bytes: &[u8], take: &mut Take<'_>) -> Result<(), erased_serde::Error> {
    let mut from = rmp_serde::Deserializer::from_read_ref(bytes).with_human_readable();
    from.set_max_depth(MAX_DEPTH);
    take(&mut <dyn erased_serde::Deserializer<'_>>::erase(&mut from))
}

/// What is wrong with bytes that are no such value: the field, where it can be told.
fn faulty(bytes: &[u8], encoding: Encoding, reason: &str, take: &mut Take<'_>) -> CodecError {
    let mut value = None;
    let whole: &mut Take<'_> = &mut |from| {
        value = Some(Value::deserialize(from)?);
        Ok(())
    };
    let is_whole = match encoding {
        Encoding::Json => from_json(bytes, whole).is_ok(),
        Encoding::MessagePack => from_message_pack(bytes, whole).is_ok(),
    };
    let field = value.filter(|_| is_whole).and_then(|value| at_fault(value, take));
    field.unwrap_or(CodecError::Malformed { encoding, reason: said(reason) })
}

/// Counts brackets outside strings: cheaper than parsing, and no recursion.
fn check_json_depth(bytes: &[u8]) -> Result<(), CodecError> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for &byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(CodecError::TooDeep);
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}
