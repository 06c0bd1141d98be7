//! Signatures by the keys of credentials: who said something, provable to whoever knows the fleet's public keys. Pure, but
//! for reading the files.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_shared::time::Millis;
use nkeys::{KeyPair, KeyPairType};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::claims::{Claims, HEADER, Said};
use super::keys::ROLE;
use super::scope::Scope;
use super::{CredentialsError, HolderKind, Identity, claims_in, identity_of, parts_of};

/// Goes before everything that is signed. A client also signs what a server gives it when it connects, which is text: the
/// first byte stands in no text, so no server can have something signed that counts here.
const CONTEXT: &[u8] = b"\xffmuster signature 1\0";
/// Longest JWT of a user that is looked at, in bytes.
const LONGEST: usize = 8 * 1024;

/// What is said by a signature. It is part of what is signed: what was signed for one purpose counts for no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Purpose {
    /// A durable command.
    Order,
    /// A message that a process obeys or answers at once.
    Control,
    /// What a task may use.
    Rights,
    /// A link of a run's hash chain.
    Seal,
    /// A dead letter, by its writer.
    Letter,
}

impl Purpose {
    /// How it stands in what is signed.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// That somebody said something. As text: the signature, a dot, and who it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The JWT of the signer, which is not secret.
    pub by: String,
    /// The signature of what was said, by the key that the JWT names.
    pub signature: String,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.signature, self.by)
    }
}

impl FromStr for Signature {
    type Err = SignatureError;

    fn from_str(text: &str) -> Result<Self, SignatureError> {
        let wrong = || SignatureError::malformed("it is no signature, a dot, and whose it is");
        let (signature, by) = text.split_once('.').ok_or_else(wrong)?;
        Ok(Self { by: by.to_owned(), signature: signature.to_owned() })
    }
}

/// What is exchanged in the form in which a signature is kept.
const EXCHANGED: [(char, char); 3] = [('.', ':'), ('-', '+'), ('_', '/')];

fn exchanged(letter: char) -> char {
    let other = |&(one, other): &(char, char)| match letter {
        _ if letter == one => Some(other),
        _ if letter == other => Some(one),
        _ => None,
    };
    EXCHANGED.iter().find_map(other).unwrap_or(letter)
}

impl Signature {
    /// In the form in which it is kept in what is recorded: a JWT as such would be taken for a secret, and redacted.
    #[must_use]
    pub fn kept(&self) -> String {
        self.to_string().chars().map(exchanged).collect()
    }

    /// Reads it from that form.
    ///
    /// # Errors
    /// When it is no signature.
    pub fn of_kept(text: &str) -> Result<Self, SignatureError> {
        text.chars().map(exchanged).collect::<String>().parse()
    }
}

/// A key that may vouch for holders of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SigningKeyOf {
    /// The kind.
    pub kind: Scope,
    /// The public key.
    pub key: String,
    /// Until when, where keys have rotated since: what was signed before is signed all the same. For ever when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
}

/// The public keys of a fleet: by them alone, anybody can tell who belongs to it. They come from
/// [`super::FleetKeys::public`], by a way that is trusted itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    /// The account.
    pub account: String,
    /// Its signing keys.
    pub signing_keys: Vec<SigningKeyOf>,
    /// Holders whose credentials count no more, by public key, and since when.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub revoked: BTreeMap<String, Millis>,
}

impl Trust {
    /// By what two people compare whether they have the same keys: of the account and of the keys that vouch for somebody,
    /// whatever their order. 32 hexadecimal digits.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut keys: Vec<String> =
            self.signing_keys.iter().map(|key| format!("{} {}", key.kind.name(), key.key)).collect();
        keys.sort_unstable();
        let digest = Sha256::digest(format!("{}\n{}", self.account, keys.join("\n")));
        hex::encode(&digest[..16])
    }
}

/// Why a signature proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// There is none.
    #[error("it is not signed")]
    Missing,
    /// It cannot be read.
    #[error("the signature cannot be read: {reason}")]
    Malformed {
        /// What is wrong.
        reason: String,
    },
    /// Whoever vouches for the signer is not of the fleet.
    #[error("the signer is vouched for by {issuer}, which is no key of this fleet")]
    Stranger {
        /// The key.
        issuer: String,
    },
    /// Whoever is said to vouch for the signer does not.
    #[error("the signer's credentials are forged")]
    Forged,
    /// The key that vouches for the signer may not vouch for holders of his kind.
    #[error("a key for {may} vouches for somebody of another kind ({kind})")]
    Kind {
        /// What the key is for.
        may: &'static str,
        /// What the signer is said to be.
        kind: HolderKind,
    },
    /// The signer's credentials had ended.
    #[error("the signer's credentials ended at {until}")]
    Expired {
        /// When.
        until: Millis,
    },
    /// The signer's credentials had been revoked.
    #[error("the credentials of {} were revoked at {since}", who.name)]
    Revoked {
        /// Who signed.
        who: Identity,
        /// When they were revoked.
        since: Millis,
    },
    /// Something else was signed, or somebody else signed it.
    #[error("the signature is not that of {}", who.name)]
    Wrong {
        /// Who is said to have signed.
        who: Identity,
    },
}

