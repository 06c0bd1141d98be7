//! The HTTP client, made when first needed and shared by all targets of a process.
//!
//! Its connections are kept and used again, and are HTTP/2 where a server offers that by TLS. reqwest is built without a
//! crypto provider of its own and takes the process's default, which the binary installs at the start (`ring`); should
//! nobody have done so, it is installed here, because reqwest would panic. Server certificates are checked against the
//! system's roots.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The longest time to connect, TLS included.
const CONNECT: Duration = Duration::from_secs(10);
/// Idle connections are closed after this time, so that an idle agent keeps no buffers.
const KEEP_IDLE: Duration = Duration::from_secs(30);

/// A handle to the shared client. Cloning is cheap; nothing is built until a call is made.
#[derive(Clone, Default)]
pub struct ProviderClient {
    built: Arc<Built>,
}

#[derive(Default)]
struct Built {
    http: OnceLock<Result<reqwest::Client, String>>,
    /// The client library, for what it is asked by; over the same connections.
    library: OnceLock<Result<genai::Client, String>>,
}

impl ProviderClient {
    /// The client, built now if need be.
    pub(super) fn http(&self) -> Result<&reqwest::Client, String> {
        self.built.http.get_or_init(build).as_ref().map_err(Clone::clone)
    }

    /// The client library, built now if need be.
    pub(super) fn library(&self) -> Result<&genai::Client, String> {
        let library = self.built.library.get_or_init(|| {
            let http = self.http()?.clone();
            genai::Client::builder().with_reqwest(http).build().map_err(|error| error.to_string())
        });
        library.as_ref().map_err(Clone::clone)
    }
}

fn build() -> Result<reqwest::Client, String> {
    install_crypto();
    settings()
        .build()
        // Without any system certificates the client cannot be built at all, although plain http
        // (a model on this machine) needs none. https calls then fail with a certificate error.
        .or_else(|_| settings().tls_certs_only([]).build())
        .map_err(|error| error.to_string())
}

fn settings() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .pool_idle_timeout(KEEP_IDLE)
        .tcp_nodelay(true)
        // A redirect would take the key to another host.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("muster/", env!("CARGO_PKG_VERSION")))
}

fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only when another thread was faster, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
