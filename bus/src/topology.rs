//! What the broker holds for Muster, as data: streams and buckets, with a version.
//!
//! Provisioning compares this with what exists, creates what is missing and changes in place what is not as wanted. It
//! never deletes: a recreated work stream would source all of the record's history again.

use std::time::Duration;

use muster_shared::setting::kinds::MIB;

use crate::partition::Part;
use crate::settings::BusSettings;

/// Most bytes of queued offers. Some ten thousand offers of a few kilobytes.
const TASKS_BYTES: u64 = 256 * 1024 * 1024;

/// Most bytes of waiting commands. A command has a few kilobytes, and waits for seconds.
const COMMANDS_BYTES: u64 = 64 * 1024 * 1024;

/// How long dead letters are kept. Long enough for an operator to come back from a holiday.
const DEAD_LETTER_MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Most bytes of reusable answers of models (`agent.reuse_answers`) and of tools (`tool.cache`); the oldest are
/// evicted. Room for thousands of answers.
const ANSWERS_BYTES: u64 = 64 * 1024 * 1024;

/// Most bytes of the lists of runs' files; the files themselves are objects. A list takes a few hundred bytes for
/// each file.
const FILES_BYTES: u64 = 64 * 1024 * 1024;

/// The version of this layout.
pub const TOPOLOGY_VERSION: u32 = 1;

/// Most bytes of what runs taught; the oldest goes first. A lesson has a few hundred: thousands of them are more than a
/// new run is ever given of.
const LESSONS_BYTES: u64 = 2 * MIB;
/// Most bytes of what agents and tools did in earlier runs; the oldest goes first. One line for each of them.
const STANDING_BYTES: u64 = 2 * MIB;
/// Most bytes of what is noted of runs that are kept, came from elsewhere or were removed: some 300 each.
const KEPT_BYTES: u64 = 64 * MIB;

pub use muster_shared::ids::TASKS;
/// The durable commands.
pub const COMMANDS: &str = "COMMANDS";
/// What could not be processed.
pub const DEAD: &str = "DLQ";
/// What the broker says about deliveries that went wrong.
pub const ADVISORIES: &str = "ADVISORIES";
/// The registry's bucket, as a stream.
pub const AGENTS: &str = "KV_AGENTS";
/// The bucket of orchestrators' leases, as a stream.
pub const LEASE: &str = "KV_LEASE";
/// The bucket of what the fleet shares, as a stream.
pub const ALLOWANCE: &str = "KV_ALLOWANCE";
/// Where changes in that bucket are shown, for whoever listens.
pub const ALLOWANCE_SHOWN: &str = "allowance.";
/// The bucket of what runs taught, as a stream.
pub const LESSONS: &str = "KV_LESSONS";
/// Answers of models and tools that may serve again.
pub const ANSWERS: &str = "KV_ANSWERS";
/// Which runs were made of requests that bear an id of their asker.
pub const ASKED: &str = "KV_ASKED";
/// Which files runs have.
pub const FILES: &str = "KV_FILES";
/// Where changes of these lists are shown, by run, for whoever listens.
pub const FILES_SHOWN: &str = "files.";
/// What is kept of runs besides the record, and what was removed.
pub const KEPT: &str = "KV_KEPT";
/// What agents and tools did.
pub const TRACK_RECORD: &str = "KV_TRACK_RECORD";
/// How trials stand.
pub const TRIALS: &str = "KV_TRIALS";
/// The object store's bucket.
pub const OBJECTS: &str = "MUSTER";
/// The object store's bucket, as a stream.
pub const OBJECTS_STREAM: &str = "OBJ_MUSTER";

/// A stream. A bucket is a stream with one message per key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSpec {
    /// Its name.
    pub name: &'static str,
    /// What it is for, shown by tools.
    pub description: &'static str,
    /// What is published to it.
    pub subjects: Vec<String>,
    /// What it copies from other streams.
    pub sources: Vec<SourceSpec>,
    /// Whether messages are kept until a limit, or until they are done.
    pub retention: Retention,
    /// Most bytes.
    pub max_bytes: u64,
    /// What happens when it is full.
    pub when_full: WhenFull,
    /// How long messages are kept.
    pub max_age: Option<Duration>,
    /// Messages kept per subject.
    pub per_subject: Option<u32>,
    /// For how long names of messages are remembered.
    pub dedup: Option<Duration>,
    /// Single messages are read without asking the stream's leader.
    pub direct: bool,
    /// Takes atomic batches.
    pub batches: bool,
    /// Takes messages that expire by themselves.
    pub expiry: bool,
    /// Marks what expired. A server then takes messages that empty a stream, too: no stream that agents write to may have it.
    pub marks: bool,
    /// Single messages cannot be deleted.
    pub keeps: bool,
    /// It cannot be emptied, not even by who may do all else.
    pub keeps_all: bool,
    /// Whether a write waits for the disk. What is only a copy, or written anew all the time, need not.
    pub waits_for_disk: bool,
    /// What is stored is also published with the first prefix replaced by the second.
    pub republish: Option<(&'static str, &'static str)>,
}

/// A copy of part of another stream, under other subjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSpec {
    /// The stream.
    pub stream: &'static str,
    /// Which of its subjects.
    pub filter: String,
    /// The new subject; `{{wildcard(n)}}` stands for the nth wildcard of the filter.
    pub subject: &'static str,
}

/// How long messages stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// Until a limit is reached.
    Limits,
    /// Until they are acknowledged.
    WorkQueue,
}

/// What gives way in a full stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// New messages are refused.
    RefuseNew,
    /// The oldest messages go.
    DropOldest,
}

