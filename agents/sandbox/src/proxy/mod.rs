//! The way of a program to hosts that were granted: a proxy for HTTP that listens inside of the program's network and
//! connects outside of it.

mod head;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muster_shared::flow::rights::HostPattern;
use muster_shared::flow::{TaskRights, Use};
use muster_shared::sync::lock;
use muster_tools::address::is_public;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::task::JoinSet;

use self::head::{Asked, LONGEST_HEAD, Target};

/// How long a head may take to come, and a host to be found and reached.
const PATIENCE: Duration = Duration::from_secs(20);

/// Most refusals that are kept.
const MOST_TOLD: usize = 20;

/// What may be reached, and how much.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) hosts: Vec<HostPattern>,
    pub(crate) rights: Arc<TaskRights>,
    /// Most connections, one after the other or at once.
    pub(crate) connections: u32,
    /// Most bytes, of both directions together.
    pub(crate) traffic: u64,
}

impl Rules {
    /// Whether a host may be asked for at all.
    fn allow(&self, target: &Target) -> Result<(), String> {
        let asked = target.to_string();
        let pattern = HostPattern::read(&asked)?;
        if !self.hosts.iter().any(|host| host.holds(&pattern)) {
            let names: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
            return Err(format!("only these hosts may be reached: {}", names.join(", ")));
        }
        self.rights.allows(&Use::Host(&asked)).map_err(|refusal| refusal.to_string())
    }

    /// Whether an address may be connected to that was found for a host, or stands in its place. One that is not public is
    /// meant only by a pattern that names it.
    fn allow_address(&self, target: &Target, address: IpAddr) -> bool {
        let named = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let is_named = || {
            let pattern = HostPattern::read(&format!("{named}:{}", target.port));
            pattern.is_ok_and(|pattern| self.hosts.iter().any(|host| host.is_one() && host.holds(&pattern)))
        };
        is_public(address) || (target.host == named && is_named())
    }
}

/// What the connections of one program share.
struct Shared {
    rules: Rules,
    moved: AtomicU64,
    refused: Arc<Mutex<Vec<String>>>,
}

impl Shared {
    fn refuse(&self, target: &str, why: &str) {
        tracing::info!(target, why, "a program in the sandbox was refused a host");
        let mut refused = lock(&self.refused);
        let text = format!("{target} was not reached: {why}");
        if refused.len() < MOST_TOLD && !refused.contains(&text) {
            refused.push(text);
        }
    }

    /// Counts bytes that were moved.
    fn count(&self, bytes: usize) -> io::Result<()> {
        let before = self.moved.fetch_add(bytes as u64, Ordering::Relaxed);
        if before.saturating_add(bytes as u64) > self.rules.traffic {
            self.refuse("more", "the program may move no more bytes");
            return Err(io::Error::other("too much was moved"));
        }
        Ok(())
    }
}

/// Serves until it is dropped, and all its connections with it. What is refused is added to the list.
pub(crate) async fn serve(listener: TcpListener, rules: Rules, refused: Arc<Mutex<Vec<String>>>) {
    let mut left = rules.connections;
    let shared = Arc::new(Shared { rules, moved: AtomicU64::new(0), refused });
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { return std::future::pending().await };
                if left == 0 {
                    shared.refuse("another host", "the program made too many connections");
                    continue;
                }
                left -= 1;
                open.spawn(attend(client, Arc::clone(&shared)));
            }
            Some(_) = open.join_next() => {}
        }
    }
}

