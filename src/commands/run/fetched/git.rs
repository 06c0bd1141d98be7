//! Repositories, by the git program of this machine: the newest state alone, without anything that a repository or the
//! settings of a user could have it run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use muster_shared::text::one_line;
use muster_tools::settings::WebSettings;
use muster_web::JudgedHost;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::place::Repository;
use crate::render::figures;

/// How often it is looked how much there is already.
const LOOK: Duration = Duration::from_millis(200);
/// Most that a program may say, in bytes.
const MOST_SAID: u64 = 64 * 1024;
/// Most characters of it that are shown.
const MOST_SHOWN: usize = 300;

/// How much of a repository is fetched, and how long that may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct GitLimits {
    pub(super) time: Duration,
    pub(super) bytes: u64,
}

/// A repository as it was fetched.
#[derive(Debug)]
pub(super) struct CheckedOut {
    /// The commit.
    pub(super) commit: String,
    /// When it was made.
    pub(super) made: String,
    /// What was asked for of it, a folder or a file.
    pub(super) place: PathBuf,
}

/// The git program, for one repository.
pub(super) struct Git<'a> {
    pub(super) limits: GitLimits,
    pub(super) web: &'a WebSettings,
    /// Where the server is, by which addresses alone it is reached; nothing of a repository on this machine.
    pub(super) host: Option<&'a JudgedHost>,
}

/// A program with all that it started: they end together, however they are let go of.
struct Group(Box<dyn ChildWrapper>);

impl Drop for Group {
    fn drop(&mut self) {
        // What has ended by itself is not there to be ended.
        let _ = self.0.start_kill();
    }
}

impl Git<'_> {
    /// Fetches what is asked for into an empty folder, and says how much there is now and then.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub(super) async fn check_out(
        &self,
        repository: &Repository,
        folder: &Path,
        tell: impl Fn(u64),
    ) -> Result<CheckedOut, String> {
        let work = async {
            // Without a template there are no hooks.
            self.run(folder, &["init", "--quiet", "--template="]).await?;
            let revision = repository.revision.as_deref().unwrap_or("HEAD");
            let fetch = [
                "fetch",
                "--quiet",
                "--depth=1",
                "--no-tags",
                "--no-recurse-submodules",
                "--no-write-commit-graph",
                "--",
            ];
            let fetch: Vec<&str> = fetch.into_iter().chain([repository.url.as_str(), revision]).collect();
            self.run(folder, &fetch).await?;
            let made = self.run(folder, &["log", "-1", "--format=%H %cI", "FETCH_HEAD", "--"]).await?;
            self.run(
                folder,
                &["-c", "advice.detachedHead=false", "checkout", "--quiet", "--force", "FETCH_HEAD", "--"],
            )
            .await?;
            Ok::<_, String>(made)
        };
        let made = tokio::select! {
            made = work => made?,
            bytes = self.too_much(folder, tell) => {
                return Err(format!(
                    "it has more than {} already (at most {})",
                    figures::bytes(bytes),
                    figures::bytes(self.limits.bytes)
                ));
            }
            () = tokio::time::sleep(self.limits.time) => {
                return Err(format!("it was not fetched within {}", muster_shared::span::text(self.limits.time)));
            }
        };
        let (commit, made) = made.trim().split_once(' ').ok_or("git does not say which commit it is")?;
        let place = repository.path.as_ref().map_or_else(|| folder.to_owned(), |path| folder.join(path));
        if !place.exists() {
            let path = repository.path.as_deref().unwrap_or_default();
            return Err(format!("there is no `{path}` in it at {}", &commit[..commit.len().min(12)]));
        }
        Ok(CheckedOut { commit: commit.to_owned(), made: made.to_owned(), place })
    }

    /// Ends when there is more than may be.
    async fn too_much(&self, folder: &Path, tell: impl Fn(u64)) -> u64 {
        loop {
            tokio::time::sleep(LOOK).await;
            let own = folder.to_owned();
            let bytes = tokio::task::spawn_blocking(move || size(&own)).await.unwrap_or(0);
            if bytes > self.limits.bytes {
                return bytes;
            }
            tell(bytes);
        }
    }

    async fn run(&self, folder: &Path, arguments: &[&str]) -> Result<String, String> {
        let mut command = CommandWrap::with_new("git", |command| {
            command.env_clear().envs(environment(folder)).current_dir(folder);
            for setting in self.settings() {
                command.arg("-c").arg(setting);
            }
            command.args(arguments);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        });
        command.wrap(ProcessGroup::leader()).wrap(KillOnDrop);
        let child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                "there is no git on this machine; install it, or give a folder that you have cloned"
                    .to_owned()
            }
            _ => format!("git cannot be started: {error}"),
        })?;
        let mut group = Group(child);
        let (said, wrong) = (group.0.stdout().take(), group.0.stderr().take());
        let (said, wrong, ended) = tokio::join!(all_of(said), all_of(wrong), group.0.wait());
        match ended {
            Ok(status) if status.success() => Ok(said),
            Ok(_) => Err(format!("git: {}", one_line(wrong.trim(), MOST_SHOWN))),
            Err(error) => Err(format!("git cannot be waited for: {error}")),
        }
    }

    /// Settings of git that hold whatever the repository and the user have set: nothing else is run, nobody else is asked.
    fn settings(&self) -> Vec<String> {
        let mut settings: Vec<String> = [
            "protocol.allow=never",
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
            // A link is a text here: nothing that is checked out leads elsewhere.
            "core.symlinks=false",
            "core.autocrlf=false",
            "credential.helper=",
            "http.followRedirects=false",
            "submodule.recurse=false",
            "gc.auto=0",
            "maintenance.auto=false",
        ]
        .map(str::to_owned)
        .to_vec();
        match self.host {
            None => settings.push("protocol.file.allow=always".to_owned()),
            Some(JudgedHost { name, port, addresses }) => {
                settings
                    .extend(["http", "https"].map(|protocol| format!("protocol.{protocol}.allow=always")));
                let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                // As with pages: what is connected to are the addresses that were judged.
                settings.push(format!("http.curloptResolve={name}:{port}:{}", addresses.join(",")));
                settings.push(format!("http.proxy={}", self.web.proxy.as_deref().unwrap_or_default()));
                settings.extend(self.web.ca_file.iter().map(|file| format!("http.sslCAInfo={file}")));
                settings.push(format!("http.lowSpeedTime={}", self.web.idle.as_secs().max(1)));
                settings.push("http.lowSpeedLimit=1".to_owned());
            }
        }
        settings
    }
}

