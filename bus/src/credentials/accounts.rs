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
use crate::topology::{ALLOWANCE_SHOWN, FILES_SHOWN};

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

/// What a reader or a queue is asked for: by many messages to one request. What a server keeps for such a request it keeps until
/// nobody listens to the answers any more.
const ASKED_FOR_MANY: &str = "$JS.API.CONSUMER.MSG.NEXT.>";

/// What is written to streams. Those of the owner's own take what begins with `own.`.
const WRITTEN: [&str; 7] = ["run.>", "evt.>", "cmd.>", "dlq.>", "$KV.>", "$O.>", "own.>"];

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
    let once = ASKED_ONCE.into_iter().chain(WRITTEN).map(|subject| (subject.to_owned(), Answered::Once));
    once.chain([(ASKED_FOR_MANY.to_owned(), Answered::Many)])
}

/// What the server publishes of what is stored: what streams show, what it says of readers, and what readers that other clients
/// make deliver by themselves, which can only be to where somebody waits for answers.
fn shown() -> impl Iterator<Item = String> {
    let prefixes = [FILES_SHOWN, ALLOWANCE_SHOWN, "$JS.EVENT.", "_INBOX."];
    prefixes.into_iter().map(|prefix| format!("{prefix}>"))
}
