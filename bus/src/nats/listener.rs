//! Whose a server of this machine is, as far as the system says: without TLS nothing else tells the fleet's from whoever listens
//! in its place.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use async_nats::ServerAddr;
use nix::unistd::{Uid, User, geteuid};

use super::tls::wants_tls;
use crate::error::BusError;
use crate::settings::BusSettings;

/// The states of a socket that matter, as the kernel writes them.
const ESTABLISHED: u8 = 1;
const LISTENS: u8 = 10;

/// Where a server of this machine is looked for, and who may run it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Expected {
    addresses: Vec<SocketAddr>,
    /// Who connects.
    me: u32,
    /// Another user who may run it, besides root.
    another: Option<u32>,
}

impl Expected {
    /// By the address and the settings: nothing is looked for where the connection is encrypted, since the server then shows a
    /// certificate, nor on other machines.
    ///
    /// # Errors
    /// When the settings name a user that there is not.
    pub(super) fn at(url: &str, settings: &BusSettings) -> Result<Self, BusError> {
        if wants_tls(settings, url) {
            return Ok(Self::default());
        }
        let addresses = url.split(',').filter_map(|one| one.trim().parse::<ServerAddr>().ok());
        let addresses = addresses.flat_map(|one| here(one.host(), one.port())).collect();
        let another = settings.server_user.as_deref().map(user).transpose()?;
        Ok(Self { addresses, me: geteuid().as_raw(), another })
    }

    /// Who listens there, or has taken a connection of ours there, and may not. Read anew each time.
    pub(super) fn stranger(&self) -> Option<Stranger> {
        if self.addresses.is_empty() {
            return None;
        }
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(std::fs::read_to_string);
        let sockets: Vec<Socket> =
            tables.iter().flatten().flat_map(|table| table.lines().filter_map(Socket::of)).collect();
        self.addresses.iter().find_map(|address| self.stranger_at(*address, &sockets))
    }

    /// Pure.
    fn stranger_at(&self, address: SocketAddr, sockets: &[Socket]) -> Option<Stranger> {
        let listens = |socket: &&Socket| socket.state == LISTENS && socket.local.port() == address.port();
        let at = |ip: IpAddr| sockets.iter().filter(listens).filter(move |socket| socket.local.ip() == ip);
        let everywhere = sockets.iter().filter(listens).filter(|socket| socket.local.ip().is_unspecified());
        // Who listens at the very address is asked before who listens at all of them.
        let mut listeners: Vec<&Socket> = at(address.ip()).collect();
        if listeners.is_empty() {
            listeners = everywhere.collect();
        }
        // Whoever took the connection may listen no more.
        let of_ours = |socket: &&Socket| {
            let is_ours = |other: &Socket| {
                other.local == socket.remote && other.remote == address && other.uid == self.me
            };
            socket.state == ESTABLISHED && socket.local == address && sockets.iter().any(is_ours)
        };
        let mut all = listeners.into_iter().chain(sockets.iter().filter(of_ours));
        let found = all.find(|socket| !self.may_run_it(socket.uid))?;
        Some(Stranger { address, uid: found.uid })
    }

    fn may_run_it(&self, uid: u32) -> bool {
        uid == self.me || uid == 0 || self.another == Some(uid)
    }
}

/// Somebody else in the server's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stranger {
    address: SocketAddr,
    uid: u32,
}

impl std::fmt::Display for Stranger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { address, uid } = self;
        let name = User::from_uid(Uid::from_raw(*uid)).ok().flatten();
        let name = name.map_or_else(|| "another user".to_owned(), |user| user.name);
        write!(f, "the program that listens on {address} is run by {name} (uid {uid}), and not by you")
    }
}

/// A socket of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Socket {
    local: SocketAddr,
    remote: SocketAddr,
    state: u8,
    uid: u32,
}

impl Socket {
    /// From a line of the kernel's table; nothing of its heading.
    fn of(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().skip(1);
        let (local, remote) = (address(words.next()?)?, address(words.next()?)?);
        let state = u8::from_str_radix(words.next()?, 16).ok()?;
        Some(Self { local, remote, state, uid: words.nth(3)?.parse().ok()? })
    }
}

/// An address such as `0100007F:115C`: each four bytes as one number of this machine's.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// The addresses of a host that are this machine's own for itself.
fn here(host: &str, port: u16) -> Vec<SocketAddr> {
    let both = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let ips = match host.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        Ok(ip) if ip.is_loopback() => vec![ip],
        Ok(ip) if ip.is_unspecified() => both.to_vec(),
        Ok(_) => Vec::new(),
        Err(_) if host.eq_ignore_ascii_case("localhost") => both.to_vec(),
        Err(_) => Vec::new(),
    };
    ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()
}

