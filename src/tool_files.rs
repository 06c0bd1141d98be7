//! Tool files (`*.tool.toml`) of a folder, as the command line reads them: whose they are counts, as with agent files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use muster_agents::tools::Tool;
use muster_composite::{Composite, together};
use muster_shared::claim::TrustClaim;
use muster_tool_server::file::{Does, ENDING, Fault, Hands, MAX_BYTES, ToolFile, tools_of};

use crate::app::App;
use crate::settings::TOOLS_DIR;
use crate::trust::{Danger, Item, Programs, Trust, files_of, items_of, real};

/// Most files that are looked at.
const MOST_FILES: usize = 256;

/// What the tool files of a folder come to.
#[derive(Default)]
pub(crate) struct Found {
    /// The tools, by file.
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// What each file defines, for whoever asks.
    pub(crate) files: Vec<(PathBuf, ToolFile)>,
    /// What is wrong, with the place, a line for each file that is left out.
    pub(crate) faults: Vec<String>,
}

/// The folder in which a fleet looks for tool files.
pub(crate) fn folder_of(app: &App) -> PathBuf {
    app.beside_fleet(Path::new(TOOLS_DIR))
}

/// The files with tools or composite tools in a folder, by name. One that is not there has none.
pub(crate) fn files_in(folder: &Path, ending: &str) -> Vec<PathBuf> {
    files_of(folder, ending).into_iter().take(MOST_FILES).collect()
}

/// The composite tools of a folder, which lies in `base`, and what is wrong with those that are left out.
pub(crate) fn read_composites(folder: &Path, base: &Path, trust: &Trust) -> (Vec<Composite>, Vec<String>) {
    use muster_composite::{ENDING, MAX_BYTES};
    let (mut read, mut faults) = (Vec::new(), Vec::new());
    for path in files_in(folder, ENDING) {
        let composite = counted(&path, base, trust, MAX_BYTES)
            .and_then(|text| Ok((parsed(&path, &text, ENDING, Composite::parse)?, text)));
        match composite {
            Ok((composite, text)) => read.push((text, composite)),
            Err(fault) => faults.push(fault),
        }
    }
    let (sound, wrong) = together(read);
    faults.extend(wrong.iter().map(|(name, fault)| {
        let stem = name.rsplit('.').next().unwrap_or_default();
        placed(&folder.join(format!("{stem}{ENDING}")), fault)
    }));
    (sound, faults)
}

/// A fault with its place, in one line.
fn placed(path: &Path, Fault { line, column, what, advice }: &Fault) -> String {
    let advice = if advice.is_empty() { String::new() } else { format!(" ({advice})") };
    format!("{}:{line}:{column}: {what}{advice}", path.display())
}

/// The tool of a file, whose name without the ending the parser needs.
fn parsed<T>(
    path: &Path,
    text: &str,
    ending: &str,
    parse: impl Fn(&str, &str) -> Result<T, Fault>,
) -> Result<T, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    parse(text, name.trim_end_matches(ending)).map_err(|fault| placed(path, &fault))
}

/// The text of a file, if it counts.
fn counted(path: &Path, base: &Path, trust: &Trust, most: u64) -> Result<String, String> {
    let shown = path.display();
    let text =
        muster_agents::input::text(path, most).map_err(|why| format!("{shown} cannot be read: {why}"))?;
    match trust.fault_of_found(path, base, &text) {
        None => Ok(text),
        Some(fault) => {
            let (about, mend) = (fault.about(path), fault.mend());
            Err(format!(
                "{shown} does not count: {about}; {mend}, or `muster trust {shown}` lets it count as it is now"
            ))
        }
    }
}

/// Items of a tool file that need the user's consent; empty if the file cannot be read.
pub(crate) fn wanted(path: &Path, base: &Path) -> Vec<Item> {
    file_of(path).map(|(file, text)| items(&file, path, &text, base)).unwrap_or_default()
}

fn file_of(path: &Path) -> Option<(ToolFile, String)> {
    let text = muster_agents::input::text(path, MAX_BYTES).ok()?;
    Some((parsed(path, &text, ENDING, ToolFile::parse).ok()?, text))
}

