//! An invitation as one line of text: where the fleet is, by what it is known, and the credentials of whoever holds it.
//! The line is JSON with a checksum, in base64.

use std::net::Ipv6Addr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_shared::ids::AgentId;
use muster_shared::time::Millis;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::holder::HolderKind;
use super::signing::{Signer, vouched};
use super::{Credentials, CredentialsError, identity_of};

/// What a line begins with: the kind of thing, and the version of its form.
const KIND: &str = "muster";
const VERSION: &str = "1";
/// Longest line that is looked at, in letters.
const LONGEST: usize = 4096;
/// Most addresses in a line.
pub const MOST_ADDRESSES: usize = 4;
/// What the names of invitations begin with; eight digits follow.
pub(super) const NAMED: &str = "guest";
/// Bytes of the sum that tells whether all of a line is there.
const SUM: usize = 4;

/// The SHA-256 of the certificate of a fleet's own authority.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

impl std::str::FromStr for Fingerprint {
    type Err = hex::FromHexError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut print = [0; 32];
        hex::decode_to_slice(text, &mut print)?;
        Ok(Self(print))
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// An invitation, as whoever holds it has it.
#[derive(Debug, Clone)]
pub struct Invitation {
    /// What it is called.
    pub name: AgentId,
    /// Where the fleet listens: `host:port` each.
    pub addresses: Vec<String>,
    /// The fleet's own authority; nothing where connections do not leave the machine.
    pub authority: Option<Fingerprint>,
    /// Until when it counts.
    pub until: Millis,
    pub(super) credentials: Credentials,
}

/// Why a line is no invitation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It is something else.
    #[error("this is no invitation: one begins with {KIND}{VERSION}. and `muster invite` prints it")]
    NoInvitation,
    /// It is of a later version.
    #[error(
        "this invitation is of form {0}, and this Muster reads form {VERSION}: use the version that printed it"
    )]
    Version(String),
    /// Something of it is missing or other than it was.
    #[error("this invitation is garbled: {0}; copy the whole line")]
    Garbled(&'static str),
}

impl Invitation {
    /// By what it lets in.
    #[must_use]
    pub const fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Where the fleet may be found, each as `bus.url` has it.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        let scheme = if self.authority.is_some() { "tls" } else { "nats" };
        self.addresses.iter().map(|address| format!("{scheme}://{address}")).collect()
    }

    /// The line. Whoever has it may use it.
    ///
    /// # Errors
    /// If an address is invalid.
    pub fn to_line(&self) -> Result<SecretString, CredentialsError> {
        if !are_addresses(&self.addresses) {
            return Err(CredentialsError::key(format!("{} is no HOST:PORT", self.addresses.join(","))));
        }
        let written = Written {
            addresses: self.addresses.clone(),
            authority: self.authority.map(|authority| authority.to_string()),
            jwt: self.credentials.jwt.clone(),
            seed: self.credentials.seed.expose_secret().to_owned(),
        };
        let mut bytes = serde_json::to_vec(&written).map_err(CredentialsError::key)?;
        let sum = Sha256::digest(&bytes);
        bytes.extend(sum.iter().take(SUM));
        Ok(SecretString::from(format!("{KIND}{VERSION}.{}", URL_SAFE_NO_PAD.encode(bytes))))
    }

    /// Reads a line. Whether it counts still is for the fleet to say.
    ///
    /// # Errors
    /// See [`LineError`].
    pub fn from_line(line: &str) -> Result<Self, LineError> {
        let line = line.trim();
        let (head, body) = line.split_once('.').ok_or(LineError::NoInvitation)?;
        let version = head.strip_prefix(KIND).ok_or(LineError::NoInvitation)?;
        if version != VERSION {
            let is_number =
                !version.is_empty() && version.len() < 6 && version.bytes().all(|b| b.is_ascii_digit());
            return Err(if is_number {
                LineError::Version(version.to_owned())
            } else {
                LineError::NoInvitation
            });
        }
        if line.len() > LONGEST {
            return Err(LineError::Garbled("it is too long"));
        }
        let bytes = URL_SAFE_NO_PAD.decode(body).map_err(|_| LineError::Garbled("some of it is missing"))?;
        let (said, sum) = bytes.split_last_chunk::<SUM>().ok_or(LineError::Garbled("it ends too soon"))?;
        if Sha256::digest(said).iter().take(SUM).ne(sum) {
            return Err(LineError::Garbled("some of it is missing or changed"));
        }
        let written: Written =
            serde_json::from_slice(said).map_err(|_| LineError::Garbled("its contents are invalid"))?;
        written.into_invitation()
    }
}

/// The contents of a line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    addresses: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authority: Option<String>,
    jwt: String,
    seed: String,
}

impl Written {
    fn into_invitation(self) -> Result<Invitation, LineError> {
        const OTHER: LineError = LineError::Garbled("its signature does not hold");
        let Self { addresses, authority, jwt, seed } = self;
        let seed = SecretString::from(seed);
        let claims = vouched(&jwt).map_err(|_| OTHER)?;
        Signer::of_parts(&jwt, &seed).map_err(|_| OTHER)?;
        let who = identity_of(&claims).filter(|who| who.kind == HolderKind::Guest).ok_or(OTHER)?;
        let until = Millis(claims.exp.ok_or(OTHER)?.saturating_mul(1000));
        let authority = authority.map(|print| print.parse()).transpose();
        let authority = authority.map_err(|_| LineError::Garbled("its fingerprint is none"))?;
        if !are_addresses(&addresses) {
            return Err(LineError::Garbled("its address is none"));
        }
        let credentials = Credentials { jwt, seed, fleet: None };
        Ok(Invitation { name: who.name, addresses, authority, until, credentials })
    }
}

