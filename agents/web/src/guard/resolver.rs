//! The one place where names become addresses. What is connected to are the very addresses that were judged: there is no
//! second look-up, so that a name that is answered differently the next time gains nothing.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use muster_tools::address::is_public;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::{Reach, Refused};

/// Most addresses of a host that are tried; all that come are judged.
const MOST_TRIED: usize = 8;

/// Looks names up.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// All addresses of a name.
    ///
    /// # Errors
    /// When it has none, or nobody can be asked.
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;

    /// Where an address that was judged is reached. Elsewhere than at itself only in tests, which have public addresses on
    /// the loopback.
    fn reached_at(&self, address: IpAddr) -> IpAddr {
        address
    }
}

/// The system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// A resolver for connections that gives judged addresses only.
pub(crate) struct Judged {
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) reach: Reach,
}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let (resolver, reach) = (Arc::clone(&self.resolver), self.reach);
        Box::pin(async move {
            let answered = resolver.addresses(name.as_str()).await?;
            let judged = judge(name.as_str(), &answered, reach).map_err(AddressRefused)?;
            let tried: Vec<SocketAddr> = judged
                .iter()
                .take(MOST_TRIED)
                .map(|address| SocketAddr::new(resolver.reached_at(*address), 0))
                .collect();
            Ok(Box::new(tried.into_iter()) as Addrs)
        })
    }
}

/// The addresses of a host, if all of them may be connected to. One that may not refuses them all: whoever answers so means
/// no good, or is a network that sees both sides.
///
/// # Errors
/// With the first that may not be.
pub(crate) fn judge<'a>(host: &str, answered: &'a [IpAddr], reach: Reach) -> Result<&'a [IpAddr], Refused> {
    match reach {
        Reach::Named => Ok(answered),
        Reach::Public => match answered.iter().find(|address| !is_public(**address)) {
            Some(address) => Err(Refused::PrivateAddress { host: host.to_owned(), address: *address }),
            None => Ok(answered),
        },
    }
}

/// A refusal on its way through the client.
#[derive(Debug)]
pub(crate) struct AddressRefused(pub(crate) Refused);

impl fmt::Display for AddressRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for AddressRefused {}
