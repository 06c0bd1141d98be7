//! The file in which a whole run goes to another fleet: JSON lines, documented in docs/keeping.md. Pure.
//!
//! A head, a line for each message of the record as it was stored, a line for each object that the run needs, and an end with the
//! hash of all before it. Nothing of a file is used before all of it was looked at.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use muster_bus::RecordLine;
use muster_bus::credentials::signing::Trust;
use muster_shared::flow::Artifact;
use muster_shared::ids::{RunId, Seq};
use muster_shared::time::Millis;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The version of the form that this build writes, and the newest that it reads.
const FORM: u32 = 1;

/// Largest file that is written or read, in bytes.
pub(crate) const MOST_BYTES: u64 = 1024 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    muster_run: u32,
    run: RunId,
    exported_at: Millis,
    entries: u64,
    objects: u64,
    files: Vec<Artifact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    documents: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Trust>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectLine {
    object: String,
    sha256: String,
    content: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    end: RunId,
    sha256: String,
}

/// A run as it stands in a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExportedRun {
    pub(crate) run: RunId,
    /// When it was written, by the clock of whoever did it.
    pub(crate) exported_at: Millis,
    /// Its record.
    pub(crate) entries: Vec<RecordLine>,
    /// The list of its files.
    pub(crate) files: Vec<Artifact>,
    /// What it needs of the object store: large bodies, declared tools, what stands in its files, results that were cut.
    pub(crate) objects: BTreeMap<String, Bytes>,
    /// The manifest of its documents, which are not in the file.
    pub(crate) documents: Option<String>,
    /// The public keys of its fleet, as whoever wrote the file says.
    pub(crate) keys: Option<Trust>,
}

/// Why a file is not an exported run.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum FileError {
    #[error("it is empty")]
    Empty,
    #[error("it is not text, from byte {0} on")]
    NoText(usize),
    #[error("line {line} is not what `muster runs export` writes: {why}")]
    Garbled { line: usize, why: String },
    #[error("it is of form {0}, and this build knows form {FORM}")]
    Newer(u32),
    #[error("it has no end: it was cut off after line {0}")]
    CutOff(usize),
    #[error("its hash is not the one that its end names: something in it was changed")]
    Changed,
    #[error("its head announces {announced} {what}, and it has {found}")]
    Counts { what: &'static str, announced: u64, found: u64 },
    #[error("line {line} is of run {run}, and the file is of another")]
    Foreign { line: usize, run: String },
    #[error("line {line} stands at entry {seq}, which is not after the one before")]
    OutOfOrder { line: usize, seq: Seq },
    #[error("line {line} holds the object {object:?}, which is not what its name promises")]
    WrongObject { line: usize, object: String },
    #[error("line {line} holds the object {object:?}, which is none of this run's")]
    StrangeObject { line: usize, object: String },
    #[error("the body of line {line} is not in the file: it is the object {object}")]
    NoBody { line: usize, object: String },
    #[error("the file {0:?} of the run is listed, and what stands in it is not there")]
    NoContent(String),
}

impl ExportedRun {
    /// The text of the file.
    pub(crate) fn write(&self) -> Result<String, serde_json::Error> {
        let head = Head {
            muster_run: FORM,
            run: self.run,
            exported_at: self.exported_at,
            entries: self.entries.len() as u64,
            objects: self.objects.len() as u64,
            files: self.files.clone(),
            documents: self.documents.clone(),
            keys: self.keys.clone(),
        };
        let mut text = serde_json::to_string(&head)? + "\n";
        for entry in &self.entries {
            text += &serde_json::to_string(entry)?;
            text.push('\n');
        }
        for (object, bytes) in &self.objects {
            let line =
                ObjectLine { object: object.clone(), sha256: hash(bytes), content: STANDARD.encode(bytes) };
            text += &serde_json::to_string(&line)?;
            text.push('\n');
        }
        let end = End { end: self.run, sha256: hash(text.as_bytes()) };
        text += &serde_json::to_string(&end)?;
        text.push('\n');
        Ok(text)
    }

