//! What the reading of one document may take, and what of it is left.

use muster_shared::setting::kinds::MIB;
use muster_tools::settings::ReadLimits;

use crate::found::Failure;

/// Most documents that one file may hold: sheets, chapters, files of an archive, messages. More than a person puts
/// into one archive.
pub(crate) const MAX_DOCUMENTS: u64 = 5_000;

/// Most that they may unpack to for each byte packed, beyond the first 16 MiB. Text is packed to a tenth, tables
/// to a fiftieth.
const MAX_RATIO: u64 = 200;

/// Most levels of archives and messages inside each other. An archive in a mail in an archive is three.
pub(crate) const MAX_DEPTH: u64 = 4;

/// Most levels of elements inside each other. Office programs write fewer than fifty; each level takes some of the
/// stack.
pub(crate) const MAX_NESTING: u64 = 256;

/// So much may be unpacked whatever it was packed to.
const UNPACKED_ANYWAY: u64 = 16 * MIB;

/// What is left while a document is read.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    pub(crate) limits: ReadLimits,
    /// The bytes of the document.
    packed: u64,
    text: u64,
    documents: u64,
    unpacked: u64,
    /// How many archives and messages this is in.
    pub(crate) depth: u64,
    /// Whether HTML stays as it is, so that its lines are those of the file.
    pub(crate) keeps_source: bool,
}

impl Budget {
    /// For a document of so many bytes.
    pub(crate) fn new(limits: ReadLimits, packed: u64, keeps_source: bool) -> Self {
        Self {
            text: limits.max_text,
            documents: MAX_DOCUMENTS,
            unpacked: 0,
            depth: 0,
            limits,
            packed,
            keeps_source,
        }
    }

    /// How much text there is room for.
    pub(crate) fn room(&self) -> usize {
        usize::try_from(self.text).unwrap_or(usize::MAX)
    }

    /// Notes text that is given; what there is no room for is cut. Says whether it was.
    pub(crate) fn take_text(&mut self, text: &mut String) -> bool {
        let most = text.floor_char_boundary(self.room().min(text.len()));
        let cut = most < text.len();
        text.truncate(most);
        self.text -= most as u64;
        cut
    }

    /// Notes a document that is given; false when there may be no more.
    pub(crate) fn take_document(&mut self) -> bool {
        let left = self.documents > 0;
        self.documents = self.documents.saturating_sub(1);
        left
    }

    /// How much may still be unpacked.
    pub(crate) fn may_unpack(&self) -> u64 {
        let by_ratio = self.packed.saturating_mul(MAX_RATIO).max(UNPACKED_ANYWAY);
        self.limits.max_unpacked.min(by_ratio).saturating_sub(self.unpacked)
    }

    /// Notes what was unpacked.
    ///
    /// # Errors
    /// When it is too much.
    pub(crate) fn take_unpacked(&mut self, bytes: u64) -> Result<(), Failure> {
        if bytes > self.may_unpack() {
            return Err(Failure::TooLarge("what may be unpacked".to_owned()));
        }
        self.unpacked += bytes;
        Ok(())
    }
}
