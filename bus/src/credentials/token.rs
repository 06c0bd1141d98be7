//! Tokens by which people log in to the dashboard. A token is credentials on one line: whoever has it can prove who he is and
//! sign his orders himself, it is listed and revoked like any other credentials, and the public keys of the fleet tell whether
//! it counts. Which role it is for stands in it as a tag, under the fleet's signature.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_shared::ids::AgentId;
use muster_shared::time::Millis;
use secrecy::{ExposeSecret, SecretString};

use super::claims::{Claims, Said};
use super::keys::check_name;
use super::signing::{SignatureError, Signer, Trust, Verifier};
use super::{CredentialsError, FleetKeys, Holder, HolderKind, Identity, jwt_of, seed_in};

/// What every token begins with: whoever finds one sees what it is.
const MARK: &str = "mustertoken_";
/// Under which tag credentials say for which role of the dashboard they are.
const DASHBOARD: &str = "dashboard:";
/// Longest token, in bytes. A credentials file in its place has the fleet's keys in it too.
const LONGEST: usize = 64 * 1024;

/// What somebody may do in the dashboard.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
    strum::Display,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DashboardRole {
    /// Looks at runs.
    Viewer,
    /// Looks at runs, and proves them again.
    Auditor,
    /// Asks and steers.
    Operator,
    /// Does whatever the fleet's owner does there.
    Admin,
}

impl DashboardRole {
    /// All there are, from the least to the most.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Auditor, Self::Operator, Self::Admin];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The role of somebody by his credentials alone; nothing for those that are no person's.
    #[must_use]
    pub const fn of(kind: &HolderKind) -> Option<Self> {
        match kind {
            HolderKind::Operator => Some(Self::Admin),
            HolderKind::Person => Some(Self::Operator),
            HolderKind::Observer => Some(Self::Viewer),
            HolderKind::Orchestrator
            | HolderKind::Agent(_)
            | HolderKind::Program(_)
            | HolderKind::Guard(_)
            | HolderKind::ToolServer(_)
            | HolderKind::Host
            | HolderKind::Guest
            | HolderKind::Presence => None,
        }
    }

    /// Whose credentials a token for this role is. An admin is no owner of the fleet on the bus: what only that one may do there,
    /// the dashboard does for him.
    const fn holder(self, name: AgentId) -> Holder {
        match self {
            Self::Viewer | Self::Auditor => Holder::Observer { name },
            Self::Operator | Self::Admin => Holder::Person { name },
        }
    }

    /// Whether credentials of this kind may bear it: nobody gets more by a tag than his kind can have.
    const fn fits(self, kind: &HolderKind) -> bool {
        match self {
            Self::Viewer | Self::Auditor => {
                matches!(kind, HolderKind::Observer | HolderKind::Person | HolderKind::Operator)
            }
            Self::Operator | Self::Admin => matches!(kind, HolderKind::Person | HolderKind::Operator),
        }
    }
}

impl FromStr for DashboardRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| {
            format!("{text:?} is no role of the dashboard: use viewer, auditor, operator or admin")
        })
    }
}

/// The tag for a role.
pub(super) fn tag(role: DashboardRole) -> String {
    format!("{DASHBOARD}{role}")
}

/// Why a token lets nobody in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is no token.
    #[error("it is no token: `muster keys token NAME` makes one, and a .creds file of a person will do")]
    Unreadable,
    /// It proves nothing.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// It is not a person's.
    #[error(
        "it is that of {kind}, who has no business here: `muster keys token NAME` makes one for a person"
    )]
    Kind {
        /// Whose.
        kind: HolderKind,
    },
}

/// A token as it was given, of which nothing is known yet.
pub struct Token {
    jwt: String,
    seed: SecretString,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").finish_non_exhaustive()
    }
}

/// Somebody whom the fleet vouches for, and who proved that he is it.
#[derive(Debug)]
pub struct TokenHolder {
    /// Who it is.
    pub who: Identity,
    /// For which role of the dashboard.
    pub role: DashboardRole,
    /// His public key, by which it is seen whether he was revoked since.
    pub key: String,
    /// Until when it counts; for ever when absent.
    pub until: Option<Millis>,
    /// Signs in his name.
    pub signer: Signer,
}

