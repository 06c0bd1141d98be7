//! Signatures of what passes on the bus: made with one's own credentials, and verified by the public keys of the fleet that
//! stand in the same file. Without credentials of a fleet nothing is signed, and nothing is demanded.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use muster_shared::ids::RunId;
use muster_shared::run::Digest;
use muster_shared::run::chain::Seal;
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
    /// When the file was last looked at.
    looked: Option<Instant>,
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

    /// The public keys of the fleet, where they are known.
    #[must_use]
    pub fn fleet(&self) -> Option<Trust> {
        self.known().verifier.as_ref().map(|verifier| verifier.trust().clone())
    }

    /// Reads the credentials anew where the file was written again: keys were rotated.
    fn keep_up(&self) {
        let Some(file) = &self.inner.file else { return };
        let mut known = self.known();
        if known.looked.is_some_and(|looked| looked.elapsed() < READ_AGAIN) {
            return;
        }
        known.looked = Some(Instant::now());
        let is_other = written(file) != known.written;
        drop(known);
        if is_other {
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
            Err(SignatureError::Stranger { issuer }) if !self.is_fresh() => {
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

    /// Whether the credentials were read just now.
    fn is_fresh(&self) -> bool {
        self.known().read.is_some_and(|read| read.elapsed() < READ_AGAIN)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Every change of it is whole.
        self.inner.known.lock().unwrap_or_else(PoisonError::into_inner)
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
        Ok(Self { signer, verifier, read, looked: read, written, ..Self::default() })
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
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::credentials::{FleetKeys, Holder, HolderKind};

    const NOW: Millis = Millis(2_000_000_000_000);

    struct Fleet {
        folder: tempfile::TempDir,
        keys: FleetKeys,
    }

    fn fleet() -> Fleet {
        let folder = tempfile::tempdir().unwrap();
        let keys = FleetKeys::open_or_make(&folder.path().join("keys")).unwrap();
        Fleet { folder, keys }
    }

    impl Fleet {
        fn write(&self, name: &str) -> PathBuf {
            let path = self.folder.path().join(format!("{name}.creds"));
            let holder = Holder::Orchestrator { id: name.parse().unwrap() };
            self.keys.issue_to(&path, &holder, None).unwrap();
            path
        }

        fn member(&self, name: &str) -> Signatures {
            Signatures::of(Some(&self.write(name))).unwrap()
        }
    }

    #[test]
    fn what_one_signs_the_others_verify() {
        let fleet = fleet();
        let (one, other) = (fleet.member("o-1"), fleet.member("o-2"));
        let signature = one.sign(Purpose::Control, b"stop").unwrap();
        let signature: Signature = signature.to_string().parse().unwrap();
        for _ in 0..2 {
            let who = other.verify(Purpose::Control, Some(&signature), b"stop", NOW).unwrap().unwrap();
            assert_eq!((who.name.as_str(), who.kind), ("o-1", HolderKind::Orchestrator));
        }
        assert_eq!(other.known().vouched.len(), 1);
        for (purpose, said) in [(Purpose::Control, &b"go"[..]), (Purpose::Order, b"stop")] {
            let refused = other.verify(purpose, Some(&signature), said, NOW);
            assert!(matches!(refused, Err(SignatureError::Wrong { .. })), "{refused:?}");
        }
        assert_eq!(other.verify(Purpose::Control, None, b"stop", NOW), Err(SignatureError::Missing));
    }

    #[test]
    fn without_keys_of_a_fleet_nothing_is_signed_and_nothing_demanded() {
        let fleet = fleet();
        let path = fleet.write("o-1");
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, _) = text.split_once("-----BEGIN MUSTER FLEET KEYS").unwrap();
        std::fs::write(&path, before).unwrap();
        for nobody in [Signatures::of(None).unwrap(), Signatures::of(Some(&path)).unwrap()] {
            assert!(nobody.sign(Purpose::Order, b"x").is_none() && !nobody.demanded());
            assert_eq!(nobody.verify(Purpose::Order, None, b"x", NOW), Ok(None));
        }
        assert!(Signatures::of(Some(Path::new("/nowhere.creds"))).is_err());
    }

    #[test]
    fn the_keys_of_another_fleet_in_ones_credentials_are_refused() {
        let (one, other) = (fleet(), fleet());
        let (path, foreign) = (one.write("o-1"), other.write("o-1"));
        let text = |path: &Path| std::fs::read_to_string(path).unwrap();
        let mark = "-----BEGIN MUSTER FLEET KEYS";
        let (own, foreign) = (text(&path), text(&foreign));
        let mixed =
            format!("{}{mark}{}", own.split_once(mark).unwrap().0, foreign.split_once(mark).unwrap().1);
        std::fs::write(&path, mixed).unwrap();
        assert!(Signatures::of(Some(&path)).is_err());
    }

    #[test]
    fn keys_that_changed_are_read_again_and_not_too_often() {
        let fleet = fleet();
        let path = fleet.write("o-1");
        let old = Signatures::of(Some(&path)).unwrap();
        // A new signing key of orchestrators, as after a rotation.
        std::fs::remove_file(fleet.folder.path().join("keys/signing-orchestrator.nk")).unwrap();
        let keys = FleetKeys::open_or_make(&fleet.folder.path().join("keys")).unwrap();
        let fleet = Fleet { folder: fleet.folder, keys };
        fleet.write("o-1");
        let new = fleet.member("o-2").sign(Purpose::Order, b"x").unwrap();
        let asked = || old.verify(Purpose::Order, Some(&new), b"x", NOW);
        assert!(matches!(asked(), Err(SignatureError::Stranger { .. })), "they were read just now");
        old.known().read = None;
        assert_eq!(asked().unwrap().unwrap().name.as_str(), "o-2");
    }

    #[test]
    fn who_was_given_other_credentials_signs_by_them() {
        let fleet = fleet();
        let (path, reader) = (fleet.write("o-1"), fleet.member("o-2"));
        let one = Signatures::of(Some(&path)).unwrap();
        let before = one.sign(Purpose::Order, b"x").unwrap();
        fleet.write("o-1");
        // As some time later.
        one.known().looked = None;
        one.known().written = None;
        let after = one.sign(Purpose::Order, b"x").unwrap();
        assert_ne!(before.by, after.by);
        for signature in [before, after] {
            assert!(reader.verify(Purpose::Order, Some(&signature), b"x", NOW).unwrap().is_some());
        }
    }

    #[test]
    fn a_signature_holds_for_its_subject_alone() {
        let fleet = fleet();
        let (one, other) = (fleet.member("o-1"), fleet.member("o-2"));
        let message = |subject: &str| Message {
            subject: subject.to_owned(),
            headers: crate::backend::Headers::default(),
            payload: bytes::Bytes::from_static(b"{}"),
        };
        let signed = one.sign_message(Purpose::Control, message("ctl.all"));
        assert!(other.sender_of(Purpose::Control, &signed, NOW).unwrap().is_some());
        let moved = Message { subject: "ctl.role.worker".to_owned(), ..signed };
        assert!(other.sender_of(Purpose::Control, &moved, NOW).is_err());
        assert_eq!(other.sender_of(Purpose::Control, &message("ctl.all"), NOW), Err(SignatureError::Missing));
    }
}
