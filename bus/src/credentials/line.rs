//! An invitation as one line of text: where the fleet is, by what it is known, and the credentials of whoever holds it.
//!
//! A JWT and its seed take nine hundred letters. What of them is the same in every invitation is left out, and the JWT is
//! made of the rest byte for byte: its signature says whether it is the one that was signed.

use std::net::Ipv6Addr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_shared::ids::AgentId;
use muster_shared::time::Millis;
use nkeys::{KeyPair, KeyPairType};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::claims::{Claims, Said, ScopedUser};
use super::holder::HolderKind;
use super::keys::tags;
use super::{Credentials, CredentialsError};

/// What a line begins with: the kind of thing, and the version of its form.
const KIND: &str = "muster";
const VERSION: &str = "1";
/// Longest line that is looked at, in letters.
const LONGEST: usize = 4096;
/// Most addresses in a line.
pub const MOST_ADDRESSES: usize = 4;
/// What the names of invitations begin with; eight digits follow.
pub(super) const NAMED: &str = "guest";
/// That a fingerprint is there.
const WITH_TLS: u8 = 1;
/// Bytes of the sum that tells whether all of a line is there.
const SUM: usize = 4;
/// A public key as text is the base 32 of so many bytes.
const KEY: usize = 35;

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
    /// When the credentials are none of an invitation, or an address is none.
    pub fn to_line(&self) -> Result<SecretString, CredentialsError> {
        if !(1..=MOST_ADDRESSES).contains(&self.addresses.len())
            || !self.addresses.iter().all(|one| is_address(one))
        {
            return Err(CredentialsError::key(format!("{} is no HOST:PORT", self.addresses.join(","))));
        }
        let claims = Claims::read(&self.credentials.jwt).map_err(CredentialsError::key)?;
        let Said::User { issuer_account: Some(account), .. } = &claims.nats else {
            return Err(CredentialsError::key("it is no user of an account"));
        };
        let signature = self.credentials.jwt.rsplit('.').next().unwrap_or_default();
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(CredentialsError::key)?;
        let (_, seed) =
            nkeys::decode_seed(self.credentials.seed.expose_secret()).map_err(CredentialsError::key)?;
        let seconds = |time: u64| u32::try_from(time).map_err(CredentialsError::key);
        let token = self.name.as_str().strip_prefix(NAMED).and_then(|rest| rest.strip_prefix('-'));
        let token = u32::from_str_radix(token.unwrap_or_default(), 16).map_err(CredentialsError::key)?;

        let mut bytes = vec![if self.authority.is_some() { WITH_TLS } else { 0 }];
        bytes.extend(seconds(claims.iat)?.to_be_bytes());
        bytes.extend(seconds(claims.exp.unwrap_or_default())?.to_be_bytes());
        bytes.extend(token.to_be_bytes());
        bytes.extend(from_base_32(&claims.iss).ok_or_else(|| CredentialsError::key("no key"))?);
        bytes.extend(from_base_32(account).ok_or_else(|| CredentialsError::key("no key"))?);
        bytes.extend(seed);
        bytes.extend(signature);
        bytes.extend(self.authority.iter().flat_map(|authority| authority.0));
        bytes.extend(self.addresses.join(",").into_bytes());
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
        Parts::read(said).ok_or(LineError::Garbled("it ends too soon"))?.into_invitation()
    }
}

/// What stands in a line.
struct Parts<'a> {
    iat: u32,
    exp: u32,
    token: u32,
    by: &'a [u8; KEY],
    account: &'a [u8; KEY],
    seed: &'a [u8; 32],
    signature: &'a [u8; 64],
    authority: Option<Fingerprint>,
    addresses: &'a [u8],
}