impl FromStr for Token {
    type Err = TokenError;

    /// Reads a token, or the text of a credentials file.
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if text.len() > LONGEST {
            return Err(TokenError::Unreadable);
        }
        if let Some(packed) = text.strip_prefix(MARK) {
            let unpacked = URL_SAFE_NO_PAD.decode(packed).map_err(|_| TokenError::Unreadable)?;
            let unpacked = String::from_utf8(unpacked).map_err(|_| TokenError::Unreadable)?;
            let (jwt, seed) = unpacked.split_once('\n').ok_or(TokenError::Unreadable)?;
            return Ok(Self { jwt: jwt.to_owned(), seed: SecretString::from(seed.trim()) });
        }
        let jwt = jwt_of(text).ok_or(TokenError::Unreadable)?.to_owned();
        let seed = seed_in(text).ok_or(TokenError::Unreadable)?;
        Ok(Self { jwt, seed })
    }
}

impl Token {
    /// Whose it is, if these keys of a fleet vouch for him at this time and the key in it is his.
    ///
    /// # Errors
    /// Says why it lets nobody in.
    pub fn holder(&self, trust: &Trust, now: Millis) -> Result<TokenHolder, TokenError> {
        let verifier = Verifier::of(trust.clone());
        let vouched = verifier.vouch(&self.jwt)?;
        verifier.check_time(&vouched, now)?;
        let claims = Claims::read(&self.jwt).map_err(|_| TokenError::Unreadable)?;
        let signer = Signer::of_parts(&self.jwt, &self.seed).map_err(|_| TokenError::Unreadable)?;
        if signer.public_key() != vouched.public_key() {
            return Err(SignatureError::Wrong { who: vouched.who().clone() }.into());
        }
        let who = vouched.who().clone();
        let kind = || TokenError::Kind { kind: who.kind.clone() };
        let by_kind = DashboardRole::of(&who.kind).ok_or_else(kind)?;
        let role = role_in(&claims).unwrap_or(by_kind);
        if !role.fits(&who.kind) {
            return Err(kind());
        }
        let until = claims.exp.map(|until| Millis(until.saturating_mul(1000)));
        Ok(TokenHolder { role, key: signer.public_key(), until, signer, who })
    }
}

/// The role that a tag names.
fn role_in(claims: &Claims) -> Option<DashboardRole> {
    let Said::User { tags, .. } = &claims.nats else { return None };
    tags.iter().find_map(|tag| tag.strip_prefix(DASHBOARD))?.parse().ok()
}

