//! The index: SQLite FTS5 over passages, ranked by BM25. Texts stay in the packs; the index holds where
//! each passage lies.

use std::{
    fs,
    path::Path,
    sync::{Arc, mpsc},
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::{
    Hit, Phase, Progress, ProgressSink, disk,
    error::CorpusError,
    html,
    kind::DocumentKind,
    manifest::{Manifest, ManifestFile, hash_of},
    pack::{self, PackFolder},
    passage::{Passage, passages},
    query,
    readable::{Readable, Within},
    unit::{Cuts, Unit, without_breaks},
};

pub(super) mod find;

/// Raised with every change of the tables, of the tokenizer or of how passages are cut.
const INDEX_VERSION: i64 = 2;

/// The tables. `words` is contentless: it knows which words stand where, not the text. The tokenizer
/// splits names at `_`, so that `max_deliver` is found by its parts, and whole as a phrase; `parts`
/// holds the pieces of names in camel case. `cuts` says on which line each page of a document begins.
pub(super) const SCHEMA: &str = "
    CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE files (
        id INTEGER PRIMARY KEY, path TEXT NOT NULL, pack TEXT NOT NULL,
        position INTEGER NOT NULL, bytes INTEGER NOT NULL, lines INTEGER NOT NULL, unit TEXT NOT NULL
    );
    CREATE TABLE cuts (
        file INTEGER NOT NULL, line INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (file, line)
    ) WITHOUT ROWID;
    CREATE TABLE passages (
        id INTEGER PRIMARY KEY, file INTEGER NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,
        position INTEGER NOT NULL, bytes INTEGER NOT NULL, heading TEXT NOT NULL, shown TEXT
    );
    CREATE VIRTUAL TABLE words USING fts5(
        text, heading, path, parts, content='', tokenize='porter unicode61 remove_diacritics 2'
    );
";

/// How much a word counts in the text, in a heading, in the path, as part of a name.
const RANK: &str = "bm25(words, 1.0, 2.5, 0.7, 0.5)";

/// The documents, as [`FileEntry::read`] reads them.
const FILES: &str = "SELECT id, path, pack, position, bytes, lines, unit FROM files";

/// Where a document lies.
#[derive(Debug, Clone)]
pub(super) struct FileEntry {
    id: i64,
    pub(super) path: String,
    pub(super) pack: String,
    pub(super) position: u64,
    pub(super) bytes: u64,
    pub(super) lines: u64,
    pub(super) unit: Unit,
}

impl FileEntry {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            path: row.get(1)?,
            pack: row.get(2)?,
            position: row.get(3)?,
            bytes: row.get(4)?,
            lines: row.get(5)?,
            unit: Unit::named(&row.get::<_, String>(6)?),
        })
    }
}

/// An open index. Not for async code: every call blocks.
pub(super) struct Index(Connection);

impl Index {
    /// Opens the index if it is there, whole, of this version, and of this very manifest.
    pub(super) fn open(path: &Path, manifest: &str) -> Result<Option<Self>, CorpusError> {
        if !path.is_file() {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags).map_err(CorpusError::from).and_then(|db| {
            db.execute_batch("PRAGMA cache_size = -2048; PRAGMA query_only = ON;")?;
            let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            let of: Option<String> = match version {
                INDEX_VERSION => db
                    .query_row("SELECT value FROM meta WHERE name = 'manifest'", [], |row| row.get(0))
                    .optional()?,
                _ => None,
            };
            Ok((of.as_deref() == Some(manifest)).then_some(Self(db)))
        });
        match opened {
            Err(error) if error.is_broken_index() => {
                tracing::warn!(%error, "the index of documents is broken and will be built again");
                Ok(None)
            }
            other => other,
        }
    }

    /// What stops a query of this index that takes too long.
    pub(super) fn interrupt_handle(&self) -> rusqlite::InterruptHandle {
        self.0.get_interrupt_handle()
    }