/// Nothing of the user's but where programs are.
fn environment(folder: &Path) -> Vec<(&'static str, std::ffi::OsString)> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let fixed = [
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ASKPASS", "true"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_LFS_SKIP_SMUDGE", "1"),
        ("LANG", "C.UTF-8"),
    ];
    let fixed = fixed.into_iter().map(|(name, value)| (name, OsStr::new(value).to_owned()));
    fixed.chain([("PATH", path), ("HOME", folder.as_os_str().to_owned())]).collect()
}

async fn all_of(from: Option<impl AsyncRead + Unpin>) -> String {
    let mut all = Vec::new();
    if let Some(mut from) = from {
        // The rest is read and forgotten: a program that nobody listens to would stand still.
        let _ = (&mut from).take(MOST_SAID).read_to_end(&mut all).await;
        let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// How many bytes lie below a folder.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => size(&entry.path()),
        Ok(_) => entry.metadata().map_or(0, |known| known.len()),
        Err(_) => 0,
    };
    entries.map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::super::place::Given;
    use super::*;

    const LIMITS: GitLimits = GitLimits { time: Duration::from_secs(60), bytes: 1024 * 1024 };

    /// Runs git in a repository, as somebody with no settings.
    fn git(folder: &Path, arguments: &[&str]) {
        let ended = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
            .args(arguments)
            .current_dir(folder)
            .envs(environment(folder))
            .output()
            .unwrap();
        assert!(ended.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
    }

    /// A repository with two states, a tag on the first, a link that leads out, and a hook of its own.
    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        git(folder.path(), &["init", "--quiet"]);
        std::fs::create_dir(at("docs")).unwrap();
        std::fs::write(at("docs/a.md"), "first\n").unwrap();
        std::os::unix::fs::symlink("/etc", at("out")).unwrap();
        git(folder.path(), &["add", "."]);
        git(folder.path(), &["commit", "--quiet", "-m", "one"]);
        git(folder.path(), &["tag", "v1"]);
        std::fs::write(at("docs/a.md"), "second\n").unwrap();
        git(folder.path(), &["commit", "--quiet", "-a", "-m", "two"]);
        folder
    }

    async fn fetch(given: &str, limits: GitLimits) -> (tempfile::TempDir, Result<CheckedOut, String>) {
        let Ok(Given::Repository(repository)) = Given::read(Path::new(given)) else { panic!("{given}") };
        let (work, web) = (tempfile::tempdir().unwrap(), WebSettings::default());
        let git = Git { limits, web: &web, host: None };
        let got = git.check_out(&repository, work.path(), |_| {}).await;
        (work, got)
    }

    #[tokio::test]
    async fn a_repository_is_fetched_at_what_was_asked_for_and_runs_nothing() {
        let from = repository();
        let url = format!("git+file://{}", from.path().display());
        let (work, got) = fetch(&url, LIMITS).await;
        let got = got.unwrap();
        assert_eq!(std::fs::read_to_string(got.place.join("docs/a.md")).unwrap(), "second\n");
        assert_eq!((got.commit.len(), got.made.get(..2)), (40, Some("20")), "{got:?}");
        assert!(std::fs::symlink_metadata(work.path().join("out")).unwrap().is_file(), "a link is a text");
        let hooks = std::fs::read_dir(work.path().join(".git/hooks"));
        assert!(hooks.is_err(), "there are no hooks");

        let (_work, old) = fetch(&format!("{url}@v1#docs/a.md"), LIMITS).await;
        assert_eq!(std::fs::read_to_string(old.unwrap().place).unwrap(), "first\n");
    }

    #[tokio::test]
    async fn what_is_not_there_or_too_much_is_told() {
        let from = repository();
        let url = format!("git+file://{}", from.path().display());
        for (given, said) in [
            (format!("{url}@nowhere"), "git: "),
            (format!("{url}#nothing"), "there is no `nothing` in it at "),
            // A link to a folder outside is a text, and no folder.
            (format!("{url}#out/hostname"), "there is no `out/hostname`"),
            (format!("{url}/none"), "git: "),
        ] {
            let (_work, got) = fetch(&given, LIMITS).await;
            let told = got.unwrap_err();
            assert!(told.starts_with(said), "{given}: {told}");
        }
        let (_work, got) = fetch(&url, GitLimits { time: Duration::ZERO, ..LIMITS }).await;
        assert!(got.unwrap_err().contains("it was not fetched within"));
    }
}
