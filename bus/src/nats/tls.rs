//! Encrypted connections: how they are asked for, and why there is none, in one sentence that says how to mend it.

use std::error::Error;
use std::path::Path;

use async_nats::{ConnectError, ConnectOptions};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError};

use super::connect::ordinary;
use crate::error::BusError;
use crate::settings::BusSettings;

/// Asks for an encrypted connection where the settings or the address want one: then there is none that is not, at this server or
/// at one that it names. The files are read anew for each connection.
pub(super) fn encrypted(
    options: ConnectOptions,
    settings: &BusSettings,
    url: &str,
) -> Result<ConnectOptions, BusError> {
    let mut options = options;
    if let Some(path) = &settings.tls_ca {
        ordinary("certificates", path)?;
        certificates("bus.tls_ca", path)?;
        options = options.add_root_certificates(path.clone());
    }
    match (&settings.tls_cert, &settings.tls_key) {
        (Some(certificate), Some(key)) => {
            ordinary("certificate", certificate)?;
            certificates("bus.tls_cert", certificate)?;
            ordinary("key", key)?;
            PrivateKeyDer::from_pem_file(key)
                .map_err(|error| unreadable("bus.tls_key", key, &pem_error(&error)))?;
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        (None, None) => {}
        (Some(_), None) | (None, Some(_)) => {
            let reason = "tls_cert and tls_key go together: name both, or none".to_owned();
            return Err(BusError::Settings { reason });
        }
    }
    Ok(if wants_tls(settings, url) { options.require_tls(true) } else { options })
}

/// Whether a connection that is not encrypted is none.
pub(super) fn wants_tls(settings: &BusSettings, url: &str) -> bool {
    settings.tls_ca.is_some() || url.split(',').any(|one| one.trim().starts_with("tls://"))
}

fn certificates(setting: &str, path: &Path) -> Result<(), BusError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(all) if all.is_empty() => Err(unreadable(setting, path, "there is no certificate in it")),
        Ok(_) => Ok(()),
        Err(error) => Err(unreadable(setting, path, &pem_error(&error))),
    }
}

/// What is wrong with a PEM file. The library's own words list the bytes of the line.
fn pem_error(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "nothing of the kind is in it".to_owned(),
        _ => "it is no PEM file, or a damaged one".to_owned(),
    }
}

fn unreadable(setting: &str, path: &Path, why: &str) -> BusError {
    let reason = format!(
        "{setting} = {} cannot be used: {why}. It is a PEM file; a fleet's own is in .muster/nats/keys where it runs",
        path.display()
    );
    BusError::Settings { reason }
}

/// Why there is no encrypted connection, if that is why there is none.
pub(super) fn why_not(error: &ConnectError, settings: &BusSettings, url: &str) -> Option<String> {
    let cause = tls_error(error)?;
    let ca = settings.tls_ca.as_deref();
    Some(match cause {
        rustls::Error::InvalidCertificate(why) => of_certificate(why, ca),
        rustls::Error::AlertReceived(alert) => of_alert(*alert, settings),
        rustls::Error::InvalidMessage(_) if wants_tls(settings, url) => no_tls(),
        other => format!("{other}. {}", look()),
    })
}

fn of_certificate(why: &CertificateError, ca: Option<&Path>) -> String {
    match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => match ca {
            Some(ca) => format!(
                "the server's certificate is not of the authority in {}. If it is the right server, name the ca.pem of its fleet (in \
                 .muster/nats/keys where it runs) with bus.tls_ca (MUSTER_BUS_TLS_CA)",
                ca.display()
            ),
            None => "the server's certificate is of an authority that is not known here: name the ca.pem of its fleet (in \
                     .muster/nats/keys where it runs) with bus.tls_ca (MUSTER_BUS_TLS_CA)"
                .to_owned(),
        },
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the server's certificate is not for this address: connect to one that it is for, or add this one to server.names where \
             the fleet runs"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has ended by this machine's clock: set the clock right, or renew the certificate where the fleet \
             runs (`muster keys rotate --certificates`)"
                .to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate does not hold yet by this machine's clock: set the clock right, here or where the fleet runs"
                .to_owned()
        }
        other => format!("the server's certificate does not hold ({other}). {}", look()),
    }
}

fn of_alert(alert: AlertDescription, settings: &BusSettings) -> String {
    const MEND: &str = "name one of its fleet's authority with bus.tls_cert and bus.tls_key (in .muster/nats/keys where it runs: \
                        client.pem and client.key)";
    match alert {
        AlertDescription::CertificateRequired => {
            format!("the server wants a certificate of whoever connects: {MEND}")
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnknownCA
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateExpired
            if settings.tls_cert.is_some() =>
        {
            format!("the server does not take the certificate that bus.tls_cert names: {MEND}")
        }
        AlertDescription::BadCertificate | AlertDescription::HandshakeFailure => {
            format!("the server may want a certificate of whoever connects: {MEND}")
        }
        other => format!("the server broke it off ({other:?}). {}", look()),
    }
}

fn no_tls() -> String {
    "the server speaks no TLS, and nothing was sent to it. Encrypt the fleet where it runs (`muster up --tls`, or --listen), or, on a \
     network that you trust, connect by nats:// and without bus.tls_ca"
        .to_owned()
}

fn look() -> &'static str {
    "The server's own log (.muster/nats/nats-server.log) says more"
}

/// What the TLS library said, wherever it stands among the causes.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        // What an input/output error was made of is not what it names as its source.
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io;

    use async_nats::ConnectErrorKind;

    use super::*;

    fn said(error: rustls::Error, ca: Option<&str>) -> String {
        let error = io::Error::new(io::ErrorKind::InvalidData, error);
        let error = ConnectError::with_source(ConnectErrorKind::Io, error);
        let settings = BusSettings { tls_ca: ca.map(Into::into), ..BusSettings::default() };
        why_not(&error, &settings, "tls://h:1").unwrap_or_default()
    }

    #[test]
    fn each_reason_says_how_to_mend_it() {
        use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage};
        for (error, ca, wanted) in [
            (InvalidCertificate(CertificateError::UnknownIssuer), None, "not known here"),
            (
                InvalidCertificate(CertificateError::UnknownIssuer),
                Some("/k/ca.pem"),
                "authority in /k/ca.pem",
            ),
            (InvalidCertificate(CertificateError::NotValidForName), None, "server.names"),
            (InvalidCertificate(CertificateError::Expired), None, "rotate --certificates"),
            (InvalidCertificate(CertificateError::NotValidYet), None, "clock"),
            (AlertReceived(AlertDescription::CertificateRequired), None, "bus.tls_cert"),
            (InvalidMessage(rustls::InvalidMessage::InvalidContentType), None, "speaks no TLS"),
        ] {
            let said = said(error, ca);
            assert!(said.contains(wanted) && !said.contains('\n') && !said.contains("  "), "{said}");
        }
    }

    #[test]
    fn other_failures_are_none_of_tls() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let error = ConnectError::with_source(ConnectErrorKind::Io, refused);
        assert_eq!(why_not(&error, &BusSettings::default(), "tls://h:1"), None);
    }

    #[test]
    fn a_known_authority_or_an_encrypted_address_takes_no_other_connection() {
        let with_ca = BusSettings { tls_ca: Some("ca.pem".into()), ..BusSettings::default() };
        let plain = BusSettings::default();
        assert!(wants_tls(&with_ca, "nats://h:1") && wants_tls(&plain, "nats://a:1, tls://b:2"));
        assert!(!wants_tls(&plain, "nats://tls:1"));
    }
}
