//! `muster artifacts`: the files that a run's tasks made.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use muster_agents::tools::workspace::WorkspacePath;
use muster_bus::Bus;
use muster_shared::flow::Artifact;
use muster_shared::ids::RunId;
use serde_json::json;

use super::select;
use crate::app::App;
use crate::args::ArtifactsArgs;
use crate::delivered_file::ConfigurationPaths;
use crate::exit::{Exit, Failure, failed, usage};
use crate::{delivered_file, output, render};

/// Lists the files of a run, or copies them.
pub(super) async fn artifacts(app: &App, args: &ArtifactsArgs) -> Result<Exit, Failure> {
    select::reading(app, async |bus| {
        let run = select::run(bus, &args.run).await?;
        let listed = bus.files().list(run).await?;
        let chosen = choose(listed.files, &args.paths, run)?;
        if args.get {
            return copy(app, bus, run, &chosen, args).await;
        }
        output::json_or_line(args.json, || in_json(run, &chosen), || render::artifacts::list(&chosen, run))
    })
    .await
}

/// The files of a run as `muster artifacts --json` lists them.
pub(crate) fn in_json(run: RunId, files: &[Artifact]) -> serde_json::Value {
    json!({ "run": run, "artifacts": files })
}

/// The files that are meant: all of them, or those of these paths. Pure.
fn choose(files: Vec<Artifact>, paths: &[String], run: RunId) -> Result<Vec<Artifact>, Failure> {
    if paths.is_empty() {
        return Ok(files);
    }
    let mut chosen = Vec::new();
    for path in paths {
        let wanted = path.strip_prefix("./").unwrap_or(path);
        let Some(file) = files.iter().find(|file| file.path == wanted) else {
            return Err(usage!("run {} has no file {path:?}", run.short())
                .help(format!("`muster artifacts {}` lists those it has", run.short())));
        };
        chosen.push(file.clone());
    }
    Ok(chosen)
}

async fn copy(
    app: &App,
    bus: &Bus,
    run: RunId,
    files: &[Artifact],
    args: &ArtifactsArgs,
) -> Result<Exit, Failure> {
    let folder = args.output.clone().unwrap_or_else(|| delivered_file::folder_of_run(run));
    delivered_file::check(app, &folder)?;
    if args.output.is_none() && folder.is_symlink() {
        return Err(usage!("{} is a link", folder.display()).help("name a folder with --output"));
    }
    let (configuration, mut copied) = (ConfigurationPaths::of(app), Vec::new());
    for file in files {
        // The list is data from the bus: only what is a path of a workspace is made a path of this disk.
        let path = WorkspacePath::parse(&file.path)
            .map_err(|error| failed!("a file of the run cannot be copied: {error}"))?;
        let Some(bytes) = bus.files().read(run, path.as_str()).await? else {
            return Err(failed!("{path} was removed in the meantime")
                .help("list the files again with `muster artifacts`"));
        };
        let target = configuration.target(&folder, path.as_str());
        write(&folder, &target, &bytes, args.force)?;
        let is_untrusted = delivered_file::is_renamed(&target, path.as_str());
        copied.push((file.clone(), target, is_untrusted));
    }
    copied.sort_by_key(|(_, _, is_untrusted)| !is_untrusted);
    if args.json {
        let one = |(file, to, is_untrusted): &(Artifact, PathBuf, bool)| json!({ "artifact": file, "to": to, "untrusted": is_untrusted });
        let copied: Vec<_> = copied.iter().map(one).collect();
        output::json(&json!({ "run": run, "copied": copied }))?;
    } else if copied.is_empty() {
        output::line(&render::artifacts::list(&[], run))?;
    } else {
        for (_, target, is_untrusted) in &copied {
            output::line(&target.display().to_string())?;
            if *is_untrusted {
                output::note!("{} is not in effect; {}", target.display(), delivered_file::REMEDY);
            }
        }
    }
    Ok(Exit::Completed)
}

/// Writes one file below a folder. A link on the way that leads out of it is not followed.
pub(super) fn write(folder: &Path, target: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        failed!("cannot write {}: {error}", target.display()).help("choose another folder with -o")
    };
    let parent = target.parent().unwrap_or(folder);
    std::fs::create_dir_all(folder).map_err(cannot)?;
    let inside = real(folder).map_err(cannot)?;
    let deepest = parent.ancestors().find(|above| above.exists()).unwrap_or(folder);
    let is_outside = |path: &Path| real(path).map(|path| !path.starts_with(&inside));
    if is_outside(deepest).map_err(cannot)? {
        return Err(failed!("{} points outside {}", target.display(), folder.display())
            .help("a symbolic link is in the way: remove it, or choose another folder with -o"));
    }
    std::fs::create_dir_all(parent).map_err(cannot)?;
    if force {
        // A link is removed, not followed.
        match std::fs::remove_file(target) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(cannot(error)),
            Ok(()) | Err(_) => {}
        }
    }
    let mut file = match OpenOptions::new().write(true).create_new(true).open(target) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(failed!("{} is there already", target.display())
                .help("replace it with --force, or choose another folder with -o"));
        }
        Err(error) => return Err(cannot(error)),
    };
    file.write_all(bytes).map_err(cannot)
}

fn real(path: &Path) -> std::io::Result<PathBuf> {
    std::fs::canonicalize(if path.as_os_str().is_empty() { Path::new(".") } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_once_and_never_through_a_link() {
        let place = tempfile::tempdir().unwrap();
        let (folder, outside) = (place.path().join("here"), place.path().join("outside"));
        std::fs::create_dir_all(&outside).unwrap();
        write(&folder, &folder.join("a/b.md"), b"one", false).unwrap();
        assert_eq!(std::fs::read(folder.join("a/b.md")).unwrap(), b"one");
        assert!(write(&folder, &folder.join("a/b.md"), b"two", false).is_err());
        write(&folder, &folder.join("a/b.md"), b"two", true).unwrap();
        assert_eq!(std::fs::read(folder.join("a/b.md")).unwrap(), b"two");

        std::os::unix::fs::symlink(&outside, folder.join("up")).unwrap();
        std::os::unix::fs::symlink(outside.join("c.md"), folder.join("c.md")).unwrap();
        assert!(write(&folder, &folder.join("up/c.md"), b"x", true).is_err());
        assert!(write(&folder, &folder.join("up/new/c.md"), b"x", true).is_err());
        assert!(write(&folder, &folder.join("c.md"), b"x", false).is_err());
        write(&folder, &folder.join("c.md"), b"x", true).unwrap();
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }
}
