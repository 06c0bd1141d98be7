//! The file in which the record of a run is given to others: JSON lines, a head and then every entry. What stands in it, and
//! how it is verified, is in docs/internals/record.md. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use muster_bus::KeptMessage;
use muster_bus::credentials::signing::Trust;
use muster_shared::ids::{RunId, Seq};
use muster_shared::time::Millis;
use muster_shared::wire::Encoding;
use serde::{Deserialize, Serialize};

/// The version of the form that this build writes, and the newest that it reads.
const FORM: u32 = 1;

const ALGORITHM: &str = "SHA-256";

/// How it is verified, for whoever has nothing but the file.
const HOW: &str = "\
H is SHA-256. The digest of an entry is H(length of its subject as 4 bytes, big-endian; subject; payload). `add` of a hash, a \
number n and a digest is H(hash; n as 8 bytes, big-endian; digest). Entries with a `link` are decisions; it is JSON. The chain \
starts with H(\"muster-chain-1 \" + run) at the first of them, which has no `prev`; entries of agents (subject evt.) before it \
are no part of it. For each further one, start with the hash of the link before, whose first 8 digits are its `prev`; add, in \
order, each entry of an agent that no link has covered, up to the last that `of` names, with its seq; then the decision and, if \
`own` has more than one mark, so many of the next entries that are not of agents, with 0 in place of their seq. The result is \
`hash`. Marks (`of`, `own`) are the first 8 digits of the hash so far, after the entry; where there is `every`, `of` names only \
each `every`-th entry, and the last. Where a link has a `seal`, its `signature` (base64url) is the Ed25519 signature of the \
bytes ff, \"muster signature 1\", 00, \"seal\", 00 and the 32 bytes of `hash`, by the key that `by` names: a NATS user JWT, or the \
public key (NKey) of one in a link before it. One of `keys`, the fleet's public keys as claimed, has signed that JWT.";

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    muster_audit: u32,
    run: RunId,
    algorithm: String,
    entries: u64,
    how: String,
    /// The public keys of the fleet, as whoever wrote the file says.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Trust>,
}

/// What stands in a file.
#[derive(Debug, PartialEq)]
pub(crate) struct ExportedRecord {
    pub(crate) run: RunId,
    pub(crate) messages: Vec<KeptMessage>,
    pub(crate) keys: Option<Trust>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    seq: Seq,
    at: Millis,
    subject: String,
    encoding: Encoding,
    payload: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

/// Why a file is not the record of a run.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum FileError {
    #[error("it is empty")]
    Empty,
    #[error("line {line} is not what `muster audit --export` writes: {why}")]
    Garbled { line: usize, why: String },
    #[error("it is of form {0}, and this build knows form {FORM}")]
    Newer(u32),
    #[error("it names the algorithm {0:?}, and this build knows {ALGORITHM}")]
    Algorithm(String),
    #[error(
        "its head announces {announced} entries, and it has {found}: it was cut off, or something was added"
    )]
    CutOff { announced: u64, found: u64 },
}

/// The text of the file.
pub(crate) fn write(
    run: RunId,
    messages: &[KeptMessage],
    keys: Option<Trust>,
) -> Result<String, serde_json::Error> {
    let head = Head {
        muster_audit: FORM,
        run,
        algorithm: ALGORITHM.to_owned(),
        entries: messages.len() as u64,
        how: HOW.to_owned(),
        keys,
    };
    let mut text = serde_json::to_string(&head)? + "\n";
    for message in messages {
        let line = Line {
            seq: message.seq,
            at: message.at,
            subject: message.subject.clone(),
            encoding: message.encoding,
            payload: STANDARD.encode(&message.payload),
            link: message.link.clone(),
        };
        text += &serde_json::to_string(&line)?;
        text.push('\n');
    }
    Ok(text)
}

/// Reads the file.
pub(crate) fn read(text: &str) -> Result<ExportedRecord, FileError> {
    let mut lines = text.lines().enumerate();
    let (_, head) = lines.next().filter(|(_, head)| !head.trim().is_empty()).ok_or(FileError::Empty)?;
    let head: Head =
        serde_json::from_str(head).map_err(|error| FileError::Garbled { line: 1, why: error.to_string() })?;
    if head.muster_audit > FORM {
        return Err(FileError::Newer(head.muster_audit));
    }
    if head.algorithm != ALGORITHM {
        return Err(FileError::Algorithm(head.algorithm));
    }
    let messages = lines.map(|(at, line)| message(at + 1, line)).collect::<Result<Vec<_>, _>>()?;
    let found = messages.len() as u64;
    if found != head.entries {
        return Err(FileError::CutOff { announced: head.entries, found });
    }
    Ok(ExportedRecord { run: head.run, messages, keys: head.keys })
}

fn message(line: usize, text: &str) -> Result<KeptMessage, FileError> {
    let garbled = |why: String| FileError::Garbled { line, why };
    let Line { seq, at, subject, encoding, payload, link } =
        serde_json::from_str(text).map_err(|error| garbled(error.to_string()))?;
    let payload: Bytes = STANDARD.decode(payload).map_err(|error| garbled(error.to_string()))?.into();
    Ok(KeptMessage { seq, at, subject, encoding, payload, link })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId::from_uuid(uuid::Uuid::from_u128(7));

    fn messages() -> Vec<KeptMessage> {
        let message = |seq: u64, link: Option<&str>| KeptMessage {
            seq: Seq(seq),
            at: Millis(seq),
            subject: format!("run.{RUN}.decided"),
            encoding: Encoding::MessagePack,
            payload: Bytes::from_static(b"\x00\xff\"\n"),
            link: link.map(str::to_owned),
        };
        vec![message(3, Some(r#"{"own":[]}"#)), message(5, None)]
    }

    #[test]
    fn a_file_reads_as_it_was_written() {
        let text = write(RUN, &messages(), None).unwrap();
        assert_eq!(text.lines().count(), 3);
        let read_again = read(&text).unwrap();
        assert_eq!(read_again, ExportedRecord { run: RUN, messages: messages(), keys: None });
    }

    #[test]
    fn what_is_no_such_file_is_said_to_be_none() {
        assert_eq!(read("").unwrap_err(), FileError::Empty);
        assert!(matches!(read("# hello").unwrap_err(), FileError::Garbled { line: 1, .. }));
        assert!(matches!(read("{\"run\": 7}").unwrap_err(), FileError::Garbled { line: 1, .. }));
        let text = write(RUN, &messages(), None).unwrap();
        let newer = text.replacen("\"muster_audit\":1", "\"muster_audit\":2", 1);
        assert_eq!(read(&newer).unwrap_err(), FileError::Newer(2));
        let other = text.replacen("SHA-256", "MD5", 1);
        assert_eq!(read(&other).unwrap_err(), FileError::Algorithm("MD5".into()));
        // Cut off anywhere: between two lines, or within one.
        let whole = text.lines().take(2).collect::<Vec<_>>().join("\n");
        assert_eq!(read(&whole).unwrap_err(), FileError::CutOff { announced: 2, found: 1 });
        let within = &text[..text.len() - 20];
        assert!(matches!(read(within).unwrap_err(), FileError::Garbled { line: 3, .. }));
    }
}
