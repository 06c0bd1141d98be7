//! The two accounts of a fleet, and what passes between them. All that connect are in the first; what is stored is in the second,
//! where nobody connects.
//!
//! A server sends its answer to whatever subject a request names for it, and asks nobody whether the asker might publish
//! there (seen with nats-server 2.15: a worker that asks for a message of a bucket, to be answered on
//! `$JS.API.STREAM.DELETE.RUNS`, deletes the record). Of answers that come from another account, a server takes none on to
//! that account again: so what is stored is changed by what somebody publishes himself, which the table of rights is about, and
//! by nothing else.

use nkeys::{KeyPair, KeyPairType};
use sha2::{Digest, Sha256};

use super::CredentialsError;
use super::claims::{Answered, Export, Import};
use crate::partition::{Part, Partitions};
use crate::topology::{
    ADVISORIES, AGENTS, ALLOWANCE, ALLOWANCE_SHOWN, ASKED, COMMANDS, CONTEXT, DEAD, FILES, FILES_SHOWN,
    LEASE, LESSONS, OBJECTS_STREAM, TASKS, TRACK_RECORD,
};

/// What is hashed with the seed of the account that clients are in: the key of the other one is made of it, so that whoever has
/// one has both.
const DERIVED: &[u8] = b"muster account of what is stored 1\0";

/// What is asked of the server about streams and readers, and answered once.
const ASKED_ONCE: [&str; 14] = [
    "$JS.API.INFO",
    "$JS.API.ACCOUNT.>",
    "$JS.API.STREAM.>",
    "$JS.API.DIRECT.>",
    "$JS.API.CONSUMER.CREATE.>",
    "$JS.API.CONSUMER.DURABLE.>",
    "$JS.API.CONSUMER.DELETE.>",
    "$JS.API.CONSUMER.INFO.>",
    "$JS.API.CONSUMER.NAMES.>",
    "$JS.API.CONSUMER.LIST.>",
    "$JS.API.CONSUMER.PAUSE.>",
    "$JS.API.CONSUMER.LEADER.>",
    "$JS.ACK.>",
    "$JS.FC.>",
];

/// What is written to streams.
const WRITTEN: [&str; 6] = ["run.>", "evt.>", "cmd.>", "dlq.>", "$KV.>", "$O.>"];

/// Streams that are read by many messages to one request. What a server keeps for such a request it keeps until nobody listens
/// to the answers any more.
const READ: [&str; 11] = [
    AGENTS,
    LEASE,
    CONTEXT,
    ALLOWANCE,
    LESSONS,
    TRACK_RECORD,
    FILES,
    ASKED,
    OBJECTS_STREAM,
    DEAD,
    ADVISORIES,
];

/// Queues: each request is answered by one message, or by none.
const QUEUES: [&str; 2] = [TASKS, COMMANDS];

/// The key of the account that what is stored is in.
pub(super) fn store_of(account: &KeyPair) -> Result<KeyPair, CredentialsError> {
    let seed = account.seed().map_err(CredentialsError::key)?;
    let raw: [u8; 32] = Sha256::new().chain_update(DERIVED).chain_update(seed).finalize().into();
    KeyPair::new_from_raw(KeyPairType::Account, raw).map_err(CredentialsError::key)
}

/// What the account of what is stored lets the other one do.
pub(super) fn exports() -> Vec<Export> {
    let services = services().map(|(subject, answered)| Export::service(subject, answered));
    services.chain(shown().map(Export::stream)).collect()
}

/// The same, as the account that clients are in takes it.
pub(super) fn imports(store: &KeyPair) -> Vec<Import> {
    let account = store.public_key();
    let services = services().map(|(subject, _)| Import::service(subject, account.clone()));
    services.chain(shown().map(|subject| Import::stream(subject, account.clone()))).collect()
}

fn services() -> impl Iterator<Item = (String, Answered)> {
    let records = Partitions::every().flat_map(Partitions::parts).map(Part::stream);
    let next = |stream: &str| format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.*");
    let once = ASKED_ONCE.into_iter().chain(WRITTEN).map(str::to_owned).chain(QUEUES.map(next));
    let many = READ.into_iter().chain(records).map(next);
    once.map(|subject| (subject, Answered::Once)).chain(many.map(|subject| (subject, Answered::Many)))
}

/// What the server publishes of what is stored.
fn shown() -> impl Iterator<Item = String> {
    let shown = ["bb.", FILES_SHOWN, ALLOWANCE_SHOWN, "$JS.EVENT."];
    shown.into_iter().map(|prefix| format!("{prefix}>"))
}