impl SignatureError {
    pub(super) fn malformed(reason: impl std::fmt::Display) -> Self {
        Self::Malformed { reason: reason.to_string() }
    }
}

/// Signs in the name of the holder of credentials.
pub struct Signer {
    /// Who it is, as signatures tell it.
    by: String,
    kind: Option<HolderKind>,
    key: KeyPair,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").field("key", &self.key.public_key()).finish_non_exhaustive()
    }
}

impl Signer {
    /// The signer whose credentials are in a file.
    ///
    /// # Errors
    /// When it cannot be read, or holds no credentials with their key.
    pub fn from_file(path: &Path) -> Result<Self, CredentialsError> {
        let wrong = |reason: String| CredentialsError::file(path, reason);
        let (jwt, seed) = parts_of(path)?;
        let seed = seed.ok_or_else(|| wrong("it holds no key".to_owned()))?;
        Self::of_parts(&jwt, &seed).map_err(wrong)
    }

    /// The signer of whom something is vouched for, by his key.
    ///
    /// # Errors
    /// Says what is wrong with one of them.
    pub(super) fn of_parts(jwt: &str, seed: &SecretString) -> Result<Self, String> {
        let claims = Claims::read(jwt)?;
        let key = KeyPair::from_seed(seed.expose_secret()).map_err(|error| error.to_string())?;
        if key.public_key() != claims.sub {
            return Err("its key is that of somebody else".to_owned());
        }
        let kind = identity_of(&claims).map(|who| who.kind);
        Ok(Self { by: jwt.to_owned(), kind, key })
    }

    /// Whether it is one of those who say what is to be done: a person, or an operator.
    #[must_use]
    pub const fn gives_orders(&self) -> bool {
        matches!(self.kind, Some(HolderKind::Person | HolderKind::Operator))
    }

    /// The public key that its signatures are of.
    #[must_use]
    pub fn public_key(&self) -> String {
        self.key.public_key()
    }

    /// Signs what is said.
    ///
    /// # Errors
    /// When the key cannot be used.
    pub fn sign(&self, purpose: Purpose, bytes: &[u8]) -> Result<Signature, CredentialsError> {
        let signature = self.key.sign(&signed(purpose, bytes)).map_err(CredentialsError::key)?;
        Ok(Signature { by: self.by.clone(), signature: URL_SAFE_NO_PAD.encode(signature) })
    }
}

/// What is really signed where `bytes` are said.
fn signed(purpose: Purpose, bytes: &[u8]) -> Vec<u8> {
    [CONTEXT, purpose.name().as_bytes(), b"\0", bytes].concat()
}

/// Somebody whom the fleet vouches for: what he signs can be verified by his own key alone. Whether his credentials count
/// still is another matter, since they end.
#[derive(Debug, Clone)]
pub struct Vouched {
    who: Identity,
    key: Arc<KeyPair>,
    /// The same as text.
    public: String,
    /// Until when his credentials count; for ever when absent.
    until: Option<Millis>,
}

impl Vouched {
    /// Who it is.
    #[must_use]
    pub const fn who(&self) -> &Identity {
        &self.who
    }

    /// His public key.
    #[must_use]
    pub fn public_key(&self) -> &str {
        &self.public
    }

    /// Whether it is his signature of `bytes`.
    ///
    /// # Errors
    /// Says why it is not.
    pub fn check(&self, purpose: Purpose, made: &Signature, bytes: &[u8]) -> Result<(), SignatureError> {
        let made = URL_SAFE_NO_PAD.decode(&made.signature).map_err(SignatureError::malformed)?;
        let wrong = |_| SignatureError::Wrong { who: self.who.clone() };
        self.key.verify(&signed(purpose, bytes), &made).map_err(wrong)
    }
}

/// Tells what was signed by members of a fleet.
#[derive(Debug, Clone)]
pub struct Verifier {
    trust: Trust,
}

impl Verifier {
    /// For the fleet with these keys.
    #[must_use]
    pub const fn of(trust: Trust) -> Self {
        Self { trust }
    }

    /// By which keys it tells.
    #[must_use]
    pub const fn trust(&self) -> &Trust {
        &self.trust
    }

    /// For the fleet with these keys, if it is the one that one's own credentials are of.
    ///
    /// # Errors
    /// When the file cannot be read, or the keys are those of another fleet.
    pub fn of_credentials(path: &Path, trust: Trust) -> Result<Self, CredentialsError> {
        let claims = claims_in(path)?;
        let account = match claims.nats {
            Said::User { issuer_account: Some(account), .. } => account,
            Said::User { issuer_account: None, .. } => claims.iss,
            Said::Operator { .. } | Said::Account { .. } => {
                return Err(CredentialsError::file(path, "it is no credentials file of a user"));
            }
        };
        if account != trust.account {
            return Err(CredentialsError::file(path, "it is of another fleet than the keys"));
        }
        Ok(Self::of(trust))
    }