/// A user by name or number.
fn user(said: &str) -> Result<u32, BusError> {
    let by_name = || User::from_name(said).ok().flatten().map(|user| user.uid.as_raw());
    said.parse().ok().or_else(by_name).ok_or_else(|| BusError::Settings {
        reason: format!("server_user = {said:?} is no user of this machine: name one, or give its number"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: u32 = 1000;
    const OTHER: u32 = 1001;

    fn socket(local: &str, remote: &str, state: u8, uid: u32) -> Socket {
        Socket { local: local.parse().unwrap(), remote: remote.parse().unwrap(), state, uid }
    }

    fn listens(at: &str, uid: u32) -> Socket {
        socket(at, "0.0.0.0:0", LISTENS, uid)
    }

    fn found(sockets: &[Socket]) -> Option<u32> {
        let address = "127.0.0.1:4222".parse().unwrap();
        let expected = Expected { addresses: vec![address], me: ME, another: Some(7) };
        expected.stranger_at(address, sockets).map(|stranger| stranger.uid)
    }

    #[test]
    fn who_listens_in_the_servers_place_is_told_from_who_may() {
        for uid in [ME, 0, 7] {
            assert_eq!(found(&[listens("127.0.0.1:4222", uid)]), None, "{uid}");
        }
        assert_eq!(found(&[]), None, "nothing is known of it");
        for at in ["127.0.0.1:4222", "0.0.0.0:4222", "[::]:4222"] {
            assert_eq!(found(&[listens(at, OTHER)]), Some(OTHER), "{at}");
        }
        for at in ["127.0.0.1:4223", "127.0.0.2:4222", "[::1]:4222"] {
            assert_eq!(found(&[listens(at, OTHER)]), None, "{at}");
        }
        assert_eq!(found(&[listens("0.0.0.0:4222", OTHER), listens("127.0.0.1:4222", ME)]), None);
    }

    #[test]
    fn who_took_our_connection_and_listens_no_more_is_told() {
        let (server, ours) = ("127.0.0.1:4222", "127.0.0.1:9");
        let took = socket(server, ours, ESTABLISHED, OTHER);
        let mine = listens(server, ME);
        assert_eq!(found(&[mine, took, socket(ours, server, ESTABLISHED, ME)]), Some(OTHER));
        assert_eq!(found(&[mine, took, socket(ours, server, ESTABLISHED, OTHER)]), None, "no affair of ours");
    }

    #[test]
    fn the_kernels_table_is_read() {
        let line =
            "   1: 0100007F:107E 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 99 1";
        if cfg!(target_endian = "little") {
            assert_eq!(Socket::of(line), Some(listens("127.0.0.1:4222", OTHER)));
            let mapped = "0000000000000000FFFF00000100007F:107E";
            assert_eq!(address(mapped), Some("127.0.0.1:4222".parse().unwrap()));
        }
        let heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid";
        assert_eq!(Socket::of(heading), None);
        let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("nats://{}", own.local_addr().unwrap());
        let expected = Expected::at(&url, &BusSettings::default()).unwrap();
        assert!(expected.addresses.len() == 1 && expected.stranger().is_none(), "{expected:?}");
        if cfg!(target_os = "linux") && !geteuid().is_root() {
            assert!(Expected { me: u32::MAX, ..expected }.stranger().is_some());
        }
    }

    #[test]
    fn only_what_is_here_and_not_encrypted_is_looked_for() {
        let at = |url: &str| Expected::at(url, &BusSettings::default()).unwrap().addresses;
        assert_eq!(at("nats://localhost:5, nats://h:1").len(), 2);
        assert_eq!(at("[::1]"), ["[::1]:4222".parse().unwrap()]);
        for elsewhere in ["tls://127.0.0.1:1", "nats://10.0.0.1:1", "nats://h:1", ""] {
            assert_eq!(at(elsewhere), [], "{elsewhere}");
        }
        let named = |user: &str| {
            let settings = BusSettings { server_user: Some(user.to_owned()), ..BusSettings::default() };
            Expected::at("nats://127.0.0.1:1", &settings).map(|expected| expected.another)
        };
        assert_eq!((named("12").unwrap(), named("root").unwrap()), (Some(12), Some(0)));
        assert!(named("no such user").unwrap_err().to_string().contains("server_user"));
    }
}
