//! What one NATS key says of another: signed claims, as nats-server and its tools read them.
//!
//! The form is version 2 of <https://github.com/nats-io/jwt>: a JWT whose algorithm is `ed25519-nkey`.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_shared::time::Millis;
use nkeys::KeyPair;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::CredentialsError;
use super::rights::Rights;

/// The version of the form.
const VERSION: u8 = 2;
/// What every JWT begins with.
pub(super) const HEADER: &str = r#"{"typ":"JWT","alg":"ed25519-nkey"}"#;
/// Most subscriptions of a user that may not lay out the bus: some for each request that waits.
const MAX_SUBSCRIPTIONS: i64 = 4096;
/// No limit.
const UNLIMITED: i64 = -1;

/// What is said of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claims {
    /// A hash of the rest: tells two of them apart.
    #[serde(default)]
    jti: String,
    /// When it was said, in UTC seconds.
    pub(super) iat: u64,
    /// Until when it holds, in UTC seconds; for ever when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exp: Option<u64>,
    /// The key that says it.
    pub(super) iss: String,
    /// What the key is called.
    #[serde(default)]
    pub(super) name: String,
    /// The key of which it is said.
    pub(super) sub: String,
    /// What is said.
    pub(super) nats: Said,
}

/// What is said of a key, by its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Said {
    /// The key that everything hangs on.
    Operator {
        version: u8,
        #[serde(skip_serializing_if = "Option::is_none")]
        system_account: Option<String>,
    },
    /// An account: its users see each other and nobody else.
    Account {
        version: u8,
        limits: Limits,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        signing_keys: Vec<SigningKey>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        revocations: BTreeMap<String, u64>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        exports: Vec<Export>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        imports: Vec<Import>,
    },
    /// Whoever connects.
    User {
        version: u8,
        #[serde(default)]
        tags: Vec<String>,
        /// The account, where one of its signing keys says it. What the user may do is said with that key then.
        #[serde(skip_serializing_if = "Option::is_none")]
        issuer_account: Option<String>,
        #[serde(flatten)]
        may: Option<Permissions>,
    },
}

/// What an account lets others use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Export {
    name: String,
    subject: String,
    #[serde(rename = "type")]
    what: Shared,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_type: Option<Answered>,
}

/// What an account uses of another one, under the same subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Import {
    name: String,
    subject: String,
    account: String,
    #[serde(rename = "type")]
    what: Shared,
}

/// Whether requests pass to an account, or messages from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Shared {
    Service,
    Stream,
}

/// How often a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answered {
    #[serde(rename = "Singleton")]
    Once,
    #[serde(rename = "Stream")]
    Many,
}

impl Export {
    /// Requests that are answered so often.
    pub(super) fn service(subject: String, answered: Answered) -> Self {
        Self { name: subject.clone(), subject, what: Shared::Service, response_type: Some(answered) }
    }

    /// Messages.
    pub(super) fn stream(subject: String) -> Self {
        Self { name: subject.clone(), subject, what: Shared::Stream, response_type: None }
    }
}

impl Import {
    /// Requests to an account.
    pub(super) fn service(subject: String, account: String) -> Self {
        Self { name: subject.clone(), subject, account, what: Shared::Service }
    }

    /// Messages from an account.
    pub(super) fn stream(subject: String, account: String) -> Self {
        Self { name: subject.clone(), subject, account, what: Shared::Stream }
    }
}

/// A key that vouches for users of an account. All of them may do the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SigningKey {
    kind: ScopeKind,
    /// The key.
    key: String,
    /// What it is called.
    role: String,
    /// What its users may do.
    template: Permissions,
}

/// Of what a signing key may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum ScopeKind {
    #[serde(rename = "user_scope")]
    Users,
}

impl SigningKey {
    /// A key whose users may do so much.
    pub(super) fn new(key: String, role: &str, rights: Rights) -> Self {
        let role = role.to_owned();
        Self { kind: ScopeKind::Users, key, role, template: Permissions::from(rights) }
    }
}

