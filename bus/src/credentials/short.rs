//! Who signed, in few letters. Of a user's JWT, most is the same for all users of a fleet: what differs is told, and whoever
//! knows the fleet's public keys makes the JWT of it again, byte for byte. Its signature says whether it is the one that was
//! signed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;

use super::claims::{Claims, Said, ScopedUser};
use super::holder::HolderKind;
use super::keys::tags;
use super::scope::Scope;
use super::signing::{SignatureError, Trust};

/// Stands where credentials have no end.
const FOR_EVER: &str = "-";

/// What differs between the JWTs of two users of a fleet. As text: `iat.exp.sub.signature.kind.name`.
struct Short<'a> {
    iat: u64,
    exp: Option<u64>,
    sub: &'a str,
    /// That of the JWT.
    signature: &'a str,
    kind: HolderKind,
    name: &'a str,
}

impl<'a> Short<'a> {
    /// Nothing where a text has another form, as that of a JWT.
    fn read(text: &'a str) -> Option<Self> {
        let parts: Vec<&str> = text.splitn(6, '.').collect();
        let [iat, exp, sub, signature, kind, name] = parts.try_into().ok()?;
        let exp = if exp == FOR_EVER { None } else { Some(exp.parse().ok()?) };
        Some(Self { iat: iat.parse().ok()?, exp, sub, signature, kind: kind.parse().ok()?, name })
    }

    /// The claims, if this key says them.
    fn claims(&self, iss: &str, account: &str) -> Claims {
        Claims::of_user(ScopedUser {
            iat: self.iat,
            exp: self.exp,
            iss: iss.to_owned(),
            account: account.to_owned(),
            name: self.name.to_owned(),
            sub: self.sub.to_owned(),
            tags: tags(&self.kind),
        })
    }
}

/// A JWT in few letters; nothing where it is not of the usual form, and has to be told as a whole.
pub(super) fn shortened(jwt: &str) -> Option<String> {
    let claims = Claims::read(jwt).ok()?;
    let Said::User { issuer_account: Some(account), .. } = &claims.nats else { return None };
    let kind = super::identity_of(&claims)?.kind;
    let (signed, signature) = jwt.rsplit_once('.')?;
    let exp = claims.exp.map_or_else(|| FOR_EVER.to_owned(), |exp| exp.to_string());
    let text = format!("{}.{exp}.{}.{signature}.{kind}.{}", claims.iat, claims.sub, claims.name);
    let again = Short::read(&text)?.claims(&claims.iss, account).signed_part().ok()?;
    (again == signed).then_some(text)
}

/// What a text in few letters says of somebody, if the fleet's keys vouch for it; nothing where it is no such text.
///
/// # Errors
/// When no key of the fleet does.
pub(super) fn read(text: &str, trust: &Trust) -> Result<Option<Claims>, SignatureError> {
    let Some(short) = Short::read(text) else { return Ok(None) };
    let signature = URL_SAFE_NO_PAD.decode(short.signature).map_err(SignatureError::malformed)?;
    let of_kind = trust.signing_keys.iter().filter(|by| Scope::of(&short.kind) == Some(by.kind));
    for by in of_kind {
        let claims = short.claims(&by.key, &trust.account);
        let signed = claims.clone().signed_part().map_err(SignatureError::malformed)?;
        let key = KeyPair::from_public_key(&by.key).map_err(SignatureError::malformed)?;
        if key.verify(signed.as_bytes(), &signature).is_ok() {
            return Ok(Some(claims));
        }
    }
    Err(SignatureError::Stranger { issuer: format!("no known key for {}", short.kind) })
}
