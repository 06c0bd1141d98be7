//! The HTTP clients, made when first needed: one for hosts at public addresses, one for those that a setting names. Their
//! connections are apart, so that none that was made under the laxer rule is used under the stricter.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, Proxy};

use crate::guard::Reach;
use crate::guard::resolver::{Judged, Resolver};
use muster_tools::settings::WebSettings;

/// Longest time to connect, TLS included. A site that takes longer is down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Idle connections are closed after this time, so that an idle agent keeps no buffers.
const KEEP_IDLE: Duration = Duration::from_secs(20);

/// Idle connections that are kept to one host.
const MOST_IDLE: usize = 2;

/// Most lines in the head of an answer.
const MOST_HEADERS: usize = 100;

/// Largest file of certificates.
const MOST_CERTIFICATES: u64 = 4 * 1024 * 1024;

pub(crate) struct Clients {
    settings: Arc<WebSettings>,
    resolver: Arc<dyn Resolver>,
    public: OnceLock<Result<Client, String>>,
    named: OnceLock<Result<Client, String>>,
}

impl Clients {
    pub(crate) fn new(settings: Arc<WebSettings>, resolver: Arc<dyn Resolver>) -> Self {
        Self { settings, resolver, public: OnceLock::new(), named: OnceLock::new() }
    }

    /// The client for hosts of this reach, built now if need be.
    pub(crate) fn of(&self, reach: Reach) -> Result<&Client, String> {
        let built = match reach {
            Reach::Public => &self.public,
            Reach::Named => &self.named,
        };
        built.get_or_init(|| self.build(reach)).as_ref().map_err(Clone::clone)
    }

    fn build(&self, reach: Reach) -> Result<Client, String> {
        install_crypto();
        let built = self.begun(reach)?.build();
        // Without any certificates of the system the client cannot be built at all, although http needs none.
        match built {
            Ok(client) => Ok(client),
            Err(_) => {
                self.begun(reach)?.tls_certs_only(self.certificates()?).build().map_err(|e| e.to_string())
            }
        }
    }

    fn begun(&self, reach: Reach) -> Result<ClientBuilder, String> {
        let judged = Judged { resolver: Arc::clone(&self.resolver), reach };
        let begun = Client::builder()
            .user_agent(user_agent(self.settings.contact.as_deref()))
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(self.settings.idle)
            .pool_idle_timeout(KEEP_IDLE)
            .pool_max_idle_per_host(MOST_IDLE)
            .http1_max_headers(MOST_HEADERS)
            // Each hop is judged by ourselves.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .tls_certs_merge(self.certificates()?)
            .tcp_nodelay(true);
        match &self.settings.proxy {
            // The proxy may be anywhere, and looks names up itself.
            Some(proxy) => {
                let proxy =
                    Proxy::all(proxy).map_err(|error| format!("tool.web.proxy is no proxy: {error}"))?;
                let judged = Judged { reach: Reach::Named, ..judged };
                Ok(begun.no_proxy().proxy(proxy).dns_resolver(judged))
            }
            None => Ok(begun.no_proxy().dns_resolver(judged)),
        }
    }

    fn certificates(&self) -> Result<Vec<Certificate>, String> {
        let Some(file) = &self.settings.ca_file else { return Ok(Vec::new()) };
        let wrong = |why: String| format!("tool.web.ca_file {file} cannot be used: {why}");
        let size = std::fs::metadata(file).map_err(|error| wrong(error.to_string()))?.len();
        if size > MOST_CERTIFICATES {
            return Err(wrong(format!("it is larger than {MOST_CERTIFICATES} bytes")));
        }
        let pem = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
        Certificate::from_pem_bundle(&pem).map_err(|error| wrong(error.to_string()))
    }
}

/// How requests introduce themselves.
pub(crate) fn user_agent(contact: Option<&str>) -> String {
    let name = concat!("Muster/", env!("CARGO_PKG_VERSION"));
    let plain = |contact: &&str| {
        !contact.is_empty() && contact.len() <= 200 && contact.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match contact.filter(plain) {
        Some(contact) => format!("{name} (+{contact})"),
        None => name.to_owned(),
    }
}

fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only when another thread was faster, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
