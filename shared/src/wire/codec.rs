//! MessagePack by default, JSON accepted everywhere. Size and depth are checked before anything is built.

use std::fmt;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::fault::at_fault;

/// Deepest nesting that is accepted in anything that comes in.
pub const MAX_DEPTH: usize = 64;

/// Largest message that is accepted or made, in bytes: the broker's limit as we configure it.
pub const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// How a message is encoded. The `Content-Type` header names it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
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

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MessagePack => "message_pack",
            Self::Json => "json",
        })
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

/// Encodes a value.
///
/// # Errors
/// When the value cannot be represented or has more than [`MAX_MESSAGE_BYTES`].
pub fn encode<T: Serialize>(value: &T, encoding: Encoding) -> Result<Vec<u8>, CodecError> {
    let malformed = |reason: String| CodecError::Malformed { encoding, reason };
    let bytes = match encoding {
        Encoding::Json => serde_json::to_vec(value).map_err(|e| malformed(e.to_string()))?,
        Encoding::MessagePack => {
            let mut bytes = Vec::with_capacity(512);
            let mut serializer =
                rmp_serde::Serializer::new(&mut bytes).with_struct_map().with_human_readable();
            value.serialize(&mut serializer).map_err(|e| malformed(e.to_string()))?;
            bytes
        }
    };
    Ok(bytes)
}

/// Decodes a value.
///
/// # Errors
/// When the bytes are too many, nested too deep, or not such a value.
pub fn decode<T: DeserializeOwned>(bytes: &[u8], encoding: Encoding) -> Result<T, CodecError> {
    if bytes.len() > MAX_MESSAGE_BYTES {
        return Err(CodecError::TooLarge { bytes: bytes.len() });
    }
    decode_unbounded(bytes, encoding)
}

/// Decodes a body that lay in the object store: depth is limited, size is the store's affair.
///
/// # Errors
/// When the bytes are nested too deep, or not such a value.
pub fn decode_unbounded<T: DeserializeOwned>(bytes: &[u8], encoding: Encoding) -> Result<T, CodecError> {
    match encoding {
        Encoding::Json => {
            check_json_depth(bytes)?;
            serde_json::from_slice(bytes).map_err(|error| faulty::<T>(bytes, encoding, error.to_string()))
        }
        Encoding::MessagePack => from_message_pack(bytes).map_err(|error| match error {
            rmp_serde::decode::Error::DepthLimitExceeded => CodecError::TooDeep,
            other => faulty::<T>(bytes, encoding, other.to_string()),
        }),
    }
}

fn from_message_pack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, rmp_serde::decode::Error> {
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes).with_human_readable();
    deserializer.set_max_depth(MAX_DEPTH);
    T::deserialize(&mut deserializer)
}

/// What is wrong with bytes that are no such value: the field, where it can be told.
fn faulty<T: DeserializeOwned>(bytes: &[u8], encoding: Encoding, reason: String) -> CodecError {
    let value: Option<serde_json::Value> = match encoding {
        Encoding::Json => serde_json::from_slice(bytes).ok(),
        Encoding::MessagePack => from_message_pack(bytes).ok(),
    };
    value.and_then(at_fault::<T>).unwrap_or(CodecError::Malformed { encoding, reason })
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
