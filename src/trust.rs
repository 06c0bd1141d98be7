//! Whose files count, and what of them: what is found in a folder and is somebody else's counts for nothing, and what
//! would run a program, name who is sent a secret or point at a bus counts when the user has said so.
//!
//! What the user names by a flag or a variable is the user's word; so is `~/.config/muster/muster.toml`.

mod danger;
mod owner;
mod programs;
mod record;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use muster_shared::claim::TrustClaim;

pub(crate) use danger::{Danger, danger, leads_out};
pub(crate) use owner::{Fault, Me, is_own_process, link_in, of_own};
pub(crate) use programs::{Programs, has_ending_of_program, paths_in};
pub(crate) use record::{
    Grant, Item, RecordError, Records, absolute, difference, digest, fingerprint, real, short,
    untrusted_lines,
};

/// Holds folders that the user trusts with all that is in them, with `:` between them.
pub(crate) const VARIABLE: &str = "MUSTER_TRUST";

/// Tells a process that is started which settings file was found and not named: it trusts it no more than we do.
pub(crate) const FOUND: &str = "MUSTER_FOUND";

/// Remedy for untrusted values and files.
pub(crate) const TRUST_HELP: &str = "`muster trust` shows it and asks you once";

/// Most files of a folder that are looked at.
const MOST_FILES: usize = 1000;

/// The largest program whose content is looked at, in bytes.
const MAX_PROGRAM: u64 = 512 * 1024 * 1024;

/// What the user trusts.
#[derive(Debug, Clone)]
pub(crate) struct Trust {
    me: Me,
    folders: Arc<Vec<PathBuf>>,
    records: Records,
    keys: Records,
}

impl Trust {
    /// By the environment: whose state and which folders.
    pub(crate) fn new(variables: &[(String, String)]) -> Self {
        let me = Me::of_process();
        let folders = variable(variables, VARIABLE).into_iter().flat_map(std::env::split_paths);
        // What a relative one would mean depends on where a process is.
        let folders = folders.filter(|folder| folder.is_absolute()).map(|folder| real(&folder)).collect();
        let state = home(variables, "XDG_STATE_HOME", ".local/state");
        let records = |name| Records::new(me, state.as_deref(), name);
        // One file for each project, and one for each folder of keys of a fleet that the user made.
        Self { me, folders: Arc::new(folders), records: records("trust"), keys: records("keys") }
    }

    /// What is kept of what was allowed.
    pub(crate) const fn records(&self) -> &Records {
        &self.records
    }

    /// Whether a folder that holds this is trusted by the environment, with all that is in it.
    pub(crate) fn is_named(&self, path: &Path) -> bool {
        let path = real(path);
        self.folders.iter().any(|folder| path.starts_with(folder))
    }

    /// What is wrong with a file that was found and has this content, unless it was trusted with it. Whoever may change it
    /// may do so between two looks: what was looked at is what is used.
    pub(crate) fn fault_of_found(&self, path: &Path, base: &Path, content: &str) -> Option<Fault> {
        self.plain_fault(path, base).filter(|_| !self.is_trusted_with(path, content))
    }

    /// The same for one that was named.
    pub(crate) fn fault_of_named(&self, path: &Path, content: &str) -> Option<Fault> {
        owner::of_named(self.me, path).filter(|_| !self.is_trusted_with(path, content))
    }

    /// What is wrong with a folder that was found, or with a file in it whose name ends so. Others read these files, at
    /// another time: only the whole folder can be trusted.
    pub(crate) fn fault_within(&self, folder: &Path, ending: &str) -> Option<Fault> {
        if !folder.is_dir() || self.is_named(folder) {
            return None;
        }
        let files = files_of(folder, ending);
        let of_files = files.iter().find_map(|file| self.plain_fault(file, folder));
        // An empty folder is looked at for those that come later.
        of_files.or_else(|| files.is_empty().then(|| self.plain_fault(folder, folder)).flatten())
    }

    /// What is wrong with a file that was found, trusted or not.
    pub(crate) fn plain_fault(&self, path: &Path, base: &Path) -> Option<Fault> {
        owner::of_found(self.me, path, base)
    }

    /// Whether a file of others was trusted with this content.
    fn is_trusted_with(&self, path: &Path, content: &str) -> bool {
        self.allows(path, || Some(Item::file(Danger::Foreign, path, content.as_bytes(), "")))
    }

    /// Whether a program of a project was trusted with what is in it now, and nobody else can change that.
    pub(crate) fn trusts_program(&self, path: &Path) -> bool {
        let closed = |_: &Item| self.plain_fault(path, path.parent().unwrap_or(path)).is_none();
        self.allows(path, || file_item(Danger::Program, path, "").filter(closed))
    }

