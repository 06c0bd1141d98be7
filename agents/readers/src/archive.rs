//! Archives: zip, tar and gzip. What lies in them is read as if it lay in a folder.

use std::io::{Cursor, Read};

use flate2::read::MultiGzDecoder;

use crate::found::{Failure, Found};
use crate::limits::Budget;
use crate::mail::within;
use crate::names::Names;
use crate::package::Package;
use crate::read::read_within;

/// The files of a zip archive.
pub(crate) fn zip(bytes: &[u8], budget: &mut Budget) -> Result<Found, Failure> {
    let mut package = Package::open(bytes, budget)?;
    let mut found = Found::of("zip", Vec::new());
    let mut names = Names::default();
    for at in 0..package.len() {
        let entry = match package.entry(at) {
            Ok(entry) => entry,
            Err(failure) => {
                found.leave_out(format!("an entry that {}", failure.in_short()));
                continue;
            }
        };
        if !entry.is_file {
            continue;
        }
        let name = names.path(&entry.name);
        if entry.is_encrypted {
            found.leave_out(format!("{name}: it is encrypted"));
            continue;
        }
        if budget.room() == 0 {
            found.leave_out("what comes after: there is too much text");
            break;
        }
        within(&mut found, &name, budget, |budget| {
            let bytes = package.unpack(at, budget)?;
            read_within(&bytes, &name, None, budget)
        });
    }
    refuse_if_encrypted(found, "is encrypted")
}

/// What has nothing that can be read, and says of all of it that it is encrypted, is encrypted.
fn refuse_if_encrypted(found: Found, said: &str) -> Result<Found, Failure> {
    let is_all = !found.left_out.is_empty() && found.left_out.iter().all(|why| why.ends_with(said));
    if found.parts.is_empty() && is_all { Err(Failure::Encrypted) } else { Ok(found) }
}

/// The files of a tar archive.
pub(crate) fn tar(bytes: &[u8], budget: &mut Budget) -> Result<Found, Failure> {
    let mut archive = tar::Archive::new(Cursor::new(bytes));
    let mut found = Found::of("tar", Vec::new());
    let mut names = Names::default();
    let entries = archive.entries().map_err(Failure::broken)?;
    for (number, entry) in (1u64..).zip(entries) {
        if number > budget.limits.max_entries || budget.room() == 0 {
            found.leave_out("what comes after: there is too much");
            break;
        }
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) if found.parts.is_empty() => return Err(Failure::broken(error)),
            Err(error) => {
                found.leave_out(format!("what comes after: it {}", Failure::broken(error).in_short()));
                break;
            }
        };
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = names.path(&String::from_utf8_lossy(&entry.path_bytes()));
        within(&mut found, &name, budget, |budget| {
            let bytes = unpacked(&mut entry, budget)?;
            read_within(&bytes, &name, None, budget)
        });
    }
    Ok(found)
}

/// What a gzip file holds: an archive, or one file.
pub(crate) fn gzip(bytes: &[u8], name: &str, budget: &mut Budget) -> Result<Found, Failure> {
    let unpacked = unpacked(&mut MultiGzDecoder::new(bytes), budget)?;
    if unpacked.get(257..262) == Some(b"ustar") {
        return tar(&unpacked, budget);
    }
    let last = name.rsplit('/').next().unwrap_or(name);
    let inner = last.strip_suffix(".gz").unwrap_or(last).to_owned();
    let mut found = Found::of("gz", Vec::new());
    let mut names = Names::default();
    let inner = names.name(&inner);
    within(&mut found, &inner, budget, |budget| read_within(&unpacked, &inner, None, budget));
    Ok(found)
}

fn unpacked(from: &mut impl Read, budget: &mut Budget) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    from.take(budget.may_unpack() + 1).read_to_end(&mut bytes).map_err(Failure::broken)?;
    budget.take_unpacked(bytes.len() as u64)?;
    Ok(bytes)
}
