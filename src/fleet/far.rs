//! The desk of a machine that joined: credentials for its processes are asked for where the fleet's keys are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use muster_bus::credentials::{Credentials, OwnKey};
use muster_bus::hosts::{Answer, Asking, HostQuestion, StartAnswer, StartQuestion};
use muster_bus::{Asker, BusError, Reply};
use muster_shared::ids::Role;
use tokio::sync::Mutex;

use super::pass::{CREDENTIALS, TLS};

/// Where it finds what its machine is called in the fleet.
pub(crate) const HOST: &str = "MUSTER_HOST";

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long after one that did not come it is asked again.
const AGAIN: Duration = Duration::from_millis(300);

/// How often all are vouched for again at the least, whether the fleet said that its keys are others or was not heard.
const RENEWAL: Duration = Duration::from_secs(300);

/// Whom a process was let in as, and by which key.
#[derive(Debug)]
struct Started {
    role: Role,
    key: Arc<OwnKey>,
}

/// What this machine proves itself by.
#[derive(Debug)]
pub(crate) struct Own {
    /// Its key.
    pub(crate) key: OwnKey,
    /// The file of its credentials.
    pub(crate) file: PathBuf,
}

/// Where a machine that joined asks.
#[derive(Debug)]
pub(crate) struct FarDesk {
    asker: Asker,
    /// Where credentials are kept.
    folder: PathBuf,
    /// The fleet's own authority, where connections are encrypted.
    authority: Option<PathBuf>,
    own: Own,
    /// The processes that were started last, by name.
    started: Mutex<BTreeMap<String, Started>>,
    /// Whether it was told that nobody answers.
    told: AtomicBool,
}

impl FarDesk {
    pub(crate) fn new(asker: Asker, own: Own, folder: &Path, authority: Option<PathBuf>) -> Self {
        let (folder, started) = (folder.to_owned(), Mutex::default());
        Self { asker, folder, authority, own, started, told: AtomicBool::new(false) }
    }

    /// Has this machine and its processes vouched for again, every so often, until it is dropped. Connections that are there stay;
    /// the next ones are made by what is written.
    pub(crate) async fn renew(&self) {
        let nudges = self.asker.nudges().await;
        let mut nudges = nudges.unwrap_or_else(|_| futures::stream::pending().boxed());
        loop {
            tokio::select! {
                Some(()) = nudges.next() => {}
                () = tokio::time::sleep(RENEWAL) => {}
            }
            self.renew_all().await;
        }
    }

    async fn renew_all(&self) {
        let stay = HostQuestion::Stay(self.own.key.public());
        let told = |what: &str, error: String| tracing::warn!(error, "{what} cannot be renewed");
        let kept = self.ask(&stay).await.and_then(|answer| write(&self.own.key, answer, &self.own.file));
        if let Err(error) = kept {
            return told("the credentials of this machine", error);
        }
        for (member, role, key) in self.all_started().await {
            let renewed = self.vouched(&role, &member, &key).await;
            // One that was started again meanwhile has others.
            let started = self.started.lock().await;
            if !started.get(&member).is_some_and(|one| Arc::ptr_eq(&one.key, &key)) {
                continue;
            }
            if let Err(error) = renewed.and_then(|answer| write(&key, answer, &self.file_of(&member))) {
                told(&member, error);
            }
        }
    }

    async fn all_started(&self) -> Vec<(String, Role, Arc<OwnKey>)> {
        let started = self.started.lock().await;
        started.iter().map(|(name, one)| (name.clone(), one.role.clone(), Arc::clone(&one.key))).collect()
    }

    fn file_of(&self, member: &str) -> PathBuf {
        self.folder.join(format!("{member}.creds"))
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
        let key = Arc::new(OwnKey::new());
        let started = Started { role: role.clone(), key: Arc::clone(&key) };
        self.started.lock().await.insert(member.to_owned(), started);
        let answer = self.vouched(role, member, &key).await?;
        let file = self.file_of(member);
        write(&key, answer, &file)?;
        let told = [
            Some((CREDENTIALS, file.display().to_string())),
            Some((HOST, self.asker.who().to_string())),
            self.authority.as_ref().map(|file| (TLS[0], file.display().to_string())),
        ];
        Ok(told.into_iter().flatten().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    async fn vouched(&self, role: &Role, member: &str, key: &OwnKey) -> Result<StartAnswer, String> {
        let (key, role) = (key.public(), role.clone());
        let member = member.parse().map_err(|error| format!("{member:?}: {error}"))?;
        self.ask(&HostQuestion::Start(StartQuestion { key, role, member })).await
    }

    async fn ask(&self, question: &HostQuestion) -> Result<StartAnswer, String> {
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

fn write(key: &OwnKey, answer: StartAnswer, file: &Path) -> Result<(), String> {
    let made = Credentials::of_own(key, answer.jwt, answer.fleet).and_then(|made| made.write(file));
    made.map_err(|error| format!("its credentials cannot be kept: {error}"))
}
