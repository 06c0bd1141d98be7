//! From a file to its documents: read as text, or by what reads files that are no text.

use std::{io::Read, path::Path};

use super::{
    CorpusOptions, decode,
    extract::{self, ExtractFailure, Extracted, ExtractedDocument, ExtractedFolder, ExtractedKey},
    picture::{Picture, PictureKind},
    scan::{Candidate, Redact, ScanLimits, SkipReason, lines_of},
    unit::{BREAK, Unit},
};

/// A document on its way into a corpus.
pub(super) struct ReadDocument {
    /// Its path, as cited.
    pub(super) path: String,
    /// What of it is cited.
    pub(super) unit: Unit,
    /// Its text, as it may leave the machine.
    pub(super) text: String,
    /// The picture that the text is about.
    pub(super) picture: Option<Picture>,
}

impl ReadDocument {
    /// How much of it is stored, in bytes.
    pub(super) fn stored_bytes(&self) -> u64 {
        let picture = self.picture.as_ref().map_or(0, |picture| picture.bytes.len());
        (self.text.len() + picture) as u64
    }
}

/// What a file gave.
pub(super) struct ReadFile {
    /// Its documents.
    pub(super) documents: Vec<ReadDocument>,
    /// What of it is left out: why, and what to tell.
    pub(super) left_out: Vec<(SkipReason, String)>,
}

/// The documents of a file, or why there is none.
pub(super) fn read(candidate: &Candidate, options: &CorpusOptions) -> ReadFile {
    let path = &candidate.path;
    match read_it(candidate, options) {
        Ok(read) => read,
        Err(reason) => ReadFile { documents: Vec::new(), left_out: vec![(reason, path.clone())] },
    }
}

fn read_it(candidate: &Candidate, options: &CorpusOptions) -> Result<ReadFile, SkipReason> {
    let Candidate { path, file } = candidate;
    let limits = &options.limits;
    let mut file = Opened::new(file)?;
    file.take(decode::SNIFF as u64)?;
    if let Some(extractor) = &options.extractor {
        if extractor.takes(path, &file.bytes) {
            let kind = PictureKind::of(&file.bytes);
            let most = if kind.is_some() { limits.max_picture } else { limits.max_extracted };
            let bytes = file.whole(most)?;
            let picture = kind.map(|kind| Picture { kind, bytes: bytes.clone() });
            let key = ExtractedKey::of(&extractor.version(), path, &bytes);
            let kept = ExtractedFolder::of(&options.cache);
            let redact = options.redact.as_ref();
            let made = match kept.get(&key) {
                // What is a secret may be known only since.
                Some(made) => made.map(|made| redacted(made, redact)),
                None => {
                    let made = extractor.extract(path, bytes).map(|made| redacted(made, redact));
                    // Kept as it may leave the machine: the cache holds no secret that the packs do not.
                    kept.keep(&key, &made);
                    made
                }
            };
            return made
                .map(|made| documents(path, made, limits, picture))
                .map_err(|failure| reason_of(&failure));
        }
        if decode::is_picture(&file.bytes) {
            return Err(SkipReason::Picture);
        }
    }
    let text = text_of(file, limits)?;
    let text = redact(text, options.redact.as_ref()).ok_or(SkipReason::NotRedactable)?;
    let document = ReadDocument { path: path.clone(), unit: Unit::Line, text, picture: None };
    Ok(ReadFile { documents: vec![document], left_out: Vec::new() })
}

const fn reason_of(failure: &ExtractFailure) -> SkipReason {
    match failure {
        ExtractFailure::Encrypted => SkipReason::Encrypted,
        ExtractFailure::TooLarge(_) => SkipReason::TooLarge,
        ExtractFailure::Broken(_) => SkipReason::Broken,
        ExtractFailure::Unknown => SkipReason::Binary,
        ExtractFailure::NotNow(_) => SkipReason::Unreadable,
    }
}

/// A file that is read bit by bit.
struct Opened {
    file: std::fs::File,
    size: u64,
    bytes: Vec<u8>,
}

impl Opened {
    fn new(path: &Path) -> Result<Self, SkipReason> {
        let file = crate::input::open(path).map_err(|_| SkipReason::Unreadable)?;
        let size = file.metadata().map_err(|_| SkipReason::Unreadable)?.len();
        Ok(Self { file, size, bytes: Vec::new() })
    }

    fn take(&mut self, most: u64) -> Result<(), SkipReason> {
        let read = self.file.by_ref().take(most).read_to_end(&mut self.bytes);
        read.map(drop).map_err(|_| SkipReason::Unreadable)
    }

    /// All of it, when it has no more bytes than this.
    fn whole(mut self, most: u64) -> Result<Vec<u8>, SkipReason> {
        if self.size > most {
            return Err(SkipReason::TooLarge);
        }
        self.take(most.saturating_sub(self.bytes.len() as u64) + 1)?;
        if self.bytes.len() as u64 > most { Err(SkipReason::TooLarge) } else { Ok(self.bytes) }
    }
}

fn text_of(file: Opened, limits: &ScanLimits) -> Result<String, SkipReason> {
    if file.size > limits.max_file {
        return Err(SkipReason::TooLarge);
    }
    if decode::looks_binary(&file.bytes) {
        return Err(SkipReason::Binary);
    }
    let text = decode::decode(file.whole(limits.max_file)?).ok_or(SkipReason::Binary)?;
    if text.trim().is_empty() { Err(SkipReason::Empty) } else { Ok(text) }
}

/// A text without its secrets; none when its lines or pages would be others then.
fn redact(text: String, redact: Option<&Redact>) -> Option<String> {
    let Some(redact) = redact else { return Some(text) };
    let redacted = redact(&text);
    let breaks = |text: &str| text.matches(BREAK).count();
    let same = lines_of(&redacted) == lines_of(&text) && breaks(&redacted) == breaks(&text);
    same.then(|| redacted.into_owned())
}

fn redacted(mut made: Extracted, by: Option<&Redact>) -> Extracted {
    let (mut kept, mut unsafe_ones) = (Vec::new(), Vec::new());
    for ExtractedDocument { within, unit, text } in made.documents {
        match redact(text, by) {
            Some(text) => kept.push(ExtractedDocument { within, unit, text }),
            None => unsafe_ones.push(format!("{within}: its secrets could not be taken out")),
        }
    }
    made.documents = kept;
    made.left_out.extend(unsafe_ones);
    made
}

/// What a file holds, as documents of a corpus. A picture is what the file itself is.
fn documents(path: &str, made: Extracted, limits: &ScanLimits, mut picture: Option<Picture>) -> ReadFile {
    let mut left_out: Vec<(SkipReason, String)> =
        made.left_out.into_iter().map(|why| (SkipReason::Partly, format!("{path}: {why}"))).collect();
    let mut documents = Vec::new();
    for ExtractedDocument { within, unit, text } in made.documents {
        let path = if within.is_empty() { path.to_owned() } else { format!("{path}/{within}") };
        if !extract::can_be_cited(&within) {
            left_out.push((SkipReason::BadName, path.replace(char::is_control, "?")));
        } else if text.len() as u64 > limits.max_file {
            left_out.push((SkipReason::TooLarge, path));
        } else if !text.trim().is_empty() {
            let picture = picture.take_if(|_| within.is_empty());
            documents.push(ReadDocument { path, unit, text, picture });
        }
    }
    if documents.is_empty() && left_out.is_empty() {
        left_out.push((SkipReason::NoText, path.to_owned()));
    }
    ReadFile { documents, left_out }
}
