//! What `--docs` names: a file or folder here, a page, or a repository. Pure.

use std::path::{Path, PathBuf};

/// Longest address, in bytes.
const MAX_ADDRESS: usize = 4096;
/// Longest part of a path that is made of an address, in characters.
const MAX_PART: usize = 100;

/// What is given as documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Given {
    /// A file or folder of this machine.
    Here(PathBuf),
    /// A page or document of the web.
    Page(String),
    /// A repository.
    Repository(Repository),
}

/// A repository of git, and what of it is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    /// As it was given.
    pub(crate) given: String,
    /// What git is asked for.
    pub(crate) url: String,
    /// The branch, tag or commit; what the repository has for usual when absent.
    pub(crate) revision: Option<String>,
    /// The folder or file in it; all of it when absent.
    pub(crate) path: Option<String>,
    /// What its paths begin with: `example.org/owner/repo`.
    pub(crate) name: String,
}

impl Repository {
    /// Whether it lies on this machine.
    pub(crate) fn is_here(&self) -> bool {
        self.url.starts_with("file://")
    }
}

impl Given {
    /// What is meant.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub(crate) fn read(given: &Path) -> Result<Self, String> {
        let Some(text) = given.to_str() else { return Ok(Self::Here(given.to_owned())) };
        let lower = text.to_ascii_lowercase();
        if let Some(scheme) = lower.split("://").next().filter(|scheme| scheme.len() < lower.len()) {
            if text.len() > MAX_ADDRESS {
                return Err(format!("it is longer than {MAX_ADDRESS} bytes"));
            }
            return match scheme {
                "http" | "https" => without_user(text).map(|()| Self::Page(text.to_owned())),
                "git+https" | "git+http" | "git+file" => repository(text).map(Self::Repository),
                // What has a colon and slashes in its name is rare, and may be meant.
                _ if given.exists() => Ok(Self::Here(given.to_owned())),
                other => Err(format!(
                    "{other}:// is not fetched; give https://…, http://…, git+https://…[@REVISION][#PATH], git+file:///…, or a folder"
                )),
            };
        }
        Ok(Self::Here(given.to_owned()))
    }
}

fn without_user(url: &str) -> Result<(), String> {
    let authority = url.split("://").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next());
    match authority {
        Some(authority) if authority.contains('@') => {
            Err("it has a user name or a password in it, which others would see; leave them out".to_owned())
        }
        Some(authority) if !authority.is_empty() => Ok(()),
        _ => Err("it names no host".to_owned()),
    }
}

fn repository(text: &str) -> Result<Repository, String> {
    let (whole, path) = match text.split_once('#') {
        Some((whole, path)) => (whole, Some(path.trim_matches('/').to_owned())),
        None => (text, None),
    };
    let path = path.filter(|path| !path.is_empty());
    if path
        .as_deref()
        .is_some_and(|path| path.split('/').any(|part| matches!(part, "" | "." | ".." | ".git")))
    {
        return Err("the path after `#` has to lie in the repository, without `..`".to_owned());
    }
    let (scheme, rest) = whole.split_once("://").unwrap_or_default();
    let scheme = scheme.to_ascii_lowercase();
    let scheme = scheme.trim_start_matches("git+");
    if scheme != "file" {
        without_user(whole)?;
    }
    // A revision follows the path: an `@` in the last part of it, or in what a branch with slashes makes further parts of.
    let (at, revision) = match rest.find('/').and_then(|slash| rest[slash..].find('@').map(|at| slash + at)) {
        Some(at) => (&rest[..at], Some(rest[at + 1..].to_owned())),
        None => (rest, None),
    };
    if let Some(revision) = &revision {
        let is_sound = !revision.is_empty()
            && !revision.starts_with(['-', '/'])
            && !revision.contains("..")
            && revision
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-' | '+'));
        if !is_sound {
            return Err(format!("`{revision}` is no branch, tag or commit"));
        }
    }
    let at = at.trim_end_matches('/');
    if scheme == "file" && !at.starts_with('/') {
        return Err(
            "a repository of this machine is written with its full path: git+file:///home/me/repo".to_owned()
        );
    }
    if at.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("there is a space in it".to_owned());
    }
    let name = if scheme == "file" { at.rsplit('/').next().unwrap_or_default() } else { at };
    let name = as_path(name.strip_suffix(".git").unwrap_or(name));
    if name.is_empty() || !at.contains('/') {
        return Err("it names no repository".to_owned());
    }
    Ok(Repository { given: text.to_owned(), url: format!("{scheme}://{at}"), revision, path, name })
}

/// The path under which a page is kept and cited: host, then path, with an ending that says what it is.
pub(crate) fn page_path(url: &str, media_type: Option<&str>) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split('#').next().unwrap_or(rest);
    let (at, query) = rest.split_once('?').map_or((rest, None), |(at, query)| (at, Some(query)));
    let (host, path) = at.split_once('/').unwrap_or((at, ""));
    let path = if path.is_empty() || path.ends_with('/') { format!("{path}index") } else { path.to_owned() };
    let (folder, name) = path.rsplit_once('/').map_or(("", path.as_str()), |(folder, name)| (folder, name));
    let known =
        |ending: &str| (1..=5).contains(&ending.len()) && ending.chars().all(|c| c.is_ascii_alphanumeric());
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() && known(ending) => {
            (stem, Some(ending.to_ascii_lowercase()))
        }
        _ => (name, None),
    };
    let said = media_type.and_then(ending_of);
    let ending = match (ending, said) {
        // Programs that make pages have names of their own: what comes is what counts.
        (_, Some(said @ ("html" | "pdf"))) => said.to_owned(),
        (Some(ending), _) => ending,
        (None, said) => said.unwrap_or("txt").to_owned(),
    };
    let query = query.map(|query| format!("_{query}")).unwrap_or_default();
    let name = as_part(&format!("{stem}{query}"));
    let folders = as_path(&format!("{host}/{folder}"));
    format!("{folders}/{name}.{ending}")
}