/// Returns true if a line can contain these addresses.
fn are_addresses(addresses: &[String]) -> bool {
    (1..=MOST_ADDRESSES).contains(&addresses.len()) && addresses.iter().all(|one| is_address(one))
}

/// Whether a text is `host:port`, with nothing in it that a URL would read otherwise.
#[must_use]
pub(super) fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match bracketed {
        Some(six) => six.parse::<Ipv6Addr>().is_ok(),
        None => {
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
            !host.is_empty() && host.len() <= 253 && host.bytes().all(is_plain)
        }
    };
    is_host && port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port != 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::credentials::FleetKeys;
    use crate::credentials::Invited;

    fn made(addresses: &[&str], authority: Option<Fingerprint>) -> Invitation {
        let folder = tempfile::tempdir().unwrap();
        let keys = FleetKeys::open_or_make(&folder.path().join("keys")).unwrap();
        let until = Millis(crate::bus::now().0 + 3_600_000);
        let invited = Invited { roles: vec!["worker".parse().unwrap()], uses: 1, until };
        let addresses = addresses.iter().map(|&one| one.to_owned()).collect();
        keys.invite(&invited, addresses, authority).unwrap()
    }

    fn line_of(invitation: &Invitation) -> String {
        invitation.to_line().unwrap().expose_secret().to_owned()
    }

    #[test]
    fn an_invitation_is_the_same_after_its_line() {
        let authority = Some(Fingerprint([7; 32]));
        for (addresses, authority) in [
            (&["127.0.0.1:4222"][..], None),
            (&["192.168.178.201:4222"], authority),
            (&["mill.example.org:65535", "[fd00::1]:4222"], authority),
        ] {
            let one = made(addresses, authority);
            let line = line_of(&one);
            let read = Invitation::from_line(&format!("  {line}\n")).unwrap();
            assert_eq!(read.credentials.jwt, one.credentials.jwt, "byte for byte");
            assert_eq!(read.credentials.seed.expose_secret(), one.credentials.seed.expose_secret());
            assert_eq!((&read.name, &read.addresses, read.authority), (&one.name, &one.addresses, authority));
            assert_eq!(read.until, Millis(one.until.0 / 1000 * 1000));
            assert!(
                line.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_')),
                "{line}"
            );
        }
        assert_eq!(made(&["a:1"], None).urls(), ["nats://a:1"]);
        assert_eq!(made(&["a:1", "b:2"], authority).urls(), ["tls://a:1", "tls://b:2"]);
    }

    #[test]
    fn what_is_no_invitation_is_told_apart() {
        let line = line_of(&made(&["127.0.0.1:4222"], None));
        let said = |line: &str| Invitation::from_line(line).unwrap_err().to_string();
        for other in [
            "",
            "hello",
            "muster",
            "muster.",
            "muster1",
            "https://example.org",
            "mustard1.abc",
            "musterx.abc",
        ] {
            assert!(said(other).starts_with("this is no invitation"), "{other}: {}", said(other));
        }
        let later = line.replacen("muster1.", "muster2.", 1);
        assert!(said(&later).contains("form 2"), "{}", said(&later));
        for garbled in [&line[..line.len() - 1], &line[..40], "muster1.", "muster1.AAAA", &format!("{line}A")]
        {
            assert!(said(garbled).contains("garbled"), "{garbled}: {}", said(garbled));
        }
        let long = format!("muster1.{}", "A".repeat(LONGEST));
        assert!(said(&long).contains("too long"));
    }

    #[test]
    fn addresses_hold_nothing_that_a_url_reads_otherwise() {
        for good in ["127.0.0.1:1", "a-b.c:65535", "[::1]:4222", "my_host:4222"] {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "",
            "a",
            "a:",
            ":1",
            "a:0",
            "a:65536",
            "u@a:1",
            "a/b:1",
            "a:+1",
            "::1:4222",
            "[a]:1",
            "a b:1",
            "nats://a:1",
        ] {
            assert!(!is_address(bad), "{bad}");
        }
    }

    static ONE: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| line_of(&made(&["192.168.1.5:4222"], Some(Fingerprint([9; 32])))));

    proptest! {
        #[test]
        fn any_change_is_noticed(at in any::<prop::sample::Index>(), to in "[A-Za-z0-9_.-]") {
            let at = at.index(ONE.len());
            let mut changed = ONE.clone();
            changed.replace_range(at..=at, &to);
            prop_assert_eq!(Invitation::from_line(&changed).is_ok(), changed == *ONE);
        }

        #[test]
        fn nonsense_does_no_harm(body in ".{0,300}", bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let line = format!("muster1.{body}");
            prop_assert!(Invitation::from_line(&line).is_err());
            let mut summed = bytes.clone();
            summed.extend(Sha256::digest(&bytes).iter().take(SUM));
            let line = format!("muster1.{}", URL_SAFE_NO_PAD.encode(summed));
            prop_assert!(Invitation::from_line(&line).is_err());
        }
    }
}