fn items(file: &ToolFile, path: &Path, text: &str, base: &Path) -> Vec<Item> {
    let folder = path.parent().unwrap_or(base);
    let mut claims = file.claims();
    let paths = file.paths().into_iter().map(|(key, path)| (key, real(&folder.join(path))));
    // The directory of a fleet has its keys.
    let is_outside = |path: &Path| !path.starts_with(real(base)) || path.iter().any(|part| part == ".muster");
    let outside = paths.filter(|(_, path)| is_outside(path));
    claims.extend(outside.map(|(key, path)| TrustClaim::new(Danger::Read, key, path.display().to_string())));
    // A claim may send the secrets: the user has to see them.
    if !claims.is_empty() && !file.secrets.is_empty() {
        let shown = file.secrets.iter().map(|(name, path)| format!("{name} from {}", path.display()));
        let shown = shown.collect::<Vec<_>>().join(", ");
        claims.push(TrustClaim::new(Danger::Secret, "secrets", shown));
    }
    items_of(path, text, &claims, &programs_of(file, folder, base).files)
}

/// The programs of a tool file in this folder, and the other files that it names.
fn programs_of(file: &ToolFile, folder: &Path, base: &Path) -> Programs {
    let mut programs = Programs::default();
    programs.named.extend(file.paths().into_iter().map(|(_, path)| folder.join(path)));
    if let Does::Program { command, environment, .. } = &file.does {
        programs.folders.insert(folder.to_owned());
        programs.add(command, environment, folder, base);
    }
    programs
}

/// The programs of all tool files of a folder, trusted or not.
pub(crate) fn programs(folder: &Path, base: &Path) -> Vec<Programs> {
    let files = files_in(folder, ENDING);
    files.iter().filter_map(|path| Some(programs_of(&file_of(path)?.0, folder, base))).collect()
}

/// Tells whether anything in the folder is not as it was, files beside the tool files too.
pub(crate) fn stamp(folder: &Path) -> BTreeMap<PathBuf, (Option<std::time::SystemTime>, u64)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return BTreeMap::new() };
    let known = entries.flatten().take(4 * MOST_FILES).filter_map(|entry| {
        let known = entry.metadata().ok()?;
        Some((entry.path(), (known.modified().ok(), known.len())))
    });
    known.collect()
}

/// Reads the tool files of a folder, which lies in `base`. Of several that define one tool, the first by name counts.
pub(crate) fn read(folder: &Path, base: &Path, trust: &Trust, hands: &Hands) -> Found {
    let (mut found, mut taken) = (Found::default(), BTreeSet::new());
    for path in files_in(folder, ENDING) {
        let shown = path.display();
        let defined = read_one(&path, base, trust)
            .and_then(|file| tools_of(file, folder, hands).map_err(|why| format!("{shown}: {why}")));
        let defined = match defined {
            Ok(defined) => defined,
            Err(fault) => {
                found.faults.push(fault);
                continue;
            }
        };
        found.faults.extend(defined.faults.iter().map(|fault| format!("{shown}: {fault}")));
        for (file, tool) in defined.tools {
            if !taken.insert(file.name.clone()) {
                let name = &file.name;
                found.faults.push(format!("{shown}: a file before it defines the tool {name} already"));
                continue;
            }
            found.tools.push(tool);
            found.files.push((path.clone(), file));
        }
    }
    found
}

fn read_one(path: &Path, base: &Path, trust: &Trust) -> Result<ToolFile, String> {
    let shown = path.display();
    let text = counted(path, base, trust, MAX_BYTES)?;
    let file = parsed(path, &text, ENDING, ToolFile::parse)?;
    trust.consent(path, items(&file, path, &text, base))?;
    // Whoever can change the program can have anything run.
    let folder = path.parent().unwrap_or(base);
    for beside in file.beside(folder) {
        if !beside.is_file() {
            return Err(format!("{shown}: there is no file {}", beside.display()));
        }
        if let Some(fault) = trust.plain_fault(&beside, base).filter(|_| !trust.trusts_program(&beside)) {
            return Err(format!("{shown} does not count: {}; {}", fault.about(&beside), fault.mend()));
        }
    }
    Ok(file)
}