    /// The `k` best passages for an FTS5 query, within some of the documents.
    pub(super) fn search(
        &self,
        query: &str,
        within: &Within,
        k: usize,
        packs: &PackFolder,
    ) -> Result<Vec<Hit>, CorpusError> {
        let within = (!within.is_all()).then(|| self.numbers_of(within)).transpose()?;
        let mut best = self.0.prepare_cached(&format!(
            "SELECT rowid, {RANK} AS score FROM words
             WHERE words MATCH ?1 AND (?3 IS NULL OR rowid IN (
                 SELECT p.id FROM passages p WHERE p.file IN (SELECT value FROM json_each(?3))))
             ORDER BY score LIMIT ?2"
        ))?;
        let best: Vec<(i64, f64)> = best
            .query_map(params![query, i64::try_from(k).unwrap_or(i64::MAX), within], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .collect::<Result<_, _>>()?;
        best.into_iter().map(|(id, score)| self.hit(id, -score, packs)).collect()
    }

    /// The numbers of the documents that are looked through, as a list in JSON.
    fn numbers_of(&self, within: &Within) -> Result<String, CorpusError> {
        let files = self.files()?.into_iter().filter(|file| within.has(&file.path));
        Ok(format!("[{}]", files.map(|file| file.id.to_string()).collect::<Vec<_>>().join(",")))
    }

    fn hit(&self, id: i64, score: f64, packs: &PackFolder) -> Result<Hit, CorpusError> {
        let mut statement = self.0.prepare_cached(
            "SELECT f.path, p.start_line, p.end_line, p.heading, p.shown, f.pack, f.position + p.position, p.bytes,
             f.unit, f.id FROM passages p JOIN files f ON f.id = p.file WHERE p.id = ?1",
        )?;
        let (mut hit, file, shown, pack, position, bytes) = statement.query_row([id], |row| {
            let hit = Hit {
                path: row.get(0)?,
                start_line: row.get(1)?,
                end_line: row.get(2)?,
                heading: row.get(3)?,
                unit: Unit::named(&row.get::<_, String>(8)?),
                numbers: Vec::new(),
                text: String::new(),
                score,
            };
            let (shown, pack) = (row.get::<_, Option<String>>(4)?, row.get::<_, String>(5)?);
            Ok((hit, row.get::<_, i64>(9)?, shown, pack, row.get(6)?, row.get(7)?))
        })?;
        hit.text = match shown {
            Some(shown) => shown,
            None => packs.read(&pack, position, bytes)?.replace('\r', ""),
        };
        if hit.unit.is_cut() {
            self.count_by_unit(file, &mut hit)?;
        }
        Ok(hit)
    }

    /// A passage that is known by its lines, by its pages instead.
    fn count_by_unit(&self, file: i64, hit: &mut Hit) -> Result<(), CorpusError> {
        let number = |line: u64| self.number_of(file, line);
        let lines = hit.start_line..=hit.end_line;
        // Empty lines at its ends are not of a passage, and those within are.
        hit.numbers = lines.clone().take(hit.text.lines().count()).map(number).collect::<Result<_, _>>()?;
        (hit.start_line, hit.end_line) = (number(*lines.start())?, number(*lines.end())?);
        hit.text = without_breaks(&hit.text);
        Ok(())
    }

    /// The number of the page that a line is of.
    fn number_of(&self, file: i64, line: u64) -> Result<u64, CorpusError> {
        let mut statement =
            self.0.prepare_cached("SELECT max(number) FROM cuts WHERE file = ?1 AND line <= ?2")?;
        Ok(statement.query_row(params![file, line], |row| row.get::<_, Option<u64>>(0))?.unwrap_or(1))
    }

    /// How many lines, pages and the like a document has.
    pub(super) fn length_of(&self, file: &FileEntry) -> Result<u64, CorpusError> {
        if file.unit.is_cut() { self.number_of(file.id, u64::MAX >> 1) } else { Ok(file.lines) }
    }

    /// The document of that path.
    pub(super) fn file(&self, path: &str) -> Result<Option<FileEntry>, CorpusError> {
        let mut statement = self.0.prepare_cached(&format!("{FILES} WHERE path = ?1"))?;
        Ok(statement.query_row([path], FileEntry::read).optional()?)
    }

    /// All documents in the order of their paths.
    fn files(&self) -> Result<Vec<FileEntry>, CorpusError> {
        let mut statement = self.0.prepare_cached(&format!("{FILES} ORDER BY path"))?;
        Ok(statement.query_map([], FileEntry::read)?.collect::<Result<_, _>>()?)
    }

    /// The paths of all documents.
    pub(super) fn paths(&self) -> Result<Vec<String>, CorpusError> {
        let mut statement = self.0.prepare_cached("SELECT path FROM files ORDER BY path")?;
        Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// The document of that path, if it may be read.
    pub(super) fn readable_file(&self, path: &str, readable: &Readable) -> Result<FileEntry, CorpusError> {
        if let Some(file) = self.file(path)?.filter(|file| readable.is(&file.path)) {
            return Ok(file);
        }
        let mut paths = self.paths()?;
        paths.retain(|path| readable.is(path));
        let nearest = muster_shared::text::nearest_name(path, paths.iter().map(String::as_str));
        let nearest = nearest.map(str::to_owned);
        Err(CorpusError::UnknownPath { path: path.chars().take(300).collect(), nearest })
    }
}

/// The fingerprint of a manifest, placement in packs included.
pub(super) fn fingerprint(manifest: &Manifest) -> String {
    hash_of(&manifest.to_bytes())
}

/// Builds the index of a corpus at `path`, replacing what is there once it is complete. Blocks.
pub(super) fn build(
    path: &Path,
    manifest: &Manifest,
    packs: &PackFolder,
    progress: &ProgressSink,
) -> Result<(), CorpusError> {
    remove_unfinished(path);
    let unfinished = disk::unfinished_beside(path);
    let built = fill(&unfinished, manifest, packs, progress);
    if let Err(error) = built {
        // The first error is the one worth telling; what is left over goes with the next build.
        let _ = fs::remove_file(&unfinished);
        return Err(error);
    }
    fs::rename(&unfinished, path).map_err(CorpusError::io("putting the index in place"))
}

fn remove_unfinished(path: &Path) {
    let Some(entries) = path.parent().and_then(|folder| fs::read_dir(folder).ok()) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(disk::UNFINISHED) {
            // Left by a process that died; the lock is ours, so nobody writes it.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A document cut into passages, on its way to the writer.
struct Cut {
    file: i64,
    path: String,
    text: Arc<str>,
    passages: Vec<Passage>,
    /// The names in camel case of each passage, in parts.
    parts: Vec<String>,
    /// Where its pages are, if it has any.
    cuts: Option<Cuts>,
    html: bool,
}

/// One thread reads and cuts, this one writes.
fn fill(
    path: &Path,
    manifest: &Manifest,
    packs: &PackFolder,
    progress: &ProgressSink,
) -> Result<(), CorpusError> {
    let mut db = Connection::open(path)?;
    db.execute_batch(
        "PRAGMA page_size = 8192; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
         PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY;",
    )?;
    db.execute_batch(SCHEMA)?;
    db.execute_batch(
        "INSERT INTO words(words, rank) VALUES ('hashsize', 25165824);
         INSERT INTO words(words, rank) VALUES ('automerge', 0);
         INSERT INTO words(words, rank) VALUES ('crisismerge', 64);",
    )?;
    let transaction = db.transaction()?;
    let (sender, receiver) = mpsc::sync_channel::<Cut>(8);
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            pack::for_each_text(manifest, packs, |index, file, text| {
                let cut = cut(index, file, text);
                sender.send(cut).map_err(|_| CorpusError::Timeout("the writer of the index"))
            })
        });
        let written = write_files(&transaction, manifest)
            .and_then(|()| write_passages(&transaction, receiver, manifest, progress));
        let read = reader.join().unwrap_or_else(|_| Err(CorpusError::Damaged("a document".to_owned())));
        written.and(read)
    })?;
    transaction.execute("INSERT INTO meta VALUES ('manifest', ?1)", [fingerprint(manifest)])?;
    transaction.execute_batch("CREATE UNIQUE INDEX files_path ON files (path);")?;
    transaction.pragma_update(None, "user_version", INDEX_VERSION)?;
    transaction.commit()?;
    db.execute_batch("INSERT INTO words(words) VALUES ('optimize');")?;
    db.close().map_err(|(_, error)| CorpusError::from(error))
}