fn ending_of(media_type: &str) -> Option<&'static str> {
    Some(match media_type {
        "text/html" | "application/xhtml+xml" => "html",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "text/csv" => "csv",
        "text/markdown" => "md",
        "application/xml" | "text/xml" => "xml",
        "application/zip" => "zip",
        "application/epub+zip" => "epub",
        // Media types are open.
        _ => return None,
    })
}

/// Parts of an address as parts of a path.
fn as_path(text: &str) -> String {
    let parts = text.split('/').filter(|part| !part.is_empty()).map(as_part);
    parts.collect::<Vec<_>>().join("/")
}

/// One part, of letters that every file system has; never hidden, never a way up.
fn as_part(text: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let part: String = text.chars().map(plain).take(MAX_PART).collect();
    let part = part.trim_start_matches('.');
    if part.is_empty() { "_".to_owned() } else { part.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository_of(text: &str) -> Repository {
        match Given::read(Path::new(text)) {
            Ok(Given::Repository(repository)) => repository,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn what_is_given_is_a_place_here_a_page_or_a_repository() {
        for here in ["docs", "./a/b.md", "/tmp/x", "C:/x", "user@host"] {
            assert_eq!(Given::read(Path::new(here)), Ok(Given::Here(here.into())));
        }
        let page = Given::read(Path::new("HTTPS://example.org/a")).unwrap();
        assert_eq!(page, Given::Page("HTTPS://example.org/a".to_owned()));
        for (text, url, revision, path, name) in [
            ("git+https://example.org/o/r", "https://example.org/o/r", None, None, "example.org/o/r"),
            (
                "git+https://example.org/o/r.git@v1.2#docs/",
                "https://example.org/o/r.git",
                Some("v1.2"),
                Some("docs"),
                "example.org/o/r",
            ),
            (
                "git+https://example.org/o/r@feature/x",
                "https://example.org/o/r",
                Some("feature/x"),
                None,
                "example.org/o/r",
            ),
            (
                "git+file:///home/me/repo@main#a/b.md",
                "file:///home/me/repo",
                Some("main"),
                Some("a/b.md"),
                "repo",
            ),
            ("git+http://127.0.0.1:8000/r", "http://127.0.0.1:8000/r", None, None, "127.0.0.1_8000/r"),
        ] {
            let found = repository_of(text);
            assert_eq!(
                (found.url.as_str(), found.revision.as_deref(), found.path.as_deref(), found.name.as_str()),
                (url, revision, path, name),
                "{text}"
            );
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_what_to_write() {
        for (text, said) in [
            ("ftp://example.org/x", "is not fetched"),
            ("file:///etc/passwd", "is not fetched"),
            ("git+ssh://git@example.org/r", "is not fetched"),
            ("git+ext://sh", "is not fetched"),
            ("https://me:secret@example.org/", "a user name"),
            ("git+https://me@example.org/r", "a user name"),
            ("https:///x", "names no host"),
            ("git+https://example.org", "no repository"),
            ("git+https://example.org/r@--upload-pack=x", "no branch"),
            ("git+https://example.org/r@a..b", "no branch"),
            ("git+https://example.org/r@", "no branch"),
            ("git+https://example.org/r#../x", "without `..`"),
            ("git+https://example.org/r#.git/config", "without `..`"),
            ("git+file://repo", "its full path"),
        ] {
            let told = Given::read(Path::new(text)).unwrap_err();
            assert!(told.contains(said) && !told.contains("secret"), "{text}: {told}");
        }
    }

    #[test]
    fn a_page_is_cited_by_host_and_path_and_never_leads_out() {
        for (url, media_type, path) in [
            ("https://example.org", Some("text/html"), "example.org/index.html"),
            ("https://example.org/a/b/", Some("text/html"), "example.org/a/b/index.html"),
            ("https://example.org/a/guide", Some("text/html"), "example.org/a/guide.html"),
            ("https://example.org/a.php?id=3&x=/", Some("text/html"), "example.org/a_id_3_x__.html"),
            ("https://example.org/p.pdf#page=2", Some("application/pdf"), "example.org/p.pdf"),
            ("https://example.org/d.JSON", None, "example.org/d.json"),
            ("https://example.org/data", Some("application/octet-stream"), "example.org/data.txt"),
            ("https://example.org/../../.ssh/..", None, "example.org/_/_/ssh/_.txt"),
            ("http://127.0.0.1:8/x.md", Some("text/plain"), "127.0.0.1_8/x.md"),
        ] {
            assert_eq!(page_path(url, media_type), path, "{url}");
        }
    }
}