    /// Reads the file, and looks at all of it before anything is given.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, FileError> {
        let text = std::str::from_utf8(bytes).map_err(|error| FileError::NoText(error.valid_up_to()))?;
        let lines: Vec<&str> = text.lines().collect();
        let Some((first, rest)) = lines.split_first().filter(|(first, _)| !first.trim().is_empty()) else {
            return Err(FileError::Empty);
        };
        let head = head(first)?;
        let Some((last, within)) = rest.split_last() else { return Err(FileError::CutOff(1)) };
        check_end(text, last, head.run, lines.len())?;
        let found = within.len() as u64;
        let announced = head.entries.saturating_add(head.objects);
        if announced != found {
            return Err(FileError::Counts { what: "entries and objects", announced, found });
        }
        // It is at most what was found.
        let at = usize::try_from(head.entries).unwrap_or(within.len());
        let (entries, objects) = within.split_at(at.min(within.len()));
        let entries = read_entries(head.run, entries)?;
        let objects = read_objects(head.run, objects, 2 + entries.len())?;
        let mut bodies =
            entries.iter().enumerate().filter_map(|(at, entry)| Some((at + 2, entry.body_apart()?)));
        if let Some((line, object)) = bodies.find(|(_, object)| !objects.contains_key(object)) {
            return Err(FileError::NoBody { line, object });
        }
        let missing =
            head.files.iter().find(|file| !objects.contains_key(&file_object(head.run, &file.hash)));
        if let Some(file) = missing {
            return Err(FileError::NoContent(file.path.clone()));
        }
        let Head { run, exported_at, files, documents, keys, .. } = head;
        Ok(Self { run, exported_at, entries, files, objects, documents, keys })
    }
}

fn garbled(line: usize) -> impl Fn(serde_json::Error) -> FileError {
    move |error| FileError::Garbled { line, why: error.to_string() }
}

/// The version alone, which is read before the rest: a newer form may have other fields.
#[derive(Deserialize)]
struct Version {
    muster_run: u32,
}

fn head(line: &str) -> Result<Head, FileError> {
    let Version { muster_run } = serde_json::from_str(line).map_err(garbled(1))?;
    if muster_run > FORM {
        return Err(FileError::Newer(muster_run));
    }
    serde_json::from_str(line).map_err(garbled(1))
}

/// The end names the run, and the hash of all that stands before it.
fn check_end(text: &str, last: &str, run: RunId, line: usize) -> Result<(), FileError> {
    let Ok(end) = serde_json::from_str::<End>(last) else { return Err(FileError::CutOff(line)) };
    if end.end != run {
        return Err(FileError::Foreign { line, run: end.end.to_string() });
    }
    let before = text.strip_suffix('\n').and_then(|text| text.strip_suffix(last)).unwrap_or(text);
    if hash(before.as_bytes()) != end.sha256 {
        return Err(FileError::Changed);
    }
    Ok(())
}

fn read_entries(run: RunId, lines: &[&str]) -> Result<Vec<RecordLine>, FileError> {
    let mut entries: Vec<RecordLine> = Vec::with_capacity(lines.len());
    for (at, text) in lines.iter().enumerate() {
        let line = at + 2;
        let entry: RecordLine = serde_json::from_str(text).map_err(garbled(line))?;
        if entry.run() != Some(run) {
            return Err(FileError::Foreign { line, run: entry.subject });
        }
        if entries.last().is_some_and(|before| entry.seq <= before.seq) {
            return Err(FileError::OutOfOrder { line, seq: entry.seq });
        }
        entry.to_kept().map_err(|why| FileError::Garbled { line, why })?;
        entries.push(entry);
    }
    Ok(entries)
}

fn read_objects(run: RunId, lines: &[&str], first: usize) -> Result<BTreeMap<String, Bytes>, FileError> {
    let mut objects = BTreeMap::new();
    for (at, text) in lines.iter().enumerate() {
        let line = first + at;
        let ObjectLine { object, sha256, content } = serde_json::from_str(text).map_err(garbled(line))?;
        let content: Bytes = STANDARD
            .decode(content)
            .map_err(|error| FileError::Garbled { line, why: error.to_string() })?
            .into();
        if hash(&content) != sha256 {
            return Err(FileError::WrongObject { line, object });
        }
        check_name(run, &object, &sha256, line)?;
        if objects.insert(object.clone(), content).is_some() {
            return Err(FileError::WrongObject { line, object });
        }
    }
    Ok(objects)
}

/// A file writes objects of its run alone, and those that are named by what they hold: none takes the place of another run's.
fn check_name(run: RunId, object: &str, sha256: &str, line: usize) -> Result<(), FileError> {
    let is_result = object.strip_prefix(&format!("result/{run}/")).is_some_and(|rest| !rest.is_empty());
    if object == sha256 || is_result || object == file_object(run, sha256) {
        return Ok(());
    }
    if object.starts_with(&format!("file/{run}/")) {
        return Err(FileError::WrongObject { line, object: object.to_owned() });
    }
    Err(FileError::StrangeObject { line, object: object.to_owned() })
}

