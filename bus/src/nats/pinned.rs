//! TLS to a server that is known by the fingerprint of its authority alone: whoever holds an invitation has no more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use muster_shared::sync::lock;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256};

use crate::credentials::Fingerprint;

/// Accepts what the authority with this fingerprint signed, which the server sends along, and nothing else.
#[derive(Debug)]
pub(super) struct Pinned {
    authority: Fingerprint,
    provider: Arc<CryptoProvider>,
    /// The authority's certificate, once a server has shown it.
    seen: Mutex<Option<Vec<u8>>>,
    /// Whether a server came without it.
    is_another: AtomicBool,
}

impl Pinned {
    pub(super) fn new(authority: Fingerprint) -> Arc<Self> {
        let provider = Arc::new(ring::default_provider());
        Arc::new(Self { authority, provider, seen: Mutex::new(None), is_another: AtomicBool::new(false) })
    }

    /// How a connection is made that goes by it.
    pub(super) fn config(self: &Arc<Self>) -> Result<ClientConfig, Error> {
        let builder = ClientConfig::builder_with_provider(Arc::clone(&self.provider));
        let builder = builder.with_safe_default_protocol_versions()?;
        let verifier: Arc<dyn ServerCertVerifier> = Arc::clone(self) as _;
        Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
    }

    /// Whether the server was refused because another authority vouches for it.
    pub(super) fn is_another(&self) -> bool {
        self.is_another.load(Ordering::Relaxed)
    }

    /// The authority's certificate (DER), once a connection was made.
    pub(super) fn certificate(&self) -> Option<Vec<u8>> {
        lock(&self.seen).clone()
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let is_meant = |one: &&CertificateDer<'_>| {
            let print: [u8; 32] = Sha256::digest(one).into();
            Fingerprint(print) == self.authority
        };
        // That of the server itself is no authority's.
        let found = others.iter().find(is_meant);
        let Some(found) = found else {
            self.is_another.store(true, Ordering::Relaxed);
            return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        };
        let mut roots = RootCertStore::empty();
        roots.add(found.clone().into_owned())?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider)).build();
        let verifier = verifier.map_err(|error| Error::General(error.to_string()))?;
        let verified = verifier.verify_server_cert(own, others, name, ocsp, now)?;
        *lock(&self.seen) = Some(found.to_vec());
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, own, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, own, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
