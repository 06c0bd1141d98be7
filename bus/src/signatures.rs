//! Signatures of what passes on the bus: made with one's own credentials, and verified by the public keys of the fleet that
//! stand in the same file. Without credentials of a fleet nothing is signed, and nothing is demanded.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use muster_shared::ids::RunId;
use muster_shared::run::Digest;
use muster_shared::run::chain::Seal;
use muster_shared::sync::lock;
use muster_shared::time::Millis;

use crate::backend::Message;
use crate::credentials::signing::{Signer, Trust, Verifier, Vouched};
use crate::credentials::{CredentialsError, Identity, fleet_in};

pub use crate::credentials::signing::{Purpose, Signature, SignatureError};

/// The header that a message's signature travels in.
pub const SIGNATURE: &str = "Muster-Signature";

/// Most signers that are kept in mind; one more, and all are forgotten.
const MOST_SIGNERS: usize = 4096;
/// Most runs that are kept in mind; one more, and all are introduced to anew.
const MOST_RUNS: usize = 4096;
/// How often one's own credentials are read anew at most: keys change seldom, and strangers may ask often.
const READ_AGAIN: Duration = Duration::from_secs(3);

/// Signs in the name of this process, and tells who signed what others sent. Cheap to clone.
#[derive(Clone, Default)]
pub struct Signatures {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The credentials file, if there is one.
    file: Option<PathBuf>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    signer: Option<Arc<Signer>>,
    verifier: Option<Arc<Verifier>>,
    /// Runs of which a link that stands in the record has the JWT of this process: the next ones name its key.
    introduced: HashSet<RunId>,
    /// Signers by what signatures tell of them, so that a second signature of somebody's costs one check.
    vouched: HashMap<String, Vouched>,
    read: Option<Instant>,
    /// When it was written that was read.
    written: Option<SystemTime>,
}

impl Signatures {
    /// By a credentials file; without one nothing is signed and nothing demanded.
    ///
    /// # Errors
    /// When the file cannot be read, or tells the keys of another fleet than its own.
    pub fn of(file: Option<&Path>) -> Result<Self, CredentialsError> {
        let known = file.map(Known::read).transpose()?.unwrap_or_default();
        let file = file.map(Path::to_owned);
        Ok(Self { inner: Arc::new(Inner { file, known: Mutex::new(known) }) })
    }

    /// In the name of somebody else than whoever is connected: what he says is signed by his key, and who others are is told by
    /// the keys that are known here.
    #[must_use]
    pub fn in_name_of(&self, signer: Signer) -> Self {
        let verifier = self.known().verifier.clone();
        let known = Known { signer: Some(Arc::new(signer)), verifier, ..Known::default() };
        Self { inner: Arc::new(Inner { file: None, known: Mutex::new(known) }) }
    }

    /// Signs what is said; nothing where the connection has no credentials of a fleet.
    #[must_use]
    pub fn sign(&self, purpose: Purpose, bytes: &[u8]) -> Option<Signature> {
        self.keep_up();
        let signer = self.known().signer.clone()?;
        match signer.sign(purpose, bytes) {
            Ok(signature) => Some(signature),
            Err(error) => {
                tracing::error!(%error, "nothing can be signed");
                None
            }
        }
    }

    /// Who said `bytes` at a time. Nobody in particular where no keys of a fleet are known: nothing is demanded then.
    ///
    /// # Errors
    /// Says why a signature that has to be there proves nothing.
    pub fn verify(
        &self,
        purpose: Purpose,
        signature: Option<&Signature>,
        bytes: &[u8],
        at: Millis,
    ) -> Result<Option<Identity>, SignatureError> {
        let Some(verifier) = self.known().verifier.clone() else { return Ok(None) };
        let signature = signature.ok_or(SignatureError::Missing)?;
        let (verifier, signer) = self.signer_of(verifier, signature)?;
        verifier.check_time(&signer, at)?;
        signer.check(purpose, signature, bytes)?;
        Ok(Some(signer.who().clone()))
    }

    /// Vouches for the hash of a link; nothing where the connection has no credentials of a fleet.
    #[must_use]
    pub fn seal(&self, run: RunId, hash: Digest) -> Option<Seal> {
        let Signature { by, signature } = self.sign(Purpose::Seal, hash.as_bytes())?;
        let known = self.known();
        let key = known.signer.as_ref().filter(|_| known.introduced.contains(&run));
        Some(Seal { by: key.map_or(by, |signer| signer.public_key()), signature })
    }

    /// A link of the run with the JWT of this process stands in its record.
    pub(crate) fn introduced_in(&self, run: RunId) {
        let mut known = self.known();
        if known.introduced.len() >= MOST_RUNS {
            known.introduced.clear();
        }
        known.introduced.insert(run);
    }