impl FleetKeys {
    /// A token for somebody, for good or until a time.
    ///
    /// # Errors
    /// When a key cannot be used, or the name is none for a person.
    pub fn token(
        &self,
        name: AgentId,
        role: DashboardRole,
        until: Option<Millis>,
    ) -> Result<SecretString, CredentialsError> {
        let holder = role.holder(name);
        check_name(&holder)?;
        let credentials = self.issue_with(&holder, until, None, vec![tag(role)])?;
        let packed = format!("{}\n{}", credentials.jwt, credentials.seed.expose_secret());
        Ok(SecretString::from(format!("{MARK}{}", URL_SAFE_NO_PAD.encode(packed))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> (tempfile::TempDir, FleetKeys) {
        let folder = tempfile::tempdir().unwrap();
        let keys = FleetKeys::open_or_make(&folder.path().join("keys")).unwrap();
        (folder, keys)
    }

    fn name(name: &str) -> AgentId {
        name.parse().unwrap()
    }

    fn now() -> Millis {
        crate::bus::now()
    }

    #[test]
    fn a_token_is_somebody_in_a_role_until_its_time_or_until_he_is_revoked() {
        let (_folder, keys) = keys();
        for role in DashboardRole::ALL {
            let text = keys.token(name("ann"), role, None).unwrap();
            let token: Token = text.expose_secret().parse().unwrap();
            let holder = token.holder(&keys.public().unwrap(), now()).unwrap();
            assert_eq!((holder.role, holder.who.name.as_str(), holder.until), (role, "ann", None));
            let gives_orders = matches!(role, DashboardRole::Operator | DashboardRole::Admin);
            assert_eq!(holder.signer.gives_orders(), gives_orders, "{role}");
        }
        let until = Millis(now().0 + 60_000);
        let text = keys.token(name("bob"), DashboardRole::Viewer, Some(until)).unwrap();
        let token: Token = text.expose_secret().parse().unwrap();
        assert!(token.holder(&keys.public().unwrap(), now()).is_ok());
        let late = token.holder(&keys.public().unwrap(), Millis(until.0 + 1));
        assert!(matches!(late, Err(TokenError::Signature(SignatureError::Expired { .. }))), "{late:?}");
        assert_eq!(keys.revoke(&name("bob")).unwrap(), 1);
        let revoked = token.holder(&keys.public().unwrap(), Millis(now().0 + 1));
        assert!(matches!(revoked, Err(TokenError::Signature(SignatureError::Revoked { .. }))), "{revoked:?}");
    }

    #[test]
    fn credentials_of_a_person_are_a_token_and_those_of_a_process_are_none() {
        let (_folder, keys) = keys();
        let read = |holder: Holder| {
            let text = keys.issue(&holder, None).unwrap().to_file();
            text.expose_secret().parse::<Token>().unwrap().holder(&keys.public().unwrap(), now())
        };
        let role = |holder| read(holder).unwrap().role;
        assert_eq!(role(Holder::Observer { name: name("eve") }), DashboardRole::Viewer);
        assert_eq!(role(Holder::Person { name: name("ann") }), DashboardRole::Operator);
        assert_eq!(role(Holder::Operator { name: name("operator") }), DashboardRole::Admin);
        assert!(matches!(read(Holder::Orchestrator { id: name("o") }), Err(TokenError::Kind { .. })));
    }

    #[test]
    fn what_others_made_or_changed_lets_nobody_in() {
        let (_one, keys) = keys();
        let (_other, others) = self::keys();
        let trust = keys.public().unwrap();
        let text = others.token(name("ann"), DashboardRole::Admin, None).unwrap();
        assert!(text.expose_secret().parse::<Token>().unwrap().holder(&trust, now()).is_err());

        let unpack = |text: &SecretString| {
            let packed = text.expose_secret().strip_prefix(MARK).unwrap().to_owned();
            let unpacked = String::from_utf8(URL_SAFE_NO_PAD.decode(packed).unwrap()).unwrap();
            let (jwt, seed) = unpacked.split_once('\n').unwrap();
            (jwt.to_owned(), seed.to_owned())
        };
        let pack =
            |jwt: &str, seed: &str| format!("{MARK}{}", URL_SAFE_NO_PAD.encode(format!("{jwt}\n{seed}")));
        let (jwt, seed) = unpack(&keys.token(name("ann"), DashboardRole::Viewer, None).unwrap());
        let (_, of_bob) = unpack(&keys.token(name("bob"), DashboardRole::Viewer, None).unwrap());
        // Another role under the same signature.
        let (head, rest) = jwt.split_once('.').unwrap();
        let (body, signature) = rest.split_once('.').unwrap();
        let said = String::from_utf8(URL_SAFE_NO_PAD.decode(body).unwrap()).unwrap();
        let said = URL_SAFE_NO_PAD.encode(said.replace("dashboard:viewer", "dashboard:auditor"));
        for wrong in [pack(&jwt, &of_bob), pack(&format!("{head}.{said}.{signature}"), &seed)] {
            assert!(wrong.parse::<Token>().unwrap().holder(&trust, now()).is_err());
        }
        for wrong in [
            "",
            "mustertoken_",
            "mustertoken_!!",
            "-----BEGIN NATS USER JWT-----",
            "x\ny",
            &"x".repeat(70_000),
        ] {
            assert!(wrong.parse::<Token>().is_err(), "{wrong:.40}");
        }
    }

    #[test]
    fn nobody_gets_more_by_a_tag_than_his_kind_can_have() {
        let fits = |role: DashboardRole| {
            let observer = role.fits(&HolderKind::Observer);
            (observer, role.fits(&HolderKind::Person), role.fits(&HolderKind::Orchestrator))
        };
        assert_eq!(
            DashboardRole::ALL.map(fits),
            [(true, true, false), (true, true, false), (false, true, false), (false, true, false)]
        );
    }
}