async fn attend(mut client: TcpStream, shared: Arc<Shared>) {
    let Ok(Ok((head, beyond))) = tokio::time::timeout(PATIENCE, read_head(&mut client)).await else { return };
    let asked = match head::read(&head) {
        Ok(asked) => asked,
        Err(why) => return answer(&mut client, "400 Bad Request", why).await,
    };
    let target = match &asked {
        Asked::Way(target) | Asked::Request { target, .. } => target.clone(),
    };
    let reached = tokio::time::timeout(PATIENCE, reach(&target, &shared)).await;
    let host = match reached.unwrap_or_else(|_| Err(Unreached::Failed("it does not answer".to_owned()))) {
        Ok(host) => host,
        Err(Unreached::Refused(why)) => {
            shared.refuse(&target.to_string(), &why);
            return answer(&mut client, "403 Forbidden", &why).await;
        }
        Err(Unreached::Failed(why)) => return answer(&mut client, "502 Bad Gateway", &why).await,
    };
    tracing::info!(%target, "a program in the sandbox was let through to a host");
    // Whoever hangs up first ends it: nothing is to be done about it here.
    let _hung_up = match asked {
        Asked::Way(_) => tunnel(client, host, &beyond, &shared).await,
        Asked::Request { head, body, .. } => forward(client, host, &head, &beyond, body, &shared).await,
    };
}

/// The head, and what came beyond it.
async fn read_head(client: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut read = Vec::new();
    while read.len() < LONGEST_HEAD {
        if client.read_buf(&mut read).await? == 0 {
            break;
        }
        if let Some(at) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let beyond = read.split_off(at + 4);
            return Ok((read, beyond));
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

enum Unreached {
    Refused(String),
    Failed(String),
}

/// Finds a host and connects to it: to the very addresses that were looked at, all of which have to be allowed.
async fn reach(target: &Target, shared: &Shared) -> Result<TcpStream, Unreached> {
    shared.rules.allow(target).map_err(Unreached::Refused)?;
    let found =
        lookup_host(target.to_string()).await.map_err(|error| Unreached::Failed(error.to_string()))?;
    let found: Vec<SocketAddr> = found.collect();
    if let Some(bad) = found.iter().find(|found| !shared.rules.allow_address(target, found.ip())) {
        return Err(Unreached::Refused(format!("its address {} is not one of the internet", bad.ip())));
    }
    TcpStream::connect(found.as_slice()).await.map_err(|error| Unreached::Failed(error.to_string()))
}

async fn answer(client: &mut TcpStream, status: &str, why: &str) {
    let body = format!("{why}\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    // A program that does not listen needs no answer.
    let _unheard = client.write_all(format!("{head}{body}").as_bytes()).await;
}

async fn tunnel(client: TcpStream, mut host: TcpStream, beyond: &[u8], shared: &Shared) -> io::Result<()> {
    let (mut from_client, mut to_client) = client.into_split();
    to_client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    shared.count(beyond.len())?;
    host.write_all(beyond).await?;
    let (mut from_host, mut to_host) = host.into_split();
    tokio::try_join!(
        carry(&mut from_client, &mut to_host, u64::MAX, shared),
        carry(&mut from_host, &mut to_client, u64::MAX, shared),
    )?;
    Ok(())
}

/// One request and its answer; nothing that the program sends after it goes anywhere.
async fn forward(
    client: TcpStream,
    mut host: TcpStream,
    head: &[u8],
    beyond: &[u8],
    body: u64,
    shared: &Shared,
) -> io::Result<()> {
    let first =
        beyond.get(..beyond.len().min(usize::try_from(body).unwrap_or(usize::MAX))).unwrap_or_default();
    shared.count(head.len() + first.len())?;
    host.write_all(head).await?;
    host.write_all(first).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_host, mut to_host) = host.into_split();
    let upload = async {
        // The way stays open until the host has answered: some take its closing for the end of all.
        move_bytes(&mut from_client, &mut to_host, body.saturating_sub(first.len() as u64), shared).await
    };
    tokio::try_join!(upload, carry(&mut from_host, &mut to_client, u64::MAX, shared))?;
    Ok(())
}

/// Moves bytes to the end of one direction, and closes it.
async fn carry(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    most: u64,
    shared: &Shared,
) -> io::Result<()> {
    move_bytes(from, to, most, shared).await?;
    to.shutdown().await
}

async fn move_bytes(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut most: u64,
    shared: &Shared,
) -> io::Result<()> {
    let mut part = vec![0; 16 * 1024];
    while most > 0 {
        let room = part.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        let read = from.read(part.get_mut(..room).unwrap_or_default()).await?;
        if read == 0 {
            break;
        }
        most -= read as u64;
        shared.count(read)?;
        to.write_all(part.get(..read).unwrap_or_default()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