    /// Whether signatures are demanded here: the fleet's keys are known.
    #[must_use]
    pub fn demanded(&self) -> bool {
        self.known().verifier.is_some()
    }

    /// Whether orders of people are signed here: by a person's credentials, or an operator's.
    #[must_use]
    pub fn gives_orders(&self) -> bool {
        self.known().signer.as_ref().is_some_and(|signer| signer.gives_orders())
    }

    /// The public keys of the fleet, where they are known.
    #[must_use]
    pub fn fleet(&self) -> Option<Trust> {
        self.known().verifier.as_ref().map(|verifier| verifier.trust().clone())
    }

    /// Reads the credentials anew where the file was written again: keys were rotated.
    fn keep_up(&self) {
        if self.is_rewritten() {
            self.read_again();
        }
    }

    /// Reads the credentials anew: keys may have changed. One that cannot be read changes nothing.
    pub fn read_again(&self) {
        let Some(file) = &self.inner.file else { return };
        match Known::read(file) {
            Ok(known) => *self.known() = known,
            Err(error) => tracing::warn!(%error, "the credentials cannot be read again"),
        }
    }

    /// Who signed, and by whose keys he is known.
    fn signer_of(
        &self,
        verifier: Arc<Verifier>,
        signature: &Signature,
    ) -> Result<(Arc<Verifier>, Vouched), SignatureError> {
        if let Some(known) = self.known().vouched.get(&signature.by) {
            return Ok((verifier, known.clone()));
        }
        let (verifier, vouched) = match verifier.vouch(&signature.by) {
            Err(SignatureError::Stranger { issuer }) if self.is_rewritten() || !self.is_fresh() => {
                tracing::debug!(issuer, "signed by a key that is not known: the fleet's are read again");
                self.read_again();
                let Some(verifier) = self.known().verifier.clone() else {
                    return Err(SignatureError::Stranger { issuer });
                };
                let vouched = verifier.vouch(&signature.by);
                (verifier, vouched)
            }
            vouched => (verifier, vouched),
        };
        let vouched = vouched?;
        let mut known = self.known();
        if known.vouched.len() >= MOST_SIGNERS {
            known.vouched.clear();
        }
        known.vouched.insert(signature.by.clone(), vouched.clone());
        drop(known);
        Ok((verifier, vouched))
    }

    /// Whether the credentials were written since they were read: keys were rotated.
    fn is_rewritten(&self) -> bool {
        let now = self.inner.file.as_deref().and_then(written);
        now.is_some() && now != self.known().written
    }

    /// Whether the credentials were read just now.
    fn is_fresh(&self) -> bool {
        self.known().read.is_some_and(|read| read.elapsed() < READ_AGAIN)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Every change of it is whole.
        lock(&self.inner.known)
    }

    /// Signs a message, where there is something to sign with.
    pub(crate) fn sign_message(&self, purpose: Purpose, mut message: Message) -> Message {
        if let Some(signature) = self.sign(purpose, &said_by(&message.subject, &message.payload)) {
            message.headers.add(SIGNATURE, &signature.to_string());
        }
        message
    }

    /// Who sent a message; nobody in particular where nothing is demanded.
    pub(crate) fn sender_of(
        &self,
        purpose: Purpose,
        message: &Message,
        at: Millis,
    ) -> Result<Option<Identity>, SignatureError> {
        let signature = signature_in(message)?;
        self.verify(purpose, signature.as_ref(), &said_by(&message.subject, &message.payload), at)
    }
}

impl std::fmt::Debug for Signatures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signatures").field("file", &self.inner.file).finish_non_exhaustive()
    }
}

impl Known {
    fn read(file: &Path) -> Result<Self, CredentialsError> {
        let (read, written) = (Some(Instant::now()), written(file));
        let signer = match Signer::from_file(file) {
            Ok(signer) => Some(Arc::new(signer)),
            // The server judges whether they are of use to connect with.
            Err(error) => {
                tracing::debug!(%error, "these credentials sign nothing");
                None
            }
        };
        let verifier = match fleet_in(file)? {
            Some(fleet) => Some(Arc::new(Verifier::of_credentials(file, fleet)?)),
            None => None,
        };
        // Whoever knows no fleet is not known to one.
        let signer = signer.filter(|_| verifier.is_some());
        Ok(Self { signer, verifier, read, written, ..Self::default() })
    }
}

/// When a file was last written.
fn written(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).and_then(|found| found.modified()).ok()
}

/// The bytes of a message that are signed: its subject, a zero byte, and its payload.
#[must_use]
pub fn said_by(subject: &str, payload: &[u8]) -> Vec<u8> {
    [subject.as_bytes(), b"\0", payload].concat()
}

/// The signature that a message bears.
pub(crate) fn signature_in(message: &Message) -> Result<Option<Signature>, SignatureError> {
    message.headers.get(SIGNATURE).map(str::parse).transpose()
}

#[cfg(test)]
mod tests;
