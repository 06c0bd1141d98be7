//! A webhook: a POST of JSON with an id, a time and a signature over both and the body, as receivers of webhooks know them
//! (Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature`).
//!
//! The guard of the web tools sees to it where it goes: only https, at a public address, unless the destination is said to be
//! private. Redirects are not followed: a signed request goes where the setting says, and nowhere else.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use muster_shared::flow::rights::HostPattern;
use muster_web::{EndpointAnswer, EndpointCall, Endpoints, Resolver, WebSettings};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

use super::super::notice::Notice;
use super::MOST_SAID;
use crate::render::figures;
use crate::secrets;
use crate::settings::DestinationSettings;

/// Most bytes of an answer that are read.
const MOST_ANSWER: u64 = 4096;
/// How a secret begins that is written in base64.
const ENCODED: &str = "whsec_";
/// Shortest secret, in bytes.
const SHORTEST: usize = 16;

/// A URL that is sent signed requests.
pub(crate) struct WebhookReceiver {
    url: String,
    /// What a secret is called in what is said.
    setting: String,
    secret: Option<SecretString>,
    secret_file: Option<String>,
    private: Vec<HostPattern>,
    timeout: Duration,
    endpoints: Endpoints,
}

impl WebhookReceiver {
    /// By its settings, and those of the web: proxy, certificates, time to connect.
    pub(super) fn new(
        name: &str,
        url: &str,
        settings: &DestinationSettings,
        web: &WebSettings,
        resolver: Arc<dyn Resolver>,
    ) -> Self {
        // Its own host, and nobody else's.
        let host = settings.private.then(|| host_of(url)).flatten();
        Self {
            url: url.to_owned(),
            setting: format!("alerts.destinations.{name}"),
            secret: settings.secret.as_deref().cloned(),
            secret_file: settings.secret_file.as_ref().map(|file| file.display().to_string()),
            private: host.into_iter().collect(),
            timeout: settings.timeout,
            endpoints: Endpoints::new(web.clone(), resolver),
        }
    }

    pub(super) async fn tell(&self, notice: &Notice) -> Result<String, String> {
        // Read anew: a file may hold another one since.
        let secret = self.key()?;
        let body = notice.body().to_string();
        // By our own clock, and of this try: a receiver refuses what is old.
        let timestamp = crate::app::now().0 / 1000;
        let headers = [
            ("content-type", "application/json".to_owned()),
            ("webhook-id", notice.id.clone()),
            ("webhook-timestamp", timestamp.to_string()),
            ("webhook-signature", signature(&secret, &notice.id, timestamp, &body)?),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value));
        let call = EndpointCall {
            method: "POST",
            url: &self.url,
            headers: &headers,
            body: Some(body.into()),
            private: &self.private,
            most: MOST_ANSWER,
        };
        match tokio::time::timeout(self.timeout, self.endpoints.call(call)).await {
            Ok(Ok(answer)) => judge(&answer),
            Ok(Err(failure)) => Err(figures::one_line(&failure.to_string(), MOST_SAID)),
            Err(_) => Err(format!("it did not answer within {}", figures::span(self.timeout))),
        }
    }

    fn key(&self) -> Result<Vec<u8>, String> {
        let text = match (&self.secret, &self.secret_file) {
            (Some(secret), _) => secret.expose_secret().trim().to_owned(),
            (None, Some(file)) => secrets::read(file)
                .map_err(|why| format!("{}.secret_file names {file}, which {why}", self.setting))?,
            (None, None) => return Err(format!("{} has no secret", self.setting)),
        };
        key(&text).map_err(|why| format!("the secret of {} {why}", self.setting))
    }
}

/// What a secret stands for: the bytes that are encoded in it, or its own.
fn key(text: &str) -> Result<Vec<u8>, String> {
    let bytes = match text.strip_prefix(ENCODED) {
        Some(encoded) => STANDARD.decode(encoded).map_err(|_| format!("is no base64 after {ENCODED}"))?,
        None => text.as_bytes().to_vec(),
    };
    if bytes.len() < SHORTEST {
        return Err(format!("is shorter than {SHORTEST} bytes"));
    }
    Ok(bytes)
}

/// The signature of a request: HMAC-SHA-256 over its id, its time in seconds, and its body.
fn signature(secret: &[u8], id: &str, timestamp: u64, body: &str) -> Result<String, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).map_err(|error| error.to_string())?;
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

/// The host of a URL with its port, as one that may be at a private address.
fn host_of(url: &str) -> Option<HostPattern> {
    let url = url::Url::parse(url).ok()?;
    HostPattern::read(&format!("{}:{}", url.host_str()?, url.port_or_known_default()?)).ok()
}

/// Whether an answer says that the notice was taken.
fn judge(answer: &EndpointAnswer) -> Result<String, String> {
    let said = String::from_utf8_lossy(&answer.body);
    let said = figures::one_line(&said, MOST_SAID);
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    match answer.status {
        200..=299 => Ok(format!("status {}{said}", answer.status)),
        300..=399 => Err(format!(
            "status {}: it redirects, which is not followed; set its final address",
            answer.status
        )),
        status => Err(format!("status {status}{said}")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn answer(status: u16, body: &'static str) -> EndpointAnswer {
        EndpointAnswer { status, content_type: String::new(), body: body.into(), cut: false }
    }

    #[test]
    fn a_signature_is_the_one_that_others_work_out() {
        // Worked out with Python's hmac module.
        let secret = key("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=").unwrap();
        assert_eq!(secret, b"0123456789abcdef0123456789abcdef");
        let signed =
            signature(&secret, "1700000000000-7", 1_700_000_001, "{\"type\":\"alert.fired\"}").unwrap();
        assert_eq!(signed, "v1,6ik260vV5l2PnFm+HN+jGKnas8SPxBGIlRxBOvbgOu0=");
        assert_eq!(key("0123456789abcdef0123456789abcdef").unwrap(), secret);
        assert!(key("short").unwrap_err().contains("shorter than 16"));
        assert!(key("whsec_?").unwrap_err().contains("no base64"));
    }

    #[test]
    fn only_a_status_of_success_takes_a_notice() {
        assert_eq!(judge(&answer(200, "")), Ok("status 200".to_owned()));
        assert!(!judge(&answer(202, "ok\u{1b}[31m\n")).unwrap().contains('\u{1b}'));
        for (status, words) in
            [(301, "is not followed"), (307, "is not followed"), (404, "status 404: no"), (500, "status 500")]
        {
            assert!(judge(&answer(status, "no")).unwrap_err().contains(words), "{status}");
        }
    }

    #[test]
    fn a_private_destination_is_its_own_host_at_its_own_port() {
        for (url, shown) in [
            ("http://127.0.0.1:8080/a", "127.0.0.1:8080"),
            ("https://hooks.example.org/b", "hooks.example.org:443"),
            ("http://[::1]:9/", "[::1]:9"),
        ] {
            assert_eq!(host_of(url).map(|host| host.to_string()).as_deref(), Some(shown), "{url}");
        }
    }
}
