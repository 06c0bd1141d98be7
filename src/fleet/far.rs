//! The desk of a machine that joined: credentials for its processes are asked for where the fleet's keys are.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use muster_bus::credentials::{Credentials, OwnKey};
use muster_bus::hosts::{Answer, Asking, StartAnswer, StartQuestion};
use muster_bus::{Asker, BusError, Reply};
use muster_shared::ids::Role;

use super::pass::CREDENTIALS;

/// Where a process of ours finds the fleet's own authority.
const AUTHORITY: &str = "MUSTER_BUS_TLS_CA";
/// Where it finds what its machine is called in the fleet.
pub(crate) const HOST: &str = "MUSTER_HOST";

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long after one that did not come it is asked again.
const AGAIN: Duration = Duration::from_millis(300);

/// Where a machine that joined asks.
#[derive(Debug)]
pub(crate) struct FarDesk {
    asker: Asker,
    /// Where credentials are kept.
    folder: PathBuf,
    /// The fleet's own authority, where connections are encrypted.
    authority: Option<PathBuf>,
    /// Whether it was told that nobody answers.
    told: AtomicBool,
}

impl FarDesk {
    pub(crate) const fn new(asker: Asker, folder: PathBuf, authority: Option<PathBuf>) -> Self {
        Self { asker, folder, authority, told: AtomicBool::new(false) }
    }

    /// Waits until this machine is let in no more, and says why.
    pub(crate) async fn failed(&self) -> BusError {
        self.asker.failed().await
    }

    /// Gets credentials for a process, however long nobody answers: it could do nothing without the fleet anyway.
    ///
    /// # Errors
    /// Says why there are none.
    pub(crate) async fn issue(&self, role: &Role, member: &str) -> Result<Vec<(String, String)>, String> {
        // The same key in every try: whoever was heard and not understood is told the same again.
        let key = OwnKey::new();
        let question = StartQuestion {
            key: key.public(),
            role: role.clone(),
            member: member.parse().map_err(|error| format!("{member:?}: {error}"))?,
        };
        let StartAnswer { jwt, .. } = self.ask(&question).await?;
        let file = self.folder.join(format!("{member}.creds"));
        let made = Credentials::of_own(&key, jwt).and_then(|made| made.write(&file));
        made.map_err(|error| format!("its credentials cannot be kept: {error}"))?;
        let told = [
            Some((CREDENTIALS, file.display().to_string())),
            Some((HOST, self.asker.who().to_string())),
            self.authority.as_ref().map(|file| (AUTHORITY, file.display().to_string())),
        ];
        Ok(told.into_iter().flatten().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    async fn ask(&self, question: &StartQuestion) -> Result<StartAnswer, String> {
        let asking = Asking::Start(self.asker.who().clone());
        loop {
            let why = match self.asker.ask::<_, Answer<StartAnswer>>(&asking, question, PATIENCE).await {
                Ok(Reply::Answered(Answer::Granted(answer))) => {
                    self.told.store(false, Ordering::Relaxed);
                    return Ok(answer);
                }
                Ok(Reply::Answered(Answer::Refused(why))) => return Err(format!("no credentials: {why}")),
                Ok(Reply::Answered(Answer::Failed(why))) => why,
                Ok(Reply::Nobody) => "no `muster up` supervises the fleet now".to_owned(),
                Ok(Reply::Silence) => "the fleet does not answer".to_owned(),
                Err(error) => return Err(error.to_string()),
            };
            if !self.told.swap(true, Ordering::Relaxed) {
                tracing::warn!("processes wait for credentials to be started with: {why}");
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}
