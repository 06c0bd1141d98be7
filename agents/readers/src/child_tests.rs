#![allow(clippy::unwrap_used, clippy::print_stdout)]
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::kill;
use nix::unistd::getppid;

use super::*;
use muster_tools::settings::ReadLimits;

/// Tells this test what it is started for: whether it confines itself first.
const HOW: &str = "MUSTER_READERS_ATTACK";
/// A folder that it may write to, as far as the machine is concerned.
const FOLDER: &str = "MUSTER_READERS_FOLDER";
/// A port that somebody listens at.
const PORT: &str = "MUSTER_READERS_PORT";

type Attack = (&'static str, fn() -> bool);

/// What a document that has taken over its reader could try. Each says whether it worked.
const ATTACKS: [Attack; 11] = [
    ("connects", || {
        let port: u16 = std::env::var(PORT).unwrap().parse().unwrap();
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    }),
    ("listens", || TcpListener::bind("127.0.0.1:0").is_ok()),
    ("opens a socket of the machine", || UnixDatagram::unbound().is_ok()),
    ("reads a file", || File::open("/etc/passwd").is_ok()),
    ("looks for a file", || Path::new("/etc/passwd").try_exists().is_ok()),
    ("lists a folder", || std::fs::read_dir("/").is_ok()),
    ("makes a folder", || {
        std::fs::create_dir(Path::new(&std::env::var(FOLDER).unwrap()).join("made")).is_ok()
    }),
    ("runs a program", || Command::new("/bin/true").status().is_ok()),
    ("starts a thread", || std::thread::Builder::new().spawn(|| ()).is_ok()),
    ("reaches another process", || kill(getppid(), None).is_ok()),
    ("takes more memory", || {
        let (soft, hard) = getrlimit(Resource::RLIMIT_AS).unwrap();
        setrlimit(Resource::RLIMIT_AS, soft.saturating_add(1), hard.saturating_add(1)).is_ok()
            && getrlimit(Resource::RLIMIT_AS).unwrap().0 >= soft
    }),
];

/// Does nothing unless the test below starts it, in a process of its own: what it gives up is gone for good.
#[test]
fn attacker() {
    let Ok(how) = std::env::var(HOW) else { return };
    if how == "confined" {
        assert_eq!(confine(1 << 40).unwrap().missing(), Vec::new(), "what this kernel keeps nothing in by");
    }
    let done: Vec<&str> = ATTACKS.iter().filter(|(_, attack)| attack()).map(|(name, _)| *name).collect();
    println!("\ndone: {}", done.join(", "));
    std::process::exit(0);
}

fn attacked(how: &str) -> String {
    let (folder, listener) = (tempfile::tempdir().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child::tests::attacker", "--nocapture"])
        .env(HOW, how)
        .env(FOLDER, folder.path())
        .env(PORT, listener.local_addr().unwrap().port().to_string())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let said = String::from_utf8(child.stdout).unwrap();
    let done = said.lines().find_map(|line| line.strip_prefix("done: ").or((line == "done:").then_some("")));
    done.unwrap_or_else(|| unreachable!("{said}")).to_owned()
}

#[test]
fn whoever_takes_the_child_over_reaches_nothing() {
    let all: Vec<&str> = ATTACKS.iter().map(|(name, _)| *name).collect();
    assert_eq!(attacked("free"), all.join(", "), "they work where nothing keeps them in");
    assert_eq!(attacked("confined"), "");
}

#[test]
fn what_must_hold_travels_as_an_argument() {
    for parts in [&[][..], &[Part::Files], &Part::ALL] {
        assert_eq!(parts_in(&in_words(parts)).as_deref(), Some(parts));
    }
    assert_eq!(parts_in("files,everything"), None);
}

#[test]
fn where_what_must_hold_does_not_nothing_is_read() {
    let bytes = b"<p>some text</p>";
    let head = Head {
        name: "a.html".to_owned(),
        media_type: None,
        keeps_source: false,
        limits: ReadLimits { cpu: Duration::from_secs(3_600), ..ReadLimits::default() },
        bytes: bytes.len() as u64,
    };
    let asked = [framed(&head).unwrap(), bytes.to_vec()].concat();
    let answered = |refusal: Option<&str>| {
        let child =
            Child { memory: u64::MAX, missing: vec![Part::Network], refusal: refusal.map(str::to_owned) };
        let mut said = Vec::new();
        child.serve(&mut asked.as_slice(), &mut said).unwrap();
        let answer: Answer = serde_json::from_slice(&said[4..]).unwrap();
        assert_eq!(answer.missing, [Part::Network], "it is told all the same");
        answer.found
    };
    let refused = answered(Some("this machine cannot promise: network")).unwrap_err();
    assert!(refused.in_short().contains("cannot promise: network"), "{refused:?}");
    assert!(answered(None).is_ok());
}
