//! A real Chromium, driven by its own protocol over two pipes: no port is opened, and no other program is needed.

mod axe;
mod page;
mod pipe;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

pub use self::axe::Axe;
pub use self::page::{Page, Theme};
use self::pipe::Pipe;

/// Names a browser to be used.
const NAMED: &str = "MUSTER_CHROMIUM";
/// What a browser may be called.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// How long it may take to end.
const END: Duration = Duration::from_secs(3);

/// A browser that runs. Dropped, it ends, with all that it kept.
pub struct Browser {
    child: Child,
    pipe: Arc<Pipe>,
    _profile: TempDir,
}

impl Browser {
    /// The browser of this machine: the one that is named, else the first on the path.
    #[must_use]
    pub fn find() -> Option<PathBuf> {
        let named = std::env::var_os(NAMED).filter(|named| !named.is_empty()).map(PathBuf::from);
        let folders: Vec<PathBuf> = std::env::var_os("PATH")
            .iter()
            .flat_map(|path| std::env::split_paths(path).collect::<Vec<_>>())
            .collect();
        let on_path = || {
            folders
                .iter()
                .flat_map(|folder| NAMES.map(|name| folder.join(name)))
                .find(|found| found.is_file())
        };
        named.filter(|named| named.is_file()).or_else(on_path)
    }

    /// Starts it.
    ///
    /// # Errors
    /// When it cannot be started, or does not answer.
    pub fn start(program: &Path) -> io::Result<Self> {
        let profile = TempDir::new()?;
        // It speaks on descriptors 3 and 4; a shell puts our ends there.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null"])
            .arg(program)
            .arg("--headless=new")
            .arg("--remote-debugging-pipe")
            // What is opened is our own page; where tests run as root, or in a container, there is no other way.
            .args(["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"])
            .args([
                "--no-first-run",
                "--disable-extensions",
                "--disable-background-networking",
                "--mute-audio",
            ])
            .args(["--disable-component-update", "--disable-sync", "--metrics-recording-only"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("it has no pipes"));
        };
        let pipe = Pipe::begin(to, from)?;
        let browser = Self { child, pipe, _profile: profile };
        browser.pipe.ask(None, "Browser.getVersion", &json!({}))?;
        Ok(browser)
    }

    /// A page that shares nothing with others: it has cookies of its own.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn page(&self) -> io::Result<Page> {
        let context = self.pipe.ask(None, "Target.createBrowserContext", &json!({}))?;
        let target = json!({ "url": "about:blank", "browserContextId": context["browserContextId"] });
        let target = self.pipe.ask(None, "Target.createTarget", &target)?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.pipe.ask(None, "Target.attachToTarget", &attach)?;
        let session =
            session["sessionId"].as_str().ok_or_else(|| io::Error::other("the page has no session"))?;
        Page::begin(Arc::clone(&self.pipe), session.to_owned())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.pipe.ask(None, "Browser.close", &json!({}));
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < END {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
