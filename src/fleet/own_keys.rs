//! Whose the keys of the local fleet are: a folder may be a copy, and whoever made the keys in it would be operator of the fleet.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use muster_bus::BusError;
use muster_bus::credentials::{CredentialsError, FleetKeys};
use muster_bus::server::ServerError;

use crate::app::App;
use crate::exit::{Failure, usage};
use crate::trust::{self, Item, Me};

/// Whether others than its owner and its group can read a file.
pub(crate) fn is_open(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o007 != 0)
}

/// What is wrong with a folder of keys: others can read it or what is secret in it, it is somebody else's, or it is not whole.
pub(crate) fn fault(folder: &Path) -> Option<String> {
    if !folder.is_dir() {
        return None;
    }
    if let Some(fault) = trust::of_own(Me::of_process(), folder) {
        return Some(fault.to_string());
    }
    if let Err(error) = FleetKeys::open(folder) {
        return Some(error.to_string());
    }
    let secret =
        ["nk", "creds", "key"].into_iter().flat_map(|ending| trust::files_of(folder, &format!(".{ending}")));
    let is_open =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0);
    secret.into_iter().find(is_open).map(|path| format!("{} can be read by others", path.display()))
}

/// Makes the keys of a folder where there are none, and keeps in the user's own state that they are the user's.
///
/// # Errors
/// When they cannot be read or made.
pub(crate) fn make(app: &App, folder: &Path) -> Result<FleetKeys, CredentialsError> {
    if let Some(keys) = FleetKeys::open(folder)? {
        return Ok(keys);
    }
    let keys = FleetKeys::open_or_make(folder)?;
    keep(app, folder, Item::keys(folder, &keys.account()));
    Ok(keys)
}

/// Keeps that the user made what is in a folder; where that cannot be done, this very start goes on.
pub(crate) fn keep(app: &App, folder: &Path, keys: Item) {
    if let Err(error) = app.trust.keep(folder, keys) {
        tracing::warn!(
            "it cannot be kept that the keys in {} are yours ({error}): the next start here will ask for `muster trust`; \
             XDG_STATE_HOME or HOME names a folder of yours",
            folder.display()
        );
    }
}

/// Makes the keys of a server where there are none, and refuses those of which it is not known that they are the user's.
///
/// # Errors
/// When they are not, or cannot be read or made.
pub(crate) fn made_or_trusted(app: &App, folder: &Path) -> Result<(), Failure> {
    let failed = |error: CredentialsError| Failure::from(BusError::from(ServerError::from(error)));
    let Some(known) = FleetKeys::open(folder).map_err(failed)? else {
        return make(app, folder).map(|_| ()).map_err(failed);
    };
    if app.trust.knows(folder, &Item::keys(folder, &known.account())) {
        return Ok(());
    }
    Err(usage!(
        "the keys in {} are not known to be yours: they came with the folder. Whoever has made them is operator of the fleet that comes up with them",
        folder.display()
    )
    .help(
        "`muster trust` shows them and asks you once, where they are yours; else take the folder away, and new ones are made. \
         MUSTER_TRUST names folders that are trusted with all that is in them",
    ))
}
