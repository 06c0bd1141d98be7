//! Readers of documents that are not text.

use std::sync::Arc;

use muster_corpus::Extractor;
use muster_readers::Readers;
use muster_tools::DocumentReader;
use muster_tools::settings::DocumentSettings;

/// Returns the reader that tools use.
#[must_use]
pub fn document_reader(settings: &DocumentSettings) -> Option<Arc<dyn DocumentReader>> {
    readers(settings).map(|readers| Arc::new(readers) as Arc<dyn DocumentReader>)
}

/// Returns the reader of the documents of a goal.
#[must_use]
pub fn document_extractor(settings: &DocumentSettings) -> Option<Arc<dyn Extractor>> {
    readers(settings).map(|readers| Arc::new(readers) as Arc<dyn Extractor>)
}

fn readers(settings: &DocumentSettings) -> Option<Readers> {
    match Readers::of_this_program(settings.clone()) {
        Ok(readers) => Some(readers),
        Err(error) => {
            tracing::error!(%error, "cannot read documents that are not text");
            None
        }
    }
}