/// What a user may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Permissions {
    #[serde(default, rename = "pub")]
    publish: Subjects,
    #[serde(default, rename = "sub")]
    subscribe: Subjects,
    #[serde(skip_serializing_if = "Option::is_none")]
    resp: Option<Answers>,
    subs: i64,
    data: i64,
    payload: i64,
}

impl From<Rights> for Permissions {
    fn from(rights: Rights) -> Self {
        let Rights { publish, never_publish, subscribe, never_subscribe, answers, max_payload } = rights;
        let is_restricted = !publish.is_empty() && publish != [">"];
        // To whoever may answer, a server allows nothing else where nothing is listed.
        let publish = if answers && publish.is_empty() { vec![">".to_owned()] } else { publish };
        Self {
            publish: Subjects { allow: publish, deny: never_publish },
            subscribe: Subjects { allow: subscribe, deny: never_subscribe },
            resp: answers.then_some(Answers::ONE),
            subs: if is_restricted { MAX_SUBSCRIPTIONS } else { UNLIMITED },
            data: UNLIMITED,
            payload: max_payload.map_or(UNLIMITED, i64::from),
        }
    }
}

/// Subjects that are allowed, and of these the ones that are not. With none of both, all are allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Subjects {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    allow: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deny: Vec<String>,
}

/// How a request may be answered wherever its asker waits for the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answers {
    /// Answers to one request.
    max: u32,
    /// How long after it, in nanoseconds.
    ttl: u64,
}

impl Answers {
    /// One answer within an hour: an agent may be asked to take something that lasts.
    const ONE: Self = Self { max: 1, ttl: 3_600_000_000_000 };
}

/// What an account may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Limits {
    subs: i64,
    data: i64,
    payload: i64,
    imports: i64,
    exports: i64,
    wildcards: bool,
    conn: i64,
    leaf: i64,
    mem_storage: i64,
    disk_storage: i64,
    streams: i64,
    consumer: i64,
    max_ack_pending: i64,
    mem_max_stream_bytes: i64,
    disk_max_stream_bytes: i64,
}

impl Limits {
    /// An account that stores as much as the server has room for, or nothing.
    const fn new(stores: bool) -> Self {
        let storage = if stores { UNLIMITED } else { 0 };
        Self {
            subs: UNLIMITED,
            data: UNLIMITED,
            payload: UNLIMITED,
            imports: UNLIMITED,
            exports: UNLIMITED,
            wildcards: true,
            conn: UNLIMITED,
            leaf: UNLIMITED,
            mem_storage: storage,
            disk_storage: storage,
            streams: storage,
            consumer: storage,
            max_ack_pending: UNLIMITED,
            mem_max_stream_bytes: UNLIMITED,
            disk_max_stream_bytes: UNLIMITED,
        }
    }
}

impl Said {
    /// An operator with its system account.
    pub(super) fn operator(system_account: &KeyPair) -> Self {
        Self::Operator { version: VERSION, system_account: Some(system_account.public_key()) }
    }

    /// The server's own account, which stores nothing.
    pub(super) fn system() -> Self {
        Self::account(Vec::new(), BTreeMap::new(), Vec::new())
    }

    /// An account with the keys that vouch for its users, the users whose credentials from before a time count no more, and what
    /// it uses of others. It stores nothing.
    pub(super) fn account(
        signing_keys: Vec<SigningKey>,
        revocations: BTreeMap<String, u64>,
        imports: Vec<Import>,
    ) -> Self {
        let limits = Limits::new(false);
        Self::Account { version: VERSION, limits, signing_keys, revocations, exports: Vec::new(), imports }
    }

    /// An account that stores, and has no users.
    pub(super) fn store(exports: Vec<Export>) -> Self {
        Self::Account {
            version: VERSION,
            limits: Limits::new(true),
            signing_keys: Vec::new(),
            revocations: BTreeMap::new(),
            exports,
            imports: Vec::new(),
        }
    }