/// All streams, in the order they must be created.
#[must_use]
pub fn streams(settings: &BusSettings) -> Vec<StreamSpec> {
    let mut all: Vec<StreamSpec> = settings.parted().parts().map(|part| record(part, settings)).collect();
    all.extend(besides_the_record(settings));
    all
}

/// One part of the record.
fn record(part: Part, settings: &BusSettings) -> StreamSpec {
    let subjects = ["run.>", "evt.>"].map(|filter| part.subject(filter.to_owned()));
    let max_bytes = settings.record_bytes / part.of() as u64;
    StreamSpec {
        subjects: subjects.to_vec(),
        batches: true,
        keeps: true,
        keeps_all: !settings.removable,
        ..stream(part.stream(), "The record of every run", &[], max_bytes)
    }
}

/// The offers in a part of the record.
fn offers(part: Part) -> SourceSpec {
    SourceSpec {
        stream: part.stream(),
        filter: part.subject("run.*.task.*.*".to_owned()),
        subject: "task.{{wildcard(2)}}.{{wildcard(1)}}.{{wildcard(3)}}",
    }
}

fn besides_the_record(settings: &BusSettings) -> Vec<StreamSpec> {
    vec![
        StreamSpec {
            retention: Retention::WorkQueue,
            // A copy: what a crash takes is copied again from the record, or offered again.
            waits_for_disk: false,
            sources: settings.parted().parts().map(offers).collect(),
            ..stream(TASKS, "Offers, one queue per role", &[], TASKS_BYTES)
        },
        StreamSpec {
            retention: Retention::WorkQueue,
            dedup: Some(Duration::from_secs(600)),
            ..stream(COMMANDS, "Durable commands", &["cmd.>"], COMMANDS_BYTES)
        },
        StreamSpec {
            when_full: WhenFull::DropOldest,
            max_age: Some(DEAD_LETTER_MAX_AGE),
            ..stream(DEAD, "What could not be processed", &["dlq.>"], settings.dead_bytes)
        },
        StreamSpec {
            when_full: WhenFull::DropOldest,
            max_age: Some(Duration::from_secs(24 * 3600)),
            waits_for_disk: false,
            ..stream(ADVISORIES, "Deliveries that went wrong", &["$JS.EVENT.ADVISORY.CONSUMER.>"], 8 * MIB)
        },
        StreamSpec { waits_for_disk: false, ..bucket(AGENTS, "Who is on the bus", "$KV.AGENTS.>", 16 * MIB) },
        StreamSpec {
            marks: true,
            keeps_all: false,
            ..bucket(LEASE, "Which orchestrator has which runs", "$KV.LEASE.>", 16 * MIB)
        },
        StreamSpec {
            republish: Some(("$KV.ALLOWANCE.", ALLOWANCE_SHOWN)),
            ..bucket(ALLOWANCE, "Rates and budgets of the whole fleet", "$KV.ALLOWANCE.>", 4 * MIB)
        },
        StreamSpec {
            when_full: WhenFull::DropOldest,
            // Best effort: a run whose lessons a crash takes has taught nothing.
            waits_for_disk: false,
            ..bucket(LESSONS, "What runs that ended taught", "$KV.LESSONS.>", LESSONS_BYTES)
        },
        StreamSpec {
            when_full: WhenFull::DropOldest,
            max_age: Some(Duration::from_secs(30 * 24 * 3600)),
            // What a crash takes is asked again.
            waits_for_disk: false,
            ..bucket(ANSWERS, "Answers of models that may serve again", "$KV.ANSWERS.>", ANSWERS_BYTES)
        },
        StreamSpec {
            when_full: WhenFull::DropOldest,
            max_age: Some(Duration::from_secs(30 * 24 * 3600)),
            ..bucket(ASKED, "Which runs were made of requests", "$KV.ASKED.>", 4 * MIB)
        },
        StreamSpec {
            republish: Some(("$KV.FILES.", FILES_SHOWN)),
            ..bucket(FILES, "Which files runs have", "$KV.FILES.>", FILES_BYTES)
        },
        bucket(KEPT, "What is kept of runs, and what was removed", "$KV.KEPT.>", KEPT_BYTES),
        StreamSpec {
            when_full: WhenFull::DropOldest,
            // Best effort, as lessons are.
            waits_for_disk: false,
            ..bucket(TRACK_RECORD, "What agents and tools did", "$KV.TRACK_RECORD.>", STANDING_BYTES)
        },
        bucket(TRIALS, "How trials stand", "$KV.TRIALS.>", STANDING_BYTES),
        StreamSpec {
            direct: true,
            keeps: true,
            ..stream(
                OBJECTS_STREAM,
                "Documents, artifacts, snapshots and large bodies",
                &["$O.MUSTER.C.>", "$O.MUSTER.M.>"],
                settings.objects_bytes,
            )
        },
    ]
}

fn stream(name: &'static str, description: &'static str, subjects: &[&str], max_bytes: u64) -> StreamSpec {
    StreamSpec {
        name,
        description,
        subjects: subjects.iter().map(|&subject| subject.to_owned()).collect(),
        sources: Vec::new(),
        retention: Retention::Limits,
        max_bytes,
        when_full: WhenFull::RefuseNew,
        max_age: None,
        per_subject: None,
        dedup: None,
        direct: false,
        batches: false,
        expiry: false,
        marks: false,
        keeps: false,
        keeps_all: false,
        waits_for_disk: true,
        republish: None,
    }
}

fn bucket(name: &'static str, description: &'static str, subjects: &str, max_bytes: u64) -> StreamSpec {
    StreamSpec {
        per_subject: Some(1),
        expiry: true,
        direct: true,
        keeps: true,
        keeps_all: true,
        ..stream(name, description, &[subjects], max_bytes)
    }
}
