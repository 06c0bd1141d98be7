//! What is outside of the sandbox and must not be reached: files, servers that count, and processes.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use crate::help::{open_to_all, outside_folder};

/// What stands in files and environments that must not be read.
pub const SECRET: &str = "the-secret-of-this-test";

/// Everything outside.
pub struct World {
    pub folder: TempDir,
    pub victim: Child,
    /// How often any of the servers was reached.
    pub reached: Arc<AtomicUsize>,
    pub name: String,
    tcp: u16,
    tcp6: Option<u16>,
    udp: u16,
}

impl World {
    pub fn new() -> Self {
        let folder = outside_folder();
        std::fs::write(folder.path().join("secret.txt"), SECRET).unwrap();
        std::fs::write(folder.path().join("kept.txt"), "kept").unwrap();
        let reached = Arc::new(AtomicUsize::new(0));
        let name = folder.path().file_name().unwrap().to_string_lossy().replace('.', "");
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let tcp6 = TcpListener::bind("[::1]:0").ok();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let ports = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
        let port6 = tcp6.as_ref().map(|tcp| tcp.local_addr().unwrap().port());
        let path = UnixListener::bind(folder.path().join("socket")).unwrap();
        let hidden =
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(name.as_bytes()).unwrap()).unwrap();
        count(&reached, move || tcp.accept().is_ok());
        tcp6.into_iter().for_each(|tcp| count(&reached, move || tcp.accept().is_ok()));
        count(&reached, move || udp.recv(&mut [0; 64]).is_ok());
        count(&reached, move || path.accept().is_ok());
        count(&reached, move || hidden.accept().is_ok());
        open_to_all(folder.path());
        let victim =
            Command::new("sleep").arg("600").env("HIDDEN", SECRET).stdin(Stdio::null()).spawn().unwrap();
        Self { folder, victim, reached, name, tcp: ports.0, tcp6: port6, udp: ports.1 }
    }

    /// Puts what there is into a script.
    pub fn fill(&self, script: &str) -> String {
        let folder = self.folder.path().display().to_string();
        let home = std::env::var("HOME").unwrap_or_else(|_| "/root".to_owned());
        let parts = [
            ("{folder}", folder),
            ("{victim}", self.victim.id().to_string()),
            ("{name}", self.name.clone()),
            ("{home}", home),
            ("{tcp}", self.tcp.to_string()),
            ("{tcp6}", self.tcp6.unwrap_or(self.tcp).to_string()),
            ("{udp}", self.udp.to_string()),
        ];
        parts.iter().fold(script.to_owned(), |script, (part, value)| script.replace(part, value))
    }

    pub fn reached(&self) -> usize {
        self.reached.load(Ordering::SeqCst)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Whether all is as it was. Gives what is not.
    pub fn harm(&mut self) -> Option<String> {
        let kept = std::fs::read_to_string(self.path("kept.txt")).unwrap_or_default();
        let mut names: Vec<String> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let mode = std::fs::metadata(self.path("secret.txt")).map(|meta| meta.permissions());
        let elsewhere = [
            format!("/dev/shm/{}", self.name),
            format!("/tmp/{}", self.name),
            format!("/var/tmp/{}", self.name),
        ];
        if kept != "kept" || names != ["kept.txt", "secret.txt", "socket"] {
            Some(format!("files are changed: {names:?}, {kept:?}"))
        } else if mode.is_ok_and(|mode| std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777 != 0o666) {
            Some("rights are changed".to_owned())
        } else if std::fs::metadata(self.path("kept.txt")).unwrap().mtime() == 1 {
            Some("a time is changed".to_owned())
        } else if let Some(path) = elsewhere.iter().find(|path| std::fs::exists(path).unwrap()) {
            Some(format!("{path} was made"))
        } else if self.reached() > 0 {
            Some("a server was reached".to_owned())
        } else if self.victim.try_wait().unwrap().is_some() {
            Some("a process was ended".to_owned())
        } else {
            None
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _gone = self.victim.kill();
        let _gone = self.victim.wait();
        for folder in ["/dev/shm", "/tmp", "/var/tmp"] {
            let _none = std::fs::remove_file(format!("{folder}/{}", self.name));
        }
    }
}

fn count(reached: &Arc<AtomicUsize>, mut next: impl FnMut() -> bool + Send + 'static) {
    let reached = Arc::clone(reached);
    std::thread::spawn(move || {
        while next() {
            reached.fetch_add(1, Ordering::SeqCst);
        }
    });
}

/// Processes of the whole machine whose arguments have this in them.
pub fn processes_with(marker: &str) -> Vec<i32> {
    let of = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let mut line = Vec::new();
        std::fs::File::open(entry.path().join("cmdline")).ok()?.take(1 << 16).read_to_end(&mut line).ok()?;
        let is_it = String::from_utf8_lossy(&line).contains(marker);
        (is_it && pid != i32::try_from(std::process::id()).unwrap()).then_some(pid)
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(of).collect()
}
