//! Which documents are there for whoever asks: those that the rights of its task allow, and of these the ones that are meant.

use std::sync::Arc;

use muster_shared::flow::{TaskRights, Use};

use crate::index::find::is_meant;

/// Which documents may be read.
#[derive(Debug, Clone)]
pub(crate) struct Readable(Arc<TaskRights>);

impl Readable {
    /// Those that these rights allow.
    pub(crate) fn of(rights: &Arc<TaskRights>) -> Self {
        Self(Arc::clone(rights))
    }

    /// Whether all of them may.
    pub(crate) fn is_all(&self) -> bool {
        self.0.grants().iter().all(|grant| grant.to.documents.is_all())
    }

    /// Whether the document of this path may.
    pub(crate) fn is(&self, path: &str) -> bool {
        self.is_all() || self.0.allow(&Use::Document(path))
    }
}

/// The documents that are looked through.
#[derive(Debug, Clone)]
pub(crate) struct Within {
    /// What somebody gave for a path, if they did.
    path: Option<String>,
    readable: Readable,
}

impl Within {
    /// Of those that may be read, the ones that are meant by a path, if one is given.
    pub(crate) fn new(path: Option<&str>, readable: Readable) -> Self {
        Self { path: path.map(str::to_owned), readable }
    }

    /// Whether all of them are.
    pub(crate) fn is_all(&self) -> bool {
        self.path.is_none() && self.readable.is_all()
    }

    /// Whether the document of this path is.
    pub(crate) fn has(&self, path: &str) -> bool {
        let is_meant = self.path.as_deref().is_none_or(|wanted| is_meant(wanted, path));
        is_meant && self.readable.is(path)
    }
}
