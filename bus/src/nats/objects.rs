//! The object store, in the layout that every NATS client knows.
//!
//! Nothing is taken away when an object is replaced or deleted: whoever might do that could empty the store. What no object
//! refers to any more is swept out by those who may lay out the bus.

use std::collections::HashSet;
use std::time::Duration;

use async_nats::jetstream::object_store::{ObjectInfo, ObjectOptions};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{Nats, follow};
use crate::backend::Backend;
use crate::error::BusError;
use crate::store::ListedObject;
use crate::topology::{OBJECTS, OBJECTS_STREAM};

/// Bytes per message.
const CHUNK: usize = 128 * 1024;
/// Messages under way at a time.
const UNDER_WAY: usize = 16;

/// Writes the chunks, several at a time, and then what names them: a reader never sees half an object.
pub(super) async fn put(nats: &Nats, name: &str, bytes: Bytes) -> Result<(), BusError> {
    let nuid = Uuid::now_v7().simple().to_string();
    let chunks = (0..bytes.len()).step_by(CHUNK).map(|at| bytes.slice(at..(at + CHUNK).min(bytes.len())));
    let subject = chunks_of(&nuid);
    let sent = futures::stream::iter(chunks.map(|chunk| publish(nats, subject.clone(), chunk)));
    let sent: Vec<()> = sent.buffered(UNDER_WAY).try_collect().await?;
    announce(nats, &about(name, nuid, &bytes, sent.len())).await
}

fn chunks_of(nuid: &str) -> String {
    format!("$O.{OBJECTS}.C.{nuid}")
}

fn about_of(name: &str) -> String {
    format!("$O.{OBJECTS}.M.{}", URL_SAFE.encode(name))
}

fn digest_of(bytes: &[u8]) -> String {
    format!("SHA-256={}", URL_SAFE.encode(Sha256::digest(bytes)))
}

fn about(name: &str, nuid: String, bytes: &Bytes, chunks: usize) -> ObjectInfo {
    ObjectInfo {
        name: name.to_owned(),
        description: None,
        metadata: std::collections::HashMap::new(),
        headers: None,
        options: Some(ObjectOptions { link: None, max_chunk_size: Some(CHUNK) }),
        bucket: OBJECTS.to_owned(),
        nuid,
        size: bytes.len(),
        chunks,
        modified: None,
        digest: Some(digest_of(bytes)),
        deleted: false,
    }
}

async fn publish(nats: &Nats, subject: String, payload: Bytes) -> Result<(), BusError> {
    let publish = async {
        let ack = nats.context.publish(subject, payload).await?;
        ack.await.map(|_| ())
    };
    nats.limited("writing an object", publish).await
}

/// What is said of an object; nothing where nothing was ever, or where that cannot be read.
async fn info(nats: &Nats, name: &str) -> Result<Option<ObjectInfo>, BusError> {
    let said = nats.last(OBJECTS_STREAM, &about_of(name)).await?;
    Ok(said.and_then(|said| serde_json::from_slice(&said.message.payload).ok()))
}

pub(super) async fn has(nats: &Nats, name: &str) -> Result<bool, BusError> {
    Ok(info(nats, name).await?.is_some_and(|info| !info.deleted))
}

pub(super) async fn get(nats: &Nats, name: &str, most: usize) -> Result<Option<Bytes>, BusError> {
    // An object that is replaced and swept out while it is read gives an error once.
    match get_once(nats, name, most).await {
        Err(BusError::Other { .. }) => get_once(nats, name, most).await,
        result => result,
    }
}

async fn get_once(nats: &Nats, name: &str, most: usize) -> Result<Option<Bytes>, BusError> {
    let too_large = |bytes| BusError::TooLarge { what: format!("object {name}"), bytes, most };
    let Some(object) = info(nats, name).await?.filter(|object| !object.deleted) else { return Ok(None) };
    if object.size > most {
        return Err(too_large(object.size));
    }
    let content = match object.chunks {
        0 => Bytes::new(),
        1 => match nats.last(OBJECTS_STREAM, &chunks_of(&object.nuid)).await? {
            Some(chunk) => chunk.message.payload,
            None => Bytes::new(),
        },
        _ => follow::content(nats, OBJECTS_STREAM, chunks_of(&object.nuid), object.size).await?.into(),
    };
    let is_whole = object.digest.as_ref().is_none_or(|digest| *digest == digest_of(&content));
    if content.len() != object.size || !is_whole {
        let reason = "what is stored is not what was written".to_owned();
        return Err(BusError::Other { what: format!("object {name}"), reason });
    }
    Ok(Some(content))
}

/// Says that an object is deleted, as NATS clients do.
pub(super) async fn delete(nats: &Nats, name: &str) -> Result<(), BusError> {
    let Some(before) = info(nats, name).await?.filter(|before| !before.deleted) else { return Ok(()) };
    announce(nats, &ObjectInfo { size: 0, chunks: 0, digest: None, deleted: true, ..before }).await
}

/// The objects whose names begin so, by name.
pub(super) async fn list(nats: &Nats, prefix: &str) -> Result<Vec<ListedObject>, BusError> {
    let said = follow::latest(nats, OBJECTS_STREAM, format!("$O.{OBJECTS}.M.>")).await?;
    let listed = said.iter().filter_map(|said| {
        let info: ObjectInfo = serde_json::from_slice(&said.message.payload).ok()?;
        let wanted = !info.deleted && info.name.starts_with(prefix);
        wanted.then_some(ListedObject { name: info.name, bytes: info.size as u64, at: said.at })
    });
    let mut listed: Vec<ListedObject> = listed.collect();
    listed.sort();
    Ok(listed)
}

/// Sweeps out what no object refers to any more, if it was written so long before the newest object was: chunks of objects that
/// were replaced, deleted or never finished, and what was said of an object before. Says of how many objects.
pub(super) async fn sweep(nats: &Nats, unused_for: Duration) -> Result<u64, BusError> {
    let said = follow::latest(nats, OBJECTS_STREAM, format!("$O.{OBJECTS}.M.>")).await?;
    let Some(newest) = said.iter().map(|said| said.at).max() else { return Ok(0) };
    let objects =
        said.iter().filter_map(|said| serde_json::from_slice::<ObjectInfo>(&said.message.payload).ok());
    let used: HashSet<String> =
        objects.filter(|object| !object.deleted).map(|object| chunks_of(&object.nuid)).collect();
    let stream = nats.stream(OBJECTS_STREAM).await?;
    let mut swept = 0;
    for subject in nats.state(OBJECTS_STREAM, Some(&format!("$O.{OBJECTS}.C.>"))).await?.subjects.into_keys()
    {
        if used.contains(&subject) {
            continue;
        }
        let written = nats.last(OBJECTS_STREAM, &subject).await?;
        if written.is_some_and(|chunk| newest.since(chunk.at) > unused_for) {
            nats.limited("sweeping the object store", stream.purge().filter(subject)).await?;
            swept += 1;
        }
    }
    for (subject, count) in nats.state(OBJECTS_STREAM, Some(&format!("$O.{OBJECTS}.M.>"))).await?.subjects {
        if count > 1 {
            nats.limited("sweeping the object store", stream.purge().filter(subject).keep(1)).await?;
        }
    }
    Ok(swept)
}

/// Writes what names an object. The last that was written counts.
async fn announce(nats: &Nats, object: &ObjectInfo) -> Result<(), BusError> {
    let about = serde_json::to_vec(object)?;
    publish(nats, about_of(&object.name), about.into()).await
}
