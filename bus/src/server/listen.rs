//! Where a server listens: read from what people write, and what follows for its clients and its certificate.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address to listen on, with a port or without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// The address, or a name of this machine.
    pub host: String,
    /// The port, where one is named.
    pub port: Option<u16>,
}

impl Default for Listen {
    /// This machine alone.
    fn default() -> Self {
        Self { host: Ipv4Addr::LOCALHOST.to_string(), port: None }
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) = parts(text.trim());
        let wrong = |why: &str| {
            format!("{text:?} is no address to listen on ({why}): write 192.0.2.7, 0.0.0.0:4222 or [::]:4222")
        };
        let port = match port {
            None => None,
            Some(port) => match port.parse::<u16>() {
                Ok(port) => Some(port).filter(|port| *port != 0),
                Err(_) => return Err(wrong("the port is no number up to 65535")),
            },
        };
        let looks_like_v4 = || host.chars().all(|c| c.is_ascii_digit() || c == '.');
        match host.parse::<IpAddr>() {
            Ok(address) => Ok(Self { host: address.to_string(), port }),
            Err(_) if is_certifiable(host) && !looks_like_v4() => Ok(Self { host: host.to_owned(), port }),
            Err(_) => Err(wrong("the address is neither an IP address nor a name")),
        }
    }
}

/// Host and port as they are written; an IPv6 address with a port stands in brackets.
fn parts(text: &str) -> (&str, Option<&str>) {
    if let Some(rest) = text.strip_prefix('[') {
        return match rest.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':').unwrap_or(port))),
            None => (text, None),
        };
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        Some(_) | None => (text, None),
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&bracketed(&self.host))?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// A host as URLs and configurations have it before a port.
pub(super) fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

impl Listen {
    /// Whether all addresses of this machine are meant.
    #[must_use]
    pub fn is_everywhere(&self) -> bool {
        self.host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified())
    }

    /// Where clients on this machine find it.
    #[must_use]
    pub fn from_here(&self) -> String {
        if self.is_everywhere() { Ipv4Addr::LOCALHOST.to_string() } else { self.host.clone() }
    }

    /// The addresses and names that a certificate is to bear: those of loopback always, and where the server is to be reached from elsewhere, what is
    /// listened on and what this machine is called.
    #[must_use]
    pub fn names(&self, machine: &Machine, more: &[String]) -> Vec<String> {
        let loopback = ["127.0.0.1", "::1", "localhost"].map(str::to_owned);
        let mut names = loopback.to_vec();
        let is_loopback =
            self.host.parse::<IpAddr>().map_or(self.host == "localhost", |host| host.is_loopback());
        if !is_loopback {
            names.extend(machine.name.clone());
        }
        if self.is_everywhere() {
            names.extend(machine.addresses.iter().map(IpAddr::to_string));
        } else {
            names.push(self.host.clone());
        }
        names.extend(more.iter().cloned());
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }
}

/// What a machine is called, and its addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its name, where it has one that may stand in a certificate.
    pub name: Option<String>,
    /// Its addresses, loopback and those of a single link left out.
    pub addresses: Vec<IpAddr>,
}

impl Machine {
    /// This one, as far as it can be found out.
    #[must_use]
    pub fn here() -> Self {
        let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
        let name = name.filter(|name| is_certifiable(name));
        let all = nix::ifaddrs::getifaddrs().into_iter().flatten().filter_map(|one| one.address);
        let mut addresses: Vec<IpAddr> = all
            .filter_map(|address| {
                let v4 = address.as_sockaddr_in().map(|one| IpAddr::V4(one.ip()));
                v4.or_else(|| address.as_sockaddr_in6().map(|one| IpAddr::V6(one.ip())))
            })
            .filter(|address| !address.is_loopback() && !of_one_link(address))
            .collect();
        addresses.sort();
        addresses.dedup();
        Self { name, addresses }
    }
}

/// Whether a name or address can stand in a certificate.
pub(super) fn is_certifiable(name: &str) -> bool {
    rustls::pki_types::ServerName::try_from(name).is_ok()
}

/// Whether an address says nothing without the link that it is on.
fn of_one_link(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => Ipv6Addr::is_unicast_link_local(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, Option<u16>) {
        let listen: Listen = text.parse().unwrap();
        (listen.host, listen.port)
    }

    #[test]
    fn addresses_are_read_with_a_port_and_without() {
        for (text, host, port) in [
            ("0.0.0.0", "0.0.0.0", None),
            ("0.0.0.0:4222", "0.0.0.0", Some(4222)),
            ("192.0.2.7:0", "192.0.2.7", None),
            ("[::]:4222", "::", Some(4222)),
            ("[::1]", "::1", None),
            ("fd00::2", "fd00::2", None),
            ("bus.example.org:4222", "bus.example.org", Some(4222)),
            (" localhost ", "localhost", None),
        ] {
            assert_eq!(read(text), (host.to_owned(), port), "{text}");
        }
        assert_eq!("[::]:4222".parse::<Listen>().unwrap().to_string(), "[::]:4222");
        for wrong in [
            "",
            ":4222",
            "1.2.3.4:70000",
            "1.2.3.4:x",
            "1.2.3",
            "999.1.1.1",
            "[::1",
            "a b",
            "nats://h",
            "h\"x",
            "-x",
            "[::1]x",
        ] {
            let error = wrong.parse::<Listen>().unwrap_err();
            assert!(error.contains("0.0.0.0:4222"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_certificate_bears_what_the_server_is_reached_by() {
        let machine = Machine {
            name: Some("box".into()),
            addresses: vec!["192.0.2.2".parse().unwrap(), "fd00::2".parse().unwrap()],
        };
        let names = |listen: &str, more: &[String]| listen.parse::<Listen>().unwrap().names(&machine, more);
        assert_eq!(Listen::default().names(&machine, &[]), ["127.0.0.1", "::1", "localhost"]);
        assert_eq!(
            names("0.0.0.0", &["bus.example.org".to_owned()]),
            ["127.0.0.1", "::1", "localhost", "box", "192.0.2.2", "fd00::2", "bus.example.org"]
        );
        assert_eq!(names("192.0.2.2:4222", &[]), ["127.0.0.1", "::1", "localhost", "box", "192.0.2.2"]);
        assert_eq!("[::]:1".parse::<Listen>().unwrap().from_here(), "127.0.0.1");
        assert_eq!("192.0.2.2".parse::<Listen>().unwrap().from_here(), "192.0.2.2");
    }

    #[test]
    fn this_machine_is_known_without_loopback() {
        let here = Machine::here();
        assert!(here.addresses.iter().all(|address| !address.is_loopback()), "{here:?}");
    }
}
