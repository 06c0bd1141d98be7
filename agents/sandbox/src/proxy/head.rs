//! The head of what a program asks of the proxy: where to, and what is passed on. Read strictly: what could be understood
//! in two ways is refused.

/// Longest head, in bytes.
pub(super) const LONGEST_HEAD: usize = 16 * 1024;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    /// A way through, for whatever protocol.
    Way(Target),
    /// One request in the clear: what is passed on, and how many bytes of its body follow.
    Request { target: Target, head: Vec<u8>, body: u64 },
}

/// Where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// A name, or an address; one of the sixth version in brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Target {
    fn read(authority: &str, usual: Option<u16>) -> Option<Self> {
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        let port = match port {
            None => usual?,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
            Some(_) => return None,
        };
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let fits = match inner {
            Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
            None => {
                !host.is_empty()
                    && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
            }
        };
        (fits && port > 0).then(|| Self { host: host.to_ascii_lowercase(), port })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Reads a head, the empty line at its end included.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(head: &[u8]) -> Result<Asked, &'static str> {
    let text = std::str::from_utf8(head).map_err(|_| "it is no text")?;
    let mut lines = text.strip_suffix("\r\n\r\n").ok_or("it does not end")?.split("\r\n");
    let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, "HTTP/1.1" | "HTTP/1.0"] = first.as_slice() else {
        return Err("its first line is not one of HTTP/1.1");
    };
    let fields: Vec<(&str, &str)> = lines
        .map(|line| line.split_once(':').filter(|(name, _)| is_token(name)))
        .collect::<Option<_>>()
        .ok_or("a line of it is no field")?;
    if text.bytes().any(|byte| byte == 0) || fields.iter().any(|(_, value)| value.contains(['\r', '\n'])) {
        return Err("it has characters that do not belong there");
    }
    if *method == "CONNECT" {
        return Target::read(target, None).map(Asked::Way).ok_or("CONNECT needs a host and a port");
    }
    if !is_token(method) {
        return Err("its method is none");
    }
    let rest = target.strip_prefix("http://").ok_or("a URL that begins with http:// is meant, or CONNECT")?;
    let (authority, path) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
    let target = Target::read(authority, Some(80)).ok_or("its URL has no host")?;
    let body = body_length(&fields)?;
    Ok(Asked::Request { head: passed_on(method, path, authority, &fields).into_bytes(), target, body })
}

fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn body_length(fields: &[(&str, &str)]) -> Result<u64, &'static str> {
    let named = |wanted: &str| {
        fields
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim())
            .collect::<Vec<_>>()
    };
    if !named("transfer-encoding").is_empty() {
        return Err("its body must have a Content-Length");
    }
    match named("content-length").as_slice() {
        [] => Ok(0),
        [length] if length.bytes().all(|byte| byte.is_ascii_digit()) => {
            length.parse().map_err(|_| "its Content-Length is no number")
        }
        _ => Err("its Content-Length is no number"),
    }
}

/// The head as the host gets it: to itself, and for one request only, so that nothing else can follow on the same way.
fn passed_on(method: &str, path: &str, authority: &str, fields: &[(&str, &str)]) -> String {
    const LEFT_OUT: [&str; 7] =
        ["host", "connection", "proxy-connection", "proxy-authorization", "keep-alive", "upgrade", "te"];
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut head = format!("{method} {slash}{path} HTTP/1.1\r\nHost: {authority}\r\n");
    for (name, value) in
        fields.iter().filter(|(name, _)| !LEFT_OUT.iter().any(|out| name.eq_ignore_ascii_case(out)))
    {
        head.push_str(&format!("{name}: {}\r\n", value.trim()));
    }
    head.push_str("Connection: close\r\n\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(host: &str, port: u16) -> Target {
        Target { host: host.to_owned(), port }
    }

    #[test]
    fn a_way_through_is_read() {
        let table = [
            ("CONNECT Example.org:443 HTTP/1.1", Some(target("example.org", 443))),
            ("CONNECT [::1]:80 HTTP/1.1", Some(target("[::1]", 80))),
            ("CONNECT example.org HTTP/1.1", None),
            ("CONNECT example.org:0 HTTP/1.1", None),
            ("CONNECT example.org:99999 HTTP/1.1", None),
            ("CONNECT user@example.org:443 HTTP/1.1", None),
            ("CONNECT exam ple.org:443 HTTP/1.1", None),
            ("CONNECT [::1:443 HTTP/1.1", None),
            ("CONNECT example.org:443 HTTP/2", None),
        ];
        for (line, expected) in table {
            let read = read(format!("{line}\r\nHost: other.org\r\n\r\n").as_bytes()).ok();
            assert_eq!(read, expected.map(Asked::Way), "{line}");
        }
    }

    #[test]
    fn a_request_is_passed_on_to_the_host_of_its_url_and_for_once() {
        let head = b"POST http://a.org:8080/x?y=1 HTTP/1.1\r\nhost: other.org\r\nProxy-Authorization: b\r\nContent-Length: 3\r\n\
            Connection: keep-alive\r\nAccept:  */*\r\n\r\n";
        let Asked::Request { target: to, head, body } = read(head).unwrap() else { panic!() };
        assert_eq!((to, body), (target("a.org", 8080), 3));
        let expected = "POST /x?y=1 HTTP/1.1\r\nHost: a.org:8080\r\nContent-Length: 3\r\nAccept: */*\r\nConnection: close\r\n\r\n";
        assert_eq!(String::from_utf8(head).unwrap(), expected);
        for (url, first) in [("http://a.org", "GET / HTTP/1.1"), ("http://a.org?q", "GET /?q HTTP/1.1")] {
            let Asked::Request { head, .. } = read(format!("GET {url} HTTP/1.1\r\n\r\n").as_bytes()).unwrap()
            else {
                panic!()
            };
            assert!(String::from_utf8(head).unwrap().starts_with(first), "{url}");
        }
    }

    #[test]
    fn what_can_be_understood_in_two_ways_is_refused() {
        let refused = [
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://a.org/ HTTP/1.1\r\n\r\n",
            "GET http://u:p@a.org/ HTTP/1.1\r\n\r\n",
            "GET http:///x HTTP/1.1\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\n folded\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nX : y\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nX: a\nHost: b\r\n\r\n",
            "GET  http://a.org/ HTTP/1.1\r\n\r\n",
            "G\tT http://a.org/ HTTP/1.1\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\n",
        ];
        for head in refused {
            assert!(read(head.as_bytes()).is_err(), "{head:?}");
        }
    }

    proptest! {
        #[test]
        fn no_head_passes_on_more_than_one_request(host in "[a-z]{1,8}", path in "[ -~]{0,20}", field in "[ -~\r\n]{0,30}") {
            let head = format!("GET http://{host}.org/{path} HTTP/1.1\r\nX: {field}\r\n\r\n");
            if let Ok(Asked::Request { head, .. }) = read(head.as_bytes()) {
                let text = String::from_utf8(head).unwrap();
                prop_assert_eq!(text.matches("\r\n\r\n").count(), 1);
                prop_assert_eq!(text.to_ascii_lowercase().matches("\r\nhost:").count(), 1);
                prop_assert!(!text.replace("\r\n", "").contains(['\r', '\n']));
            }
        }
    }
}
