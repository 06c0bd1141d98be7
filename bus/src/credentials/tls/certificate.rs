//! Certificates: made by the fleet's own authority, and judged by the rules that clients judge them by. No files.

use std::sync::Arc;
use std::time::Duration;

use muster_shared::time::Millis;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use sha2::{Digest, Sha256};

use super::super::CredentialsError;

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

/// How long before it is made a certificate begins to hold, at the least: for clocks that are behind.
const BEFORE: u64 = 25 * HOUR;
/// How long the authority holds.
const AUTHORITY: u64 = 20 * 365 * DAY;
/// How long other certificates hold: some programs take none that holds longer.
const LEAF: u64 = 397 * DAY;
/// When less of that is left, another is made.
const NEAR_END: u64 = 90 * DAY;

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// A server shows it.
    Server,
    /// A client shows it.
    Client,
    /// A server of a cluster shows it to clients, and to the other servers, of which it is a client.
    Member,
}

impl Use {
    /// Whether it is shown to clients.
    const fn serves(self) -> bool {
        !matches!(self, Self::Client)
    }

    /// Whether it is shown to servers.
    const fn asks(self) -> bool {
        !matches!(self, Self::Server)
    }
}

/// What the authority of a key is called. It hangs on the key, so that two fleets' authorities are told apart by their names.
fn authority_name(key: &KeyPair) -> String {
    let digest = hex::encode(Sha256::digest(key.subject_public_key_info()));
    format!("Muster fleet {}", &digest[..16])
}

fn of_authority(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, authority_name(key));
    // It signs no further authorities.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// The certificate of the authority that has a key, by itself.
pub(super) fn authority(key: &KeyPair, now: Millis) -> Result<CertificateDer<'static>, CredentialsError> {
    let mut params = of_authority(key);
    hold(&mut params, now, AUTHORITY)?;
    let made = params.self_signed(key).map_err(CredentialsError::key)?;
    Ok(made.der().clone())
}

/// A certificate for a key and these names, by the authority that has the other one.
pub(super) fn leaf(
    authority: &KeyPair,
    key: &KeyPair,
    wanted: &Wanted<'_>,
) -> Result<CertificateDer<'static>, CredentialsError> {
    let named = CertificateParams::new(wanted.names.to_vec());
    let mut params = named.map_err(|error| {
        CredentialsError::key(format!("{error} (the names were {})", wanted.names.join(", ")))
    })?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, wanted.called);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let serves = wanted.purpose.serves().then_some(ExtendedKeyUsagePurpose::ServerAuth);
    let asks = wanted.purpose.asks().then_some(ExtendedKeyUsagePurpose::ClientAuth);
    params.extended_key_usages = serves.into_iter().chain(asks).collect();
    params.use_authority_key_identifier_extension = true;
    hold(&mut params, wanted.now, LEAF)?;
    let issuer = of_authority(authority);
    let issuer = Issuer::from_params(&issuer, authority);
    let made = params.signed_by(key, &issuer).map_err(CredentialsError::key)?;
    Ok(made.der().clone())
}

/// What a certificate is wanted for, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) purpose: Use,
    /// What its holder is called for people.
    pub(super) called: &'a str,
    /// Addresses and names of a server.
    pub(super) names: &'a [String],
    pub(super) now: Millis,
}

/// Sets when a certificate holds, in whole days.
fn hold(params: &mut CertificateParams, now: Millis, span: u64) -> Result<(), CredentialsError> {
    let (from, to) = (Day::of(now.0.saturating_sub(BEFORE))?, Day::of(now.0.saturating_add(span))?);
    params.not_before = rcgen::date_time_ymd(from.year, from.month, from.day);
    params.not_after = rcgen::date_time_ymd(to.year, to.month, to.day);
    Ok(())
}

/// A day in UTC.
struct Day {
    year: i32,
    month: u8,
    day: u8,
}

impl Day {
    fn of(at: u64) -> Result<Self, CredentialsError> {
        let at = i64::try_from(at).map_err(CredentialsError::key)?;
        let at = jiff::Timestamp::from_millisecond(at).map_err(CredentialsError::key)?;
        let date = at.to_zoned(jiff::tz::TimeZone::UTC).date();
        let part = |part: i8| u8::try_from(part).map_err(CredentialsError::key);
        Ok(Self { year: date.year().into(), month: part(date.month())?, day: part(date.day())? })
    }
}

/// Whether a certificate is of the authority, and will do for what is wanted for long enough, by the rules of those to whom it is shown.
pub(super) fn will_do(
    authority: &CertificateDer<'_>,
    found: &CertificateDer<'_>,
    wanted: &Wanted<'_>,
) -> bool {
    let now = wanted.now.0;
    // One that was made by a clock that was ahead does not hold yet for others.
    let times = [now.saturating_sub(DAY), now.saturating_add(NEAR_END)];
    times.into_iter().all(|at| holds(authority, found, wanted, Millis(at)).is_ok())
}

/// Why a certificate does not hold at a time, in the words of those to whom it is shown.
pub(super) fn holds(
    authority: &CertificateDer<'_>,
    found: &CertificateDer<'_>,
    wanted: &Wanted<'_>,
    at: Millis,
) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    let said = |error: &dyn std::fmt::Display| error.to_string();
    roots.add(authority.clone().into_owned()).map_err(|error| said(&error))?;
    let (roots, rules) = (Arc::new(roots), provider());
    let at = UnixTime::since_unix_epoch(Duration::from_millis(at.0));
    if wanted.purpose.serves() {
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&rules));
        let verifier = verifier.build().map_err(|error| said(&error))?;
        for name in wanted.names {
            let name = ServerName::try_from(name.as_str()).map_err(|error| said(&error))?;
            verifier.verify_server_cert(found, &[], &name, &[], at).map_err(|error| said(&error))?;
        }
    }
    if wanted.purpose.asks() {
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, rules).build();
        let verifier = verifier.map_err(|error| said(&error))?;
        verifier.verify_client_cert(found, &[], at).map_err(|error| said(&error))?;
    }
    Ok(())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Whether a certificate is for this key.
pub(super) fn is_of(found: &CertificateDer<'_>, key: &KeyPair) -> bool {
    let key = key.subject_public_key_info();
    found.as_ref().windows(key.len()).any(|part| part == key.as_slice())
}

/// By what people and programs tell one certificate from all others.
pub(super) fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    hex::encode(Sha256::digest(certificate.as_ref()))
}