    /// Who said `bytes`, if the signature holds and the signer's credentials did `at` that time.
    ///
    /// # Errors
    /// Says why it proves nothing.
    pub fn verify(
        &self,
        purpose: Purpose,
        signature: &Signature,
        bytes: &[u8],
        at: Millis,
    ) -> Result<Identity, SignatureError> {
        let signer = self.vouch(&signature.by)?;
        self.check_time(&signer, at)?;
        signer.check(purpose, signature, bytes)?;
        Ok(signer.who)
    }

    /// Who it is that signatures tell so, if the fleet vouches for him.
    ///
    /// # Errors
    /// Says why it does not.
    pub fn vouch(&self, by: &str) -> Result<Vouched, SignatureError> {
        if by.len() > LONGEST {
            return Err(SignatureError::malformed("it is too long"));
        }
        let claims = vouched(by)?;
        let who = identity_of(&claims).ok_or_else(|| SignatureError::malformed("it says not whose it is"))?;
        self.check_issuer(&claims, &who)?;
        let key = Arc::new(key_of(&claims.sub, &KeyPairType::User)?);
        let own = claims.exp.map(|until| Millis(until.saturating_mul(1000)));
        let of_key = self.trust.signing_keys.iter().find(|by| by.key == claims.iss).and_then(|by| by.until);
        let until = [own, of_key].into_iter().flatten().min();
        Ok(Vouched { who, key, public: claims.sub, until })
    }
    /// Whether somebody's credentials did count at a time.
    ///
    /// # Errors
    /// Says why they did not.
    pub fn check_time(&self, signer: &Vouched, at: Millis) -> Result<(), SignatureError> {
        if let Some(until) = signer.until.filter(|until| *until <= at) {
            return Err(SignatureError::Expired { until });
        }
        match self.trust.revoked.get(&signer.public) {
            Some(&since) if since <= at => Err(SignatureError::Revoked { who: signer.who.clone(), since }),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether whoever vouches for somebody is of the fleet, and may vouch for one of his kind.
    fn check_issuer(&self, claims: &Claims, who: &Identity) -> Result<(), SignatureError> {
        let Said::User { issuer_account, tags, may, .. } = &claims.nats else {
            return Err(SignatureError::malformed("it is not of a user"));
        };
        let stranger = || SignatureError::Stranger { issuer: claims.iss.clone() };
        if issuer_account.as_ref().unwrap_or(&claims.iss) != &self.trust.account {
            return Err(stranger());
        }
        if claims.iss == self.trust.account {
            return Ok(());
        }
        let by = self.trust.signing_keys.iter().find(|by| by.key == claims.iss).ok_or_else(stranger)?;
        // What the server would refuse is nothing here either.
        if may.is_some() {
            return Err(SignatureError::malformed("it brings permissions of its own"));
        }
        if Scope::of(&who.kind) != Some(by.kind) {
            return Err(SignatureError::Kind { may: by.kind.name(), kind: who.kind.clone() });
        }
        // The role that is claimed is the one that the rights are for.
        let roles: Vec<&str> = tags.iter().filter_map(|tag| tag.strip_prefix(ROLE)).collect();
        let claimed = who.kind.role();
        if roles != claimed.as_deref().into_iter().collect::<Vec<_>>() {
            return Err(SignatureError::malformed("its tags say two roles"));
        }
        Ok(())
    }
}

/// What a JWT says, if the key that it says it is by has signed it.
pub(super) fn vouched(jwt: &str) -> Result<Claims, SignatureError> {
    let (said, signature) = jwt.rsplit_once('.').ok_or_else(|| SignatureError::malformed("it is no JWT"))?;
    let (header, _) = said.split_once('.').ok_or_else(|| SignatureError::malformed("it is no JWT"))?;
    if URL_SAFE_NO_PAD.decode(header).ok().as_deref() != Some(HEADER.as_bytes()) {
        return Err(SignatureError::malformed("it is a JWT of another kind"));
    }
    let claims = Claims::read(jwt).map_err(SignatureError::malformed)?;
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(SignatureError::malformed)?;
    let issuer = key_of(&claims.iss, &KeyPairType::Account)?;
    issuer.verify(said.as_bytes(), &signature).map_err(|_| SignatureError::Forged)?;
    Ok(claims)
}

fn key_of(public: &str, kind: &KeyPairType) -> Result<KeyPair, SignatureError> {
    let key = KeyPair::from_public_key(public).map_err(SignatureError::malformed)?;
    if key.key_pair_type() != *kind {
        return Err(SignatureError::malformed("a key is of another kind"));
    }
    Ok(key)
}
