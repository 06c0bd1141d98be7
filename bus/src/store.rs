//! The object store: documents, artifacts, snapshots, and bodies too large for a message.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use muster_shared::time::Millis;
use sha2::{Digest, Sha256};

use crate::bus::Core;
use crate::error::BusError;

/// The object store. Objects are named by the hash of their content, or by a name of the caller's.
#[derive(Clone)]
pub struct Store {
    core: Arc<Core>,
}

/// An object, without what it holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedObject {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was written, by the broker.
    pub at: Millis,
}

/// Longest name of an object, in bytes.
const NAME_LIMIT: usize = 512;

impl Store {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core) }
    }

    /// How often the connection to the bus broke and was made again. After it, the store may be another.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.core.backend.connections()
    }

    /// Stores bytes under their SHA-256 and gives it, in hexadecimal. Bytes that are there already are not
    /// sent again.
    ///
    /// # Errors
    /// When there are more bytes than `object_limit`, or the bus fails.
    pub async fn put(&self, bytes: Bytes) -> Result<String, BusError> {
        self.check_size(&bytes)?;
        let name = hash(&bytes);
        if !self.core.backend.object_has(&name).await? {
            self.core.backend.object_put(&name, bytes).await?;
        }
        Ok(name)
    }

    /// Stores bytes under a name, such as `snap/<run>/<sequence>`, in place of what was there.
    ///
    /// # Errors
    /// When there are more bytes than `object_limit`, the name is empty or above 512 bytes, or the bus fails.
    pub async fn put_named(&self, name: &str, bytes: Bytes) -> Result<(), BusError> {
        check_name(name)?;
        self.check_size(&bytes)?;
        self.core.backend.object_put(name, bytes).await
    }

    /// The bytes of an object, if it exists.
    ///
    /// # Errors
    /// When the object has more bytes than `object_limit`, or the bus fails.
    pub async fn get(&self, name: &str) -> Result<Option<Bytes>, BusError> {
        check_name(name)?;
        self.core.backend.object_get(name, self.core.settings.object_limit).await
    }

    /// Whether an object exists.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn has(&self, name: &str) -> Result<bool, BusError> {
        check_name(name)?;
        self.core.backend.object_has(name).await
    }

    /// Removes an object; one that does not exist is no error.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn delete(&self, name: &str) -> Result<(), BusError> {
        check_name(name)?;
        self.core.backend.object_delete(name).await
    }

    /// The objects whose names begin so, by name. Of a server this reads what is said of all objects.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, BusError> {
        self.core.backend.object_list(prefix).await
    }

    /// Sweeps out what no object refers to any more and was written so long before the newest object: what replaced or deleted
    /// objects had, and what was never finished. Says of how many objects.
    ///
    /// # Errors
    /// When the bus fails, or this process may not do that.
    pub async fn sweep(&self, unused_for: Duration) -> Result<u64, BusError> {
        self.core.backend.object_sweep(unused_for).await
    }

    fn check_size(&self, bytes: &Bytes) -> Result<(), BusError> {
        let most = self.core.settings.object_limit;
        if bytes.len() > most {
            return Err(BusError::TooLarge { what: "an object".into(), bytes: bytes.len(), most });
        }
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), BusError> {
    if name.is_empty() || name.len() > NAME_LIMIT {
        let name = name.chars().take(80).collect();
        return Err(BusError::BadName { name, rule: "objects are named by 1 to 512 bytes" });
    }
    Ok(())
}

/// SHA-256 in hexadecimal: the name of an object that is known by its content.
pub(crate) fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