fn cut(index: usize, file: &ManifestFile, text: Arc<str>) -> Cut {
    let kind = DocumentKind::of(&file.path);
    let html = kind == DocumentKind::Html;
    let text: Arc<str> = if html { html::to_text(&text).into() } else { text };
    let passages = passages(kind, &text);
    let parts =
        passages.iter().map(|passage| query::camel_parts(&text[passage.start..passage.end])).collect();
    Cut {
        file: i64::try_from(index).unwrap_or(i64::MAX) + 1,
        path: file.path.clone(),
        cuts: file.unit.is_cut().then(|| Cuts::of(&text)),
        text,
        passages,
        parts,
        html,
    }
}

fn write_files(db: &Connection, manifest: &Manifest) -> Result<(), CorpusError> {
    let mut insert = db.prepare("INSERT INTO files VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for (id, file) in (1i64..).zip(&manifest.files) {
        let pack = &manifest.packs[file.pack as usize];
        let unit = file.unit.one();
        insert.execute(params![id, file.path, pack, file.offset, file.bytes, file.lines, unit])?;
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "dropping the receiver on an error ends the reader")]
fn write_passages(
    db: &Connection,
    cuts: mpsc::Receiver<Cut>,
    manifest: &Manifest,
    progress: &ProgressSink,
) -> Result<(), CorpusError> {
    let mut place = db.prepare("INSERT INTO passages VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
    let mut words =
        db.prepare("INSERT INTO words(rowid, text, heading, path, parts) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut begin = db.prepare("INSERT INTO cuts VALUES (?1, ?2, ?3)")?;
    let total = manifest.files.len() as u64;
    let mut bytes = 0;
    let mut id = 0i64;
    for (done, cut) in (1u64..).zip(&cuts) {
        for (passage, parts) in cut.passages.iter().zip(&cut.parts) {
            id += 1;
            let text = &cut.text[passage.start..passage.end];
            place.execute(params![
                id,
                cut.file,
                passage.start_line,
                passage.end_line,
                passage.start as u64,
                text.len() as u64,
                passage.heading,
                cut.html.then_some(text),
            ])?;
            words.execute(params![id, text, passage.heading, cut.path, parts])?;
        }
        for (number, line) in (1u32..).zip(cut.cuts.iter().flat_map(Cuts::starts)) {
            begin.execute(params![cut.file, line, number])?;
        }
        bytes += cut.text.len() as u64;
        if done % 64 == 0 || done == total {
            progress(Progress { phase: Phase::Indexing, done, total, bytes });
        }
    }
    Ok(())
}
