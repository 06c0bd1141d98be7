//! Files of a run on the disk of a person: their directory, and names that no process reads as configuration.
//!
//! A model chooses the name and the content of such a file. A settings file, a tool, an agent, a blueprint or a template must not
//! take effect because a run wrote it, wherever it is copied. Its name gets an ending that no search for configuration finds.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use muster_agents::definition::EXTENSION;
use muster_shared::ids::RunId;

use crate::app::App;
use crate::exit::{Failure, usage};
use crate::settings::FILE_NAME;
use crate::trust::{absolute, has_ending_of_program, leads_out, paths_in, real};
use crate::{mcp_file, tool_files};

/// Ending of a delivered file that would be read as configuration under its own name.
const ENDING: &str = ".untrusted";

/// Remedy of a file that is not in effect.
pub(crate) const REMEDY: &str =
    "to use it, read it, move it to its place without `.untrusted`, and run `muster trust`";

/// Directory of the files of a run whose report is this file: `out/report.files` for `out/report.md`.
pub(crate) fn folder_of_report(report: &Path) -> PathBuf {
    let folder = report.with_extension("files");
    if folder == report { report.with_extension("files.files") } else { folder }
}

/// Directory of the files of a run without a report file: `run-0193c2.files`.
pub(crate) fn folder_of_run(run: RunId) -> PathBuf {
    PathBuf::from(format!("run-{}.files", run.short()))
}

/// Returns true if a path of [`ConfigurationPaths::target`] has another name than the file in the run.
pub(crate) fn is_renamed(target: &Path, path: &str) -> bool {
    !target.ends_with(path)
}

/// Name of a file for a download, which may be stored in any directory.
pub(crate) fn download_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    if is_reserved(Path::new(path)) { format!("{name}{ENDING}") } else { name.to_owned() }
}

/// Checks that a file or folder for results of runs is not itself read as configuration.
///
/// # Errors
/// Names the file, and another one to use.
pub(crate) fn check(app: &App, path: &Path) -> Result<(), Failure> {
    let (place, base) = (real_place(path), absolute(&app.beside_fleet(Path::new(""))));
    let shown = path.display();
    let full = absolute(path);
    let is_within = full.strip_prefix(&base).is_ok_and(|path| !leads_out(path));
    if is_within && (!place.starts_with(real(&base)) || path.is_symlink() && !path.exists()) {
        return Err(usage!("cannot write results of a run to {shown}: a link leads it out of the project")
            .help(format!("name the place itself: {}", place.display())));
    }
    let is_in_fleet = place.starts_with(real(app.fleet.path()))
        || place.iter().any(|part| folded(&part.to_string_lossy()) == ".muster");
    if !is_in_fleet && !ConfigurationPaths::of(app).contains(path) {
        return Ok(());
    }
    let why =
        if is_in_fleet { "it is in the directory of a fleet" } else { "Muster reads it as configuration" };
    Err(usage!("cannot write results of a run to {shown}: {why}").help("name another one, such as report.md"))
}

/// Paths that processes read as configuration or run as programs: present or missing, trusted or not.
pub(crate) struct ConfigurationPaths {
    /// Files, as file systems compare them.
    named: BTreeSet<String>,
    /// Directories from which programs load others.
    folders: Vec<PathBuf>,
    blueprints: Vec<PathBuf>,
    has_templates: bool,
}

impl ConfigurationPaths {
    /// The paths that settings, guards, tool files and the file of MCP servers name.
    pub(crate) fn of(app: &App) -> Self {
        let (loaded, settings) = (&app.loaded, app.settings());
        let base = app.beside_fleet(Path::new(""));
        let tools = tool_files::programs(&tool_files::folder_of(app), &base);
        let (mut named, mut folders) = (BTreeSet::new(), Vec::new());
        for programs in tools.into_iter().chain([mcp_file::programs(&mcp_file::path_of(app), &base)]) {
            named.extend(programs.named);
            folders.extend(programs.folders.iter().map(|folder| real_place(folder)));
        }
        let values = loaded.effective.iter().map(|one| one.value.to_string());
        for text in values.chain(loaded.needs.iter().map(|item| item.shown.clone())) {
            // Words such as `auto` are no paths.
            let paths = paths_in(&text).filter(|part| part.contains(['/', '.']));
            named.extend(paths.flat_map(|path| [app.beside_fleet(Path::new(path)), PathBuf::from(path)]));
        }
        named.extend(settings.guards.values().filter_map(|guard| guard.file.clone()));
        let blueprints = settings.agent.blueprints.iter();
        Self {
            named: named.iter().map(|path| folded(&real_place(path).to_string_lossy())).collect(),
            folders,
            blueprints: blueprints.map(|folder| real_place(&app.beside_fleet(folder))).collect(),
            has_templates: settings.agent.template_dir.is_some()
                || loaded.needs.iter().any(|item| item.name == "agent.template_dir"),
        }
    }

    /// Path of a file of a run below a folder, under a name that no process reads as configuration.
    pub(crate) fn target(&self, folder: &Path, path: &str) -> PathBuf {
        let mut target = folder.join(path);
        if self.contains(&target) {
            target.as_mut_os_string().push(ENDING);
        }
        target
    }