    /// Checks that the user has trusted these items with their present content.
    ///
    /// # Errors
    /// Lists the items that are not trusted, or the changes since they were; and the remedy.
    pub(crate) fn consent(&self, path: &Path, wanted: Vec<Item>) -> Result<(), String> {
        if wanted.is_empty() || self.is_named(path) {
            return Ok(());
        }
        let grants = self.records.all().map_err(|error| error.to_string())?;
        let (held_back, what) = untrusted_lines(&grants, wanted);
        if held_back.is_empty() {
            return Ok(());
        }
        Err(format!("{} would do what takes your word:{what}\n{TRUST_HELP}", path.display()))
    }

    /// Whether keys were made by the user, wherever they lie now, or are trusted: in a folder that is a copy of somebody else's
    /// they are his.
    pub(crate) fn knows(&self, folder: &Path, keys: &Item) -> bool {
        self.made(folder, keys) || self.allows(folder, || Some(keys.clone()))
    }

    /// Whether keys were made by the user.
    pub(crate) fn made(&self, folder: &Path, keys: &Item) -> bool {
        let holds = |grant: &Grant| grant.allows(keys);
        self.keys.of(folder).is_ok_and(|grant| grant.as_ref().is_some_and(holds))
            || self.keys.all().is_ok_and(|grants| grants.iter().any(holds))
    }

    /// Keeps that the user made these keys.
    ///
    /// # Errors
    /// When there is no place for it that is the user's own.
    pub(crate) fn keep(&self, folder: &Path, keys: Item) -> Result<(), RecordError> {
        let grant = Grant { folder: real(folder), at: muster_bus::now().0, items: vec![keys] };
        self.keys.keep(&grant).map(|_| ())
    }

    fn allows(&self, path: &Path, item: impl FnOnce() -> Option<Item>) -> bool {
        if self.is_named(path) {
            return true;
        }
        let Some(item) = item() else { return false };
        self.records.all().is_ok_and(|grants| grants.iter().any(|grant| grant.allows(&item)))
    }
}

impl Default for Trust {
    /// Nothing.
    fn default() -> Self {
        Self::new(&[])
    }
}

/// The files of a folder whose names end so, in order.
pub(crate) fn files_of(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let named = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().ends_with(ending);
    let mut files: Vec<PathBuf> =
        entries.flatten().filter(named).take(MOST_FILES).map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Items of a file: the file with its present content, each claim, and the programs of the project that it runs. Empty if it
/// has no claims.
pub(crate) fn items_of(
    path: &Path,
    text: &str,
    claims: &[TrustClaim],
    programs: &BTreeSet<PathBuf>,
) -> Vec<Item> {
    if claims.is_empty() {
        return Vec::new();
    }
    let file = Item::file(Danger::File, path, text.as_bytes(), "its claims are listed");
    let claimed = claims.iter().map(|claim| Item::claim(path, claim));
    let run = format!("run by {}", path.display());
    let programs = programs.iter().filter_map(|program| file_item(Danger::Program, program, &run));
    std::iter::once(file).chain(claimed).chain(programs).collect()
}

/// A file as a thing to be trusted; nothing when it cannot be read.
pub(crate) fn file_item(what: Danger, path: &Path, why: &str) -> Option<Item> {
    let is_fit = std::fs::metadata(path).is_ok_and(|known| known.is_file() && known.len() <= MAX_PROGRAM);
    let content = is_fit.then(|| std::fs::read(path).ok()).flatten()?;
    Some(Item::file(what, path, &content, why))
}

/// Items of the prompt templates in a directory.
pub(crate) fn template_items(folder: &Path) -> Vec<Item> {
    let files = files_of(folder, ".j2");
    files.iter().filter_map(|path| file_item(Danger::Prompt, path, "a prompt template")).collect()
}

/// A server program that lies in the project, as `.muster/bin/nats-server` in this folder or one above.
pub(crate) fn project_server(folder: &Path) -> Option<PathBuf> {
    let mut servers = folder.ancestors().map(|folder| folder.join(".muster/bin/nats-server"));
    servers.find(|path| path.is_file() && programs::is_executable(path))
}

/// Directory of the user's own settings file, if there is a place for one.
pub(crate) fn own_folder(variables: &[(String, String)]) -> Option<PathBuf> {
    Some(home(variables, "XDG_CONFIG_HOME", ".config")?.join("muster"))
}

/// A folder of the user's: what the variable names, else this one below the home. By the convention, relative paths do not
/// count.
fn home(variables: &[(String, String)], name: &str, below: &str) -> Option<PathBuf> {
    let absolute = |path: &str| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let named = variable(variables, name).and_then(absolute);
    named.or_else(|| Some(variable(variables, "HOME").and_then(absolute)?.join(below)))
}

fn variable<'a>(variables: &'a [(String, String)], name: &str) -> Option<&'a str> {
    variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}
