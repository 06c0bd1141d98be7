//! The documents of a corpus, each prepared once per look-up.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::Library;
use super::page::Page;
use crate::index::{FileEntry, Index};
use crate::pack::PackFolder;
use crate::readable::Readable;
use crate::{CorpusError, Unit};

/// Most bytes of documents that are kept ready; then all are let go.
const MOST_BYTES: usize = 32 * 1024 * 1024;
/// The documents of an index.
pub(super) struct Indexed<'a> {
    index: &'a Index,
    packs: &'a PackFolder,
    readable: &'a Readable,
    kept: RefCell<Kept>,
}

#[derive(Default)]
struct Kept {
    bytes: usize,
    pages: HashMap<String, Option<Rc<Page>>>,
    paths: Option<Rc<Vec<String>>>,
}

impl<'a> Indexed<'a> {
    pub(super) fn new(index: &'a Index, packs: &'a PackFolder, readable: &'a Readable) -> Self {
        Self { index, packs, readable, kept: RefCell::default() }
    }
}

impl Library for Indexed<'_> {
    fn page(&self, path: &str) -> Result<Option<Rc<Page>>, CorpusError> {
        if let Some(known) = self.kept.borrow().pages.get(path) {
            return Ok(known.clone());
        }
        let file = self.index.file(path)?.filter(|file| self.readable.is(&file.path));
        let read = |file: FileEntry| {
            let text = self.packs.read(&file.pack, file.position, file.bytes)?;
            Ok::<_, CorpusError>((text, file.unit))
        };
        let text = file.map(read).transpose()?;
        let page = text.as_ref().map(|(text, unit)| Rc::new(Page::new(path, text, *unit)));
        let mut kept = self.kept.borrow_mut();
        kept.bytes += text.map_or(0, |(text, _)| text.len());
        if kept.bytes > MOST_BYTES {
            kept.bytes = 0;
            kept.pages.clear();
        }
        kept.pages.insert(path.to_owned(), page.clone());
        Ok(page)
    }

    fn paths(&self) -> Result<Rc<Vec<String>>, CorpusError> {
        if let Some(known) = &self.kept.borrow().paths {
            return Ok(Rc::clone(known));
        }
        let mut paths = self.index.paths()?;
        paths.retain(|path| self.readable.is(path));
        let paths = Rc::new(paths);
        self.kept.borrow_mut().paths = Some(Rc::clone(&paths));
        Ok(paths)
    }
}

/// Documents that are at hand.
pub(super) struct AtHand<'a> {
    documents: &'a BTreeMap<String, String>,
    kept: RefCell<HashMap<String, Rc<Page>>>,
}

impl<'a> AtHand<'a> {
    pub(super) fn new(documents: &'a BTreeMap<String, String>) -> Self {
        Self { documents, kept: RefCell::default() }
    }
}

impl Library for AtHand<'_> {
    fn page(&self, path: &str) -> Result<Option<Rc<Page>>, CorpusError> {
        let Some(text) = self.documents.get(path) else { return Ok(None) };
        let mut kept = self.kept.borrow_mut();
        let page = kept.entry(path.to_owned()).or_insert_with(|| Rc::new(Page::new(path, text, Unit::Line)));
        Ok(Some(Rc::clone(page)))
    }

    fn paths(&self) -> Result<Rc<Vec<String>>, CorpusError> {
        Ok(Rc::new(self.documents.keys().cloned().collect()))
    }
}