    /// A user for whom an account itself vouches.
    pub(super) fn user(rights: Rights, tags: Vec<String>) -> Self {
        let may = Some(Permissions::from(rights));
        Self::User { version: VERSION, tags, issuer_account: None, may }
    }

    /// A user for whom a signing key of an account vouches. A server refuses one who brings permissions of his own.
    pub(super) fn scoped_user(account: &KeyPair, tags: Vec<String>) -> Self {
        let issuer_account = Some(account.public_key());
        Self::User { version: VERSION, tags, issuer_account, may: None }
    }
}

/// Claims about a key, signed by another one.
pub(super) struct Statement<'a> {
    pub(super) of: &'a KeyPair,
    pub(super) by: &'a KeyPair,
    pub(super) name: String,
    pub(super) said: Said,
    pub(super) at: Millis,
    pub(super) until: Option<Millis>,
}

impl Statement<'_> {
    /// The JWT.
    pub(super) fn sign(self) -> Result<String, CredentialsError> {
        let claims = Claims {
            jti: String::new(),
            iat: self.at.0 / 1000,
            exp: self.until.map(|until| until.0 / 1000),
            iss: self.by.public_key(),
            name: self.name,
            sub: self.of.public_key(),
            nats: self.said,
        };
        let signed = claims.signed_part()?;
        let signature = self.by.sign(signed.as_bytes()).map_err(CredentialsError::key)?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

fn json(claims: &Claims) -> Result<Vec<u8>, CredentialsError> {
    serde_json::to_vec(claims).map_err(|error| CredentialsError::Key { reason: error.to_string() })
}

impl Claims {
    /// What of a JWT is signed: the header and these claims, with the hash that tells them from others.
    fn signed_part(mut self) -> Result<String, CredentialsError> {
        self.jti = String::new();
        self.jti = hex::encode(Sha256::digest(json(&self)?));
        Ok(format!("{}.{}", URL_SAFE_NO_PAD.encode(HEADER), URL_SAFE_NO_PAD.encode(json(&self)?)))
    }

    /// Reads a JWT. Whether its signature holds is for the server to say.
    pub(super) fn read(jwt: &str) -> Result<Self, String> {
        let body = jwt.split('.').nth(1).ok_or("it is no JWT")?;
        let body = URL_SAFE_NO_PAD.decode(body).map_err(|error| error.to_string())?;
        serde_json::from_slice(&body).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_is_read_and_holds() {
        let (account, user) = (KeyPair::new_account(), KeyPair::new_user());
        let rights = Rights { publish: vec!["a.>".into()], answers: true, ..Rights::default() };
        let statement = Statement {
            of: &user,
            by: &account,
            name: "worker-1".into(),
            said: Said::user(rights, vec!["agent:worker".into()]),
            at: Millis(5_000),
            until: Some(Millis(9_000)),
        };
        let jwt = statement.sign().unwrap();
        let claims = Claims::read(&jwt).unwrap();
        assert_eq!((claims.iat, claims.exp, claims.name.as_str()), (5, Some(9), "worker-1"));
        assert_eq!((claims.iss, claims.sub), (account.public_key(), user.public_key()));
        let Said::User { may: Some(may), tags, .. } = claims.nats else { panic!("a user") };
        assert_eq!(may.publish.allow, ["a.>"]);
        assert_eq!((may.resp, tags), (Some(Answers::ONE), vec!["agent:worker".to_owned()]));
        let (signed, signature) = jwt.rsplit_once('.').unwrap();
        account.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    }

    #[test]
    fn nonsense_is_no_jwt() {
        for wrong in ["", "a", "a.b", "a.!.c", "a.e30.c", "...."] {
            assert!(Claims::read(wrong).is_err(), "{wrong}");
        }
    }
}
