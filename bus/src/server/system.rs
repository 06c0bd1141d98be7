//! The local server's accounts: one for the fleet, which needs no credentials, and the system account, by which
//! orchestrators learn who comes and goes.

use std::fs;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};

use super::config::write_private;
use super::{ServerError, absolute};

/// The user of the system account.
const USER: &str = "sys";
/// Length of its password: that of a UUID in hexadecimal.
const LENGTH: usize = 32;

/// The credentials of a server's system account.
#[derive(Debug, Clone)]
pub struct SystemAccount {
    /// The user.
    pub user: String,
    /// The password.
    pub password: SecretString,
}

/// The system account of the local server that keeps its data here; nothing when there is none, or when this process
/// may not read the credentials.
#[must_use]
pub fn system_account(store_dir: &Path) -> Option<SystemAccount> {
    let text = fs::read_to_string(file(&absolute(store_dir).ok()?)).ok()?;
    let password = Some(text.trim()).filter(|text| is_password(text))?;
    Some(SystemAccount { user: USER.to_owned(), password: SecretString::from(password) })
}

/// The system account of a store; made up when there is none yet. It stays the same over restarts of the server, so
/// that orchestrators find their way back.
pub(super) fn create(store_dir: &Path) -> Result<SystemAccount, ServerError> {
    if let Some(known) = system_account(store_dir) {
        return Ok(known);
    }
    let (path, password) = (file(store_dir), uuid::Uuid::new_v4().simple().to_string());
    write_private(&path, password.as_bytes())
        .map_err(|e| ServerError::io(format!("writing {}", path.display()), e))?;
    Ok(SystemAccount { user: USER.to_owned(), password: SecretString::from(password) })
}

/// The part of the server's configuration that names accounts and users. The system account's user may listen to who
/// comes and goes, and ask who is there, and do nothing else.
pub(super) fn accounts(fleet: &str, system: &SystemAccount) -> String {
    let SystemAccount { user, password } = system;
    let (password, anybody) = (password.expose_secret(), uuid::Uuid::new_v4().simple());
    let ([came, went], roll) = (crate::presence::SUBJECTS, crate::presence::ROLL_REQUEST);
    format!(
        "# Who gives no credentials works for the fleet.\n\
         no_auth_user: anybody\n\
         system_account: SYSTEM\n\
         accounts {{\n  \
           {fleet} {{\n    jetstream: enabled\n    users: [ {{ user: anybody, password: \"{anybody}\" }} ]\n  }}\n  \
           SYSTEM {{\n    users: [ {{\n      user: \"{user}\"\n      password: \"{password}\"\n      \
               permissions {{\n        publish: {{ allow: [\"_INBOX.>\", \"{roll}\"] }}\n        \
                 subscribe: {{ allow: [\"{came}\", \"{went}\", \"_INBOX.>\"] }}\n      }}\n    }} ]\n  }}\n\
         }}\n"
    )
}

fn file(store_dir: &Path) -> PathBuf {
    store_dir.join("system.password")
}

fn is_password(text: &str) -> bool {
    text.len() == LENGTH && text.bytes().all(|b| b.is_ascii_hexdigit())
}