    fn contains(&self, path: &Path) -> bool {
        let place = real_place(path);
        let name = folded(&place.to_string_lossy());
        // No program loads others from a directory such as `report.files`.
        let loads = |folder: &PathBuf| {
            let within = place.strip_prefix(folder).ok().and_then(Path::parent);
            within.is_some_and(|within| !within.to_string_lossy().contains('.'))
        };
        is_reserved(path)
            || is_reserved(&place)
            || self.named.contains(&name)
            || self.has_templates && name.ends_with(".j2")
            || name.ends_with(".toml")
                && self.blueprints.iter().any(|folder| place.parent() == Some(folder.as_path()))
            || has_ending_of_program(&place) && self.folders.iter().any(loads)
    }
}

/// Returns true if a file of this name is read as configuration in some directory, or has the name of one that was renamed.
fn is_reserved(path: &Path) -> bool {
    const NAMES: [&str; 2] = [FILE_NAME, "mcp.json"];
    const ENDINGS: [&str; 4] =
        [EXTENSION, muster_tool_server::file::ENDING, muster_composite::ENDING, ENDING];
    let parts: Vec<String> = path.iter().map(|part| folded(&part.to_string_lossy())).collect();
    let Some((name, folders)) = parts.split_last() else { return false };
    NAMES.contains(&name.as_str())
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || name.ends_with(".toml") && folders.iter().any(|folder| folder == "blueprints")
}

/// An absolute path without links and `..`, also of a file that does not exist yet.
fn real_place(path: &Path) -> PathBuf {
    let missing: Vec<_> =
        path.ancestors().take_while(|above| !above.exists() && !above.as_os_str().is_empty()).collect();
    let there = path.ancestors().nth(missing.len()).filter(|above| !above.as_os_str().is_empty());
    let there = real(there.unwrap_or(Path::new(".")));
    let step = |place: PathBuf, path: &&Path| match path.components().next_back() {
        Some(Component::ParentDir) => place.parent().map(Path::to_owned).unwrap_or(place),
        Some(part) => real(&place.join(part)),
        None => place,
    };
    missing.iter().rev().fold(there, step)
}

/// Letters as a file system that ignores case compares them: some have two lower forms and one upper form.
fn folded(text: &str) -> String {
    text.to_lowercase().to_uppercase().to_lowercase()
}

/// A report whose relative links to delivered files lead to their directory. `place` returns the new target of a link.
pub(crate) fn relinked(body: &str, place: impl Fn(&str) -> Option<String>) -> String {
    let (mut text, mut rest) = (String::with_capacity(body.len()), body);
    while let Some(at) = rest.find("](") {
        let (before, after) = rest.split_at(at + 2);
        let end = after.find(|c: char| c == ')' || c.is_whitespace()).unwrap_or(after.len());
        let target = &after[..end];
        let path = target.trim_start_matches('<').trim_end_matches('>');
        text += before;
        text += &place(path.strip_prefix("./").unwrap_or(path)).unwrap_or_else(|| target.to_owned());
        rest = &after[end..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_process_reads_as_configuration_are_recognized() {
        for (path, expected) in [
            ("muster.toml", true),
            ("deep/Muster.TOML", true),
            ("MU\u{17f}TER.toml", true),
            ("a/mcp.json", true),
            ("tools/glossary.tool.toml", true),
            ("x.Composite.toml", true),
            ("agents/evil.agent.md", true),
            ("mcp.json.Untrusted", true),
            ("prompts/page.html.j2", false),
            ("Blueprints/evil.toml", true),
            ("blueprints.toml", false),
            ("Cargo.toml", false),
            ("agents/report.md", false),
            ("shares.csv", false),
        ] {
            assert_eq!(is_reserved(Path::new(path)), expected, "{path}");
            assert_eq!(download_name(path).ends_with(ENDING), expected, "{path}");
        }
    }

    #[test]
    fn files_go_to_a_directory_named_after_the_report_and_its_links_follow() {
        for (report, folder) in [
            ("r.md", "r.files"),
            ("out/r", "out/r.files"),
            ("a.b.md", "a.b.files"),
            ("r.files", "r.files.files"),
        ] {
            assert_eq!(folder_of_report(Path::new(report)), Path::new(folder), "{report}");
        }
        let place = |path: &str| (path == "c/x.svg").then(|| "r.files/c/x.svg".to_owned());
        for (body, expected) in [
            ("![x](c/x.svg)", "![x](r.files/c/x.svg)"),
            ("[x](./c/x.svg \"t\") [y](<c/x.svg>)", "[x](r.files/c/x.svg \"t\") [y](r.files/c/x.svg)"),
            ("[x](https://a/c/x.svg), c/x.svg, [x](", "[x](https://a/c/x.svg), c/x.svg, [x]("),
        ] {
            assert_eq!(relinked(body, place), expected);
        }
    }

    #[test]
    fn a_path_is_compared_where_its_links_lead() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        std::fs::create_dir_all(at("p/.muster")).unwrap();
        std::os::unix::fs::symlink(at("p/.muster"), at("out")).unwrap();
        let is_in_muster = |path: &str| {
            real_place(&at(path)).iter().any(|part| folded(&part.to_string_lossy()) == ".muster")
        };
        for path in ["out/r.md", "out/new/r.md", "p/.muster/x", "p/.MUSTER/x", "new/../out/x"] {
            assert!(is_in_muster(path), "{path}");
        }
        assert!(!is_in_muster("p/.muster/../r.md"));
    }
}
