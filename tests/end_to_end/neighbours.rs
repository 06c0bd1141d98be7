//! What neighbours can do: another user of the machine, another network namespace, and whoever has a worker's credentials and
//! sends again what was sent, floods the bus or fills the store. The fleet goes on, and the run in hand ends rightly.

mod bus;
mod user;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use muster_support::fleet::{Fleet, both};
use muster_support::skip::skipped;

use super::support::folder;

const LIMIT: Duration = Duration::from_secs(30);

/// Where the fleet's bus listens.
fn address(fleet: &Fleet) -> String {
    fleet.url().trim_start_matches("nats://").to_owned()
}

/// The fleet does what it is there for.
fn goes_on(fleet: &Fleet) {
    let asked = fleet.folder().run(&["run", "What is 3 + 4?", "--quiet", "--model", "offline"]).unwrap();
    assert!(
        asked.status.success() && both(&asked).contains('7'),
        "{}\n{}",
        both(&asked),
        fleet.folder().logs()
    );
}

/// Lines of the NATS protocol that ask for something without any credentials, or with made up ones.
const KNOCKS: [&str; 8] = [
    "PUB run.x.decided 2\r\nhi\r\n",
    "SUB > 1\r\n",
    "CONNECT {\"verbose\":false}\r\nPING\r\nSUB > 1\r\n",
    "CONNECT {\"user\":\"muster\",\"pass\":\"muster\"}\r\nSUB > 1\r\n",
    "CONNECT {\"auth_token\":\"muster\"}\r\nSUB run.> 1\r\n",
    "CONNECT {\"jwt\":\"e30.e30.e30\",\"sig\":\"AAAA\"}\r\nSUB run.> 1\r\n",
    "CONNECT {\"nkey\":\"UAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\",\"sig\":\"AAAA\"}\r\nSUB > 1\r\n",
    "GET /varz HTTP/1.1\r\nHost: x\r\n\r\n",
];

/// Nothing is heard but that nobody was let in.
#[test]
fn whoever_knocks_without_credentials_is_told_nothing() {
    let fleet = folder().up(&[]).unwrap();
    for knock in KNOCKS {
        let mut stream = TcpStream::connect(address(&fleet)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.write_all(knock.as_bytes()).unwrap();
        let mut said = Vec::new();
        // The server closes what is wrong at once, and what says nothing right within its time for it.
        let _ = stream.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said).into_owned();
        let after = said.split_once("\r\n").map_or("", |(_, after)| after);
        assert!(said.starts_with("INFO "), "{knock:?}: {said}");
        assert!(after.starts_with("-ERR") && !after.contains("MSG"), "{knock:?}: {said}");
        assert!(!said.contains("SUA") && !said.contains("seed"), "{knock:?}: {said}");
    }
    goes_on(&fleet);
}

/// Every port that a process of the fleet listens on is the machine's own, so that no other host or namespace reaches it.
#[test]
fn nothing_of_a_local_fleet_listens_beyond_the_machine() {
    let fleet = folder().up(&[]).unwrap();
    let mut found = 0;
    for (name, pid) in fleet.pids() {
        for listening in listening(pid) {
            found += 1;
            assert!(listening.starts_with("0100007F:"), "{name} listens at {listening}");
        }
    }
    assert!(found > 0, "the server listens");
}

