//! A NATS client of a few lines, which tells of each single thing whether the server let it be done.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_bus::credentials::Credentials;
use nkeys::KeyPair;
use secrecy::ExposeSecret;

/// By what a client says who it is.
pub(super) struct Own {
    pub(super) jwt: String,
    pub(super) key: KeyPair,
}

impl Own {
    pub(super) fn of(credentials: &Credentials) -> Self {
        let file = credentials.to_file();
        let after = |mark: &str| {
            let mut lines = file.expose_secret().lines().skip_while(|line| !line.contains(mark));
            lines.nth(1).unwrap().to_owned()
        };
        let (jwt, seed) = (after("BEGIN NATS USER JWT"), after("BEGIN USER NKEY SEED"));
        Self { jwt, key: KeyPair::from_seed(&seed).unwrap() }
    }
}

/// A connection.
pub(super) struct Wire {
    lines: BufReader<TcpStream>,
    subscriptions: u32,
}

impl Wire {
    /// Connects; says what the server said when it does not let one in.
    pub(super) fn connect(port: u16, own: Option<&Own>) -> Result<Self, String> {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(crate::fixture::SOON)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut wire = Self { lines: BufReader::new(stream), subscriptions: 0 };
        let info: serde_json::Value =
            serde_json::from_str(wire.line().unwrap().strip_prefix("INFO ").unwrap()).unwrap();
        let mut said = serde_json::json!({
            "verbose": false, "pedantic": false, "lang": "test", "version": "1", "protocol": 1, "headers": true,
        });
        if let Some(Own { jwt, key }) = own {
            let nonce = info["nonce"].as_str().unwrap();
            said["jwt"] = jwt.as_str().into();
            said["sig"] = URL_SAFE_NO_PAD.encode(key.sign(nonce.as_bytes()).unwrap()).into();
        }
        let refusals = wire.done(&format!("CONNECT {said}\r\n"))?;
        if refusals.is_empty() { Ok(wire) } else { Err(refusals.join("; ")) }
    }

    /// Whether the server takes a message to a subject.
    pub(super) fn may_publish(&mut self, subject: &str) -> bool {
        self.may(&format!("PUB {subject} 0\r\n\r\n"), &format!("Publish to \"{subject}\""))
    }

    /// Whether the server takes a subscription.
    pub(super) fn may_subscribe(&mut self, subject: &str) -> bool {
        self.subscriptions += 1;
        let id = self.subscriptions;
        let may = self.may(
            &format!("SUB {subject} {id}\r\n"),
            &format!("Subscription to \"{}\"", subject.split(' ').next().unwrap_or_default()),
        );
        if may {
            assert!(self.done(&format!("UNSUB {id}\r\n")).unwrap().is_empty());
        }
        may
    }

    /// Whether the connection lives.
    pub(super) fn lives(&mut self) -> bool {
        self.done("").is_ok_and(|refusals| refusals.is_empty())
    }

    /// What the server says when it ends the connection.
    pub(super) fn last_word(&mut self) -> String {
        let mut said = String::new();
        while let Ok(line) = self.line() {
            if line.starts_with("-ERR") {
                said = line;
            }
        }
        said
    }

    fn may(&mut self, asked: &str, refused: &str) -> bool {
        let refusals = self.done(asked).unwrap();
        match refusals.as_slice() {
            [] => true,
            [one] if one.contains("Permissions Violation") && one.contains(refused) => false,
            others => panic!("{asked:?} was answered by {others:?}"),
        }
    }

    /// Sends something; gives what the server has against it once it has dealt with it, or why it ended the connection.
    fn done(&mut self, asked: &str) -> Result<Vec<String>, String> {
        let sent = self.lines.get_mut().write_all(format!("{asked}PING\r\n").as_bytes());
        sent.map_err(|error| error.to_string())?;
        let mut refusals = Vec::new();
        loop {
            match self.line() {
                Ok(line) if line == "PONG" => return Ok(refusals),
                Ok(line) if line == "PING" => self.lines.get_mut().write_all(b"PONG\r\n").unwrap(),
                Ok(line) if line.starts_with("-ERR") => refusals.push(line),
                // What was published may come back.
                Ok(_) => {}
                Err(error) => {
                    refusals.push(error);
                    return Err(refusals.join("; "));
                }
            }
        }
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) => Err("the connection was ended".to_owned()),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}
