//! The object store, in the layout that every NATS client knows.

use async_nats::HeaderMap;
use async_nats::header;
use async_nats::jetstream::object_store::{
    GetErrorKind, InfoErrorKind, ObjectInfo, ObjectOptions, ObjectStore,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;
use uuid::Uuid;

use super::Nats;
use crate::error::BusError;
use crate::topology::OBJECTS;

/// Bytes per message.
const CHUNK: usize = 128 * 1024;
/// Messages under way at a time.
const UNDER_WAY: usize = 16;

async fn store(nats: &Nats) -> Result<&ObjectStore, BusError> {
    let open = || nats.limited("the object store", nats.context.get_object_store(OBJECTS));
    nats.objects.get_or_try_init(open).await
}

/// Writes the chunks, several at a time, and then what names them: a reader never sees half an object.
pub(super) async fn put(nats: &Nats, name: &str, bytes: Bytes) -> Result<(), BusError> {
    let before = info(nats, name).await?;
    let nuid = Uuid::now_v7().simple().to_string();
    let chunks = (0..bytes.len()).step_by(CHUNK).map(|at| bytes.slice(at..(at + CHUNK).min(bytes.len())));
    let subject = format!("$O.{OBJECTS}.C.{nuid}");
    let sent =
        futures::stream::iter(chunks.map(|chunk| publish(nats, subject.clone(), HeaderMap::new(), chunk)));
    let sent: Vec<()> = sent.buffered(UNDER_WAY).try_collect().await?;
    announce(nats, &about(name, nuid, &bytes, sent.len())).await?;
    if let Some(before) = before.filter(|before| !before.deleted) {
        forget_chunks(nats, &before).await?;
    }
    Ok(())
}

/// Puts an empty message that soon expires in place of an object's chunks: no agent has the right to purge a stream.
async fn forget_chunks(nats: &Nats, object: &ObjectInfo) -> Result<(), BusError> {
    if object.chunks == 0 {
        return Ok(());
    }
    let mut headers = HeaderMap::new();
    headers.insert(header::NATS_ROLLUP, "sub");
    headers.insert(header::NATS_MESSAGE_TTL, "1s");
    publish(nats, format!("$O.{OBJECTS}.C.{}", object.nuid), headers, Bytes::new()).await
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
        digest: Some(format!("SHA-256={}", URL_SAFE.encode(Sha256::digest(bytes)))),
        deleted: false,
    }
}

async fn publish(nats: &Nats, subject: String, headers: HeaderMap, payload: Bytes) -> Result<(), BusError> {
    let publish = async {
        let ack = nats.context.publish_with_headers(subject, headers, payload).await?;
        ack.await.map(|_| ())
    };
    nats.limited("writing an object", publish).await
}

async fn info(nats: &Nats, name: &str) -> Result<Option<ObjectInfo>, BusError> {
    let store = store(nats).await?;
    let get = async {
        match store.info(name).await {
            Ok(info) => Ok(Some(info)),
            Err(error) if error.kind() == InfoErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    };
    nats.limited("looking up an object", get).await
}

pub(super) async fn has(nats: &Nats, name: &str) -> Result<bool, BusError> {
    Ok(info(nats, name).await?.is_some_and(|info| !info.deleted))
}

pub(super) async fn get(nats: &Nats, name: &str, most: usize) -> Result<Option<Bytes>, BusError> {
    // An object that is replaced while it is read gives an error once.
    match get_once(nats, name, most).await {
        Err(BusError::Other { .. }) => get_once(nats, name, most).await,
        result => result,
    }
}

async fn get_once(nats: &Nats, name: &str, most: usize) -> Result<Option<Bytes>, BusError> {
    let store = store(nats).await?;
    let open = async {
        match store.get(name).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.kind() == GetErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    };
    let Some(mut object) = nats.limited("opening an object", open).await? else { return Ok(None) };
    if object.info().deleted {
        return Ok(None);
    }
    let bytes = object.info().size;
    if bytes > most {
        return Err(BusError::TooLarge { what: format!("object {name}"), bytes, most });
    }
    let mut content = Vec::with_capacity(bytes);
    // Chunk by chunk, so that the time limit is one of progress.
    while nats.limited("reading an object", object.read_buf(&mut content)).await? > 0 {
        if content.len() > most {
            return Err(BusError::TooLarge { what: format!("object {name}"), bytes: content.len(), most });
        }
    }
    Ok(Some(content.into()))
}

/// Says that an object is deleted, as NATS clients do, and forgets its chunks.
pub(super) async fn delete(nats: &Nats, name: &str) -> Result<(), BusError> {
    let Some(before) = info(nats, name).await?.filter(|before| !before.deleted) else { return Ok(()) };
    let gone = ObjectInfo { size: 0, chunks: 0, digest: None, deleted: true, ..before.clone() };
    announce(nats, &gone).await?;
    forget_chunks(nats, &before).await
}

/// Writes what names an object, in place of what named it before.
async fn announce(nats: &Nats, object: &ObjectInfo) -> Result<(), BusError> {
    let about = serde_json::to_vec(object).map_err(|error| BusError::Codec { reason: error.to_string() })?;
    let mut headers = HeaderMap::new();
    headers.insert(header::NATS_ROLLUP, "sub");
    publish(nats, format!("$O.{OBJECTS}.M.{}", URL_SAFE.encode(&object.name)), headers, about.into()).await
}