/// What a process listens on, by the kernel's tables: address and port in hexadecimal.
fn listening(pid: u32) -> Vec<String> {
    let links = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let inodes: Vec<String> = links
        .filter_map(|link| {
            let to = std::fs::read_link(link.path()).ok()?.display().to_string();
            Some(to.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let tables = ["tcp", "tcp6", "udp", "udp6"]
        .map(|table| std::fs::read_to_string(format!("/proc/{pid}/net/{table}")));
    let lines: Vec<String> = tables
        .into_iter()
        .flatten()
        .flat_map(|table| table.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let bound = lines.iter().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_open = matches!(*fields.get(3)?, "0A" | "07");
        (is_open && inodes.iter().any(|inode| fields.get(9) == Some(&inode.as_str())))
            .then(|| fields[1].to_owned())
    });
    bound.collect()
}

/// A network namespace with one way to this one.
struct Namespace {
    name: String,
    here: String,
}

impl Namespace {
    fn new() -> Option<Self> {
        let number = std::process::id() % 16_000;
        let (name, veth) = (format!("zq{number}"), format!("zqv{number}"));
        let net = format!("10.{}.{}", 100 + number / 256, number % 256);
        let (here, there) = (format!("{net}.1"), format!("{net}.2"));
        let steps = [
            format!("ip netns add {name}"),
            format!("ip link add {veth}a type veth peer name {veth}b"),
            format!("ip link set {veth}b netns {name}"),
            format!("ip addr add {here}/30 dev {veth}a"),
            format!("ip link set {veth}a up"),
            format!("ip netns exec {name} ip addr add {there}/30 dev {veth}b"),
            format!("ip netns exec {name} ip link set {veth}b up"),
            format!("ip netns exec {name} ip link set lo up"),
        ];
        let made = Self { name, here };
        steps.iter().all(|step| ran(step)).then_some(made)
    }

    /// What somebody within is told who says something.
    fn hears(&self, host: &str, port: &str, says: &str) -> String {
        let talk = format!("exec 3<>/dev/tcp/{host}/{port}; cat >&3; timeout 8 cat <&3");
        let mut child = Command::new("ip")
            .args(["netns", "exec", &self.name, "bash", "-c", &talk])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(says.as_bytes()).unwrap();
        String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
    }

    /// Whether a connection can be made from within.
    fn reaches(&self, host: &str, port: &str) -> bool {
        ran(&format!("ip netns exec {} timeout 5 bash -c 'exec 3<>/dev/tcp/{host}/{port}'", self.name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The pair of devices goes with it.
        ran(&format!("ip netns delete {}", self.name));
    }
}

fn ran(line: &str) -> bool {
    Command::new("sh").args(["-c", line]).output().is_ok_and(|output| output.status.success())
}

#[test]
fn from_another_network_namespace_nothing_is_reached() {
    let Some(namespace) = Namespace::new() else {
        return skipped("another network namespace", "it takes root and `ip netns`");
    };
    // There is a way: whatever listens everywhere is reached.
    let open = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = open.local_addr().unwrap().port().to_string();
    assert!(namespace.reaches(&namespace.here, &port), "the namespaces are not connected");

    let fleet = folder().up(&[]).unwrap();
    let address = address(&fleet);
    let port = address.rsplit(':').next().unwrap();
    for host in [namespace.here.as_str(), "127.0.0.1", "localhost"] {
        assert!(!namespace.reaches(host, port), "{host}:{port} is reached");
    }
    goes_on(&fleet);
}

/// A fleet that listens to others is reached from there, and lets nobody in who has no credentials of it.
#[test]
fn a_fleet_that_listens_tells_nothing_to_another_network_namespace() {
    let Some(namespace) = Namespace::new() else {
        return skipped("another network namespace", "it takes root and `ip netns`");
    };
    let fleet = folder().up(&["--listen", &namespace.here]).unwrap();
    let (url, keys) = (fleet.url(), fleet.folder().path().join(".muster/nats/keys"));
    let (host, port) = url.trim_start_matches("tls://").rsplit_once(':').unwrap();
    assert_eq!(host, namespace.here, "{url}");
    assert!(url.starts_with("tls://") && namespace.reaches(host, port), "{url} is not reached");
    for knock in KNOCKS {
        let said = namespace.hears(host, port, knock);
        assert!(said.starts_with("INFO ") && said.contains("\"tls_required\":true"), "{knock:?}: {said}");
        let after = said.split_once("\r\n").map_or("", |(_, after)| after);
        assert!(!["MSG", "PONG", "+OK", "HTTP"].iter().any(|word| after.contains(word)), "{knock:?}: {said}");
        assert!(!said.contains("SUA") && !said.contains("seed"), "{knock:?}: {said}");
    }
    // Knowing the authority is no credentials, and credentials of another fleet are none here. With the owner's, it works.
    let stranger = folder();
    stranger.output(&["keys", "init", "--keys", "theirs"]).unwrap();
    let (authority, theirs) = (keys.join("ca.pem"), stranger.path().join("theirs/operator.creds"));
    for (authority, credentials, is_let_in) in [
        (None, None, false),
        (Some(&authority), None, false),
        (Some(&authority), Some(theirs), false),
        (Some(&authority), Some(keys.join("operator.creds")), true),
    ] {
        let mut ps = Command::new("ip");
        ps.args(["netns", "exec", &namespace.name, env!("CARGO_BIN_EXE_muster"), "--url", &url, "ps"]);
        ps.current_dir(stranger.path()).env("HOME", stranger.path());
        for (name, file) in
            [("MUSTER_BUS_TLS_CA", authority), ("MUSTER_BUS_CREDENTIALS", credentials.as_ref())]
        {
            match file {
                Some(file) => ps.env(name, file),
                None => ps.env_remove(name),
            };
        }
        let ps = ps.output().unwrap();
        let said = both(&ps);
        assert_eq!(
            ps.status.code(),
            Some(if is_let_in { 0 } else { 3 }),
            "{authority:?} {credentials:?}: {said}"
        );
        assert_eq!(said.contains("worker-"), is_let_in, "{said}");
    }
    goes_on(&fleet);
}