/// What stands in a file of a run is called so in the object store.
pub(crate) fn file_object(run: RunId, hash: &str) -> String {
    format!("file/{run}/{hash}")
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RUN: RunId = RunId::from_uuid(uuid::Uuid::from_u128(7));

    fn example() -> ExportedRun {
        let entry = |seq: u64, subject: String| RecordLine {
            seq: Seq(seq),
            at: Millis(seq * 10),
            subject,
            headers: vec![
                ("Content-Type".into(), "application/json".into()),
                ("Muster-Link".into(), "{}".into()),
            ],
            payload: STANDARD.encode(b"\x00\xff\"\n"),
        };
        let (body, content) = (Bytes::from_static(b"a large body"), Bytes::from_static(b"# Notes\n"));
        let file = Artifact { path: "notes.md".into(), bytes: 8, hash: hash(&content), task: "1".into() };
        let objects = BTreeMap::from([
            (hash(&body), body),
            (file_object(RUN, &file.hash), content),
            (format!("result/{RUN}/1/abc"), Bytes::from_static(b"cut")),
        ]);
        ExportedRun {
            run: RUN,
            exported_at: Millis(1),
            entries: vec![
                entry(3, format!("run.{RUN}.decided")),
                entry(9, format!("evt.{RUN}.worker.w-1.1.1.step")),
            ],
            files: vec![file],
            objects,
            documents: Some("manifest".into()),
            keys: None,
        }
    }

    /// With an end that fits whatever was changed.
    fn sealed(lines: &[&str]) -> Vec<u8> {
        let text = lines.join("\n") + "\n";
        let end = End { end: RUN, sha256: hash(text.as_bytes()) };
        (text + &serde_json::to_string(&end).unwrap() + "\n").into_bytes()
    }

    #[test]
    fn a_file_reads_as_it_was_written() {
        let text = example().write().unwrap();
        assert_eq!(text.lines().count(), 7);
        assert_eq!(ExportedRun::read(text.as_bytes()).unwrap(), example());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let text = example().write().unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let read = |lines: &[&str]| ExportedRun::read(&sealed(lines)).unwrap_err();
        let changed = |at: usize, from: &str, to: &str| {
            let line = lines[at].replacen(from, to, 1);
            assert_ne!(line, lines[at], "{from}");
            let mut all: Vec<&str> = lines[..6].to_vec();
            all[at] = &line;
            read(&all)
        };
        assert_eq!(ExportedRun::read(b"").unwrap_err(), FileError::Empty);
        assert_eq!(ExportedRun::read(b"{}\xff").unwrap_err(), FileError::NoText(2));
        assert!(matches!(ExportedRun::read(b"# hello").unwrap_err(), FileError::Garbled { line: 1, .. }));
        assert_eq!(changed(0, "\"muster_run\":1", "\"muster_run\":2"), FileError::Newer(2));
        assert_eq!(ExportedRun::read(lines[..4].join("\n").as_bytes()).unwrap_err(), FileError::CutOff(4));
        let other = text.replacen("notes.md", "other.md", 1);
        assert_eq!(ExportedRun::read(other.as_bytes()).unwrap_err(), FileError::Changed);
        let fewer = read(&lines[..5]);
        assert_eq!(fewer, FileError::Counts { what: "entries and objects", announced: 5, found: 4 });
        assert!(matches!(changed(1, "\"seq\":3", "\"seq\":11"), FileError::OutOfOrder { line: 3, .. }));
        let other_run = RunId::from_uuid(uuid::Uuid::from_u128(8)).to_string();
        assert!(matches!(changed(2, &RUN.to_string(), &other_run), FileError::Foreign { line: 3, .. }));
        assert!(matches!(changed(2, "evt.", "cmd."), FileError::Foreign { line: 3, .. }));
        assert!(matches!(
            changed(1, "\"payload\":\"", "\"payload\":\"!"),
            FileError::Garbled { line: 2, .. }
        ));
        let at = lines.iter().position(|line| line.contains("\"object\":\"result/")).unwrap();
        assert!(matches!(changed(at, "result/", "snap/"), FileError::StrangeObject { .. }));
        assert!(matches!(changed(at, "result/", "file/"), FileError::WrongObject { .. }));
        assert!(matches!(changed(at, "\"content\":\"", "\"content\":\"AAAA"), FileError::WrongObject { .. }));
        assert!(matches!(
            changed(
                0,
                "\"path\":\"notes.md\",\"bytes\":8,\"hash\":\"",
                "\"path\":\"notes.md\",\"bytes\":8,\"hash\":\"0"
            ),
            FileError::NoContent(_)
        ));
    }

    proptest! {
        #[test]
        fn a_damaged_file_is_refused(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
            let text = example().write().unwrap().into_bytes();
            let at = at.index(text.len());
            let mut damaged = text.clone();
            if cut {
                damaged.truncate(at);
            } else {
                damaged[at] = byte;
            }
            prop_assert_eq!(ExportedRun::read(&damaged).is_ok(), damaged == text);
        }

        #[test]
        fn whatever_is_read_gives_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(ExportedRun::read(&bytes).is_err());
        }
    }
}
