//! Inputs in files: what mutations begin with, and what was found.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Target;

/// What stands before each input in a file that holds several.
const PARTING: &str = "=== ";

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The inputs that mutations of a target begin with, by the names of their files.
///
/// # Errors
/// When a folder or a file of it cannot be read.
pub fn corpus(target: &Target) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut inputs = BTreeMap::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    if own.is_dir() {
        read(&own, &mut inputs)?;
    }
    for fixtures in target.fixtures {
        // Of a folder, all files or those with one ending.
        let (path, ending) = fixtures.split_once("/*").unwrap_or((fixtures, ""));
        let mut all = BTreeMap::new();
        read(&root().join(path), &mut all)?;
        inputs.extend(all.into_iter().filter(|(name, _)| name.ends_with(ending)));
    }
    let made = (target.made)().map_err(io::Error::other)?;
    inputs.extend(made.into_iter().enumerate().map(|(at, input)| (format!("made {at}"), input)));
    Ok(inputs)
}

/// What was found of a target, by the names of the files.
///
/// # Errors
/// When the folder or a file of it cannot be read.
pub fn found(target: &Target) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut inputs = BTreeMap::new();
    let folder = found_folder(target.name);
    if folder.is_dir() {
        for file in files(&folder)? {
            inputs.insert(name_of(&file), fs::read(&file)?);
        }
    }
    Ok(inputs)
}

/// Keeps what was found, and says where.
///
/// # Errors
/// When it cannot be written.
pub fn keep(target: &str, input: &[u8]) -> io::Result<PathBuf> {
    let folder = found_folder(target);
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{:016x}", fnv(input)));
    fs::write(&path, input)?;
    Ok(path)
}

fn found_folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("found").join(target)
}

/// A file, or the files of a folder: several inputs where lines part them, bytes where they are written in hexadecimal.
fn read(path: &Path, into: &mut BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    let all = if path.is_dir() { files(path)? } else { vec![path.to_owned()] };
    for file in all {
        let (name, bytes) = (name_of(&file), fs::read(&file)?);
        let text = std::str::from_utf8(&bytes).ok();
        match (file.extension().and_then(|ending| ending.to_str()), text) {
            (Some("hex"), Some(text)) => {
                let plain: String = text.split_whitespace().collect();
                into.insert(name, hex::decode(plain).map_err(io::Error::other)?);
            }
            (Some("jsonl"), Some(text)) => {
                let lines = text.lines().enumerate();
                into.extend(lines.map(|(at, line)| (format!("{name}:{}", at + 1), line.as_bytes().to_vec())));
            }
            (Some("txt"), Some(text)) if text.starts_with(PARTING) => {
                for (at, one) in text.split(&format!("\n{PARTING}")).enumerate() {
                    let one = one.split_once('\n').map_or("", |(_, input)| input);
                    into.insert(format!("{name}:{}", at + 1), one.as_bytes().to_vec());
                }
            }
            (_, _) => drop(into.insert(name, bytes)),
        }
    }
    Ok(())
}

/// The files of a folder and of those in it, in the order of their names.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { files.extend(self::files(&path)?) } else { files.push(path) }
    }
    files.sort();
    Ok(files)
}

fn name_of(file: &Path) -> String {
    file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// A hash that is the same in every build (FNV-1a).
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
