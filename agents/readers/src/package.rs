//! Zip files, as archives and as what office documents come in: nothing is unpacked beyond the limits, whatever the file
//! says of itself.

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::found::Failure;
use crate::limits::Budget;

/// A zip file.
pub(crate) struct Package<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
}

/// An entry of a zip file.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) is_file: bool,
    pub(crate) is_encrypted: bool,
    pub(crate) size: u64,
}

impl<'a> Package<'a> {
    /// Opens a zip file.
    pub(crate) fn open(bytes: &'a [u8], budget: &Budget) -> Result<Self, Failure> {
        let mut zip = ZipArchive::new(Cursor::new(bytes)).map_err(Failure::broken)?;
        if zip.len() as u64 > budget.limits.max_entries {
            return Err(Failure::TooLarge(format!("{} entries", budget.limits.max_entries)));
        }
        // The same bytes as several entries: a small file that unpacks to a large one many times.
        match zip.has_overlapping_files() {
            Ok(false) => Ok(Self { zip }),
            Ok(true) => Err(Failure::broken("its entries overlap")),
            Err(error) => Err(Failure::broken(error)),
        }
    }

    /// How many entries it has.
    pub(crate) fn len(&self) -> usize {
        self.zip.len()
    }

    /// The names of its entries.
    pub(crate) fn names(&self) -> impl Iterator<Item = std::borrow::Cow<'_, str>> {
        self.zip.file_names().filter_map(Result::ok)
    }

    /// What an entry says of itself.
    pub(crate) fn entry(&mut self, at: usize) -> Result<Entry, Failure> {
        let entry = self.zip.by_index_raw(at).map_err(Failure::broken)?;
        let name = entry.name().map_err(Failure::broken)?.into_owned();
        Ok(Entry {
            name,
            is_file: entry.is_file() && !entry.is_symlink(),
            is_encrypted: entry.encrypted(),
            size: entry.size(),
        })
    }

    /// Unpacks an entry.
    pub(crate) fn unpack(&mut self, at: usize, budget: &mut Budget) -> Result<Vec<u8>, Failure> {
        let entry = self.zip.by_index(at).map_err(failure)?;
        let most = budget.may_unpack();
        let mut bytes = Vec::new();
        entry.take(most + 1).read_to_end(&mut bytes).map_err(Failure::broken)?;
        budget.take_unpacked(bytes.len() as u64)?;
        Ok(bytes)
    }

    /// Unpacks the entry of that name, if there is one.
    pub(crate) fn get(&mut self, name: &str, budget: &mut Budget) -> Result<Option<Vec<u8>>, Failure> {
        match self.zip.index_for_name(name) {
            Some(at) => self.unpack(at, budget).map(Some),
            None => Ok(None),
        }
    }

    /// The same, where the document is broken without it.
    pub(crate) fn need(&mut self, name: &str, budget: &mut Budget) -> Result<Vec<u8>, Failure> {
        self.get(name, budget)?.ok_or_else(|| Failure::broken(format!("{name} is missing")))
    }

    /// The names of the entries that begin and end so, those with lower numbers first.
    pub(crate) fn numbered(&self, beginning: &str, end: &str) -> Vec<String> {
        let names = self.names();
        let number = |name: &str| {
            let digits = name.strip_prefix(beginning)?.strip_suffix(end)?;
            digits.parse::<u64>().ok()
        };
        let mut found: Vec<(u64, String)> =
            names.filter_map(|name| Some((number(&name)?, name.into_owned()))).collect();
        found.sort();
        found.into_iter().map(|(_, name)| name).collect()
    }

    /// What all entries say that they unpack to, taken together, is within the limits.
    pub(crate) fn check_sizes(&mut self, budget: &mut Budget) -> Result<(), Failure> {
        let mut all = 0u64;
        for at in 0..self.len() {
            all = all.saturating_add(self.entry(at)?.size);
        }
        budget.take_unpacked(all)
    }
}

fn failure(error: ZipError) -> Failure {
    match error {
        ZipError::UnsupportedArchive(what) if what == ZipError::PASSWORD_REQUIRED => Failure::Encrypted,
        other => Failure::broken(other),
    }
}
