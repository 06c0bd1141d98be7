//! Hosts that may be fetched from: one host, or all below a domain, at one port or at any.

use std::fmt;

/// Longest name of a host, in bytes.
const LONGEST_HOST: usize = 253;

/// A host, or all hosts below a domain, at one port or at any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    /// Whether those below the name are meant, and not the name itself.
    below: bool,
    /// In lower case, without a dot at its end; an address of version 6 in brackets.
    name: String,
    /// The only port, if there is one.
    port: Option<u16>,
}

impl HostPattern {
    /// A host or a pattern as it is written: `example.org`, `*.example.org`, `example.org:443`, `[::1]:8080`.
    ///
    /// # Errors
    /// When it is none; what is wrong is said.
    pub fn read(text: &str) -> Result<Self, String> {
        let wrong = || "a host is meant, such as example.org, *.example.org or example.org:443".to_owned();
        let text = text.trim();
        let (host, port) = match text.rfind(':') {
            Some(at) if text.starts_with('[') && text.ends_with(']') && at < text.len() => (text, None),
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let port = match port {
            None => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(wrong)?)
            }
            Some(_) => return Err(wrong()),
        };
        let (below, host) = match host.strip_prefix("*.") {
            Some(domain) => (true, domain),
            None => (false, host),
        };
        let name = host.strip_suffix('.').unwrap_or(host).to_lowercase();
        let fits = match name.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
            Some(inner) => !below && inner.parse::<std::net::Ipv6Addr>().is_ok(),
            None => is_name(&name) && !(below && is_address(&name)),
        };
        if fits { Ok(Self { below, name: canonical(name), port }) } else { Err(wrong()) }
    }

    /// What both mean; nothing when no host is meant by both.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Option<Self> {
        let port = match (self.port, other.port) {
            (Some(one), Some(other)) if one != other => return None,
            (one, other) => one.or(other),
        };
        let narrow = if other.names(self) {
            self
        } else if self.names(other) {
            other
        } else {
            return None;
        };
        Some(Self { port, ..narrow.clone() })
    }

    /// Whether all that `narrow` means is meant: its port too, where this one names one.
    #[must_use]
    pub fn holds(&self, narrow: &Self) -> bool {
        self.names(narrow) && self.port.is_none_or(|port| narrow.port == Some(port))
    }

    /// Whether it is one host, and not all below a domain.
    #[must_use]
    pub const fn is_one(&self) -> bool {
        !self.below
    }

    /// Whether all the names that `narrow` means are meant.
    fn names(&self, narrow: &Self) -> bool {
        if !self.below {
            return !narrow.below && narrow.name == self.name;
        }
        let under = narrow.name.strip_suffix(&self.name).is_some_and(|rest| rest.ends_with('.'));
        under || narrow.below && narrow.name == self.name
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.below {
            f.write_str("*.")?;
        }
        f.write_str(&self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

fn is_address(name: &str) -> bool {
    name.parse::<std::net::Ipv4Addr>().is_ok()
}

/// An address of version 6 is written in one way.
fn canonical(name: String) -> String {
    let inner = name.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    match inner.and_then(|inner| inner.parse::<std::net::Ipv6Addr>().ok()) {
        Some(address) => format!("[{address}]"),
        None => name,
    }
}

/// Whether this can be the name of a host. Names in other letters are written as `xn--…`, so that what looks alike is not
/// the same.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    name.len() <= LONGEST_HOST && name.split('.').all(is_label)
}