impl<'a> Parts<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (&[flags], rest) = bytes.split_first_chunk::<1>()?;
        let (iat, rest) = rest.split_first_chunk::<4>()?;
        let (exp, rest) = rest.split_first_chunk::<4>()?;
        let (token, rest) = rest.split_first_chunk::<4>()?;
        let (by, rest) = rest.split_first_chunk::<KEY>()?;
        let (account, rest) = rest.split_first_chunk::<KEY>()?;
        let (seed, rest) = rest.split_first_chunk::<32>()?;
        let (signature, rest) = rest.split_first_chunk::<64>()?;
        let (authority, addresses) = if flags & WITH_TLS == 0 {
            (None, rest)
        } else {
            let (print, rest) = rest.split_first_chunk::<32>()?;
            (Some(Fingerprint(*print)), rest)
        };
        let [iat, exp, token] = [iat, exp, token].map(|four| u32::from_be_bytes(*four));
        Some(Self { iat, exp, token, by, account, seed, signature, authority, addresses })
    }

    fn into_invitation(self) -> Result<Invitation, LineError> {
        const OTHER: LineError = LineError::Garbled("its signature does not hold");
        let key = KeyPair::new_from_raw(KeyPairType::User, *self.seed).map_err(|_| OTHER)?;
        let name = AgentId::new(NAMED, self.token);
        let claims = Claims::of_user(ScopedUser {
            iat: self.iat.into(),
            exp: Some(self.exp.into()),
            iss: to_base_32(self.by),
            account: to_base_32(self.account),
            name: name.to_string(),
            sub: key.public_key(),
            tags: tags(&HolderKind::Guest),
        });
        let by = KeyPair::from_public_key(&claims.iss).map_err(|_| OTHER)?;
        let signed = claims.signed_part().map_err(|_| OTHER)?;
        by.verify(signed.as_bytes(), self.signature).map_err(|_| OTHER)?;
        let jwt = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(self.signature));
        let seed = SecretString::from(key.seed().map_err(|_| OTHER)?);
        let addresses =
            std::str::from_utf8(self.addresses).map_err(|_| LineError::Garbled("its address is no text"))?;
        let addresses: Vec<String> = addresses.split(',').map(str::to_owned).collect();
        if !(1..=MOST_ADDRESSES).contains(&addresses.len()) || !addresses.iter().all(|one| is_address(one)) {
            return Err(LineError::Garbled("its address is none"));
        }
        let (authority, until) = (self.authority, Millis(u64::from(self.exp) * 1000));
        Ok(Invitation {
            name,
            addresses,
            authority,
            until,
            credentials: Credentials { jwt, seed, fleet: None },
        })
    }
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

const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// A public key as NATS writes it: 35 bytes are 56 letters of 5 bits each.
fn to_base_32(bytes: &[u8; KEY]) -> String {
    let bit = |at: usize| bytes.get(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1);
    let letter = |n: usize| (0..5).fold(0_usize, |value, k| value << 1 | usize::from(bit(n * 5 + k)));
    (0..KEY * 8 / 5).filter_map(|n| LETTERS.get(letter(n)).map(|&letter| char::from(letter))).collect()
}

fn from_base_32(text: &str) -> Option<[u8; KEY]> {
    let mut bytes = [0_u8; KEY];
    if text.len() != KEY * 8 / 5 {
        return None;
    }
    for (n, letter) in text.bytes().enumerate() {
        let value = LETTERS.iter().position(|known| *known == letter)?;
        for k in (0..5).filter(|k| value >> (4 - k) & 1 == 1) {
            let at = n * 5 + k;
            *bytes.get_mut(at / 8)? |= 1 << (7 - at % 8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
            assert!(line.len() < 400, "{}: {line}", line.len());
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

        #[test]
        fn keys_are_written_as_nats_writes_them(bytes in prop::array::uniform32(any::<u8>())) {
            let key = KeyPair::new_from_raw(KeyPairType::Account, bytes).unwrap().public_key();
            prop_assert_eq!(to_base_32(&from_base_32(&key).unwrap()), key);
        }
    }
}
